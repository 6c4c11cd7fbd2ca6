"""How long a task takes until it can process: with a copy on its host, without one, and from its changelog."""

from __future__ import annotations

import shutil
import time
from typing import TYPE_CHECKING

from statelib.changelog import rebuild
from statelib.checkpoint import Checkpoints
from statelib.commits import CommitLog
from statelib.placement.copies import CopyKeeper, CopyOrder
from statelib.placement.holdings import CopyPosition, cache_folder
from statelib.stores.rocksdb import RocksDbBackend

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from statelib.documents.manifests import Commit
    from statelib.storage import Storage


def restore_seconds(warehouse: Storage, job: str, folder: Path) -> dict[str, float]:
    """Wall-clock seconds, over all tasks with state one after the other, until RocksDB is open.

    ``standby``: the host has the commit before; ``warehouse``: it has nothing; ``changelog``: there is no checkpoint.
    """
    log = CommitLog(warehouse, job)
    head = log.read(log.head_number())
    before = log.read(head.commit - 1)
    seconds = dict.fromkeys(("standby", "warehouse", "changelog"), 0.0)
    for task_id, task in sorted(head.tasks.items()):
        if not task.state.files:
            continue
        standby = folder / "standby"
        _keep_copy(warehouse, before, task_id, standby)
        ways: dict[str, Callable[[Path], RocksDbBackend]] = {
            "standby": _restoring(warehouse, head, task_id, cache_folder(standby, job, task_id)),
            "warehouse": _restoring(warehouse, head, task_id, folder / "nothing"),
            "changelog": _rebuilding(warehouse, head, task_id),
        }
        for way, make in ways.items():
            started = time.perf_counter()
            backend = make(folder / way / task_id)
            seconds[way] += time.perf_counter() - started
            backend.close()
        shutil.rmtree(folder)
    return seconds


def _keep_copy(warehouse: Storage, commit: Commit, task_id: str, disk: Path) -> None:
    position = CopyPosition(commit.commit, commit.run_id)
    order = CopyOrder(commit.job, task_id, commit.tasks[task_id].state, position)
    CopyKeeper(warehouse.uri("")).carry_out(order, disk, is_over=lambda: False)


def _restoring(warehouse: Storage, head: Commit, task_id: str, cache: Path) -> Callable[[Path], RocksDbBackend]:
    def make(directory: Path) -> RocksDbBackend:
        checkpoints = Checkpoints(warehouse, head.job, task_id, cache)
        checkpoints.restore(head.tasks[task_id].state, directory)
        return RocksDbBackend(directory, compacts_itself=False)

    return make


def _rebuilding(warehouse: Storage, head: Commit, task_id: str) -> Callable[[Path], RocksDbBackend]:
    def make(directory: Path) -> RocksDbBackend:
        directory.mkdir(parents=True)
        backend = RocksDbBackend(directory / "db")
        rebuild(warehouse, head, task_id, backend)
        backend.flush()
        return backend

    return make
