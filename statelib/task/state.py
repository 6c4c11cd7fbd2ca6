"""A task's state while it runs: a private copy of the last commit's RocksDB, and what it becomes."""

from __future__ import annotations

import shutil
from contextlib import closing, contextmanager
from itertools import count
from typing import TYPE_CHECKING

from statelib.changelog import changelog_records
from statelib.checkpoint import Checkpoints
from statelib.checkpoint.local_errors import local_errors
from statelib.commits.layout import JobLayout, Runs, changelog_topic, renamed_changelogs
from statelib.commits.local_state import remove_dead_attempts
from statelib.documents.manifests import StateManifest, StoreSize, TaskPosition
from statelib.documents.places import place_of
from statelib.errors.fault_points import step
from statelib.errors.kinds import ConfigurationError, CorruptedDataError, HindstreamError, RetryableError
from statelib.migration import contents, is_rename, migrate_store, rename_stores
from statelib.operators.suppress.store import resolve_references
from statelib.placement.holdings import cache_folder
from statelib.stores.memory import MemoryBackend
from statelib.stores.rocksdb import RocksDbBackend
from statelib.stores.spec import families_of
from statelib.task.former_topics import former_topics, renamed_places

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from statelib.documents.topologies import Migration
    from statelib.storage import Storage
    from statelib.stores.backend import Backend, WriteBatch
    from statelib.task.history import History
    from statelib.task.work import TaskWork

POSITION_FAMILY = "position"
"""The family that holds the task's position: one key, written in the same batch as the data."""

POSITION_KEY = b"position"
_ROCKSDB_SHARE = 4  # of the task's memory budget, one part in four is RocksDB's own, the others the working sets'


class TaskState:
    """The working copy of one attempt, in a directory of its own; nobody else ever sees it.

    A task without stateful operators has no RocksDB: its position is in the commit alone.

    Args:
        work: The task.
        storage: The warehouse.
        attempt: Names the directory; unique among all attempts of all tasks of all runs.
        history: What the task replayed before, where stores are filled with what came of it; None: nothing.

    Raises:
        CorruptedDataError: The state is not what the commit says.
        RetryableError: It is not, and may be so after `damaged`; or the disk is full.
        ConfigurationError: It belongs to another job, task or topology; or the directory may not be written.
    """

    def __init__(self, work: TaskWork, *, storage: Storage, attempt: str, history: History | None = None) -> None:
        self._work = work
        self._history = history
        self._storage = storage
        self._folder = JobLayout(work.job).state(work.planned.task_id)
        local = work.settings.local_state_dir
        cache = cache_folder(local, work.job, work.planned.task_id)
        self._checkpoints = Checkpoints(
            storage, work.job, work.planned.task_id, cache, at_once=work.settings.parallel_transfers
        )
        attempts = local / "attempts" / work.job
        self._directory = attempts / attempt
        self._rocksdb_bytes = work.settings.memory_budget_bytes // _ROCKSDB_SHARE
        self.working_set_bytes = work.settings.memory_budget_bytes - self._rocksdb_bytes
        """Past this the working sets are spilled."""
        self._spilled = count()
        remove_dead_attempts(attempts, before_commit=work.commit)
        with local_errors("make a working directory for the state", self._directory):
            shutil.rmtree(self._directory, ignore_errors=True)
            self._directory.mkdir(parents=True)
        try:
            self._rocksdb = self._open() if work.sub_topology.stateful else None
            self.backend: Backend = self._rocksdb or MemoryBackend()
            position = self._checked_position(self._stored_position())
            self.position = position if history is None else history.goes_on(position, work)
        except BaseException:
            self._discard()
            raise

    def commit(self, write: WriteBatch, position: TaskPosition) -> StateManifest:
        """Writes data and position together, and uploads what is new of the state's files."""
        write.put(POSITION_FAMILY, POSITION_KEY, position.encode())
        self.keep(write)
        if self._rocksdb is None:
            return StateManifest()
        snapshot = self._directory / "snapshot"
        self._rocksdb.checkpoint(snapshot)
        previous = self._work.restore.state if self._work.restore else None
        return self._checkpoints.save(snapshot, previous, run_id=self._work.run_id)

    def keep(self, write: WriteBatch) -> None:
        """Writes data, and drops what has expired."""
        self.backend.write(write)
        if self._rocksdb is not None:
            self._rocksdb.flush()
            self._rocksdb.compact()

    @property
    def fetched_bytes(self) -> int:
        """What has come from the warehouse to restore it."""
        return self._checkpoints.fetched_bytes

    @contextmanager
    def spilling(self) -> Iterator[Callable[[], Path]]:
        """While working sets that have outgrown the memory budget are written: gives names of new files beside RocksDB.

        Afterwards keeps in order what RocksDB has been given; the position stays.

        Raises:
            RetryableError: The disk is full, or fails.
        """
        with local_errors("spill working sets", self._directory):
            yield lambda: self._directory / f"{next(self._spilled)}.spilled"
        if self._rocksdb is not None:
            self._rocksdb.compact(more_will_expire=True)

    def damaged(self, error: CorruptedDataError) -> HindstreamError:
        """What to raise for ``error``: where files of this host's cache were trusted, another try verifies them."""
        if not self._checkpoints.distrust():
            return error
        return RetryableError(
            f"the state is damaged, maybe only in this host's cache: {error.what}",
            **error.place,
            next_step="run the same command again: it verifies every file, and fetches those that are damaged",
        )

    def sizes(self) -> dict[str, StoreSize]:
        """How much each family of each store holds."""
        return {
            family: StoreSize(
                size_bytes=self.backend.approximate_bytes(family), keys=self.backend.approximate_keys(family)
            )
            for family in self._families
        }

    def close(self) -> None:
        """Releases the database and removes the working copy."""
        self.backend.close()
        shutil.rmtree(self._directory, ignore_errors=True)

    def _open(self) -> RocksDbBackend:
        path = self._directory / "db"
        families = [POSITION_FAMILY, *self._families]
        try:
            if self._work.restore is not None:
                self._checkpoints.restore(self._work.restore.state, path)
            rocksdb = RocksDbBackend(path, memory_bytes=self._rocksdb_bytes, compacts_itself=False, families=families)
        except CorruptedDataError as error:
            raise self.damaged(self._with_way_out(error)) from error
        evolution = self._work.evolution
        if evolution is not None:
            resolve_references(rocksdb, self._buffers)
            rocksdb.drop(evolution.dropped_families.get(self._work.sub_topology.index, ()))
            here = [m for m in evolution.migrations if m.now.sub_topology == self._work.sub_topology.index]
            self._rename([migration for migration in here if is_rename(migration)], rocksdb)
            for migration in here:
                if not is_rename(migration):
                    self._migrate(migration, rocksdb)
        if self._history is not None:
            self._history.fill(rocksdb, self._work)
            step("task.stores-filled")
        return rocksdb

    def _with_way_out(self, error: CorruptedDataError) -> CorruptedDataError:
        """The same error; if every store has a changelog, with the command that makes the state anew."""
        work, offsets = self._work, self._work.restore.sink_offsets if self._work.restore else {}
        topics = [changelog_topic(work.job, store.name) for store in work.sub_topology.stores]
        if not all(place_of(topic, work.planned.partition) in offsets for topic in topics):
            return error
        rebuild = f"rebuild the state from its changelogs: hindstream state rebuild {work.job}"
        return CorruptedDataError(error.what, **error.place, next_step=f"{error.next_step}; or {rebuild}")

    def _migrate(self, migration: Migration, rocksdb: RocksDbBackend) -> None:
        """Makes a store anew: of its changelog, or where it has none of what it holds."""
        work, store = self._work, migration.before
        if work.restore is None:
            return
        semantics = work.settings.semantics
        topic = changelog_topic(work.job, store.name)
        end = work.restore.sink_offsets.get(place_of(topic, work.planned.partition))
        if end is not None:
            records = changelog_records(self._storage, topic, work.planned.partition, end)
            migrate_store(migration, records, rocksdb, semantics)
            return
        with self._before(work.restore.state) as before:
            migrate_store(migration, contents(store, before), rocksdb, semantics)

    def _rename(self, migrations: Sequence[Migration], rocksdb: RocksDbBackend) -> None:
        """Moves the stores that get nothing but another name."""
        if migrations and self._work.restore is not None:
            with self._before(self._work.restore.state) as before:
                rename_stores(migrations, before, rocksdb)

    @contextmanager
    def _before(self, state: StateManifest) -> Iterator[RocksDbBackend]:
        """The state as it was, to be read."""
        path = self._directory / "before"
        if not path.exists():
            self._checkpoints.restore(state, path)
            restored = RocksDbBackend(path, create=False, memory_bytes=self._rocksdb_bytes, compacts_itself=False)
            with closing(restored):
                resolve_references(restored, self._buffers)
        before = RocksDbBackend(path, create=False, read_only=True)
        try:
            yield before
        finally:
            before.close()

    def _stored_position(self) -> bytes | None:
        try:
            return self.backend.get(POSITION_FAMILY, POSITION_KEY)
        except CorruptedDataError as error:
            raise self.damaged(error) from error

    def _discard(self) -> None:
        """Leaves nothing of a state that cannot be used: the disk may be full."""
        backend: Backend | None = getattr(self, "backend", None)
        if backend is not None:
            backend.close()
        shutil.rmtree(self._directory, ignore_errors=True)

    @property
    def _buffers(self) -> list[str]:
        """What buffers of suppress are called now, or were called by another topology."""
        evolution = self._work.evolution
        names = [store.name for store in self._work.sub_topology.stores if store.kind == "suppression-buffer"]
        before = [migration.before for migration in (evolution.migrations if evolution else ())]
        return names + [store.name for store in before if store.kind == "suppression-buffer"]

    @property
    def _families(self) -> list[str]:
        """Those of all stores."""
        return list(families_of(self._work.sub_topology.stores))

    def _checked_position(self, stored: bytes | None) -> TaskPosition:
        work = self._work
        if work.restore is None:
            return TaskPosition(task_id=work.planned.task_id, commit=0, fingerprint=work.fingerprint)
        committed = work.restore.position
        made_by = work.evolution.fingerprint if work.evolution else work.fingerprint
        if committed.task_id != work.planned.task_id or committed.fingerprint != made_by:
            raise ConfigurationError(
                f"the state belongs to task {committed.task_id} of topology {committed.fingerprint[:12]}, "
                f"not to task {work.planned.task_id} of topology {made_by[:12]}",
                job=work.job,
                next_step="run the job that wrote it, or give this one another name",
            )
        kept_none = work.evolution is not None and work.restore.state == StateManifest()  # its first stores
        if self._rocksdb is not None and not kept_none:
            where = f"{self._folder} (position)"
            if stored is None or TaskPosition.decode(stored, file=where) != committed:
                raise self._with_way_out(
                    CorruptedDataError(
                        f"the state's position is not that of commit {committed.commit}",
                        task=work.planned.task_id,
                        file=self._folder,
                        next_step=f"go back to an earlier commit: hindstream state rollback {work.job}",
                    )
                )
        committed = committed.model_copy(update={"sink_offsets": work.restore.sink_offsets})
        if work.evolution is None:
            return committed
        clocks = {now: committed.clocks[was] for now, was in work.evolution.nodes.items() if was in committed.clocks}
        before = Runs(self._storage, work.job).topology(work.evolution.fingerprint)
        topics = {} if before is None else former_topics(work.sub_topology, work.evolution.nodes, before)
        return committed.model_copy(
            update={
                "clocks": clocks,
                "source_offsets": renamed_places(committed.source_offsets, topics),
                "source_times": renamed_places(committed.source_times, topics),
                "sink_offsets": renamed_places(
                    committed.sink_offsets, renamed_changelogs(work.job, work.evolution.migrations)
                ),
            }
        )
