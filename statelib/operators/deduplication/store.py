"""The store of KIP-655: which ids were forwarded, when, and from which record.

It keeps the latest entry of each id, by segments of time as Kafka's window stores: what has expired leaves with its
whole segment, so an entry is there for up to half an interval longer than it counts. At a flush the store has, of each
id, the latest entry that is not older than the beginning of the segment in which the horizon lies (stream time -
interval), whatever the batches, slices and budgets were.

A look-up asks the segments that there are, two to four. Of a segment that this object has written or read as a whole
it has a filter in memory, which knows most ids that are not there; of others it keeps count of its questions, and once
they are as many as the entries it reads the segment instead.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import pyarrow as pa

from statelib.columns.arrow_buffers import spans_of
from statelib.columns.key_filter import KeyFilter, hashes_of
from statelib.errors.kinds import ConfigurationError
from statelib.operators.deduplication.codec import (
    SEGMENT_BYTES,
    Entries,
    decode_count,
    decode_segment,
    decode_values,
    encode_count,
    encode_keys_of,
    encode_segment,
    encode_values,
)
from statelib.operators.deduplication.format_1 import is_format_1
from statelib.operators.versioned.segment_interval import deduplication_segment_ms
from statelib.records.key_table import KeyTable
from statelib.stores.backend import Rows
from statelib.stores.byte_columns import in_order, joined

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from numpy.typing import NDArray

    from statelib.stores.backend import Backend, WriteBatch
    from statelib.stores.byte_columns import Column, Spans

    EntriesOf: TypeAlias = Callable[[NDArray[np.int64]], Entries]
    PartsOf: TypeAlias = Callable[[NDArray[np.int64]], Sequence[Spans]]

_READ_AT_ONCE = 1 << 14


@dataclass(frozen=True, slots=True)
class Changes:
    """New entries. The store makes columns of them some at a time, so that not all are in memory twice.

    Attributes:
        codes: int64, which entries are new; all else is by code.
        timestamp: int64, ms, of each entry.
        stored_ms: int64, the timestamp of the entry that the store has of each id, `NO_ENTRY` for none.
        ids: Gives the ids of some codes (int64), each once: what they are made of, one part after the other.
        entries: Gives the entries of some codes.
    """

    codes: NDArray[np.int64]
    timestamp: NDArray[np.int64]
    stored_ms: NDArray[np.int64]
    ids: PartsOf
    entries: EntriesOf


@dataclass(slots=True)
class _Segment:
    """What is known of a segment."""

    entries: int
    filter: KeyFilter | None = None  # of the ids of all entries
    asked: int = 0  # how many ids were looked up without it


class DeduplicationStore:
    """See the module's docstring. One object at a time may write a store.

    Args:
        backend: Where the families are.
        name: Of the store; its families are ``families(name)``.
        interval_ms: The deduplication interval.

    Raises:
        ConfigurationError: The store has format 1 (`statelib.operators.deduplication.format_1`).
        CorruptedDataError: Its segments cannot be read.
    """

    def __init__(self, backend: Backend, name: str, *, interval_ms: int) -> None:
        self._backend = backend
        self._name = name
        self._entries, self._by_segment = self.families(name)
        self._width_ms = deduplication_segment_ms(interval_ms)
        self._interval_ms = interval_ms
        self._segments = {
            decode_segment(key, name): _Segment(decode_count(value, name))
            for key, value in backend.scan(self._by_segment)
        }
        if is_format_1(backend, name):
            raise ConfigurationError(
                "the state of a deduplication has format 1",
                store=name,
                next_step="replay a slice of the job: this upgrades its state to the current format",
            )

    @staticmethod
    def families(name: str) -> tuple[str, str]:
        """The backend families of the store called ``name``."""
        return f"{name}.entries", f"{name}.segments"

    def __len__(self) -> int:
        """The number of entries."""
        return sum(segment.entries for segment in self._segments.values())

    def kept_from(self, stream_time_ms: int) -> int:
        """The oldest timestamp, ms, that the store keeps at this stream time."""
        return (stream_time_ms - self._interval_ms) // self._width_ms * self._width_ms

    def memory_bytes(self) -> int:
        """Size of the filters."""
        filters = (segment.filter for segment in self._segments.values())
        return sum(known.memory_bytes() for known in filters if known is not None)

    def fetch(self, id_bytes: bytes) -> Entries:
        """The entry of an id: one, or none. It may have expired."""
        since_ms = min(self._segments, default=0) * self._width_ms
        return self.load(pa.array([id_bytes], pa.binary()), since_ms=since_ms)[1]

    def load(self, ids: Column, *, since_ms: int) -> tuple[NDArray[np.int64], Entries]:
        """Looks up many ids at once.

        Args:
            ids: Each once.
            since_ms: Segments before the one of this time are left out.

        Returns:
            int64: which of the ids have an entry; and the entries of these.
        """
        hashes = hashes_of(ids)
        missing = np.ones(len(ids), dtype=np.bool_)
        found: list[NDArray[np.int64]] = [np.empty(0, dtype=np.int64)]
        values: list[bytes] = []
        asked = [number for number in self._segments if number >= since_ms // self._width_ms]
        for number in sorted(asked, reverse=True):  # what comes again mostly does so soon
            segment, rows = self._segments[number], np.flatnonzero(missing)
            look_up = self._ask
            if segment.filter is not None:
                rows = rows[segment.filter.may_have(hashes[rows])]
            else:
                segment.asked += len(rows)
                if segment.asked >= segment.entries:
                    look_up = self._read_whole
            for some, some_values in look_up(number, ids.take(pa.array(rows))):
                missing[rows[some]] = False
                found.append(rows[some])
                values += some_values
        return np.concatenate(found), decode_values(values, self._name)

    def _ask(self, number: int, ids: Column) -> Iterator[tuple[NDArray[np.int64], list[bytes]]]:
        """Some at a time, which of the ids a segment has, and their values."""
        keys = encode_keys_of(number, spans_of(ids))
        order = in_order(keys)  # RocksDB is fastest then
        for first in range(0, len(keys), _READ_AT_ONCE):
            rows = order.slice(first, _READ_AT_ONCE)
            values = self._backend.multi_get(self._entries, keys.take(rows).to_pylist())
            there = [i for i, value in enumerate(values) if value is not None]
            yield rows.to_numpy()[there], [value for value in values if value is not None]

    def _read_whole(self, number: int, ids: Column) -> Iterator[tuple[NDArray[np.int64], list[bytes]]]:
        """As `_ask`, but reads all that the segment has, and keeps a filter of it."""
        segment, asked = self._segments[number], KeyTable()
        asked.encode(ids)
        known = KeyFilter(segment.entries)
        entries = iter(self._backend.scan(self._entries, encode_segment(number), encode_segment(number + 1)))
        while some := list(islice(entries, _READ_AT_ONCE)):
            there = pa.array([key[SEGMENT_BYTES:] for key, _ in some], pa.large_binary())
            known.add(hashes_of(there))
            codes = asked.find(there)  # ids are distinct, so the code of each is its place
            matched = np.flatnonzero(codes >= 0)
            yield codes[matched], [some[i][1] for i in matched.tolist()]
        segment.filter = known

    def expire(self, stream_time_ms: int, write: WriteBatch) -> None:
        """Adds the removal of all segments that are not kept at this stream time to ``write``."""
        first = self.kept_from(stream_time_ms) // self._width_ms
        expired = [number for number in self._segments if number < first]
        if expired:
            for family in (self._entries, self._by_segment):
                write.expire_range(family, encode_segment(min(0, *expired)), encode_segment(first))
            for number in expired:
                del self._segments[number]

    def store(self, changes: Changes, write: WriteBatch) -> None:
        """Adds new entries to ``write``, and the removal of those that they replace.

        Args:
            changes: The new entries.
            write: The batch; it has to be carried out before the next look-up.
        """
        there = list(self._segments)
        added, removed = Counter[int](), Counter[int]()
        written, replaced = defaultdict(list), defaultdict(list)
        for first in range(0, len(changes.codes), _READ_AT_ONCE):
            codes = changes.codes[first : first + _READ_AT_ONCE]
            segment, before = (ms[codes] // self._width_ms for ms in (changes.timestamp, changes.stored_ms))
            is_new = (before != segment) | ~np.isin(before, there)
            is_replaced = is_new & np.isin(before, there)
            for number in _different(segment):
                added[number] += int(np.count_nonzero(is_new & (segment == number)))
                written[number].append(codes[segment == number])
            for number in _different(before[is_replaced]):
                replaced[number].append(codes[is_replaced & (before == number)])
                removed[number] += len(replaced[number][-1])
        for number, lists in replaced.items():
            self._segments[number].entries -= removed[number]
            write.put_rows(self._entries, self._rows(number, np.concatenate(lists), changes.ids))
        for number in sorted(written):
            codes = np.concatenate(written.pop(number))
            known = self._segments.setdefault(number, _Segment(0, KeyFilter()))
            known.entries += added[number]
            if known.filter is not None:
                self._remember(known.filter, codes, changes.ids)
            write.put_rows(self._entries, self._rows(number, codes, changes.ids, changes.entries))
        self._write_counts({*added, *removed}, write)

    def _remember(self, known: KeyFilter, codes: NDArray[np.int64], ids: PartsOf) -> None:
        """Puts ids into the filter of their segment."""
        known.expect(len(codes))
        for first in range(0, len(codes), _READ_AT_ONCE):
            known.add(hashes_of(joined(*ids(codes[first : first + _READ_AT_ONCE]))))

    def _rows(self, number: int, codes: NDArray[np.int64], ids: PartsOf, entries: EntriesOf | None = None) -> Rows:
        """The entries of some codes as they lie in a segment; ``entries`` None: as they are deleted."""

        def keys(rows: NDArray[np.int64]) -> Column:
            return encode_keys_of(number, *ids(codes[rows]))

        return Rows(len(codes), keys, entries and (lambda rows: encode_values(entries(codes[rows]))))

    def _write_counts(self, numbers: set[int], write: WriteBatch) -> None:
        for number in numbers:
            if count := self._segments[number].entries:
                write.put(self._by_segment, encode_segment(number), encode_count(count))
            else:
                write.delete(self._by_segment, encode_segment(number))
                del self._segments[number]


def _different(numbers: NDArray[np.int64]) -> list[int]:
    """The different ones among numbers of which most are as the one before."""
    begins = np.flatnonzero(np.diff(numbers, prepend=numbers[:1] - 1))
    return [int(number) for number in np.unique(numbers[begins])]
