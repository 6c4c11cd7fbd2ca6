"""Hands a job's state over to a live Kafka Streams application: changelogs, and where its group goes on.

Nothing of the application may run meanwhile. Changelog topics are created and filled, read back and compared, and only
then the group's offsets are set to where the job's commit ends. Stopped anywhere before that, the application, if
somebody starts it, finds no offsets; ``replace`` begins anew.
"""

from __future__ import annotations

import hashlib
import logging
from contextlib import nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hindstream.kafka.cluster import Cluster
from hindstream.kafka.local_state.handed_over import HandedOverState
from hindstream.kafka.producer import Outgoing, outgoing, produce, record_of, sending
from hindstream.runs import now_ms, open_warehouse
from statelib.changelog.export import export_changelog, exporter_of
from statelib.commits import CommitLog
from statelib.commits.archives import open_archive
from statelib.commits.layout import Runs
from statelib.commits.topologies.read_back import read_back
from statelib.errors.counted import counted
from statelib.errors.kinds import ConfigurationError, CorruptedDataError
from statelib.job.handover import StoreChangelog, behind_ms, changelog_config
from statelib.snapshots import open_state
from statelib.topics.kafka_copy import KafkaCopy

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from pathlib import Path

    from hindstream.kafka.local_state.directory import LocalState
    from statelib.documents.manifests import Commit, TaskPosition
    from statelib.job.handover import Handover
    from statelib.settings.settings import Settings
    from statelib.snapshots import StoreSnapshot
    from statelib.storage import Storage

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class HandedOver:
    """What was handed over.

    Attributes:
        commit: The job's.
        group: The application's.
        stores: In the order of the topology.
        offsets: Where the group goes on, by topic and partition.
        local_state: The state directory that was written; None: none was wanted.
    """

    commit: int
    group: str
    stores: tuple[StoreChangelog, ...]
    offsets: Mapping[tuple[str, int], int]
    local_state: LocalState | None = None


def hand_over(
    handover: Handover,
    settings: Settings,
    *,
    commit: int | None = None,
    replace: bool = False,
    stopped: bool = False,
    state_dir: Path | None = None,
    last_check: Callable[[], object] = lambda: None,
) -> HandedOver:
    """Exports the changelogs of all stores, verifies them, and sets the group's offsets.

    Args:
        handover: What of which job, and for whom.
        settings: See `Settings`.
        commit: The job's commit; None: the newest.
        replace: Whether changelog topics that are there are deleted first, with all that they hold.
        stopped: Whether the application is taken to be at rest where nobody can tell: see `Cluster.check_stopped`.
        state_dir: Where the application's state directory is written too, so that it starts without a restore: its
            setting ``state.dir``, or a folder of which its hosts get copies. With ``replace`` what the application has
            there is deleted first.
        last_check: Is called before the offsets are set; an error keeps them from it.

    Raises:
        ConfigurationError: The application runs; a topic is not as the job's; a changelog topic is there, or local
            state; a store cannot be exported.
        CorruptedDataError: What was read back is not what was written.
        RetryableError: The cluster or the warehouse did not answer.
    """
    cluster = Cluster(settings)
    with open_state(
        settings.warehouse,
        handover.job,
        commit=commit,
        storage_options=settings.store_options,
        state_dir=settings.local_state_dir,
    ) as state:
        handover.check_stores({store.name for store in state.stores})
        handover = handover.with_source_changelogs(source_changelogs(state.stores), moves=False)
        stores = [store for store in state.stores if store.name not in handover.leave_out]
        for store in stores:  # what is refused is refused before anything is changed
            _check_restored(store)
            exporter_of(store.described, handover.format(store.name))
        warehouse = open_warehouse(settings)
        made = CommitLog(warehouse, handover.job).read(state.commit)
        offsets = _offsets(handover, made, cluster, warehouse)
        topic = next((topic for topic, _ in offsets), None)
        cluster.check_stopped(handover.application_id, assumed=stopped, topic=topic)
        _check_changelogs([store.name for store in stores], handover, made)
        local = None if state_dir is None else HandedOverState(state_dir, handover, state.stores, offsets)
        if local is not None:
            local.begin(replace=replace)
        exports = [_StoreExport(handover, store, cluster, local) for store in stores]
        positions = {task_id: task.position for task_id, task in made.tasks.items()}
        handed = tuple(export.run(positions, replace=replace) for export in exports)
        cluster.check_stopped(handover.application_id, assumed=stopped, topic=topic)
        laid = None if local is None else local.finish()
        last_check()
        cluster.set_group_offsets(handover.application_id, offsets)
        return HandedOver(state.commit, handover.application_id, handed, offsets, laid)


def _check_restored(store: StoreSnapshot) -> None:
    if store.kind == "join-buffer":
        what = "Kafka Streams loses what it restores of the records that wait for a table, and lets none wait any more"
        step = "run the job until no record waits, and name the store in Handover(leave_out=...)"
        raise ConfigurationError(what, store=store.name, next_step=step)


def _check_changelogs(stores: Sequence[str], handover: Handover, commit: Commit) -> None:
    """Makes sure that no source would be taken for a changelog, and with ``replace`` be deleted."""
    sources = {handover.kafka_topic(source.topic) for source in commit.sources}
    for store in stores:
        if (changelog := handover.changelog(store)) in sources:
            what = "the store's changelog is a source topic, of which the application restores it itself"
            step = "name the store in Handover(leave_out=...)"
            raise ConfigurationError(what, store=store, topic=changelog, next_step=step)


def _offsets(handover: Handover, commit: Commit, cluster: Cluster, warehouse: Storage) -> dict[tuple[str, int], int]:
    """Where the group goes on, and a look whether Kafka's topics are those that were replayed."""
    offsets: dict[tuple[str, int], int] = {}
    reached = commit.source_offsets()
    for source in commit.sources:
        name = handover.kafka_topic(source.topic)
        state = cluster.topic(name)
        if len(state.ends) != source.partitions:
            what = f"the topic has {counted(len(state.ends), 'partition')} in Kafka, and {source.partitions} in the job"
            raise ConfigurationError(
                what, topic=name, next_step="keys have moved: archive the topic again, and replay it"
            )
        if handover.copies_only:
            KafkaCopy(open_archive(warehouse, source.topic)).check_origin(state.origin)
        for partition, end in state.ends.items():
            begin = state.begins[partition]
            offset = reached.get(source.topic, {}).get(partition) or begin  # 0: the job has seen none
            if not begin <= offset <= end:
                what = f"the job has come to offset {offset}, and Kafka has {begin} to {end}"
                step = "replay up to what Kafka still has: hindstream archive, hindstream run"
                raise ConfigurationError(what, topic=name, partition=partition, next_step=step)
            offsets[name, partition] = offset
    for topic in _read_back(handover, commit, warehouse):
        state = cluster.topic(handover.kafka_topic(topic))  # what it holds has been read: the state has it
        offsets |= {(state.name, partition): end for partition, end in state.ends.items()}
    return offsets


def _read_back(handover: Handover, commit: Commit, warehouse: Storage) -> tuple[str, ...]:
    """The topics that the application writes and reads."""
    topology = Runs(warehouse, handover.job).topology(commit.fingerprint)
    return () if topology is None else read_back(topology)


def source_changelogs(stores: Iterable[StoreSnapshot]) -> dict[str, str]:
    """By store, the source topic that is its changelog in the application, as the job's topology was built."""
    return {store.name: topic for store in stores if (topic := store.described.changelog_topic) is not None}


class _StoreExport:
    """A store's way into its changelog topic and back."""

    def __init__(
        self, handover: Handover, store: StoreSnapshot, cluster: Cluster, local: HandedOverState | None
    ) -> None:
        self._store = store
        self._local = local
        self._form = handover.format(store.name)
        self._changelog = handover.changelog(store.name)
        self._cluster = cluster

    def run(self, positions: Mapping[str, TaskPosition], *, replace: bool) -> StoreChangelog:
        """Makes the topic, fills it, and compares what it holds then."""
        if replace:
            self._cluster.delete_topic(self._changelog)
        described = self._store.described.store
        config = changelog_config(described, behind_ms(positions, described, now_ms()))
        self._cluster.create_topic(self._changelog, len(self._store.partitions), config)
        written = self._written()
        found = {partition: self._found(partition, of) for partition, of in written.items()}
        if found != written:
            what = "the changelog does not hold what was written"
            step = "look who else writes to it, and run the same command again with --replace"
            raise CorruptedDataError(what, topic=self._changelog, next_step=step)
        records = sum(one.records for one in written.values())
        _log.info("%s: %s in %s", self._store.name, counted(records, "record"), self._changelog)
        return StoreChangelog(self._store.name, self._changelog, records)

    def _written(self) -> dict[int, _Digest]:
        """Sends all records, and gives by partition what they are."""
        written = {partition: _Digest() for partition in self._store.partitions}
        errors = self._cluster.errors(topic=self._changelog)
        with errors, sending(self._cluster.properties) as producer:
            for partition, digest in written.items():
                for batch in export_changelog(self._store, partition, self._form):
                    for record in outgoing(*(batch[name] for name in ("key", "value", "timestamp", "headers"))):
                        digest.add(record)
                        produce(producer, self._changelog, partition, record)
        return written

    def _found(self, partition: int, written: _Digest) -> _Digest:
        found = _Digest(has_timestamps=written.has_timestamps)
        with nullcontext() if self._local is None else self._local.files(self._store, partition) as files:
            last_offset = None
            for message in self._cluster.messages(self._changelog, partition):
                record, last_offset = record_of(message), message.offset()
                found.add(record)
                if files is not None:
                    files.add(record)
            if files is not None:
                files.finish(self._changelog, partition, last_offset)
        return found


@dataclass(slots=True)
class _Digest:
    """Tells sequences of records apart; without timestamps where Kafka Streams sends none: the client fills them in."""

    records: int = 0
    has_timestamps: bool = True
    sha256: str = ""

    def add(self, record: Outgoing) -> None:
        """Takes a record in."""
        self.has_timestamps &= record.timestamp_ms is not None
        timestamp = record.timestamp_ms if self.has_timestamps else None
        said = repr((self.sha256, record.key, record.value, timestamp, record.headers))
        self.records += 1
        self.sha256 = hashlib.sha256(said.encode()).hexdigest()
