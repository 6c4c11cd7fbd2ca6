"""The ordered maps that stores are written on: one interface, over RocksDB or over memory.

A task has one backend. Each store owns one or more *families* in it (RocksDB column families), and the task's position
has one of its own, so that data and position change in one atomic write.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol, Self, TypeAlias

import numpy as np
import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from numpy.typing import NDArray

    from statelib.stores.byte_columns import Column

    ColumnOf: TypeAlias = Callable[[NDArray[np.int64]], Column]


PORTION = 1 << 14
"""How many keys a column may have to be written at once with all else."""

_LISTED_ENTRIES = 1 << 14
_LISTED_BYTES = 1 << 23


@dataclass(frozen=True, slots=True)
class Rows:
    """Many keys and their values, which are made as they are asked for: not all of them need be in memory at once.

    Attributes:
        count: How many there are.
        keys: Gives the keys of some rows (int64, from 0 to below ``count``), binary without nulls. Each key is there
            once, in any order.
        values: Gives their values; None: the keys are to be deleted.
    """

    count: int
    keys: ColumnOf
    values: ColumnOf | None

    @classmethod
    def of(cls, keys: Column, values: Column | None) -> Self:
        """Those of columns that are there."""
        return cls(len(keys), _taken(keys), None if values is None else _taken(values))

    def made(self) -> Rows:
        """The same with all keys and values in memory."""
        rows = np.arange(self.count)
        return Rows.of(self.keys(rows), None if self.values is None else self.values(rows))


def _taken(column: Column) -> ColumnOf:
    return lambda rows: column.take(pa.array(rows))


@dataclass(slots=True)
class WriteBatch:
    """Changes to a backend, in the order in which they were added: see `Backend.write`."""

    operations: list[tuple[str, bytes, bytes | None]] = field(default_factory=list)
    """(family, key, value); value None deletes the key."""
    ranges: list[tuple[str, bytes, bytes]] = field(default_factory=list)
    """(family, first key, end key, exclusive) to delete; carried out before ``operations``."""
    expiring: set[str] = field(default_factory=set)
    """Families of which most will be deleted as ranges: see `expire_range`."""
    rows: list[tuple[str, Rows]] = field(default_factory=list)
    """(family, rows), carried out after ``operations``, in order."""
    passed_to: Backend | None = None
    """Carries out what there is whenever more than `PORTION` rows are added; None: all waits for `Backend.write`."""

    def put(self, family: str, key: bytes, value: bytes) -> None:
        """Sets ``key`` to ``value``."""
        self.operations.append((family, key, value))

    def delete(self, family: str, key: bytes) -> None:
        """Removes ``key``, if it is there."""
        self.operations.append((family, key, None))

    def put_columns(self, family: str, keys: Column, values: Column) -> None:
        """Sets many keys, each once, after all single puts and deletes: a tenth of the work where there are many.

        Args:
            family: Of the backend.
            keys: Binary, without nulls, in any order.
            values: As many.
        """
        self.put_rows(family, Rows.of(keys, values))

    def delete_columns(self, family: str, keys: Column) -> None:
        """Removes many keys, each once, as `put_columns` sets them."""
        self.put_rows(family, Rows.of(keys, None))

    def put_rows(self, family: str, rows: Rows) -> None:
        """As `put_columns` and `delete_columns`, of rows that are asked for before this returns, and not later.

        A batch that is passed on needs memory for a small part of them.
        """
        if self.passed_to is not None and rows.count > PORTION:
            self.rows.append((family, rows))
            self._pass_on(self.passed_to)
        elif rows.count:
            self.rows.append((family, rows.made()))

    def _pass_on(self, backend: Backend) -> None:
        backend.write(self)
        for added in (self.operations, self.ranges, self.expiring, self.rows):
            added.clear()

    def delete_range(self, family: str, first: bytes, end: bytes) -> None:
        """Removes all keys from ``first`` (inclusive) to ``end`` (exclusive); carried out before puts and deletes."""
        self.ranges.append((family, first, end))

    def expire_range(self, family: str, first: bytes, end: bytes) -> None:
        """As `delete_range`, in a family in order of time, of which all the rest will go the same way.

        It is seldom looked into until then. So merging its files pays late: most of what they hold goes by itself.
        """
        self.delete_range(family, first, end)
        self.expiring.add(family)

    def __len__(self) -> int:
        return len(self.operations) + len(self.ranges) + sum(rows.count for _, rows in self.rows)


def end_of_prefix(prefix: bytes) -> bytes | None:
    """The first key behind all that begin with ``prefix``; None: there is none."""
    stem = prefix.rstrip(b"\xff")
    return stem[:-1] + bytes([stem[-1] + 1]) if stem else None


def in_large_lists(
    lists: Iterable[tuple[list[bytes], list[bytes]]],
) -> Iterator[tuple[list[bytes], list[bytes]]]:
    """The same keys and values in fewer lists, of the size that `Backend.scan_lists` gives."""
    keys: list[bytes] = []
    values: list[bytes] = []
    size = 0
    for some_keys, some_values in lists:
        keys += some_keys
        values += some_values
        size += sum(map(len, some_keys)) + sum(map(len, some_values))
        if len(keys) >= _LISTED_ENTRIES or size >= _LISTED_BYTES:
            yield keys, values
            keys, values, size = [], [], 0
    if keys:
        yield keys, values


class Backend(Protocol):
    """Ordered byte maps, one a family; keys in bytewise order."""

    writes: int
    """Goes up with every write: while it stays, what was read still holds."""

    def get(self, family: str, key: bytes) -> bytes | None:
        """The value of ``key``, or None."""

    def multi_get(self, family: str, keys: Sequence[bytes]) -> list[bytes | None]:
        """The values of ``keys``, in their order."""

    def scan(
        self, family: str, first: bytes = b"", end: bytes | None = None, *, reverse: bool = False
    ) -> Iterator[tuple[bytes, bytes]]:
        """Keys from ``first`` (inclusive) to ``end`` (exclusive; None: to the last), with values, in order.

        What is written after the scan began does not show in it.
        """

    def scan_lists(
        self, family: str, first: bytes = b"", end: bytes | None = None
    ) -> Iterator[tuple[list[bytes], list[bytes]]]:
        """As `scan`, keys and values of some thousand at a time, which takes two thirds of the time.

        At most 16,384 entries at a time, and hardly more of them once they have 8 MiB.
        """

    def count(self, family: str, first: bytes = b"") -> int:
        """How many keys there are from ``first`` on, without reading what they hold."""

    def is_empty(self, family: str) -> bool:
        """Whether the family has no key: look-ups in it can be skipped."""

    def write(self, batch: WriteBatch) -> None:
        """Carries out all of ``batch``; families that are not there yet are created.

        Single operations and ranges become visible together or not at all, and with them up to `PORTION` rows of a
        family. More rows, and what comes behind them, follow one by one, so that a large batch takes little memory
        beyond its own; who is killed in between leaves a part of them. That is for a task's working copy, which dies
        with its attempt: its state becomes true by checkpoint and commit.
        """

    def approximate_bytes(self, family: str) -> int:
        """Roughly how much the family holds, in memory and on disk."""

    def approximate_keys(self, family: str) -> int:
        """Roughly how many keys the family holds."""

    def close(self) -> None:
        """Releases everything; a closed backend raises `InternalError` on use."""
