"""The store of KIP-655: which ids were forwarded, when, and from which record.

Two families of the task's backend, all integers big-endian::

    <name>.entries   key    id bytes
                     value  version u8 = 1 | timestamp i64 | offset i64 | source i16 | partition i32     (23 bytes)

    <name>.index     key    timestamp i64 | id bytes
                     value  empty

Each entry has exactly one index key, so expiry is one scan of the index's beginning. ``timestamp`` (ms) and ``offset``
are KIP-655's; an offset of -1 is that of a record without one. ``source`` (the topic's number in the task) and
``partition`` say in which partition the offset counts: streams of several topics may be merged before deduplication.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from statelib.batch import NO_OFFSET
from statelib.errors import ConfigurationError, CorruptedDataError
from statelib.stores.backend import WriteBatch
from statelib.stores.byte_columns import empty_values, joined, packed, times

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from statelib.stores.backend import Backend
    from statelib.stores.byte_columns import Column

FORMAT_VERSION = 1
_VALUE = np.dtype([("version", "u1"), ("timestamp", ">i8"), ("offset", ">i8"), ("source", ">i2"), ("partition", ">i4")])
_TIME = struct.Struct(">q")


@dataclass(frozen=True, slots=True)
class Entry:
    """The forwarded record of an id: its timestamp (ms) and where it came from."""

    timestamp: int
    offset: int = NO_OFFSET
    source: int = 0
    partition: int = 0


@dataclass(frozen=True, slots=True)
class Entries:
    """Several entries as columns of one length, all int64."""

    timestamp: NDArray[np.int64]
    offset: NDArray[np.int64]
    source: NDArray[np.int64]
    partition: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.timestamp)

    def take(self, rows: NDArray[Any]) -> Entries:
        """Those that ``rows`` (indices or booleans) chooses."""
        return Entries(self.timestamp[rows], self.offset[rows], self.source[rows], self.partition[rows])


class DeduplicationStore:
    """See the module's docstring. Point and batch access read and write the same bytes."""

    def __init__(self, backend: Backend, name: str) -> None:
        self._backend = backend
        self._name = name
        self._entries, self._index = self.families(name)

    @staticmethod
    def families(name: str) -> tuple[str, str]:
        """The backend families of the store called ``name``."""
        return f"{name}.entries", f"{name}.index"

    def fetch(self, id_bytes: bytes) -> Entry | None:
        """The entry of an id, or None."""
        value = self._backend.get(self._entries, id_bytes)
        if value is None:
            return None
        entries = self._decode([value])
        return Entry(
            *(int(column[0]) for column in (entries.timestamp, entries.offset, entries.source, entries.partition))
        )

    def put(self, id_bytes: bytes, entry: Entry) -> None:
        """Sets the entry of an id."""
        write = WriteBatch()
        before = self.fetch(id_bytes)
        if before is not None:
            write.delete(self._index, _TIME.pack(before.timestamp) + id_bytes)
        columns = (np.array([value]) for value in (entry.timestamp, entry.offset, entry.source, entry.partition))
        self.store(pa.array([id_bytes], pa.binary()), Entries(*columns), write)
        self._backend.write(write)

    def expire(self, before_ms: int) -> int:
        """Removes all entries with a timestamp below ``before_ms``.

        Returns:
            Their number.
        """
        write = WriteBatch()
        expired = self.remove_expired(before_ms, write)
        self._backend.write(write)
        return expired

    def approximate_len(self) -> int:
        """Roughly the number of entries; 0 only if there is none."""
        return 0 if self._backend.is_empty(self._entries) else max(1, self._backend.approximate_keys(self._entries))

    def load(self, ids: Sequence[bytes]) -> tuple[NDArray[np.bool_], Entries]:
        """Looks up many ids at once.

        Returns:
            For each id whether it has an entry, and the entries of those that have, in order.
        """
        values = self._backend.multi_get(self._entries, ids)
        found = np.fromiter((value is not None for value in values), np.bool_, len(values))
        return found, self._decode([value for value in values if value is not None])

    def load_all(self) -> tuple[list[bytes], Entries]:
        """All ids and their entries."""
        pairs = list(self._backend.scan(self._entries))
        return [id_bytes for id_bytes, _ in pairs], self._decode([value for _, value in pairs])

    def store(self, ids: Column, entries: Entries, write: WriteBatch) -> None:
        """Adds new entries to ``write``; none of ``ids`` may have one, unless ``write`` removes it before."""
        write.put_columns(self._entries, ids, packed(_encode(entries)))
        write.put_columns(self._index, joined(times(entries.timestamp), ids), empty_values(len(entries)))

    def remove_expired(self, before_ms: int, write: WriteBatch) -> int:
        """Adds to ``write`` the removal of all entries with a timestamp below ``before_ms``; gives their number."""
        if before_ms <= 0:
            return 0
        end = _TIME.pack(before_ms)
        expired = 0
        for index_key, _ in self._backend.scan(self._index, b"", end):
            write.delete(self._entries, index_key[_TIME.size :])
            expired += 1
        if expired:
            write.delete_range(self._index, b"", end)
        return expired

    def _decode(self, values: Sequence[bytes]) -> Entries:
        for value in values:
            if value[:1] > bytes([FORMAT_VERSION]):
                raise ConfigurationError(
                    f"the state has format {value[0]}, this Hindstream knows up to {FORMAT_VERSION}",
                    store=self._name,
                    next_step="use the version of Hindstream that wrote the state, or a newer one",
                )
            if len(value) != _VALUE.itemsize or value[0] != FORMAT_VERSION:
                raise CorruptedDataError(
                    f"a deduplication entry is not what was written: {value.hex()}",
                    store=self._name,
                    next_step="restore the checkpoint from another copy",
                )
        rows = np.frombuffer(b"".join(values), _VALUE)
        return Entries(*(rows[name].astype(np.int64) for name in ("timestamp", "offset", "source", "partition")))


def _encode(entries: Entries) -> NDArray[np.void]:
    rows = np.empty(len(entries), _VALUE)
    rows["version"] = FORMAT_VERSION
    rows["timestamp"] = entries.timestamp
    rows["offset"] = entries.offset
    rows["source"] = entries.source
    rows["partition"] = entries.partition
    return rows
