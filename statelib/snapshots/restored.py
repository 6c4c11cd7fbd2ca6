"""The state of a commit's tasks on this host: fetched when it is first looked into, read-only, removed at the end."""

from __future__ import annotations

import shutil
from contextlib import contextmanager
from itertools import count
from threading import Lock
from typing import TYPE_CHECKING

from statelib.checkpoint import Checkpoints
from statelib.checkpoint.scratch import ScratchFolder
from statelib.commits import check_restorable
from statelib.commits.local_state import readers_folder
from statelib.errors.kinds import ConfigurationError, CorruptedDataError
from statelib.stores.rocksdb import RocksDbBackend

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from statelib.documents.manifests import Commit
    from statelib.storage import Storage

_MEMORY_BYTES = 32 << 20


class RestoredTasks:
    """See the module's docstring. Several threads may use one, and several processes one folder.

    Args:
        warehouse: Root of all durable data.
        commit: Whose state it is.
        state_dir: A local folder with the cache of state files that all jobs on this host share.
    """

    def __init__(self, warehouse: Storage, commit: Commit, state_dir: Path) -> None:
        self._warehouse = warehouse
        self._commit = commit
        self._folder = ScratchFolder(readers_folder(state_dir, commit.job))
        self._numbers = count()
        self._cache = state_dir / "cache" / commit.job
        self._there: dict[str, Path] = {}
        self._lock = Lock()
        self._closed = False

    @contextmanager
    def open(self, task_id: str, families: Sequence[str]) -> Iterator[RocksDbBackend]:
        """Some of a task's families (none: all of them), read-only.

        Raises:
            ConfigurationError: It has been closed, or the state has expired meanwhile.
            CorruptedDataError: A file is missing or damaged. The next call verifies every byte anew.
        """
        directory = self._restored(task_id)
        try:
            backend = RocksDbBackend(
                directory, create=False, read_only=True, memory_bytes=_MEMORY_BYTES, families=families
            )
            try:
                yield backend
            finally:
                backend.close()
        except CorruptedDataError:
            with self._lock:
                self._there.pop(task_id, None)
                self._checkpoints(task_id).distrust()
            raise

    @contextmanager
    def scratch(self) -> Iterator[Path]:
        """A new folder on this host's disk, removed at the end of the ``with``.

        Raises:
            ConfigurationError: It has been closed.
        """
        with self._lock:
            self._check_open()
            folder = self._folder.path / f"{next(self._numbers)}"
            folder.mkdir()
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def close(self) -> None:
        """Removes the folder; a second call does nothing."""
        with self._lock:
            self._closed = True
            self._there.clear()
        self._folder.close()

    def _checkpoints(self, task_id: str) -> Checkpoints:
        return Checkpoints(self._warehouse, self._commit.job, task_id, self._cache / task_id)

    def _check_open(self) -> None:
        if self._closed:
            raise ConfigurationError("the snapshot of a state is closed", job=self._commit.job)

    def _restored(self, task_id: str) -> Path:
        with self._lock:
            self._check_open()
            if task_id not in self._there:
                directory = self._folder.path / f"{next(self._numbers)}" / task_id
                try:
                    self._checkpoints(task_id).restore(self._commit.tasks[task_id].state, directory)
                except CorruptedDataError:
                    check_restorable(self._warehouse, self._commit.job, self._commit.commit)  # expired meanwhile?
                    raise
                self._there[task_id] = directory
            return self._there[task_id]
