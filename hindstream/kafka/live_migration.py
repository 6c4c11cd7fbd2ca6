"""KIP-889's procedure for the store of a live application: from plain to versioned, or to another history retention.

1. The application is stopped by whoever runs it.
2. `prepare` finds its group empty, deletes the store's local state on this host, and sets ``min.compaction.lag.ms`` of
   the changelog, which is read back. It may be given again, on each host.
3. The application is deployed with its new store and started: it restores that from the changelog.
4. Stopped once more, `verify` compares what it has restored with the changelog.

`roll_back` is the way back: it deletes the local state, which the former code cannot read, and the lag.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from hindstream.kafka.changelog_history import digest, read_history
from hindstream.kafka.streams_directory import StreamsDirectory
from hindstream.kafka.streams_store import latest_values
from statelib.commits.rewriting.compaction import ADDITIONAL_RETENTION_MS
from statelib.errors.kinds import ConfigurationError, CorruptedDataError, RetryableError

if TYPE_CHECKING:
    from pathlib import Path

    from hindstream.kafka.changelog_history import ChangelogHistory
    from hindstream.kafka.cluster import Cluster

_LAG = "min.compaction.lag.ms"
_POLICY = "cleanup.policy"
_MOST_NAMED = 10


@dataclass(frozen=True, slots=True)
class LiveStore:
    """A store of a live application.

    Attributes:
        application_id: The application's, and its group.
        store: The store's name.
        state_dir: The application's ``state.dir`` on this host.
        history_retention_ms: Of the versioned store that it becomes.
        changelog: Its changelog topic.
        stopped: Whether the application is taken to be at rest where its group does not tell
            (`hindstream.kafka.cluster.Cluster.check_stopped`).
    """

    application_id: str
    store: str
    state_dir: Path
    history_retention_ms: int
    changelog: str
    stopped: bool = False

    @property
    def lag_ms(self) -> int:
        """What ``min.compaction.lag.ms`` has to be: the history retention and 24 hours (KIP-889)."""
        return self.history_retention_ms + ADDITIONAL_RETENTION_MS

    @property
    def directory(self) -> StreamsDirectory:
        """Its local state on this host."""
        return StreamsDirectory(self.state_dir, self.application_id)


@dataclass(frozen=True, slots=True)
class LivePlan:
    """What would be done, and what the changelog still has.

    Attributes:
        lag_ms: ``min.compaction.lag.ms`` as it is.
        needed_ms: As it has to be.
        tasks: The tasks on this host that have the store.
        histories: By partition of the changelog.
    """

    lag_ms: int
    needed_ms: int
    tasks: tuple[int, ...]
    histories: tuple[ChangelogHistory, ...]


@dataclass(frozen=True, slots=True)
class Prepared:
    """What was done: the tasks that were deleted, and ``min.compaction.lag.ms`` before and now.

    Attributes:
        of_streams_group: Whether the group is of the protocol ``streams``. Such a group refuses a topology that has
            changed, until it has been a classic one in between.
    """

    deleted: tuple[str, ...]
    former_lag_ms: int
    lag_ms: int
    of_streams_group: bool = False


@dataclass(slots=True)
class LiveComparison:
    """The latest values of a partition of the restored store, and those of its changelog.

    Attributes:
        partition: Its number.
        equal: Keys with the same value and timestamp.
        different: Keys with another one, or with none, or with one too many, as hex; at most ten.
        differences: How many these are.
    """

    partition: int
    equal: int = 0
    different: list[str] = field(default_factory=list)
    differences: int = 0

    def differs(self, key: bytes) -> None:
        """Takes up a key that differs."""
        self.differences += 1
        if len(self.different) < _MOST_NAMED:
            self.different.append(key.hex())


def preview(cluster: Cluster, live: LiveStore) -> LivePlan:
    """What `prepare` would do; changes nothing, and the application may be at work.

    Raises:
        ConfigurationError: There is no such changelog, or it is not compacted.
        RetryableError: The cluster did not answer.
    """
    lag_ms = _lag_ms(cluster, live)
    return LivePlan(lag_ms, live.lag_ms, tuple(sorted(live.directory.stores(live.store))), _histories(cluster, live))


def prepare(cluster: Cluster, live: LiveStore) -> Prepared:
    """Deletes the store's local state on this host, and sets the lag; a repeat changes nothing more.

    Raises:
        ConfigurationError: The application is at work; or as of `preview`.
        RetryableError: The cluster did not answer, or has not taken the lag.
    """
    of_streams_group = cluster.check_stopped(live.application_id, assumed=live.stopped)
    former_ms = _lag_ms(cluster, live)
    deleted = live.directory.delete_tasks(live.store)
    lag_ms = max(former_ms, live.lag_ms)
    if lag_ms != former_ms:
        cluster.set_topic_config(live.changelog, {_LAG: str(lag_ms)})
    found = _lag_ms(cluster, live)
    if found != lag_ms:
        what = f"{_LAG} was set to {lag_ms}, and {found} is read back"
        raise RetryableError(what, topic=live.changelog, next_step="run the same command again")
    return Prepared(tuple(deleted), former_ms, lag_ms, of_streams_group)


def verify(cluster: Cluster, live: LiveStore) -> tuple[tuple[ChangelogHistory, LiveComparison], ...]:
    """Compares the partitions of the versioned store that this host has with the changelog.

    Raises:
        ConfigurationError: The application is at work: what it has not written yet nobody can read; or this host has
            nothing of the store.
        CorruptedDataError: The store cannot be read.
        RetryableError: The cluster did not answer.
    """
    cluster.check_stopped(live.application_id, assumed=live.stopped)
    live.directory.check_free()
    stores = live.directory.stores(live.store)
    if not stores:
        step = "start the application with its new store, let it restore, and stop it"
        raise ConfigurationError("this host has nothing of the store", store=live.store, next_step=step)
    histories = _histories(cluster, live, sorted(stores))
    return tuple((history, _compared(history, stores[history.partition])) for history in histories)


def check_equal(live: LiveStore, compared: tuple[tuple[ChangelogHistory, LiveComparison], ...]) -> None:
    """Raises where some values differ.

    Raises:
        CorruptedDataError: They do.
    """
    for _, found in compared:
        if found.differences:
            what = f"{found.differences} latest values are not those of the changelog: {', '.join(found.different)}"
            step = "delete the local state and restore once more (prepare), or go back (rollback)"
            place = {"topic": live.changelog, "partition": found.partition, "store": live.store}
            raise CorruptedDataError(what, **place, next_step=step)


def roll_back(cluster: Cluster, live: LiveStore, former_lag_ms: int | None = None) -> Prepared:
    """Deletes the store's local state on this host, and sets the lag back; a repeat changes nothing more.

    Args:
        cluster: The cluster.
        live: The store.
        former_lag_ms: What `prepare` told; None: what the broker gives a topic that has none of its own.

    Raises:
        ConfigurationError: The application is at work.
        RetryableError: The cluster did not answer.
    """
    of_streams_group = cluster.check_stopped(live.application_id, assumed=live.stopped)
    before_ms = _lag_ms(cluster, live)
    deleted = live.directory.delete_tasks(live.store)
    cluster.set_topic_config(live.changelog, {_LAG: None if former_lag_ms is None else str(former_lag_ms)})
    return Prepared(tuple(deleted), before_ms, _lag_ms(cluster, live), of_streams_group)


def _lag_ms(cluster: Cluster, live: LiveStore) -> int:
    """As it is; checks that the topic is a changelog of a table."""
    config = cluster.topic_config(live.changelog)
    if config[_POLICY] != "compact":
        what = f"the topic's {_POLICY} is {config[_POLICY]}: it is no changelog of a table"
        step = "name the store's changelog: --changelog TOPIC"
        raise ConfigurationError(what, topic=live.changelog, next_step=step)
    return int(config[_LAG])


def _histories(cluster: Cluster, live: LiveStore, partitions: list[int] | None = None) -> tuple[ChangelogHistory, ...]:
    wanted = sorted(cluster.topic(live.changelog).ends) if partitions is None else partitions
    return tuple(
        read_history(cluster.messages(live.changelog, partition), partition, live.history_retention_ms)
        for partition in wanted
    )


def _compared(history: ChangelogHistory, directory: Path) -> LiveComparison:
    found = LiveComparison(history.partition)
    missing = {key: value for key, value in history.latest.items() if value[1] is not None}
    for key, timestamp_ms, value in latest_values(directory):
        if missing.pop(key, None) == (timestamp_ms, digest(value)):
            found.equal += 1
        else:
            found.differs(key)
    for key in missing:
        found.differs(key)
    return found
