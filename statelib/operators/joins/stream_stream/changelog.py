"""What a stream-stream join logs: the records that those of the other side may meet, and those that wait for a match.

A side's store is logged as Kafka's window store with duplicates, except that the sequence is the join's running number
of records, where Kafka's counts what the store was given since the application's start. All integers are big-endian::

    key    +------------+----------------------+----------------+
           | key bytes  | timestamp i64, ms    | sequence i32   |     sequence: from 1 on; it begins anew after 2^31 - 1
           +------------+----------------------+----------------+

Held records have a form of our own (Kafka keeps lists of values, which do not tell records of one time apart; they are
what is exported, `statelib.operators.joins.stream_stream.held_lists`)::

    key    +----------------------+-----------+------------+----------------+
           | timestamp i64, ms    | side u8   | key bytes  | sequence i32   |     side: 0 right, 1 left
           +----------------------+-----------+------------+----------------+

Values are the records'; null for what is gone. A log record's timestamp is that of the record that was processed.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from itertools import chain, groupby, islice
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from statelib.described.exporting import PairsExporter, Records
from statelib.described.importing import Suffixed
from statelib.described.live_format import LiveKeys, LiveValues, StoreFormat
from statelib.described.restoring import Restoring
from statelib.operators.joins.stream_stream import held_lists
from statelib.operators.joins.stream_stream.arrays import HELD, JOINED, LEFT, NO_ROW, SIDES
from statelib.operators.joins.stream_stream.codec import decode_keys
from statelib.operators.joins.stream_stream.definition import retention_of
from statelib.operators.joins.stream_stream.store import NO_ROWS, HeldStore, JoinColumns, JoinRow, JoinWindowStore
from statelib.operators.joins.stream_table.changelog import arrivals_of, sequences_of
from statelib.records.batch import NO_TIMESTAMP
from statelib.serdes import serde_for
from statelib.stores.byte_columns import joined, packed, split_head, split_tail, times
from statelib.stores.column_scan import scan_columns

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from statelib.described.description import Described
    from statelib.described.exporting import Share
    from statelib.described.restoring import Target
    from statelib.operators.changelog import Changelog
    from statelib.operators.joins.stream_stream.working_set import JoinRows
    from statelib.records.key_table import KeyTable
    from statelib.stores.backend import WriteBatch
    from statelib.stores.byte_columns import Column

_LISTS_AT_ONCE = 1 << 12
_SEQUENCE = np.dtype([("sequence", ">i4")])
_PLACE = np.dtype([("timestamp", ">i8"), ("sequence", ">i4")])
_HEAD = np.dtype([("timestamp", ">i8"), ("is_left", "u1")])


def window_keys(keys: Column, timestamp: NDArray[np.int64], arrival: NDArray[np.int64]) -> Column:
    """A side's log keys; ``arrival``: the how manieth of the join each record is, from 0 on."""
    return joined(keys, times(timestamp), packed(sequences_of(arrival)))


def split_window_keys(raws: Column, arrivals: int, store: str) -> tuple[Column, NDArray[np.int64], NDArray[np.int64]]:
    """Keys, timestamps (ms) and arrivals of a side's log keys; ``arrivals``: how many there have been.

    Raises:
        CorruptedDataError: One is too short.
    """
    keys, places = split_tail(raws, _PLACE, store)
    return keys, places["timestamp"].astype(np.int64), arrivals_of(places["sequence"].astype(np.int64), arrivals)


def split_held_keys(
    raws: Column, arrivals: int, store: str
) -> tuple[Column, NDArray[np.int64], NDArray[np.bool_], NDArray[np.int64]]:
    """Keys, timestamps (ms), which are left records, and arrivals of held records' log keys.

    Raises:
        CorruptedDataError: One is too short.
    """
    heads, rest = split_head(raws, _HEAD, store)
    keys, tails = split_tail(rest, _SEQUENCE, store)
    arrival = arrivals_of(tails["sequence"].astype(np.int64), arrivals)
    return keys, heads["timestamp"].astype(np.int64), heads["is_left"] == 1, arrival


class StreamJoinChangelog:
    """The changelogs of a join's stores.

    Args:
        sides: That of the left side's store, and of the right one's; None: it has none.
        held: That of the store of held records; None: it has none.
        keys: The dictionary of the task's keys.
    """

    def __init__(self, sides: Sequence[Changelog | None], held: Changelog | None, keys: KeyTable) -> None:
        self._sides = sides
        self._held = held
        self._keys = keys

    @property
    def wanted(self) -> bool:
        """Whether there is any."""
        return self._held is not None or any(changelog is not None for changelog in self._sides)

    def add(
        self, rows: JoinRows, was_held: NDArray[np.bool_], arrivals: NDArray[Any], results: NDArray[Any],
        *, retention_ms: int,
    ) -> None:  # fmt: skip
        """Logs what some records have changed.

        Args:
            rows: All rows, as they are now.
            was_held: bool, by row: which were held before.
            arrivals: `ARRIVAL`, the records.
            results: `RESULT`, theirs.
            retention_ms: Of the sides' stores.
        """
        outcome, own = arrivals["outcome"], arrivals["row"]
        gone, trigger = self._no_longer_held(was_held, rows.rows["held"] == 1, arrivals, results)
        put = np.flatnonzero((outcome >= JOINED) & (own != NO_ROW) & (arrivals["behind"] < retention_ms))
        self._log_sides(rows, own[put], put, arrivals["time"])
        held = np.flatnonzero(outcome == HELD)
        causes = np.concatenate([trigger, held])
        self._log_held(rows, np.concatenate([gone, own[held]]), causes, len(gone), arrivals["time"])

    def remove(self, rows: JoinRows, held: NDArray[np.int64], stream_time: int) -> None:
        """Logs that held rows have left at the end of the input; ``stream_time``: the join's, ms."""
        causes, time = np.zeros(len(held), np.int64), np.array([max(stream_time, 0)])
        self._log_held(rows, held, causes, len(held), time)

    def _no_longer_held(
        self,
        was_held: NDArray[np.bool_],
        is_held: NDArray[np.bool_],
        arrivals: NDArray[Any],
        results: NDArray[Any],
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Rows that are held no longer, and the record that did it: by meeting them, or as they were given up."""
        own = arrivals["row"][results["trigger"]]
        is_lone = (results["left"] == NO_ROW) | (results["right"] == NO_ROW)
        row = np.where(is_lone, np.maximum(results["left"], results["right"]), results["left"] + results["right"] - own)
        ever_held = was_held.copy()
        ever_held[arrivals["row"][arrivals["outcome"] == HELD]] = True
        concerned = np.flatnonzero((row != own) & ever_held[row] & ~is_held[row])
        first = np.sort(np.unique(row[concerned], return_index=True)[1])  # what has left is not held when met later
        chosen = concerned[first]
        return row[chosen], results["trigger"][chosen]

    def _log_sides(
        self, rows: JoinRows, numbers: NDArray[np.int64], causes: NDArray[np.int64], time: NDArray[np.int64]
    ) -> None:
        """Logs rows of both sides that may be met from now on."""
        side = rows.rows["side"][numbers]
        for of, changelog in zip(SIDES, self._sides, strict=True):
            if changelog is not None:
                mine = numbers[side == of]
                there = rows.rows[mine]
                keys = self._keys.take(np.ascontiguousarray(there["key_code"]))
                raw_keys = window_keys(keys, there["time"], there["arrival"])
                changelog.add(raw_keys, serialized_values(rows, of, mine), time[causes[side == of]])

    def _log_held(
        self, rows: JoinRows, numbers: NDArray[np.int64], causes: NDArray[np.int64], gone: int, time: NDArray[np.int64]
    ) -> None:
        """Logs rows by the record that did it: first those that are gone, ``gone`` of them, then those that come."""
        if self._held is None:
            return
        there = rows.rows[numbers]
        is_left = packed((there["side"] == LEFT).astype(np.uint8))
        sequence = packed(sequences_of(there["arrival"]))
        keys = joined(times(there["time"]), is_left, self._keys.take(np.ascontiguousarray(there["key_code"])), sequence)
        of_side = [np.flatnonzero(there["side"] == of) for of in SIDES]
        encoded = [serialized_values(rows, of, numbers[mine]) for of, mine in zip(SIDES, of_side, strict=True)]
        values = pa.concat_arrays(encoded).take(pa.array(np.argsort(np.concatenate(of_side))))
        is_gone = np.arange(len(numbers)) < gone
        order = np.argsort(2 * causes + ~is_gone, kind="stable")
        kept = values.take(pa.array(order, mask=is_gone[order]))
        self._held.add(keys.take(pa.array(order)), kept, time[causes[order]])


def serialized_values(rows: JoinRows, side: int, numbers: NDArray[np.int64]) -> pa.Array:
    """The bytes of the values of rows of one side."""
    values = rows.values(side, numbers)
    return serde_for(values.type).serialize(values)


class JoinWindowExporter(PairsExporter):
    """The records of one side that those of the other may meet, in bytewise order of keys and then in order of time."""

    def records(self, share: Share) -> Iterator[Records]:
        """See `statelib.described.exporting`."""
        JoinWindowStore(share.place.backend, self._name)  # refuses another format
        for raw_keys, values in scan_columns(share.place.backend, JoinWindowStore.families(self._name)[0]):
            stored_keys, timestamp, arrival = decode_keys(raw_keys, self._name)
            keys = self._keys.written(stored_keys)
            placed_by = self._keys.placed_by(keys)
            yield Records(placed_by, window_keys(keys, timestamp, arrival), self._values.written(values), timestamp)


class HeldExporter:
    """The records that wait for a match: of each time, side and key the list of values, in order of time.

    Right before left, then in the order in which the first record of each list has come. Both sides have their own
    values: of the right ones `StoreFormat.right_value` tells. Kafka Streams logs the timestamp of the record that was
    processed, which is that of the list.
    """

    def __init__(self, described: Described, declared: StoreFormat) -> None:
        self._name = described.name
        self._keys = LiveKeys(described, declared.key)
        sides = {field.name: field.type for field in described.type("row")}
        of_side = {side: replace(described, schema=pa.schema([("value", sides[side])])) for side in sides}
        right = StoreFormat(value=declared.right_value)
        self._values = {
            True: LiveValues(of_side["left"], declared, aggregates=False),
            False: LiveValues(of_side["right"], right, aggregates=False, named="right_value"),
        }

    def records(self, share: Share) -> Iterator[Records]:
        """See `statelib.described.exporting`; has the records of one time and side in memory."""
        held = HeldStore(share.place.backend, self._name).all()
        lists = chain.from_iterable(
            self._lists(time, is_left=is_left, rows=[row.row for row in rows])
            for (time, is_left), rows in groupby(held, lambda row: (row.row.timestamp_ms, row.is_left))
        )
        while some := list(islice(lists, _LISTS_AT_ONCE)):
            times, placed_by, keys, values = zip(*some, strict=True)
            columns = [pa.array(column, pa.binary()) for column in (placed_by, keys, values)]
            yield Records(self._keys.placed_by(columns[0]), columns[1], columns[2], np.array(times, np.int64))

    def _lists(self, time_ms: int, *, is_left: bool, rows: list[JoinRow]) -> Iterator[tuple[int, bytes, bytes, bytes]]:
        keys = self._keys.written(pa.array([row.key for row in rows], pa.binary())).to_pylist()
        values = self._values[is_left].written(pa.array([row.value for row in rows], pa.binary())).to_pylist()
        of_key: defaultdict[bytes, list[bytes]] = defaultdict(list)
        for key, value in zip(keys, values, strict=True):
            of_key[key].append(value)
        for key, there in of_key.items():
            list_key = held_lists.encode_key(time_ms, key, is_left=is_left)
            yield time_ms, key, list_key, held_lists.encode_values(there, is_left=is_left)


class JoinWindowImporter(Suffixed):
    """A side of a stream-stream join."""

    _suffix = _PLACE

    def __init__(self, described: Described, form: StoreFormat) -> None:
        super().__init__(described, form, aggregates=False)
        self._side = str(described.settings["side"])

    def _told(self, suffixes: np.ndarray[tuple[int], Any]) -> None:
        self._advance(self._side, suffixes["timestamp"])


class RestoringJoinWindow(Restoring):
    """The records of one side that others may meet."""

    def __init__(self, target: Target) -> None:
        settings = target.store.settings
        self._name = target.store.name
        self._store = JoinWindowStore(target.backend, self._name)
        self._schema = target.row
        self._has_run = target.has_run
        self._arrivals = target.clocks.get("arrivals", 0)
        self._expired_ms = target.clocks.get(settings["side"], NO_TIMESTAMP) - retention_of(settings)

    def put(self, keys: Column, values: pa.Array, timestamp: NDArray[np.int64], write: WriteBatch) -> None:
        """See `Restoring`."""
        del timestamp
        plain, time, arrival = split_window_keys(keys, self._arrivals, self._name)
        rows, is_there = JoinColumns(plain, time, arrival, values), np.asarray(values.is_valid())
        self._store.store(rows.filter(is_there), rows.filter(~is_there), NO_TIMESTAMP, self._schema, write)

    def finish(self, write: WriteBatch) -> None:
        """Adds the removal of what has expired."""
        if self._has_run:
            self._store.store(NO_ROWS, NO_ROWS, self._expired_ms, self._schema, write)


class RestoringHeldRecords(Restoring):
    """The records of both sides that wait for a match."""

    def __init__(self, target: Target) -> None:
        self._name = target.store.name
        self._store = HeldStore(target.backend, self._name)
        self._schema = target.row
        self._has_run = target.has_run
        self._arrivals = target.clocks.get("arrivals", 0)

    def put(self, keys: Column, values: pa.Array, timestamp: NDArray[np.int64], write: WriteBatch) -> None:
        """See `Restoring`."""
        del timestamp
        plain, time, is_left, arrival = split_held_keys(keys, self._arrivals, self._name)
        rows, is_there = JoinColumns(plain, time, arrival, values), np.asarray(values.is_valid())
        sides = ((False, ~is_left), (True, is_left))
        added = [(left, rows.filter(own & is_there)) for left, own in sides]
        removed = [(left, rows.filter(own & ~is_there)) for left, own in sides]
        self._store.store(added, removed, self._schema, write)

    def finish(self, write: WriteBatch) -> None:
        """Adds what is there as soon as the join has run."""
        if self._has_run:
            self._store.header.write(self._schema, write)
