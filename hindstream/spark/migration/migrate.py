"""Migrates stores of tables, step by step: the manual procedure of KIP-889 on a job that is replayed.

1. *plan*: says what would be done.
2. *hold*: the job is held (`statelib.commits.hold`), and no run of it is open ("stop the application").
3. *clean*: every host has of the job's state what the newest commit names, and nothing else ("delete all local state";
   `hindstream.spark.placement.hosts`).
4. *lag*: ``min.compaction.lag.ms`` of the stores' changelogs is set to what the stores need as they shall be, and read
   back: from now on nothing is compacted that is history to them.
5. *restore*: a run over no records whose topology has the stores as they shall be makes them anew
   (`statelib.migration`) and becomes a commit. It begins with the step before, so that none can do without.
6. *verify*: of each key the latest value is what it was.
7. *release*: the job is let go ("restart").

`run` does them in order, an Airflow DAG as tasks (`hindstream.airflow.migration`). Each step may be killed and is done
again by the next call; what has been done already is found to be so. Until the commit nothing is visible, and after it
a rollback takes it back.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hindstream.runs import now_ms, open_warehouse
from hindstream.spark.phases import audit, commit, replay
from hindstream.spark.phases.plan import described, planner
from hindstream.spark.placement.hosts import clean_hosts
from statelib.commits import CommitLog, NothingToDo, check_free, publish, read_hold, release_hold, take_hold
from statelib.commits.archives import open_archive, open_archive_if_present
from statelib.commits.layout import changelog_topic
from statelib.commits.maintenance.changelog_lag import set_and_read_back
from statelib.commits.rewriting.compaction import min_compaction_lag_ms
from statelib.commits.sources.schemas import read_as_before
from statelib.commits.topologies.settle import follow_up
from statelib.commits.versions.rollback import rollback
from statelib.errors.counted import counted
from statelib.errors.fault_points import step
from statelib.errors.kinds import ConfigurationError, CorruptedDataError
from statelib.migration import Comparison, compare_latest, is_rename
from statelib.snapshots.restored import RestoredTasks
from statelib.stores.spec import families_to_read

if TYPE_CHECKING:
    from collections.abc import Sequence

    from statelib.documents.manifests import Commit
    from statelib.documents.topologies import Evolution, Migration
    from statelib.job.job import Job
    from statelib.settings.settings import Settings
    from statelib.storage import Storage
    from statelib.topics.archive import TopicArchive

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class MigrationPreview:
    """What a migration would do.

    Attributes:
        job: The job's name.
        head: The commit that it goes on from.
        evolution: All that becomes of the state.
        changelogs: By store, how many records its changelog has; None: it has none, and what it holds is taken.
        lags: By store whose changelog's ``min.compaction.lag.ms`` has to be set: to what, in ms.
        is_done: Whether ``head`` has the migrated stores already; what is left is to verify that and let the job go.
    """

    job: str
    head: int
    evolution: Evolution
    changelogs: dict[str, int | None]
    lags: dict[str, int]
    is_done: bool = False

    def lines(self) -> list[str]:
        """For a person."""
        if self.is_done:
            return [f"{self.job}: commit {self.head} has the migrated stores already; they are only verified again."]
        lines = [f"{self.job} continues from commit {self.head}:", *(f"  {what}." for what in self.evolution.changes)]
        for migration in self.evolution.migrations:
            store, records = migration.now, self.changelogs[migration.now.name]
            if is_rename(migration):
                copied = "" if records is None else f", and a copy of its changelog of {counted(records, 'record')}"
                lines.append(f"Store {migration.before.name} gets the name {store.name}, entry by entry{copied}.")
                continue
            given = {name: value for name, value in sorted(store.settings.items()) if value is not None}
            settings = "".join(f", {name} {value}" for name, value in given.items())
            source = "what it holds" if records is None else f"its changelog of {counted(records, 'record')}"
            lines.append(f"Store {store.name} ({store.kind}{settings}) is rebuilt from {source}.")
            if store.name in self.lags:
                lines.append(f"min.compaction.lag.ms of that changelog is set to {self.lags[store.name]:,} before.")
        return lines


@dataclass(frozen=True, slots=True)
class Verified:
    """What became of one store in one task."""

    store: str
    task_id: str
    comparison: Comparison


def preview(job: Job, settings: Settings, stores: Sequence[str]) -> MigrationPreview:
    """What migrating ``stores`` would do; changes nothing.

    Raises:
        ConfigurationError: There is nothing to migrate, or it cannot be done.
    """
    warehouse = open_warehouse(settings)
    head = _head(warehouse, job)
    if (made := _made(head, job, stores)) is not None:
        return MigrationPreview(job.name, head.commit, made, {}, {}, is_done=True)
    if head.fingerprint == job.topology.fingerprint:
        raise _nothing(job, head, stores)
    archives = read_as_before({topic: open_archive(warehouse, topic) for topic in job.topology.source_topics}, head)
    tasks = job.topology.partitions({topic: archive.partitions for topic, archive in archives.items()})
    now = described(job, settings, archives)
    evolution = follow_up(
        warehouse, head, now, now.fingerprint, tasks, reset_stores=settings.reset_stores, migrate_stores=stores
    )
    if {migration.asked_for for migration in evolution.migrations} != set(stores):
        raise _nothing(job, head, stores)
    changelogs = {migration.now.name: _logged(warehouse, head, migration) for migration in evolution.migrations}
    lags = {migration.now.name: lag for migration, _, lag in _short_lags(warehouse, job, evolution)}
    return MigrationPreview(job.name, head.commit, evolution, changelogs, lags)


def run(job: Job, settings: Settings, stores: Sequence[str]) -> tuple[Commit, list[Verified]]:
    """All steps; goes on with what a killed call has left. A job whose latest values differ stays held.

    Returns:
        The commit that has the migrated stores, and what the comparison found.

    Raises:
        HindstreamError: That of the step that failed.
    """
    hold(job, settings, stores)
    clean_hosts(job.name, settings)
    step("migrate.cleaned")
    made = restore(job, settings, stores)
    found = verify(job.name, settings, made)
    if not any(part.comparison.differences for part in found):
        release(job.name, settings, stores)
    return made, found


def hold(job: Job, settings: Settings, stores: Sequence[str], *, approved: Evolution | None = None) -> None:
    """Holds the job; what cannot be done is said before that.

    Args:
        job: The job.
        settings: See `Settings`.
        stores: Those to be migrated.
        approved: What somebody has agreed to (`MigrationPreview.evolution`); None: whatever there is.

    Raises:
        ConfigurationError: Somebody else holds it, a run is open, there is nothing to migrate, it cannot be done, or
            it is not what was approved.
    """
    warehouse = open_warehouse(settings)
    check_free(warehouse, job.name, _holder(stores))
    found = preview(job, settings, stores)
    if approved is not None and found.evolution != approved:
        what = f"what would be done is no longer what was approved: {' '.join(found.lines())}"
        raise ConfigurationError(what, job=job.name, next_step="plan and approve it again")
    take_hold(warehouse, job.name, _holder(stores), reason=f"migration of {', '.join(stores)}", now_ms=now_ms())
    step("migrate.held")


def lag(job: Job, settings: Settings, stores: Sequence[str]) -> dict[str, int]:
    """Sets ``min.compaction.lag.ms`` of the stores' changelogs where they need more, and reads it back.

    A lag is never made smaller: states of commits before rest on it, too.

    Returns:
        By store with a changelog, what it is now, in ms; 0: nothing has been set.

    Raises:
        ConfigurationError: This migration does not hold the job.
        RetryableError: Something else is read back, or the store did not answer.
    """
    warehouse = open_warehouse(settings)
    _check_held(warehouse, job, stores)
    evolution = preview(job, settings, stores).evolution
    for _, changelog, lag_ms in _short_lags(warehouse, job, evolution):
        step("migrate.before-lag")
        set_and_read_back(changelog, lag_ms)
    step("migrate.lag-set")
    return {
        migration.now.name: archive.min_compaction_lag_ms or 0
        for migration in evolution.migrations
        if (archive := _changelog(warehouse, job, migration)) is not None
    }


def restore(job: Job, settings: Settings, stores: Sequence[str]) -> Commit:
    """Makes the commit that has the migrated stores, by a run over no records, unless the head is that commit.

    Raises:
        ConfigurationError: This migration does not hold the job.
        HindstreamError: That of the phase that failed.
    """
    warehouse = open_warehouse(settings)
    publish(warehouse, job.name)
    made = _head(warehouse, job)
    if _made(made, job, stores) is None:
        lag(job, settings, stores)
        made = _migrate(job, settings, stores, made)
        publish(warehouse, job.name)
    step("migrate.published")
    return made


def verify(job: str, settings: Settings, made: Commit) -> list[Verified]:
    """Compares the stores that ``made`` has migrated with those of the commit before it.

    Raises:
        ConfigurationError: It has migrated none, or the state before has expired.
    """
    warehouse = open_warehouse(settings)
    if made.evolution is None or not made.evolution.migrations:
        raise ConfigurationError("the commit has migrated no store", job=job, commit=made.commit)
    state_dir = settings.local_state_dir
    before = RestoredTasks(warehouse, CommitLog(warehouse, job).read(made.commit - 1), state_dir)
    now = RestoredTasks(warehouse, made, state_dir)
    found: list[Verified] = []
    try:
        for migration in made.evolution.migrations:
            for task_id in made.tasks:
                if task_id.partition("_")[0] == str(migration.now.sub_topology):
                    with (
                        before.open(task_id, families_to_read(migration.before)) as old,
                        now.open(task_id, families_to_read(migration.now)) as new,
                    ):
                        found.append(Verified(migration.now.name, task_id, compare_latest(migration, old, new)))
    finally:
        before.close()
        now.close()
    step("migrate.verified")
    return found


def check_equal(job: str, found: Sequence[Verified]) -> None:
    """Makes sure that no latest value differs.

    Raises:
        CorruptedDataError: Some do; the error names the first.
    """
    wrong = [part for part in found if part.comparison.differences]
    if wrong:
        keys = ", ".join(key for part in wrong for key in part.comparison.different)
        raise CorruptedDataError(
            f"latest values are not what they were before: keys (hex) {keys}",
            job=job,
            store=wrong[0].store,
            task=wrong[0].task_id,
            next_step=f"the job stays held; hindstream migrate rollback JOB --store {wrong[0].store}",
        )


def release(job: str, settings: Settings, stores: Sequence[str]) -> None:
    """Lets the job go, if this migration holds it.

    Raises:
        ConfigurationError: Somebody else holds it.
    """
    release_hold(open_warehouse(settings), job, _holder(stores))


def standing(job: Job, settings: Settings, stores: Sequence[str]) -> str:
    """What a migration that was broken off has left, and what can be done, in words."""
    warehouse = open_warehouse(settings)
    if not _holds(warehouse, job, stores):
        return f"{job.name} is not held by this migration, which has changed nothing that stands."
    head = _head(warehouse, job)
    has = "has" if _made(head, job, stores) else "does not have"
    names = " ".join(f"--store {store}" for store in stores)
    return (
        f"{job.name} stays held by {_holder(stores)}; its newest commit, {head.commit}, {has} the migrated stores."
        " To continue, run the step that failed again (in Airflow: clear it)."
        f" To go back: hindstream migrate rollback JOB {names}"
    )


def take_back(job: Job, settings: Settings, stores: Sequence[str]) -> Commit:
    """Takes a migration back that is the job's newest commit, or one that has not come so far; lets the job go.

    Returns:
        The commit that is the head then.

    Raises:
        ConfigurationError: Runs have followed the migration: roll back further, by hand.
    """
    warehouse = open_warehouse(settings)
    head = _head(warehouse, job)
    migrated = {migration.asked_for for migration in head.evolution.migrations} if head.evolution else set()
    if migrated == set(stores):
        head = rollback(warehouse, job.name, head.commit - 1, now_ms=now_ms(), supersede=True, holder=_holder(stores))
    publish(warehouse, job.name)  # also what a killed call has committed: no run is planned before readers have seen it
    release(job.name, settings, stores)
    return head


def _migrate(job: Job, settings: Settings, stores: Sequence[str], head: Commit) -> Commit:
    """Makes the commit that has the migrated stores, by a run over no records."""
    plan_slice = planner(job, settings, open_warehouse(settings))
    planned = plan_slice(end_offsets=head.source_offsets(), migrate_stores=stores, holder=_holder(stores))
    if isinstance(planned, NothingToDo):
        raise _nothing(job, head, stores)
    step("migrate.planned")
    replay.run(job, settings, planned.run_id)
    audit.run(job, settings, planned.run_id)
    step("migrate.audited")
    return commit.run(job, settings, planned.run_id)


def _holder(stores: Sequence[str]) -> str:
    return f"migration-of-{'-'.join(sorted(store.replace('=', '-as-') for store in stores))}"


def _holds(warehouse: Storage, job: Job, stores: Sequence[str]) -> bool:
    standing = read_hold(warehouse, job.name)
    return standing is not None and standing.holder == _holder(stores)


def _check_held(warehouse: Storage, job: Job, stores: Sequence[str]) -> None:
    if not _holds(warehouse, job, stores):
        raise ConfigurationError("the migration does not hold the job", job=job.name, next_step="hold it first")


def _head(warehouse: Storage, job: Job) -> Commit:
    head = CommitLog(warehouse, job.name).head()
    if head is None:
        raise ConfigurationError(
            "the job has no state to migrate", job=job.name, next_step="run it first: hindstream run FILE.py:NAME"
        )
    return head


def _made(head: Commit, job: Job, stores: Sequence[str]) -> Evolution | None:
    """How the head has migrated the stores; None: it has not."""
    evolution = head.evolution if head.fingerprint == job.topology.fingerprint else None
    if evolution is None or {migration.asked_for for migration in evolution.migrations} != set(stores):
        return None
    return evolution


def _nothing(job: Job, head: Commit, stores: Sequence[str]) -> ConfigurationError:
    return ConfigurationError(
        f"there is nothing to migrate of {', '.join(stores) or 'no store'}: commit {head.commit} has it so already",
        job=job.name,
        next_step="change the store in the job's topology first: another kind, retention, segment interval or name",
    )


def _logged(warehouse: Storage, head: Commit, migration: Migration) -> int | None:
    """How many records a store's changelog has; None: there is none."""
    topic = changelog_topic(head.job, migration.before.name)
    places = [task.sink_offsets for task in head.tasks.values()]
    found = [end for ends in places for place, end in ends.items() if place.rpartition("/")[0] == topic]
    if not found:
        return None
    archive = open_archive_if_present(warehouse, topic)
    compacted = sum(archive.end_offsets().values()) - archive.rows if archive is not None else 0
    return sum(found) - compacted


def _changelog(warehouse: Storage, job: Job, migration: Migration) -> TopicArchive | None:
    return open_archive_if_present(warehouse, changelog_topic(job.name, migration.before.name))


def _short_lags(warehouse: Storage, job: Job, evolution: Evolution) -> list[tuple[Migration, TopicArchive, int]]:
    """The changelogs that are compacted sooner than their stores need as they shall be, and what these need."""
    found = []
    for migration in evolution.migrations:
        archive, lag_ms = _changelog(warehouse, job, migration), min_compaction_lag_ms(migration.now)
        if archive is not None and (archive.min_compaction_lag_ms or 0) < lag_ms:
            found.append((migration, archive, lag_ms))
    return found
