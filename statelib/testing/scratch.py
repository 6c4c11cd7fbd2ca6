"""A job in a folder of its own, replayed slice by slice: real archives, stores and commits, no Spark and no audit."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

from statelib.commits import CommitLog, NothingToDo, commit, plan, publish, record_audit, stage, topic_path
from statelib.commits.archives import open_archive
from statelib.documents.manifests import Audit
from statelib.storage import Storage
from statelib.task import Stages, describe_topology, replay_here
from statelib.topics.append import append_records
from statelib.topics.archive import TopicArchive

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pyarrow as pa

    from statelib.documents.manifests import Staged
    from statelib.documents.topologies import TopologyDescription
    from statelib.job.job import Job
    from statelib.task import TaskSettings


class ScratchJob:
    """See the module's docstring.

    Args:
        job: The job.
        settings: Of its tasks: where its warehouse and its state are, among others.

    Attributes:
        warehouse: Where its topics are.
    """

    def __init__(self, job: Job, settings: TaskSettings) -> None:
        self.job = job
        self.settings = settings
        self.warehouse = Storage(settings.warehouse)
        self._slices = itertools.count(1)

    def declare(self, topic: str, schema: pa.Schema, partitions: int) -> None:
        """Makes the archive of a source, if it is not there yet; ``schema``: see `statelib.topics.archive`."""
        TopicArchive.ensure(self.warehouse.uri(topic_path(topic)), schema, partitions, topic=topic)

    def replay(self, records: Mapping[str, pa.Table]) -> Staged | None:
        """Adds records to source topics, and replays what is new as one slice; gives what came of it.

        Args:
            records: By topic, all of which are declared: columns ``key``, ``value``, ``timestamp``, ``headers``.

        Returns:
            What the tasks have staged; None: there was nothing new.

        Raises:
            HindstreamError: As in a real run.
        """
        number = next(self._slices)
        for topic, table in records.items():
            archive = open_archive(self.warehouse, topic)
            append_records(archive, table, attempt=f"a{number}", app_id="scratch", app_version=number)
        semantics = self.settings.semantics
        planned = plan(self.job, self.warehouse, now_ms=0, semantics=semantics, describe=self._described)
        if isinstance(planned, NothingToDo):
            return None
        log = CommitLog(self.warehouse, self.job.name)
        previous = log.read(planned.commit - 1) if planned.commit > 1 else None
        stages = Stages(self.job.topology, planned, previous, self.warehouse, self.settings)
        staged = replay_here(stages, planned, attempt=str(number), clock=lambda: 0.0)
        stage(self.warehouse, planned, staged)
        passed = Audit(run_id=planned.run_id, success=True, checks=(), data_docs=None, seconds=0.0)
        record_audit(self.warehouse, planned, passed)
        commit(self.warehouse, planned, now_ms=0)
        publish(self.warehouse, self.job.name)
        return staged

    def _described(self, archives: Mapping[str, TopicArchive]) -> TopologyDescription:
        readers = {topic: archive.reader(0, 0, 0) for topic, archive in archives.items()}
        return describe_topology(self.job.topology, readers, self.settings.semantics)
