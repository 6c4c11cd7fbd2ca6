"""Lets another version take the place of a live Kafka Streams application, at the very record where that has stopped.

Both versions write to the same topics. What readers find there in the end is what the old one has made of the records
before its last committed offsets, and the new one of those from there on: none is missing, and none is there twice.

1. The old application is stopped by whoever runs it. Its group says where: with exactly-once, what it has written and
   what it has committed are one.
2. The job of the new version replays to these offsets, and no further.
3. Its state is handed over under an application id that nobody has used, and the group's offsets are set last.
4. The new application is started by whoever runs it.

The way back is the same, the other way round. As long as the new application has not been started, it is enough to
start the old one again: nothing of it is changed.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hindstream.kafka.cluster import Cluster
from hindstream.kafka.handover import hand_over
from hindstream.kafka.stopped import committed_at_rest
from hindstream.runs import now_ms, open_warehouse
from hindstream.spark.phases.pipeline import run_slice
from statelib.commits import CommitLog
from statelib.commits.archives import open_archive
from statelib.commits.hold import read_hold, release_hold, take_hold
from statelib.errors.kinds import ConfigurationError, RetryableError
from statelib.topics.kafka_copy import KafkaCopy

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from hindstream.kafka.handover import HandedOver
    from statelib.commits.sources.checks import EndOffsets
    from statelib.documents.manifests import Commit
    from statelib.job.handover import Handover
    from statelib.job.job import Job
    from statelib.job.switch_over import SwitchOver
    from statelib.settings.settings import Settings
    from statelib.storage import Storage

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class SwitchedOver:
    """What was done.

    Attributes:
        old: The application that has stopped.
        new: The one that goes on.
        offsets: Where it does, by topic and partition.
        handed_over: What was handed over; None: that had been done before.
    """

    old: str
    new: str
    offsets: Mapping[tuple[str, int], int]
    handed_over: HandedOver | None


def switch_over(
    job: Job,
    switch: SwitchOver,
    settings: Settings,
    *,
    replace: bool = False,
    stopped: bool = False,
    state_dir: Path | None = None,
) -> SwitchedOver:
    """Replays to where the old application has stopped, and hands over to the new one. A repeat goes on.

    Args:
        job: The job of the new version; its archives reach at least to where the old application has stopped.
        switch: The applications.
        settings: See `Settings`.
        replace: Whether an earlier hand-over to the new application, which has not been started since, is replaced.
        stopped: Whether applications are taken to be at rest where nobody can tell: see `Cluster.check_stopped`.
        state_dir: Where the new application's state directory is written too: see `hand_over`.

    Raises:
        ConfigurationError: An application runs; the new one has been used before; the job has come further than the
            old application; an archive ends before; the job publishes to a topic that the applications write; or as
            `hand_over`.
        HindstreamError: That of the phase of the replay that failed.
        RetryableError: The cluster or the warehouse did not answer, or the old application has been at work meanwhile.
    """
    _check_names(job, switch)
    cluster, warehouse = Cluster(settings), open_warehouse(settings)
    log, holder = CommitLog(warehouse, job.name), f"switch-{switch.new.application_id}"
    stop = _Stop(job, switch, cluster, warehouse, stopped=stopped)
    ends = stop.ends()
    wanted = stop.group_offsets(ends)
    if _is_handed_over(cluster, switch, wanted, replace=replace):
        _release(warehouse, job.name, holder)
        return SwitchedOver(switch.old, switch.new.application_id, wanted, None)
    standing = read_hold(warehouse, job.name)
    is_ours = standing is not None and standing.holder == holder  # what lies under the new id is ours too
    if not is_ours and not replace:
        _check_unused(cluster, job, switch.new)
    if not is_ours or not _has_come_to(log.head(), ends, job):
        _release(warehouse, job.name, holder)
        _check_not_further(log, ends, job, switch)
        run_slice(job, settings.model_copy(update={"until": None}), end_offsets=ends)
        head = log.head()
        if head is None or not _has_come_to(head, ends, job):
            what = "the job has not come to where the application has stopped"
            raise RetryableError(what, job=job.name, group=switch.old, next_step="run the same command again")
        reason = f"{switch.new.application_id} takes the place of {switch.old}"
        take_hold(warehouse, job.name, holder, reason=reason, now_ms=now_ms())
    done = hand_over(
        switch.new,
        settings,
        commit=log.head_number(),
        replace=is_ours or replace,
        stopped=stopped,
        state_dir=state_dir,
        last_check=lambda: stop.check_still(ends),
    )
    _release(warehouse, job.name, holder)
    return SwitchedOver(switch.old, switch.new.application_id, done.offsets, done)


class _Stop:
    """Where the old application has stopped, in the job's terms."""

    def __init__(self, job: Job, switch: SwitchOver, cluster: Cluster, warehouse: Storage, *, stopped: bool) -> None:
        self._job = job
        self._switch = switch
        self._cluster = cluster
        self._warehouse = warehouse
        self._stopped = stopped

    def ends(self) -> EndOffsets:
        """Where the slice ends, by topic and partition: of topics that the old one does not read, at the archive's end.

        Where Kafka's offsets end with markers of transactions, the archive ends before them.
        """
        handover, topology = self._switch.new, self._job.topology
        names = {topic: handover.kafka_topic(topic) for topic in topology.source_topics}
        committed = committed_at_rest(self._cluster, self._switch.old, names.values(), assumed=self._stopped)
        read = {topic for topic, _ in committed}
        ends: dict[str, dict[int, int]] = {}
        for topic, name in names.items():
            archive = open_archive(self._warehouse, topic)
            archived = archive.end_offsets()
            ends[topic] = dict(archived)
            if topic in topology.bootstrap_topics or name not in read:
                continue
            copy = KafkaCopy(archive)
            state = self._cluster.topic(name)
            if handover.copies_only:
                copy.check_origin(state.origin)
            for partition, begin in state.begins.items():
                found = committed.get((name, partition))
                offset = begin if found is None else found.offset
                reached = copy.position(partition) if handover.copies_only else archived.get(partition, 0)
                if offset > (reached or 0) and offset > begin:
                    what = f"the application has stopped at offset {offset}, and the archive is at {reached or 0}"
                    step = "archive the rest: hindstream archive, and run the same command again"
                    raise ConfigurationError(what, topic=topic, partition=partition, next_step=step)
                ends[topic][partition] = min(offset, archived.get(partition, 0))
        return ends

    def group_offsets(self, ends: EndOffsets) -> dict[tuple[str, int], int]:
        """The same for the new application's group."""
        offsets = {}
        for topic, of in ends.items():
            if topic not in self._job.topology.bootstrap_topics:
                name = self._switch.new.kafka_topic(topic)
                begins = self._cluster.begins(name, sorted(of))
                offsets.update({(name, partition): end or begins[partition] for partition, end in of.items()})
        return offsets

    def check_still(self, ends: EndOffsets) -> None:
        """Makes sure that the old application has not been at work meanwhile."""
        if self.ends() != ends:
            what = "the application has been at work meanwhile"
            step = "stop it for good, archive its topics, and run the same command again"
            raise RetryableError(what, group=self._switch.old, next_step=step)


def _check_names(job: Job, switch: SwitchOver) -> None:
    if switch.new.job != job.name:
        step = f"give the job of the switch-over, {switch.new.job}, or a switch-over of this one"
        raise ConfigurationError("the switch-over is of another job", job=job.name, next_step=step)
    written = {topic.name for topic, _ in switch.outputs}
    for topic in job.kafka_sinks:
        if topic.name in written:
            what = "the job publishes to a topic that the applications write: readers would find results twice"
            step = "leave it out of kafka_sinks"
            raise ConfigurationError(what, job=job.name, topic=topic.name, next_step=step)


def _is_handed_over(
    cluster: Cluster, switch: SwitchOver, wanted: Mapping[tuple[str, int], int], *, replace: bool
) -> bool:
    """Whether the new group stands where it is to go on: offsets are set last.

    Raises:
        ConfigurationError: It stands elsewhere.
    """
    found = cluster.group_offsets(switch.new.application_id)
    if wanted.items() <= found.items():
        return True
    if found and not replace:
        what = "the group of the new application has offsets already: it has gone on, or another hand-over was made"
        step = "hand over under another application id; --replace if it was never started"
        raise ConfigurationError(what, group=switch.new.application_id, next_step=step)
    return False


def _check_unused(cluster: Cluster, job: Job, handover: Handover) -> None:
    """Makes sure that the application id is new: changelogs under it are ours from now on."""
    processors = [processor for sub in job.topology.sub_topologies for processor in sub.processors]
    stores = {store.name for of in processors for store in of.spec.state_stores()}
    of_sources = job.topology.source_changelogs.keys() - handover.changelogs.keys()
    changelogs = {handover.changelog(store) for store in stores - of_sources}
    for topic in sorted(changelogs & cluster.topic_names()):
        what = "there is a changelog of the new application already"
        step = "give it an id that is new; --replace deletes what an earlier hand-over has made"
        raise ConfigurationError(what, group=handover.application_id, topic=topic, next_step=step)


def _has_come_to(head: Commit | None, ends: EndOffsets, job: Job) -> bool:
    reached = {} if head is None else head.source_offsets()
    return head is not None and all(
        reached.get(topic, {}).get(partition, 0) == end
        for topic, of in ends.items()
        if topic not in job.topology.bootstrap_topics
        for partition, end in of.items()
    )


def _check_not_further(log: CommitLog, ends: EndOffsets, job: Job, switch: SwitchOver) -> None:
    head = log.head()
    if head is None:
        return
    for topic, of in ends.items():
        for partition, end in of.items():
            reached = head.source_offsets().get(topic, {}).get(partition, 0)
            if topic not in job.topology.bootstrap_topics and reached > end:
                what = f"the job has come to offset {reached}, and the application {switch.old} has stopped at {end}"
                step = "start the application until it is there, or roll back: hindstream state rollback"
                raise ConfigurationError(what, job=job.name, topic=topic, partition=partition, next_step=step)


def _release(warehouse: Storage, job: str, holder: str) -> None:
    standing = read_hold(warehouse, job)
    if standing is not None and standing.holder == holder:
        release_hold(warehouse, job, holder)
