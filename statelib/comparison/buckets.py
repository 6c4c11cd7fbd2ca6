"""Rows as hashes, split by their keys into buckets; beyond a memory budget they lie in a file."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from io import BufferedRandom
    from pathlib import Path
    from types import TracebackType
    from typing import Self

    from numpy.typing import NDArray

ROW_BYTES = 32
_MOST_BITS = 16
_WORDS = ROW_BYTES // 8


class HashedRows(NamedTuple):
    """Rows by their hashes: columns of one length.

    Attributes:
        keys: uint64: of the key, by which they are split.
        checks: uint64: another one of the same key.
        contents: uint64: of all else.
        places: int64.
    """

    keys: NDArray[np.uint64]
    checks: NDArray[np.uint64]
    contents: NDArray[np.uint64]
    places: NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class _Run:
    """Rows in the order of their buckets: in memory, or in the file from an offset on.

    Attributes:
        ends: int64, by bucket, the row behind its last one.
        words: uint64[4, rows]; None: it is in the file.
        offset: Where it begins there.
        rows: How many it has.
    """

    ends: NDArray[np.int64]
    words: NDArray[np.uint64] | None
    offset: int
    rows: int


class Buckets:
    """The rows of one side. Within a bucket they stay in the order in which they were added.

    Args:
        bits: There are ``1 << bits`` buckets, by the first bits of the key's hash.
        file: What does not fit goes there; it is made when it is needed.
        budget_bytes: For rows in memory.
    """

    def __init__(self, bits: int, file: Path, budget_bytes: int) -> None:
        self._bits = bits
        self._path = file
        self._run_rows = max(budget_bytes // (4 * ROW_BYTES), 1)
        self._memory_rows = max(budget_bytes // (2 * ROW_BYTES), 1)
        self._pending: list[HashedRows] = []
        self._pending_rows = 0
        self._held_rows = 0
        self._runs: list[_Run] = []
        self._file: BufferedRandom | None = None
        self.rows = 0
        """How many there are."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._file is not None:
            self._file.close()
            self._path.unlink()

    @property
    def count(self) -> int:
        """How many buckets there are."""
        return 1 << self._bits

    def add(self, rows: HashedRows) -> None:
        """Adds rows behind those that are there."""
        self._pending.append(rows)
        self._pending_rows += len(rows.keys)
        self.rows += len(rows.keys)
        if self._pending_rows >= self._run_rows:
            self._make_run()

    def bucket(self, number: int) -> HashedRows:
        """All rows of a bucket."""
        if self._pending_rows:
            self._make_run()
        parts = [self._part(run, number) for run in self._runs]
        words = np.concatenate(parts, axis=1) if parts else np.empty((_WORDS, 0), np.uint64)
        keys, checks, contents, places = words
        return HashedRows(keys, checks, contents, places.view(np.int64))

    def _part(self, run: _Run, number: int) -> NDArray[np.uint64]:
        first = int(run.ends[number - 1]) if number else 0
        end = int(run.ends[number])
        if run.words is not None:
            return run.words[:, first:end]
        part = np.empty((_WORDS, end - first), np.uint64)
        if end > first and self._file is not None:
            for word in range(_WORDS):
                self._file.seek(run.offset + 8 * (word * run.rows + first))
                self._file.readinto(part[word].data)
        return part

    def _make_run(self) -> None:
        columns = [np.concatenate(column) for column in zip(*self._pending, strict=True)]
        self._pending, self._pending_rows = [], 0
        numbers = bucket_of(columns[0], self._bits).astype(np.uint16)
        order = np.argsort(numbers, kind="stable")
        ends = np.cumsum(np.bincount(numbers, minlength=self.count))
        words = np.stack([column.view(np.uint64)[order] for column in columns])
        rows = len(order)
        if self._held_rows + rows <= self._memory_rows:
            self._held_rows += rows
            self._runs.append(_Run(ends, words, 0, rows))
            return
        if self._file is None:
            self._file = self._path.open("w+b")
        offset = self._file.seek(0, 2)
        self._file.write(words.data)
        self._runs.append(_Run(ends, None, offset, rows))


def bits_for(rows: int, rows_a_bucket: int) -> int:
    """How many bits tell buckets apart, for about so many rows in each."""
    return min(max(rows - 1, 0) // rows_a_bucket, (1 << _MOST_BITS) - 1).bit_length()


def bucket_of(keys: NDArray[np.uint64], bits: int) -> NDArray[np.uint64]:
    """The bucket of each hash: its first ``bits``."""
    return (keys >> np.uint64(1)) >> np.uint64(63 - bits)
