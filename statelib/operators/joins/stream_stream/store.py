"""What a stream-stream join keeps: the records of each side that others may meet, and those that have met nobody yet.

Kafka has a window store with duplicates a side, and a list-value store for both. Values are bytes here; the operator
that owns the stores serialises them. See `statelib.operators.joins.stream_stream.codec` for the layout.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

import numpy as np
import pyarrow as pa

from statelib.operators.joins.stream_stream.codec import (
    FIRST_HELD_KEY,
    FORMAT_VERSION,
    PLACE_BYTES,
    decode_held_key,
    decode_key,
    decode_time_keys,
    encode_held_keys,
    encode_key,
    encode_keys,
    encode_time_key,
    encode_time_keys,
)
from statelib.stores.byte_columns import empty_values
from statelib.stores.column_scan import scan_columns
from statelib.stores.header import Header

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from numpy.typing import NDArray

    from statelib.stores.backend import Backend, WriteBatch
    from statelib.stores.byte_columns import Column

_END_OF_TIME = (1 << 63) - 1


@dataclass(frozen=True, slots=True)
class JoinRow:
    """A record: serialised key, timestamp in ms, the how manieth of the join it was, serialised value."""

    key: bytes
    timestamp_ms: int
    arrival: int
    value: bytes


@dataclass(frozen=True, slots=True)
class JoinColumns:
    """Many records, each once, as the columns of `JoinRow`: binary, int64, int64, binary."""

    key: Column
    timestamp_ms: NDArray[np.int64]
    arrival: NDArray[np.int64]
    value: Column

    @classmethod
    def of(cls, rows: Sequence[JoinRow]) -> Self:
        """Those of rows."""
        return cls(
            pa.array([row.key for row in rows], pa.binary()),
            np.array([row.timestamp_ms for row in rows], np.int64),
            np.array([row.arrival for row in rows], np.int64),
            pa.array([row.value for row in rows], pa.binary()),
        )

    def filter(self, chosen: NDArray[np.bool_]) -> Self:
        """Those of the chosen rows."""
        mask = pa.array(chosen)
        return type(self)(
            self.key.filter(mask), self.timestamp_ms[chosen], self.arrival[chosen], self.value.filter(mask)
        )

    def __len__(self) -> int:
        return len(self.arrival)


_NO_BYTES = pa.nulls(0, pa.binary())  # pa.array would import pandas, which whoever has nothing to do can spare
NO_ROWS = JoinColumns(_NO_BYTES, np.empty(0, np.int64), np.empty(0, np.int64), _NO_BYTES)


@dataclass(frozen=True, slots=True)
class HeldRow:
    """A record of either side that has met nobody yet."""

    is_left: bool
    row: JoinRow


class JoinWindowStore:
    """The records of one side that those of the other may meet.

    Args:
        backend: Where the families are.
        name: Of the store; its families are ``families(name)``.

    Raises:
        ConfigurationError: The store was written in another format.
        CorruptedDataError: Its header cannot be read.
    """

    def __init__(self, backend: Backend, name: str) -> None:
        self._backend = backend
        self._name = name
        self._records, self._by_time = self.families(name)
        self.header = Header(backend, self._by_time, FORMAT_VERSION, name)

    @staticmethod
    def families(name: str) -> tuple[str, str]:
        """The backend families of the store called ``name``: the records, and their index by time."""
        return name, f"{name}.by-time"

    @property
    def is_empty(self) -> bool:
        """Whether no key has any records: look-ups can be skipped."""
        return self._backend.is_empty(self._records)

    def fetch(self, key: bytes, from_ms: int) -> list[JoinRow]:
        """The records of ``key`` that are not older than ``from_ms``, by time and arrival."""
        first = encode_key(key, max(from_ms, 0), 0)
        end = encode_key(key, _END_OF_TIME, _END_OF_TIME)
        return [
            JoinRow(*decode_key(raw, self._name), value)
            for raw, value in self._backend.scan(self._records, first, end)
            if len(raw) == len(key) + PLACE_BYTES
        ]

    def store(
        self, added: JoinColumns, removed: JoinColumns, expired_until_ms: int, schema: pa.Schema, write: WriteBatch
    ) -> None:
        """Adds what has changed to ``write``.

        Args:
            added: Records that are new.
            removed: Records that nobody is to meet any more, whether they are there or not; values do not matter.
            expired_until_ms: Records of this time and older ones are out of retention.
            schema: The type of a value, as a schema of one field.
            write: The batch that also carries the task's position.
        """
        self.header.write(schema, write)
        self._expire(expired_until_ms, write)
        gone, new = (removed.key, removed.timestamp_ms, removed.arrival), (added.key, added.timestamp_ms, added.arrival)
        write.delete_columns(self._records, encode_keys(*gone))
        write.delete_columns(self._by_time, encode_time_keys(*gone))
        write.put_columns(self._records, encode_keys(*new), added.value)
        write.put_columns(self._by_time, encode_time_keys(*new), empty_values(len(added)))

    def _expire(self, until_ms: int, write: WriteBatch) -> None:
        if until_ms < 0:
            return
        first, end = encode_time_key(0), encode_time_key(until_ms + 1)
        expired = [raws for raws, _ in scan_columns(self._backend, self._by_time, first, end)]
        for raws in expired:
            timestamp_ms, arrival, keys = decode_time_keys(raws, self._name)
            write.delete_columns(self._records, encode_keys(keys, timestamp_ms, arrival))
        if expired:
            write.delete_range(self._by_time, first, end)


class HeldStore:
    """The records of both sides that have met nobody yet and may still.

    Args:
        backend: Where the family is.
        name: Of the store and of its family.

    Raises:
        ConfigurationError: The store was written in another format.
        CorruptedDataError: Its header cannot be read.
    """

    def __init__(self, backend: Backend, name: str) -> None:
        self._backend = backend
        self._name = name
        self.header = Header(backend, name, FORMAT_VERSION, name)

    def all(self) -> Iterator[HeldRow]:
        """All of them, by time, right before left, by arrival."""
        for raw, value in self._backend.scan(self._name, FIRST_HELD_KEY):
            timestamp_ms, is_left, arrival, key = decode_held_key(raw, self._name)
            yield HeldRow(is_left, JoinRow(key, timestamp_ms, arrival, value))

    def count(self) -> int:
        """How many there are."""
        return self._backend.count(self._name, FIRST_HELD_KEY)

    def store(
        self,
        added: Iterable[tuple[bool, JoinColumns]],
        removed: Iterable[tuple[bool, JoinColumns]],
        schema: pa.Schema,
        write: WriteBatch,
    ) -> None:
        """Adds what has changed to ``write``.

        Args:
            added: Records that are new, with whether they are left ones.
            removed: Records that have met one, or have been given up; values do not matter.
            schema: The types of values: fields ``left`` and ``right``.
            write: The batch that also carries the task's position.
        """
        self.header.write(schema, write)
        for is_left, rows in removed:
            write.delete_columns(self._name, self._keys(rows, is_left=is_left))
        for is_left, rows in added:
            write.put_columns(self._name, self._keys(rows, is_left=is_left), rows.value)

    @staticmethod
    def _keys(rows: JoinColumns, *, is_left: bool) -> Column:
        return encode_held_keys(rows.key, rows.timestamp_ms, rows.arrival, is_left=is_left)
