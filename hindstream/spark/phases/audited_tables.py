"""What an audit looks at: the records of every sink, the staged files, and the ledger, each with its checks."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING

from hindstream.spark.expectations.checks import files_suite, files_table, ledger_suite, topic_suite
from hindstream.spark.expectations.flat_tables import flat_schema, pandas_frame, read_flat, spark_frame, table_frame
from hindstream.spark.phases.task_work import stages_of
from hindstream.spark.screening.decided import decidable, has_suspects
from hindstream.spark.screening.scan import Scan
from hindstream.spark.screening.screen import screen_of
from hindstream.spark.screening.suspects import find_suspects
from hindstream.spark.session.session import spark_context, spark_session
from statelib.commits import CommitLog, ledger_table, reconcile
from statelib.commits.archives import open_archive_if_present
from statelib.errors.counted import counted
from statelib.storage.transfers import look_ahead
from statelib.topics.parquet.schema import topic_schema

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    import pyarrow as pa
    from pyspark import SparkContext

    from hindstream.spark.expectations.checks import Suite
    from hindstream.spark.expectations.flat_tables import Frame
    from hindstream.spark.screening.screen import Screen
    from statelib.documents.manifests import AuditCheck, SinkFile, Staged
    from statelib.documents.plans import Plan
    from statelib.job.job import Job
    from statelib.settings.settings import Settings
    from statelib.storage import Storage
    from statelib.topics.files import ArchiveFile

_OF_SQL = ("unexpected_rows_expectation",)
"""Expectations that pandas has no answer to."""

SCREEN_FROM_ROWS = 200_000
"""``audit_engine = "auto"``: of a sink with more staged records Great Expectations gets only rows that may fail, as it
takes seconds for each million rows, on any engine."""

SCREEN_ON_SPARK_FROM_ROWS = 10_000_000
SCREEN_ON_SPARK_FROM_BYTES = 256 << 20
"""A sink with more staged records or bytes is screened on Spark, any other in this process: 20 ns a row, or up to 150
where a check needs hashes, are less than the half second of a core that a stage of Spark costs."""


@dataclass(frozen=True)
class AuditedTables:
    """The tables of a run that has staged its result.

    Attributes:
        job: The job.
        settings: See `Settings`.
        warehouse: The warehouse.
        plan: The run's plan.
        staged: Its result.
    """

    job: Job
    settings: Settings
    warehouse: Storage
    plan: Plan
    staged: Staged

    def decided(self) -> tuple[AuditCheck, ...] | None:
        """The results of all checks if no row can fail one; None: Great Expectations has to look.

        Raises:
            CorruptedDataError: A staged file is missing or damaged.
        """
        results: list[AuditCheck] = []
        looks: list[Callable[[], bool]] = []
        for suite, schema, files in self._topics():
            if (checks := decidable(suite, flat_schema(schema), _rows(files))) is None:
                return None
            results += checks.passed
            looks.append(partial(self._has_suspects, suite.name, schema, files, checks.screen))
        for suite, table in self._small():
            if (checks := decidable(suite, table.schema, table.num_rows)) is None:
                return None
            results += checks.passed
            looks.append(partial(has_suspects, table, checks.screen))
        has_any = any(look() for look in reversed(looks))  # the small ones first
        return None if has_any else tuple(results)

    def frames(self) -> Iterator[tuple[Suite, Frame]]:
        """Each table with its suite; a table is released before the next is made.

        Raises:
            CorruptedDataError: A staged file is missing or damaged.
        """
        for suite, schema, files in self._topics():
            yield from self._frames_of_topic(suite, schema, files)
        for suite, table in self._small():
            yield suite, table_frame(table)

    def _topics(self) -> Iterator[tuple[Suite, pa.Schema, list[ArchiveFile]]]:
        for topic in self.job.topology.sink_topics:
            schema = self._schemas[topic]
            yield topic_suite(self.job, topic, schema), schema, [s.file for s in self._sinks if s.topic == topic]

    def _small(self) -> Iterator[tuple[Suite, pa.Table]]:
        before = (
            CommitLog(self.warehouse, self.job.name).read(self.plan.commit - 1).tasks if self.plan.commit > 1 else {}
        )
        yield files_suite(), files_table(self.warehouse, self._sinks, self._schemas, before)
        yield ledger_suite(), ledger_table(reconcile(self.job.topology, self.plan, self.staged))

    @cached_property
    def _sinks(self) -> list[SinkFile]:
        return [sink for outcome in self.staged.tasks for sink in outcome.sinks]

    @cached_property
    def _schemas(self) -> dict[str, pa.Schema]:
        """By topic, the columns of its files: those of its archive, or what the topology gives if there is none yet."""
        types = stages_of(self.job, self.plan, self.warehouse, self.settings).types
        topics = {*self.job.topology.sink_topics, *(sink.topic for sink in self._sinks)}
        schemas = {}
        for topic in topics:
            archive = open_archive_if_present(self.warehouse, topic)
            if archive is not None:
                schemas[topic] = archive.schema
            elif topic in types:
                schemas[topic] = topic_schema(types[topic].field("key").type, types[topic].field("value").type)
        return schemas

    def _has_suspects(self, topic: str, schema: pa.Schema, files: Sequence[ArchiveFile], screen: Screen) -> bool:
        found = find_suspects(Scan(self.warehouse, topic, schema, screen), files, self._screening_spark(files))
        return found is None or len(found) > 0

    def _screening_spark(self, files: Sequence[ArchiveFile]) -> SparkContext | None:
        """Where files are screened; None: in this process."""
        is_large = _rows(files) > SCREEN_ON_SPARK_FROM_ROWS or _size_bytes(files) > SCREEN_ON_SPARK_FROM_BYTES
        return spark_context(self.settings) if is_large and self.settings.engine == "spark" else None

    def _frames_of_topic(
        self, suite: Suite, schema: pa.Schema, files: Sequence[ArchiveFile]
    ) -> Iterator[tuple[Suite, Frame]]:
        """The checks of a topic with the rows that they need: see ``audit_engine`` of `Settings`."""
        topic, engine = suite.name, self.settings.audit_engine
        if engine == "auto":
            engine = "screened" if _rows(files) > SCREEN_FROM_ROWS else "pandas"
        on_spark = suite
        if engine == "pandas":
            of_sql = [check for check in suite.checks if check.type in _OF_SQL]
            others = [check for check in suite.checks if check.type not in _OF_SQL]
            yield replace(suite, checks=others), pandas_frame(self._rows_of(topic, schema, files), schema)
            on_spark = replace(suite, checks=of_sql, part="sql")
        if engine == "screened":
            screen, screened, others = screen_of(suite.checks, flat_schema(schema))
            scan = Scan(self.warehouse, topic, schema, screen)
            suspects = find_suspects(scan, files, self._screening_spark(files))
            if suspects is not None:
                rows = counted(_rows(files), "row")
                note = f"Run over {len(suspects):,} of {rows}: those that can fail one of these checks."
                yield replace(suite, checks=screened, note=note), pandas_frame([suspects], schema)
                on_spark = replace(suite, checks=others, part="all-rows")
        if on_spark.checks:
            frame = spark_frame(spark_session(self.settings), self.warehouse, topic, schema, files)
            yield on_spark, frame
            frame.data.unpersist()

    def _rows_of(self, topic: str, schema: pa.Schema, files: Sequence[ArchiveFile]) -> Iterator[pa.Table]:
        """All records of small files, in order."""

        def read(file: ArchiveFile) -> list[pa.Table]:
            return list(read_flat(self.warehouse, topic, schema, file))

        for tables in look_ahead(read, files, self.warehouse.requests_at_once):
            yield from tables


def _rows(files: Sequence[ArchiveFile]) -> int:
    return sum(file.rows for file in files)


def _size_bytes(files: Sequence[ArchiveFile]) -> int:
    return sum(file.size_bytes for file in files)
