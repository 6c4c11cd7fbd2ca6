"""Kafka's ``min.compaction.lag.ms`` of a store's changelog: what the store needs, what is set, and how to set it."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING

from statelib.commits.archives import open_archive_if_present
from statelib.commits.expiry import restorable_commits
from statelib.commits.hold import check_free
from statelib.commits.layout import CommitLog, Runs, changelog_topic
from statelib.commits.rewriting.compaction import ChangelogUse
from statelib.commits.standing import no_commits
from statelib.errors.fault_points import step
from statelib.errors.kinds import ConfigurationError, RetryableError

if TYPE_CHECKING:
    from statelib.documents.topologies import StoreDescription
    from statelib.storage import Storage
    from statelib.topics.archive import TopicArchive


@dataclass(frozen=True, slots=True)
class ChangelogLag:
    """How a store's changelog is compacted.

    Attributes:
        changelog: Its newest version, which knows how far it is clean and what has been set.
        store: As of the head.
        needed_ms: The least lag that keeps what the states need that can be gone back to.
        is_compacted: Whether maintenance compacts it; else it merges its files.
    """

    changelog: TopicArchive
    store: StoreDescription
    needed_ms: int
    is_compacted: bool

    @property
    def set_ms(self) -> int | None:
        """What has been set; None: nothing."""
        return self.changelog.min_compaction_lag_ms


def changelog_lag(warehouse: Storage, job: str, store: str) -> ChangelogLag:
    """How the changelog of a store is compacted.

    Raises:
        ConfigurationError: The job has no commits, or nobody wrote the head's topology down; there is no such store; it
            has no changelog, or one in which there is nothing yet.
    """
    head = CommitLog(warehouse, job).head()
    if head is None:
        raise no_commits(warehouse, job)
    described = Runs(warehouse, job).topology(head.fingerprint)
    if described is None:
        what = f"there is no description of the topology of commit {head.commit}, which tells what its stores are"
        step = "run a slice: each run of this version writes it down"
        raise ConfigurationError(what, job=job, next_step=step)
    stores = {one.name: one for one in described.stores}
    if store not in stores:
        step = f"name one of: {', '.join(stores)}" if stores else "it has none at all"
        raise ConfigurationError("the job has no such store", job=job, store=store, next_step=step)
    topic = changelog_topic(job, store)
    archive = open_archive_if_present(warehouse, topic)
    if archive is None:
        what = "the store has no changelog, or nothing has been logged yet"
        step = "name the store in `changelogs` on the job's first run"
        raise ConfigurationError(what, job=job, store=store, topic=topic, next_step=step)
    use = ChangelogUse(warehouse, job)
    deque(use.seen(restorable_commits(warehouse, job)), maxlen=0)  # lets them go by
    return ChangelogLag(archive, stores[store], use.needed_lag_ms(store), topic in use.settings())


def set_changelog_lag(warehouse: Storage, job: str, store: str, lag_ms: int) -> ChangelogLag:
    """Sets the lag of a store's changelog, and reads it back. What is clean already stays so.

    Raises:
        ConfigurationError: See `changelog_lag`; or the store needs more, or somebody holds the job.
        RetryableError: Something else is read back, or the store did not answer.
    """
    check_free(warehouse, job, None)
    found = changelog_lag(warehouse, job, store)
    if lag_ms < found.needed_ms:
        raise ConfigurationError(
            f"a lag of {lag_ms} ms is too short: the states kept for a rollback need {found.needed_ms} ms",
            job=job,
            store=store,
            next_step=f"set at least {found.needed_ms // 1000 + 1}s",
        )
    set_and_read_back(found.changelog, lag_ms)
    return changelog_lag(warehouse, job, store)


def set_and_read_back(changelog: TopicArchive, lag_ms: int) -> None:
    """Sets the lag of a changelog.

    Raises:
        RetryableError: Something else is read back, or the store did not answer.
    """
    changelog.set_min_compaction_lag(lag_ms)
    step("lag.set")
    found = changelog.refresh().min_compaction_lag_ms
    if found != lag_ms:
        what = f"min.compaction.lag.ms has been set to {lag_ms}, and is {found}"
        raise RetryableError(what, topic=changelog.topic, next_step="run the same command again")
