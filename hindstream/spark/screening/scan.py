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

from dataclasses import dataclass
from typing import TYPE_CHECKING

from hindstream.spark.expectations.flat_tables import flat_row_group, open_staged
from hindstream.spark.screening.bounds import bounds_of, presence_of
from hindstream.spark.screening.search import MOST_SUSPECTS, Kind, Search
from statelib.topics.files import ArchiveFile
from statelib.topics.parquet.sealed_statistics import first_of_dense_offsets

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    import pyarrow as pa
    import pyarrow.parquet as pq

    from hindstream.spark.expectations.flat_tables import Column
    from hindstream.spark.screening.screen import Condition
    from hindstream.spark.screening.search import Found


@dataclass(frozen=True, slots=True)
class Scan(Search[ArchiveFile]):
    """Looks through the staged files of one partition of a topic."""

    def _rows(self, parts: Iterable[ArchiveFile]) -> Iterator[tuple[int, Found]]:
        """The rows that may fail by themselves, or have a repeated hash; all bytes of ``parts`` are checked."""
        found = 0
        for file in parts:
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

    def _offsets_differ(self, parts: Sequence[ArchiveFile]) -> bool:
        """Whether footers say that each record of a partition's ``parts`` has the offset after the one before it."""
        last = -1
        for file in parts:
            with open_staged(self.warehouse, self.topic, file) as parquet:
                groups = range(parquet.num_row_groups)
                is_ours = file.sha256 is not None and len(groups) > 0
                first = first_of_dense_offsets(parquet.metadata, groups) if is_ours else None
                if first is None or first <= last:
                    return False
                last = first + parquet.metadata.num_rows - 1
        return True

    def _tables(self, parts: Iterable[ArchiveFile], columns: Sequence[Column]) -> Iterator[pa.Table]:
        for file in parts:
            with open_staged(self.warehouse, self.topic, file, encoded=columns) as parquet:
                for group in range(parquet.num_row_groups):
                    yield flat_row_group(parquet, group, self.schema, columns, file.partition)
