"""Migrates stores of tables, step by step: the manual procedure of KIP-889 on a job that is replayed.

1. *stop*: the job is held (`statelib.commits.hold`), and no run of it is open.
2. *plan*: a run over no records whose topology has the stores as they shall be.
3. *replay, audit, commit, publish*: the run makes the stores anew (`statelib.migration`) and becomes a commit.
4. *verify*: of each key the latest value is what it was.
5. *restart*: the job is let go.

Each step may be killed and is done again by the next call; what has been done already is found to be so. Until the
commit nothing is visible, and after it a rollback takes it back.
"""

from __future__ import annotations

import logging
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from spark_jobs import audit, commit, replay
from spark_jobs.plan import described, planner
from spark_jobs.runs import now_ms, open_warehouse
from statelib.checkpoint import Checkpoints
from statelib.commits import CommitLog, JobLayout, NothingToDo, publish, release_hold, take_hold
from statelib.commits.archives import open_archive
from statelib.commits.layout import changelog_topic
from statelib.commits.rollback import rollback
from statelib.commits.topologies import follow_up
from statelib.errors import ConfigurationError
from statelib.migration import Comparison, compare_latest
from statelib.steps import step
from statelib.stores.rocksdb import RocksDbBackend

if TYPE_CHECKING:
    from collections.abc import Sequence

    from statelib.config import Settings
    from statelib.job import Job
    from statelib.manifests import Commit, Evolution, Migration
    from statelib.storage import Storage

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class MigrationPreview:
    """What a migration would do.

    Attributes:
        head: The commit that it goes on from.
        evolution: All that becomes of the state.
        changelogs: By store, how many records its changelog has; None: it has none, and what it holds is taken.
    """

    head: int
    evolution: Evolution
    changelogs: dict[str, int | None]


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
    if head.fingerprint == job.topology.fingerprint:
        raise _nothing(job, head, stores)
    archives = {topic: open_archive(warehouse, topic) for topic in job.topology.source_topics}
    tasks = job.topology.partitions({topic: archive.partitions for topic, archive in archives.items()})
    now = described(job, settings, archives)
    evolution = follow_up(
        warehouse, head, now, now.fingerprint, tasks, reset_stores=settings.reset_stores, migrate_stores=stores
    )
    if {migration.now.name for migration in evolution.migrations} != set(stores):
        raise _nothing(job, head, stores)
    return MigrationPreview(
        head.commit, evolution, {migration.now.name: _logged(head, migration) for migration in evolution.migrations}
    )


def run(job: Job, settings: Settings, stores: Sequence[str]) -> tuple[Commit, list[Verified]]:
    """Migrates ``stores``, verifies that, and lets the job go; goes on with what a killed call has left.

    Returns:
        The commit that has the migrated stores, and what the comparison found.

    Raises:
        HindstreamError: That of the step that failed.
    """
    warehouse = open_warehouse(settings)
    holder = _holder(stores)
    if not _is_done(_head(warehouse, job), job, stores):
        preview(job, settings, stores)  # what cannot be done is said before the job is held
    take_hold(warehouse, job.name, holder, reason=f"migration of {', '.join(stores)}", now_ms=now_ms())
    step("migrate.held")
    publish(warehouse, job.name)
    head = _head(warehouse, job)
    made = head if _is_done(head, job, stores) else _migrate(job, settings, stores, head, holder)
    publish(warehouse, job.name)
    step("migrate.published")
    found = verify(job.name, settings, made)
    step("migrate.verified")
    release_hold(warehouse, job.name, holder)
    return made, found


def verify(job: str, settings: Settings, made: Commit) -> list[Verified]:
    """Compares the stores that ``made`` has migrated with those of the commit before it.

    Raises:
        ConfigurationError: It has migrated none, or the state before has expired.
    """
    warehouse = open_warehouse(settings)
    if made.evolution is None or not made.evolution.migrations:
        raise ConfigurationError("the commit has migrated no store", job=job, commit=made.commit)
    before = CommitLog(warehouse, job).read(made.commit - 1)
    found: list[Verified] = []
    for migration in made.evolution.migrations:
        for task_id in made.tasks:
            if task_id.partition("_")[0] == str(migration.now.sub_topology):
                states = [_opened(warehouse, settings, commit, task_id) for commit in (before, made)]
                try:
                    found.append(Verified(migration.now.name, task_id, compare_latest(migration, *states)))
                finally:
                    for state in states:
                        state.close()
    shutil.rmtree(_scratch(settings, job), ignore_errors=True)
    return found


def take_back(job: Job, settings: Settings, stores: Sequence[str]) -> Commit:
    """Takes a migration back that is the job's newest commit, or one that has not come so far; lets the job go.

    Returns:
        The commit that is the head then.

    Raises:
        ConfigurationError: Runs have followed the migration: roll back further, by hand.
    """
    warehouse = open_warehouse(settings)
    head = _head(warehouse, job)
    migrated = {migration.now.name for migration in head.evolution.migrations} if head.evolution else set()
    if migrated == set(stores):
        head = rollback(warehouse, job.name, head.commit - 1, now_ms=now_ms(), supersede=True, holder=_holder(stores))
    release_hold(warehouse, job.name, _holder(stores))
    return head


def _migrate(job: Job, settings: Settings, stores: Sequence[str], head: Commit, holder: str) -> Commit:
    """Makes the commit that has the migrated stores, by a run over no records."""
    warehouse = open_warehouse(settings)
    plan_slice = planner(job, settings, warehouse)
    planned = plan_slice(end_offsets=head.source_offsets(), migrate_stores=stores, holder=holder)
    if isinstance(planned, NothingToDo):
        raise _nothing(job, head, stores)
    step("migrate.planned")
    replay.run(job, settings, planned.run_id)
    audit.run(job, settings, planned.run_id)
    step("migrate.audited")
    return commit.run(job, settings, planned.run_id)


def _holder(stores: Sequence[str]) -> str:
    return f"migration-of-{'-'.join(sorted(stores))}"


def _head(warehouse: Storage, job: Job) -> Commit:
    head = CommitLog(warehouse, job.name).head()
    if head is None:
        raise ConfigurationError("the job has no state to migrate", job=job.name, next_step="hindstream run")
    return head


def _is_done(head: Commit, job: Job, stores: Sequence[str]) -> bool:
    migrations = head.evolution.migrations if head.evolution else ()
    names = {migration.now.name for migration in migrations}
    return head.fingerprint == job.topology.fingerprint and names == set(stores)


def _nothing(job: Job, head: Commit, stores: Sequence[str]) -> ConfigurationError:
    return ConfigurationError(
        f"there is nothing to migrate of {', '.join(stores) or 'no store'}: commit {head.commit} has it so already",
        job=job.name,
        next_step="change the store in the job's topology first: another kind, retention or segment interval",
    )


def _logged(head: Commit, migration: Migration) -> int | None:
    """How many records a store's changelog has; None: there is none."""
    topic = changelog_topic(head.job, migration.before.name)
    places = [task.position.sink_offsets for task in head.tasks.values()]
    found = [end for ends in places for place, end in ends.items() if place.rpartition("/")[0] == topic]
    return sum(found) if found else None


def _scratch(settings: Settings, job: str) -> Path:
    return Path(settings.state_dir) / "verify" / job


def _opened(warehouse: Storage, settings: Settings, commit: Commit, task_id: str) -> RocksDbBackend:
    """A task's state as of a commit, read-only, in a folder of its own."""
    directory = _scratch(settings, commit.job) / str(commit.commit) / task_id
    shutil.rmtree(directory, ignore_errors=True)
    cache = Path(settings.state_dir) / "cache" / commit.job / task_id
    checkpoints = Checkpoints(warehouse, JobLayout(commit.job).state(task_id), cache)
    checkpoints.restore(commit.tasks[task_id].state, directory)
    return RocksDbBackend(directory, create=False, read_only=True)
