"""Makes a job go on where a live Kafka Streams application has stopped: the way back of `hindstream.kafka.handover`.

Nothing of the application may run meanwhile, and nothing of it is changed. Stores are made of its changelogs, positions
of what its group has committed; one commit, the job's first, makes them true. The job is held until then.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from pydantic import BaseModel

from hindstream.kafka.cluster import Cluster
from hindstream.kafka.consumer import ChangelogReader
from hindstream.kafka.stopped import committed_at_rest
from hindstream.lineage.reported import change_told
from hindstream.runs import now_ms, open_warehouse
from hindstream.spark.phases.plan import described as describe
from hindstream.spark.phases.task_work import task_settings
from hindstream.spark.session.session import spark_context
from hindstream.spark.tasks.works import Work, run_works
from statelib.changelog.import_records import importer_of
from statelib.columns.schema_text import decode_schema
from statelib.commits.archives import open_archive
from statelib.commits.hold import read_hold, release_hold, take_hold
from statelib.commits.run.plan import settle_plan
from statelib.commits.run.takeover import (
    Reached,
    commit_taken_over,
    described_topology,
    plan_taking_over,
    taken_over_by,
)
from statelib.documents.manifests import CommittedTask
from statelib.errors.counted import counted
from statelib.errors.kinds import ConfigurationError, RetryableError
from statelib.job.handover import StoreChangelog
from statelib.task.takeover import TaskTakeover
from statelib.topics.kafka_copy import KafkaCopy

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from statelib.documents.manifests import Commit
    from statelib.documents.plans import Plan
    from statelib.documents.topologies import StoreDescription
    from statelib.job.handover import Handover
    from statelib.job.job import Job
    from statelib.settings.settings import Settings
    from statelib.storage import Storage

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class TookOver:
    """What was taken over.

    Attributes:
        commit: The job's first.
        stores: What they were made of; empty if that had been done before.
    """

    commit: Commit
    stores: tuple[StoreChangelog, ...]


class _Made(BaseModel):
    """What a task has made, on its way from a worker."""

    task: CommittedTask
    records: dict[str, int]


def take_over(job: Job, handover: Handover, settings: Settings, *, stopped: bool = False) -> TookOver:
    """Makes the job's first commit of an application's changelogs and offsets; a repeat changes nothing.

    Args:
        job: The job, which has no commits.
        handover: Of which application.
        settings: See `Settings`.
        stopped: Whether the application is taken to be at rest where nobody can tell: see `Cluster.check_stopped`.

    Raises:
        ConfigurationError: The application runs, or has not read its own repartition topics to their ends; the job
            has commits; a topic is not as the job's, or is not archived as far; a store cannot be made of a changelog.
        InputError: A changelog holds what the declared serdes do not write.
        FencedError: Somebody else was quicker to commit.
        RetryableError: The cluster, the warehouse or Spark did not answer; or the application has moved meanwhile.
    """
    if handover.job != job.name:
        step = f"give the job of the hand-over, {handover.job}, or a hand-over of this one"
        raise ConfigurationError("the hand-over is of another job", job=job.name, next_step=step)
    handover = handover.with_source_changelogs(job.topology.source_changelogs, moves=True)
    warehouse, holder, began_ms = open_warehouse(settings), f"takeover-{handover.application_id}", now_ms()
    done = taken_over_by(warehouse, job.name, handover.application_id)
    stores: tuple[StoreChangelog, ...] = ()
    if done is None:
        application = _Application(job, handover, Cluster(settings), warehouse, stopped=stopped)
        reached = application.reached()
        wanted = plan_taking_over(
            job,
            warehouse,
            reached,
            now_ms=now_ms(),
            semantics=settings.semantics,
            describe=partial(describe, job, settings),
        )
        taken = application.taken(described_topology(warehouse, wanted).stores, settings)
        reason = f"it takes over from the application {handover.application_id}"
        take_hold(warehouse, job.name, holder, reason=reason, now_ms=now_ms())
        plan = settle_plan(warehouse, wanted)
        made = _carry_out(plan, application.tasks(plan, taken, settings), settings)
        if application.reached() != reached:
            what = "the application, or somebody in its name, has been at work meanwhile"
            raise RetryableError(what, group=handover.application_id, next_step="stop it, and run the same command")
        tasks = {task_id: of.task for task_id, of in made.items()}
        done = commit_taken_over(warehouse, plan, tasks, now_ms=now_ms())
        change_told(done, settings, began_ms, [handover.changelog(name) for name in taken])
        stores = tuple(
            StoreChangelog(name, handover.changelog(name), sum(of.records.get(name, 0) for of in made.values()))
            for name in taken
        )
    standing = read_hold(warehouse, job.name)
    if standing is not None and standing.holder == holder:
        release_hold(warehouse, job.name, holder)
    return TookOver(done, stores)


class _Application:
    """What Kafka says of an application that has stopped."""

    def __init__(self, job: Job, handover: Handover, cluster: Cluster, warehouse: Storage, *, stopped: bool) -> None:
        self._stopped = stopped
        self._job = job
        self._handover = handover
        self._cluster = cluster
        self._warehouse = warehouse
        globals_ = {s.topic for sub in job.topology.sub_topologies for s in sub.all_sources if s.is_global}
        self._sources = [topic for topic in job.topology.source_topics if topic not in globals_]

    def reached(self) -> Reached:
        """How far it has come."""
        besides = {self._handover.kafka_topic(topic) for topic in self._job.topology.source_topics}
        committed = committed_at_rest(
            self._cluster,
            self._handover.application_id,
            besides,
            read_back={self._handover.kafka_topic(topic) for topic in self._job.topology.read_back},
            assumed=self._stopped,
        )
        offsets: dict[str, dict[int, int]] = {}
        times: dict[str, int] = {}
        for topic in self._sources:
            state = self._cluster.topic(self._handover.kafka_topic(topic))
            if self._handover.copies_only:
                KafkaCopy(open_archive(self._warehouse, topic)).check_origin(state.origin)
            offsets[topic] = {}
            for partition, begin in state.begins.items():
                found = committed.get((state.name, partition))
                offsets[topic][partition] = begin if found is None else found.offset
                if found is not None and found.partition_time_ms is not None:
                    times[f"{topic}/{partition}"] = found.partition_time_ms
        changelogs = {name: self._ends(name, offsets) for name in self._stores()}
        return Reached(self._handover.application_id, offsets, times, changelogs)

    def taken(self, stores: Iterable[StoreDescription], settings: Settings) -> dict[str, ChangelogReader]:
        """What reads the changelogs, by store; refuses a store that cannot be made of one."""
        wanted = set(self._stores())
        readers = {}
        for store in stores:
            if store.name in wanted:
                form = self._handover.format(store.name)
                importer_of(store, decode_schema(store.arrow_schema), form, semantics=settings.semantics)
                readers[store.name] = ChangelogReader(self._cluster.properties, self._handover.changelog(store.name))
        return readers

    def tasks(self, plan: Plan, taken: Mapping[str, ChangelogReader], settings: Settings) -> list[TaskTakeover]:
        """The work on each task of the plan."""
        described, how = described_topology(self._warehouse, plan), task_settings(self._warehouse, settings)
        formats = {name: self._handover.format(name) for name in taken}
        return [TaskTakeover(how, plan, planned, described, taken, formats) for planned in plan.tasks]

    def _stores(self) -> list[str]:
        """The stores that are made of changelogs: a global table is read anew from its topic."""
        names: list[str] = []
        of_global: list[str] = []
        for sub in self._job.topology.sub_topologies:
            for processor in sub.processors:
                of = of_global if processor.name in sub.global_nodes else names
                of += [store.name for store in processor.spec.state_stores()]
        self._handover.check_stores({*names, *of_global})
        return [name for name in names if name not in self._handover.leave_out]

    def _ends(self, store: str, offsets: Mapping[str, Mapping[int, int]]) -> Mapping[int, int]:
        """Where the changelog of a store ends; a source topic that serves as one ends where the application stands."""
        changelog = self._handover.changelog(store)
        for topic in self._sources:
            if self._handover.kafka_topic(topic) == changelog:
                return offsets[topic]
        return self._cluster.topic(changelog).ends


def _carry_out(plan: Plan, tasks: list[TaskTakeover], settings: Settings) -> dict[str, _Made]:
    works = [Work(plan.job, plan.run_id, t.planned.task_id, t.settings.state_dir, partial(_made, t)) for t in tasks]
    results = run_works(spark_context(settings), works, name=f"{plan.job}, taken over")
    made = [_Made.model_validate_json(result) for result in results]
    _log.info("%s: %s made of changelogs", plan.job, counted(len(made), "task was", "tasks were"))
    return {of.task.position.task_id: of for of in made}


def _made(task: TaskTakeover, attempt: str) -> bytes:
    made, records = task.run(attempt)
    return _Made(task=made, records=records).model_dump_json().encode()
