"""Standbys and learners brought up to a commit: files of state in a host's cache, and nothing else.

A copy goes on from what it has, or from the beginning where it has nothing. It takes only what is committed: what a run
has stored that is not committed yet is left for the update after its commit. A copy of a commit that is none of the
job's any more is deleted and begun anew. (Kafka Streams: ``StandbyTask``, ``StreamThread.maybeUpdateStandbyTasks``.)
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from statelib.checkpoint import Checkpoints
from statelib.checkpoint.cache import FileCache
from statelib.checkpoint.local_errors import local_errors
from statelib.checkpoint.scratch import ScratchFolder
from statelib.commits.layout import CommitLog
from statelib.commits.local_state import copies_folder
from statelib.documents.manifests import StateManifest
from statelib.errors.fault_points import step
from statelib.placement.holdings import CopyPosition, cache_folder, encode_position, position_file, read_position
from statelib.storage import Storage

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path


@dataclass(frozen=True, slots=True)
class CopyOrder:
    """What a host is to do about one task's copy; picklable.

    Attributes:
        job: The job's name.
        task_id: The task.
        state: What the copy is to be; None: it is removed.
        position: Of which commit that is.
    """

    job: str
    task_id: str
    state: StateManifest | None
    position: CopyPosition


@dataclass(frozen=True, slots=True)
class CopyResult:
    """What came of a `CopyOrder`.

    Attributes:
        fetched_files: How many files have come.
        fetched_bytes: How large they were.
        lag_bytes: What the copy still lacks.
        rebuilt: Why what was there has been deleted; None: it was gone on from.
    """

    fetched_files: int = 0
    fetched_bytes: int = 0
    lag_bytes: int = 0
    rebuilt: str | None = None


@dataclass(frozen=True)
class CopyKeeper:
    """Carries out orders on a host; picklable.

    Attributes:
        warehouse: Root of all durable data.
        storage_options: Options of the object store.
        parallel_transfers: How many files are fetched at a time.
    """

    warehouse: str
    storage_options: Mapping[str, str] = field(default_factory=dict)
    parallel_transfers: int = 4

    def carry_out(self, order: CopyOrder, state_dir: Path, *, is_over: Callable[[], bool]) -> CopyResult:
        """Does what is ordered, or as much of it as ``is_over`` leaves time for. Safe beside attempts at the task.

        Args:
            order: What to do.
            state_dir: The host's.
            is_over: Asked between files; True: the rest is left for another call with the same order.

        Raises:
            CorruptedDataError: A file is missing in the warehouse or damaged.
            RetryableError: The warehouse does not answer, or the disk is full.
            ConfigurationError: The directory may not be written.
        """
        if order.state is None:
            self._remove(order, state_dir)
            return CopyResult()
        folder = cache_folder(state_dir, order.job, order.task_id)
        storage = Storage(self.warehouse, self.storage_options)
        base, rebuilt = self._base(order, state_dir, storage)
        if rebuilt is not None:
            self._remove(order, state_dir)
        checkpoints = Checkpoints(storage, order.job, order.task_id, folder, at_once=self.parallel_transfers)
        with local_errors("make a directory for copies of state", state_dir):
            scratch = ScratchFolder(copies_folder(state_dir, order.job))
        try:
            files = checkpoints.fetch(order.state, scratch.path, is_over=is_over)
        finally:
            scratch.close()
        lag_bytes = checkpoints.lacks(order.state)
        if not lag_bytes:
            self._note(order, state_dir, folder, base)
        return CopyResult(files, checkpoints.fetched_bytes, lag_bytes, rebuilt)

    @staticmethod
    def _base(order: CopyOrder, state_dir: Path, storage: Storage) -> tuple[StateManifest, str | None]:
        """The state of the commit that the copy is of, and, if that is none of the job's, why it cannot be used."""
        with local_errors("read the position of a copy", state_dir):
            position = read_position(state_dir, order.job, order.task_id)
        if position is None:
            return StateManifest(), None
        commit = CommitLog(storage, order.job).read_if_present(position.commit)
        if commit is None or commit.run_id != position.run_id:
            return StateManifest(), f"commit {position.commit} of run {position.run_id} is none of the job's"
        task = commit.tasks.get(order.task_id)
        return (task.state if task else StateManifest()), None

    @staticmethod
    def _note(order: CopyOrder, state_dir: Path, folder: Path, base: StateManifest) -> None:
        """Writes down which commit the copy is of, and removes what only its former one had.

        Nothing else is removed: it may be of an attempt at the task that is at work on this host.
        """
        file = position_file(state_dir, order.job, order.task_id)
        part = file.with_name(f".{file.name}.part")
        with local_errors("write down the position of a copy", file):
            step("copies.before-position")
            file.parent.mkdir(parents=True, exist_ok=True)
            part.write_bytes(encode_position(order.position))
            part.replace(file)
            step("copies.position")
            cache = FileCache(folder)
            needed = {file.sha256 for file in order.state.files} if order.state else set()
            for sha256 in sorted({file.sha256 for file in base.files} - needed):
                cache.drop(sha256)

    @staticmethod
    def _remove(order: CopyOrder, state_dir: Path) -> None:
        folder = cache_folder(state_dir, order.job, order.task_id)
        with local_errors("remove a copy of state", folder):
            position_file(state_dir, order.job, order.task_id).unlink(missing_ok=True)
            FileCache(folder).record.unlink(missing_ok=True)
            if folder.exists():
                shutil.rmtree(folder)
            step("copies.removed")
