"""Records of a topic and their checks, ready to be looked at: staged ones of a sink, or a slice of a source.

See ``audit_engine`` of `Settings` for who looks at which rows.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from hindstream.spark.expectations.flat_tables import (
    flat_columns,
    flat_schema,
    pandas_frame,
    read_flat,
    slice_frame,
    spark_frame,
)
from hindstream.spark.screening.decided import decidable
from hindstream.spark.screening.scan import Scan
from hindstream.spark.screening.screen import screen_of
from hindstream.spark.screening.slices import SliceScan
from hindstream.spark.screening.suspects import find_suspects
from hindstream.spark.session.session import spark_context, spark_session
from statelib.errors.counted import counted
from statelib.storage.transfers import look_ahead

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import pyarrow as pa
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    from hindstream.spark.expectations.checks import Suite
    from hindstream.spark.expectations.flat_tables import Frame, SparkFrame
    from hindstream.spark.screening.decided import Decidable
    from hindstream.spark.screening.screen import Screen
    from hindstream.spark.screening.search import Search
    from hindstream.spark.screening.slices import SlicePart, SliceRecords
    from statelib.settings.settings import Settings
    from statelib.storage import Storage
    from statelib.topics.files import ArchiveFile

_OF_SQL = ("unexpected_rows_expectation",)
"""Expectations that pandas has no answer to."""

SCREEN_FROM_ROWS = 200_000
"""``audit_engine = "auto"``: of a topic with more records Great Expectations gets only rows that may fail, as it takes
seconds for each million rows, on any engine."""

SCREEN_ON_SPARK_FROM_ROWS = 10_000_000
SCREEN_ON_SPARK_FROM_BYTES = 256 << 20
"""A topic with more records or bytes is screened on Spark, any other in this process: 20 ns a row, or up to 150 where a
check needs hashes, are less than the half second of a core that a stage of Spark costs."""


@dataclass(frozen=True, slots=True)
class AuditedRecords(ABC):
    """Records of a topic, and what is expected of them.

    Attributes:
        suite: The checks.
        schema: The topic's.
        settings: See `Settings`.
        parts: Where the records are: what `search` looks through.
    """

    suite: Suite
    schema: pa.Schema
    settings: Settings
    parts: Sequence[Any]

    @property
    @abstractmethod
    def rows(self) -> int:
        """How many there are; of a sample, about."""

    @property
    @abstractmethod
    def size_bytes(self) -> int:
        """Of the files that hold them."""

    @abstractmethod
    def search(self, screen: Screen) -> Search[Any]:
        """The look for rows that a screen lets through."""

    @abstractmethod
    def flat(self) -> Iterator[pa.Table]:
        """All of them."""

    @abstractmethod
    def on_spark(self, spark: SparkSession) -> SparkFrame:
        """All of them, cached."""

    def decidable(self) -> Decidable | None:
        """The checks as ones that a screen decides; None: only Great Expectations can tell."""
        return decidable(self.suite, flat_schema(self.schema), self.rows)

    def has_suspects(self, screen: Screen) -> bool:
        """Whether a row may fail a check.

        Raises:
            CorruptedDataError: A staged file is missing or damaged.
            InputError: A file of a source is.
        """
        found = find_suspects(self.search(screen), self.parts, self._screening_spark())
        return found is None or len(found) > 0

    def frames(self) -> Iterator[tuple[Suite, Frame]]:
        """The checks with the rows that they need; a frame is released before the next is made.

        Raises:
            CorruptedDataError: A staged file is missing or damaged.
            InputError: A file of a source is.
        """
        suite, engine = self.suite, self.settings.audit_engine
        if engine == "auto":
            engine = "screened" if self.rows > SCREEN_FROM_ROWS else "pandas"
        on_spark = suite
        if engine == "pandas":
            of_sql = [check for check in suite.checks if check.type in _OF_SQL]
            others = [check for check in suite.checks if check.type not in _OF_SQL]
            yield replace(suite, checks=others), pandas_frame(self.flat(), self.schema)
            on_spark = replace(suite, checks=of_sql, part="sql")
        if engine == "screened":
            screen, screened, others = screen_of(suite.checks, flat_schema(self.schema))
            suspects = find_suspects(self.search(screen), self.parts, self._screening_spark())
            if suspects is not None:
                rows = counted(self.rows, "row")
                note = f"Run over {len(suspects):,} of {rows}: those that can fail one of these checks."
                yield replace(suite, checks=screened, note=note), pandas_frame([suspects], self.schema)
                on_spark = replace(suite, checks=others, part="all-rows")
        if on_spark.checks:
            frame = self.on_spark(spark_session(self.settings))
            yield on_spark, frame
            frame.data.unpersist()

    def _screening_spark(self) -> SparkContext | None:
        """Where they are screened; None: in this process."""
        is_large = self.rows > SCREEN_ON_SPARK_FROM_ROWS or self.size_bytes > SCREEN_ON_SPARK_FROM_BYTES
        return spark_context(self.settings) if is_large and self.settings.engine == "spark" else None


@dataclass(frozen=True, slots=True)
class StagedRecords(AuditedRecords):
    """What a run has staged for a sink."""

    parts: Sequence[ArchiveFile]
    warehouse: Storage

    @property
    def rows(self) -> int:
        """See `AuditedRecords`."""
        return sum(file.rows for file in self.parts)

    @property
    def size_bytes(self) -> int:
        """See `AuditedRecords`."""
        return sum(file.size_bytes for file in self.parts)

    def search(self, screen: Screen) -> Scan:
        """See `AuditedRecords`."""
        return Scan(self.warehouse, self.suite.name, self.schema, screen)

    def flat(self) -> Iterator[pa.Table]:
        """See `AuditedRecords`."""

        def read(file: ArchiveFile) -> list[pa.Table]:
            return list(read_flat(self.warehouse, self.suite.name, self.schema, file))

        for tables in look_ahead(read, self.parts, self.warehouse.requests_at_once):
            yield from tables

    def on_spark(self, spark: SparkSession) -> SparkFrame:
        """See `AuditedRecords`."""
        return spark_frame(spark, self.warehouse, self.suite.name, self.schema, self.parts)


@dataclass(frozen=True, slots=True)
class SourceSlice(AuditedRecords):
    """What a run is about to replay of a source."""

    parts: Sequence[SlicePart]
    records: SliceRecords

    @property
    def rows(self) -> int:
        """See `AuditedRecords`."""
        rows = sum(part.rows for part in self.parts)
        return rows if self.records.share is None else round(rows * self.records.share)

    @property
    def size_bytes(self) -> int:
        """See `AuditedRecords`."""
        return sum(file.size_bytes for part in self.parts for file in part.files)

    def search(self, screen: Screen) -> SliceScan:
        """See `AuditedRecords`."""
        return SliceScan(self.records.storage, self.suite.name, self.schema, screen, records=self.records)

    def flat(self) -> Iterator[pa.Table]:
        """See `AuditedRecords`."""
        for part in self.parts:
            yield from self.records.tables(part, flat_columns(self.schema))

    def on_spark(self, spark: SparkSession) -> SparkFrame:
        """See `AuditedRecords`."""
        columns, records = flat_columns(self.schema), self.records
        return slice_frame(spark, self.schema, self.parts, lambda part: records.tables(part, columns))
