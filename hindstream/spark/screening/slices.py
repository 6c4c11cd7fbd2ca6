"""The records of a slice of a source, as flat tables: whole or a sample; and the look through them for a `Screen`.

They are read as the replay reads them (`statelib.topics.parquet.reader`): only the columns in question, only the files
and row groups of the slice, a batch at a time. What cannot be read is the same error as there.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from hindstream.spark.expectations.flat_tables import PARTITION, flat_table
from hindstream.spark.screening.search import MOST_SUSPECTS, Kind, Search
from statelib.topics.parquet.reader import PartitionReader

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from numpy.typing import NDArray

    from hindstream.spark.expectations.flat_tables import Column
    from hindstream.spark.screening.search import Found
    from statelib.storage import Storage
    from statelib.topics.files import ArchiveFile

_OFFSET = "offset"
_INCREMENT = np.uint64(0x9E3779B97F4A7C15)
_MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX_2 = np.uint64(0x94D049BB133111EB)
_WORDS = 2**64


@dataclass(frozen=True, slots=True)
class SlicePart:
    """What a slice has of one partition of a source: from ``start_offset`` to before ``end_offset``.

    Attributes:
        rows: How many records it has, before a sample is taken.
        files: Those that hold them, and maybe others.
    """

    partition: int
    start_offset: int
    end_offset: int
    rows: int
    files: tuple[ArchiveFile, ...]


@dataclass(frozen=True, slots=True)
class SliceRecords:
    """How the records of a source are read.

    Attributes:
        storage: Where the archive's files are.
        topic: The source.
        table_schema: Of the archive's table.
        schema: As what its records are read.
        share: Of the records that are looked at; None: all.
    """

    storage: Storage
    topic: str
    table_schema: pa.Schema
    schema: pa.Schema
    share: float | None = None

    def tables(
        self, part: SlicePart, columns: Sequence[Column], offsets: tuple[int, int] | None = None
    ) -> Iterator[pa.Table]:
        """Flat columns of a part.

        Args:
            part: The part.
            columns: What to read; if there are none, offsets are.
            offsets: The first offset wanted and the one after the last; None: those of the part.

        Raises:
            InputError: See `PartitionReader`.
        """
        start, end = offsets or (part.start_offset, part.end_offset)
        reader = PartitionReader(
            self.storage,
            part.files,
            self.table_schema,
            wanted=self.schema,
            topic=self.topic,
            partition=part.partition,
            start_offset=start,
            end_offset=end,
            columns=sorted({_as_read(column) for column in columns if column != PARTITION} | {_OFFSET}),
        )
        for batch in reader:
            table = pa.Table.from_batches([batch])
            if self.share is not None:
                table = table.filter(pa.array(in_sample(table.column(_OFFSET).to_numpy(), part.partition, self.share)))
            if len(table):
                yield flat_table(table, columns, part.partition)


def _as_read(column: Column) -> str:
    """What a reader calls it; what it is in, where a name has a dot itself."""
    return column.path[0] if any("." in name for name in column.path) else ".".join(column.path)


def in_sample(offsets: NDArray[np.int64], partition: int, share: float) -> NDArray[np.bool_]:
    """Which records are part of a sample: the same ones in every run, as it is a function of partition and offset.

    The hash is that of SplitMix64 (Steele, Lea and Flood, 2014), over ``offset + 2**40 * partition``.
    """
    with np.errstate(over="ignore"):
        words = (offsets.astype(np.uint64) + (np.uint64(partition) << np.uint64(40))) * _INCREMENT + _INCREMENT
        words = (words ^ (words >> np.uint64(30))) * _MIX_1
        words = (words ^ (words >> np.uint64(27))) * _MIX_2
    chosen: NDArray[np.bool_] = (words ^ (words >> np.uint64(31))) < np.uint64(min(int(share * _WORDS), _WORDS - 1))
    return chosen


@dataclass(frozen=True, slots=True, kw_only=True)
class SliceScan(Search[SlicePart]):
    """Looks through what a slice has of one partition of a source.

    Attributes:
        records: How it is read.
    """

    records: SliceRecords

    def _rows(self, parts: Iterable[SlicePart]) -> Iterator[tuple[int, Found]]:
        found = 0
        columns = self._needed(self.screen.failing)
        if not columns:
            return
        for part in parts:
            for table in self.records.tables(part, self._named({_OFFSET, *(column.name for column in columns)})):
                suspect = self._suspect(table, self.screen.failing)
                if suspect.any() and found <= MOST_SUSPECTS:
                    found += int(suspect.sum())
                    yield from self._whole(part, table.column(_OFFSET).filter(pa.array(suspect)))

    def _whole(self, part: SlicePart, offsets: pa.ChunkedArray) -> Iterator[tuple[int, Found]]:
        """The rows with these offsets, which ascend."""
        wanted = offsets.to_numpy()
        for table in self.records.tables(part, self._columns, (int(wanted[0]), int(wanted[-1]) + 1)):
            yield 0, (Kind.ROWS, 0, table.filter(pa.array(np.isin(table.column(_OFFSET).to_numpy(), wanted))))

    def _tables(self, parts: Iterable[SlicePart], columns: Sequence[Column]) -> Iterator[pa.Table]:
        for part in parts:
            yield from self.records.tables(part, columns)

    def _offsets_differ(self, parts: Sequence[SlicePart]) -> bool:  # noqa: ARG002
        """The reader refuses an offset that is there twice."""
        return True
