"""Looks through the staged files of one partition for the rows that a `Screen` lets through; runs in a worker.

Most of what a screen asks is answered without looking at rows:

* Of each file all bytes are compared, by their SHA-256, with what the run has written. That finds any damage, whatever
  is read of the file, and lets its footer be believed.
* A condition that the footer rules out (see `hindstream.spark.screening.bounds`) is not asked of the rows.
* Rows that are to differ in ``partition`` or other columns do so in every partition where one of these ascends
  strictly, as offsets do. Only that column is read.
* Rows that are to differ in a number, a key and perhaps more do so in every partition where they ascend by these two,
  as the final results of windows do; and in all of them if no two partitions have a key in common.

For the rest the columns in question are read, a row group at a time. For uniqueness each row becomes a 64-bit hash of
its values; rows in different partitions can agree only if ``partition`` is not among the columns. Rows that are found
are then fetched whole.

A file whose digest is not known is read whole, with the checksums of its pages, and its footer says nothing.
"""

from __future__ import annotations

import operator
from dataclasses import dataclass, field
from enum import Enum
from functools import reduce
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from hindstream.spark.expectations.flat_tables import PARTITION, flat_columns, flat_row_group, open_staged
from hindstream.spark.screening.ascent import is_text, is_whole_number, keys_of_ascending_rows, numbers_that_ascend
from hindstream.spark.screening.bounds import bounds_of, presence_of
from statelib.columns.counting import repeated_numbers
from statelib.columns.row_hash import hash_rows
from statelib.errors.kinds import CorruptedDataError
from statelib.topics.parquet.sealed_statistics import first_of_dense_offsets

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Iterator, Mapping, Sequence

    import pyarrow.compute as pc
    import pyarrow.parquet as pq
    from numpy.typing import NDArray

    from hindstream.spark.expectations.flat_tables import Column
    from hindstream.spark.screening.screen import Condition, Screen, Unique
    from statelib.storage import Storage
    from statelib.topics.files import ArchiveFile

MOST_SUSPECTS = 10_000
"""Where a screen lets more rows through than this, something is wrong with the data or the checks at large."""


class Kind(Enum):
    """Of what a scan gives: a value, and the number of the check that it is about."""

    ROWS = "flat rows that may fail"
    KEYS = "hashes of the keys of a partition whose rows ascend"
    UNDECIDED = "whether rows agree: it takes hashes to tell"
    HASHES = "hashes that may be in other partitions too"
    REPEATED = "hashes that are there twice"
    ERROR = "what is wrong with a file; trying again would not mend it, so to Spark it is a result like others"


Found = tuple[Kind, int, Any]


@dataclass(frozen=True, slots=True)
class Scan:
    """Looks through the staged files of one partition of a topic.

    Attributes:
        warehouse: Where the files are.
        topic: Whose records they hold.
        schema: Of the topic.
        screen: What to look for.
        buckets: Over how many tasks the hashes of a check are spread.
        repeated: By the number of a uniqueness check, the hashes to fetch rows of; without them hashes are made.
        undecided: The numbers of the uniqueness checks that the first look has left so: makes hashes for these alone.
    """

    warehouse: Storage
    topic: str
    schema: pa.Schema
    screen: Screen
    buckets: int = 1
    repeated: Mapping[int, NDArray[np.uint64]] = field(default_factory=dict)
    undecided: frozenset[int] = frozenset()

    def __call__(self, files: Sequence[ArchiveFile]) -> Iterator[tuple[int, Found]]:
        """Gives what it finds, with the number of the task that is to have it."""
        try:
            if not self.undecided:
                yield from self._rows(files)
            if not self.repeated:
                yield from self._differences(files)
        except CorruptedDataError as error:
            yield 0, (Kind.ERROR, 0, error)

    def _rows(self, files: Iterable[ArchiveFile]) -> Iterator[tuple[int, Found]]:
        """The rows that may fail by themselves, or have a repeated hash; all bytes of ``files`` are checked."""
        found = 0
        for file in files:
            with open_staged(self.warehouse, self.topic, file, check_bytes=True) as parquet:
                conditions = self._left_to_ask(parquet, file)
                columns = self._columns if file.sha256 is None else self._needed(conditions)
                for group in range(parquet.num_row_groups) if columns else ():
                    table = flat_row_group(parquet, group, self.schema, columns, file.partition)
                    suspect = self._suspect(table, conditions)
                    if suspect.any() and found <= MOST_SUSPECTS:
                        found += int(suspect.sum())
                        table = flat_row_group(parquet, group, self.schema, self._columns, file.partition)
                        yield 0, (Kind.ROWS, 0, table.filter(suspect))

    def _left_to_ask(self, parquet: pq.ParquetFile, file: ArchiveFile) -> list[Condition]:
        """The conditions that a row of the file may meet, for all that its footer says."""
        left = []
        for condition in self.screen.failing:
            bounds = None
            if condition.is_bounded and file.sha256 is not None:
                (column,) = self._named(condition.columns)
                bounds = bounds_of(parquet, column, file.partition)
                if bounds is None and condition.is_of_presence:
                    bounds = presence_of(parquet, column)
            if bounds is None or len(bounds.filter(condition.expression)):
                left.append(condition)
        return left

    def _needed(self, conditions: Iterable[Condition]) -> list[Column]:
        """What `_suspect` looks at."""
        named = [condition.columns for condition in conditions]
        named += [self.screen.unique[number].columns for number in self.repeated]
        return self._named({name for names in named for name in names})

    def _suspect(self, table: pa.Table, conditions: Sequence[Condition]) -> NDArray[np.bool_]:
        suspect = np.zeros(len(table), np.bool_)
        if conditions:
            suspect[_where(table, reduce(operator.or_, (condition.expression for condition in conditions)))] = True
        for number, repeated in self.repeated.items():
            counted, hashes = _hashed(table, self.screen.unique[number])
            suspect[counted[np.isin(hashes, repeated)]] = True
        return suspect

    def _differences(self, files: Sequence[ArchiveFile]) -> Iterator[tuple[int, Found]]:
        """What it takes to find rows that agree."""
        for number, unique in enumerate(self.screen.unique):
            if self.undecided:
                if number in self.undecided:
                    yield from self._hashes(files, number)
            elif unique.is_within_partition:
                columns = self._named(unique.columns)
                numbers = [column for column in columns if is_whole_number(column) and column != PARTITION]
                if any(column.name == "offset" for column in numbers) and self._offsets_are_dense(files):
                    continue
                if not numbers_that_ascend(self._tables(files, numbers) if numbers else ()):
                    hashes = (_hashed(table, unique)[1] for table in self._tables(files, columns))
                    yield 0, (Kind.REPEATED, number, repeated_hashes(hashes))
            elif (keys := self._keys_if_ascending(files, unique)) is not None:
                yield number * self.buckets, (Kind.KEYS, number, keys)
            else:
                yield from self._hashes(files, number)

    def _offsets_are_dense(self, files: Sequence[ArchiveFile]) -> bool:
        """Whether footers say that each record of a partition's ``files`` has the offset after the one before it."""
        last = -1
        for file in files:
            with open_staged(self.warehouse, self.topic, file) as parquet:
                groups = range(parquet.num_row_groups)
                is_ours = file.sha256 is not None and len(groups) > 0
                first = first_of_dense_offsets(parquet.metadata, groups) if is_ours else None
                if first is None or first <= last:
                    return False
                last = first + parquet.metadata.num_rows - 1
        return True

    def _keys_if_ascending(self, files: Sequence[ArchiveFile], unique: Unique) -> NDArray[np.uint64] | None:
        """See `keys_of_ascending_rows`; whichever columns these are."""
        columns = self._named(unique.columns)
        numbers = [column for column in columns if is_whole_number(column)]
        for number, key in product(numbers, (column for column in columns if is_text(column))):
            tables = self._tables(files, self._named({number.name, key.name}))
            keys = keys_of_ascending_rows(tables, number.name, key.name)
            if keys is not None:
                return keys
        return None

    def _hashes(self, files: Sequence[ArchiveFile], number: int) -> Iterator[tuple[int, Found]]:
        """Those of a uniqueness check, by bucket."""
        unique = self.screen.unique[number]
        for table in self._tables(files, self._named(unique.columns)):
            _, hashes = _hashed(table, unique)
            if self.buckets == 1:
                yield number, (Kind.HASHES, number, hashes)
                continue
            bucket = (hashes % np.uint64(self.buckets)).astype(np.intp)
            for n in range(self.buckets):
                yield number * self.buckets + n, (Kind.HASHES, number, hashes[bucket == n])

    def _tables(self, files: Iterable[ArchiveFile], columns: Sequence[Column]) -> Iterator[pa.Table]:
        for file in files:
            with open_staged(self.warehouse, self.topic, file, encoded=columns) as parquet:
                for group in range(parquet.num_row_groups):
                    yield flat_row_group(parquet, group, self.schema, columns, file.partition)

    @property
    def _columns(self) -> Sequence[Column]:
        return flat_columns(self.schema)

    def _named(self, names: Container[str]) -> list[Column]:
        return [column for column in self._columns if column.name in names]


def _hashed(table: pa.Table, unique: Unique) -> tuple[NDArray[np.intp], NDArray[np.uint64]]:
    """The rows that count, and their hashes."""
    counted = _where(table, unique.counted())
    if len(counted) < len(table):
        table = table.take(counted)
    return counted, hash_rows([table.column(name).combine_chunks() for name in unique.columns])


def _where(table: pa.Table, condition: pc.Expression | None) -> NDArray[np.intp]:
    """Where the condition is true; None: everywhere."""
    if condition is None:
        return np.arange(len(table))
    numbered = table.append_column("", pa.array(np.arange(len(table))))
    rows: NDArray[np.intp] = numbered.filter(condition).column("").to_numpy()
    return rows


def repeated_hashes(arrays: Iterable[NDArray[np.uint64]]) -> NDArray[np.uint64]:
    """Those that are there more than once, each once, in order."""
    return np.sort(repeated_numbers(np.concatenate(list(arrays)).view(np.int64)).view(np.uint64))
