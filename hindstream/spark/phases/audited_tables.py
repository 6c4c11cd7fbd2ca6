"""What an audit looks at: the records of every sink, the staged files, and the ledger, each with its checks."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING

from hindstream.spark.expectations.checks import files_suite, files_table, ledger_suite, topic_suite
from hindstream.spark.expectations.flat_tables import table_frame
from hindstream.spark.phases.audited_records import StagedRecords
from hindstream.spark.phases.task_work import stages_of
from hindstream.spark.screening.decided import decidable, has_suspects
from statelib.commits import CommitLog, ledger_table, reconcile
from statelib.commits.archives import open_archive_if_present
from statelib.topics.parquet.schema import topic_schema

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import pyarrow as pa

    from hindstream.spark.expectations.checks import Suite
    from hindstream.spark.expectations.flat_tables import Frame
    from statelib.documents.manifests import AuditCheck, SinkFile, Staged
    from statelib.documents.plans import Plan
    from statelib.job.job import Job
    from statelib.settings.settings import Settings
    from statelib.storage import Storage


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
        for records in self._topics():
            if (checks := records.decidable()) is None:
                return None
            results += checks.passed
            looks.append(partial(records.has_suspects, checks.screen))
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
        for records in self._topics():
            yield from records.frames()
        for suite, table in self._small():
            yield suite, table_frame(table)

    def _topics(self) -> Iterator[StagedRecords]:
        for topic in self.job.topology.sink_topics:
            schema = self._schemas[topic]
            files = [sink.file for sink in self._sinks if sink.topic == topic]
            yield StagedRecords(topic_suite(self.job, topic, schema), schema, self.settings, files, self.warehouse)

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
