"""A task's state that is made of changelogs instead of the state before it."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

from statelib.checkpoint import Checkpoints
from statelib.checkpoint.local_errors import local_errors
from statelib.commits.maintenance.leftovers import attempt_name
from statelib.documents.manifests import CommittedTask, StateManifest
from statelib.placement.holdings import cache_folder
from statelib.storage import Storage
from statelib.stores.backend import WriteBatch
from statelib.stores.memory import MemoryBackend
from statelib.stores.rocksdb import RocksDbBackend
from statelib.task.state import POSITION_FAMILY, POSITION_KEY

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from statelib.documents.manifests import TaskPosition
    from statelib.documents.plans import Plan
    from statelib.documents.topologies import StoreDescription
    from statelib.stores.backend import Backend
    from statelib.task.work import TaskSettings


def make_state(
    settings: TaskSettings,
    plan: Plan,
    task_id: str,
    stores: Sequence[StoreDescription],
    fill: Callable[[Backend], TaskPosition],
    *,
    attempt: str,
) -> CommittedTask:
    """Makes a task's state, in files of the plan's run.

    Args:
        settings: Where to work, and in how much memory.
        plan: Of the commit that is to have it.
        task_id: The task.
        stores: Those of the task; without any it has no files.
        fill: Writes them, and says where the task stands with them.
        attempt: Names the working directory: unique among all attempts at this.

    Raises:
        RetryableError: The disk is full, or the warehouse does not answer.
    """
    if not stores:
        return CommittedTask(state=StateManifest(), position=fill(MemoryBackend()))
    local = settings.local_state_dir
    directory = local / "attempts" / plan.job / attempt_name(plan.job, plan.run_id, task_id, attempt)
    checkpoints = Checkpoints(
        Storage(settings.warehouse, settings.storage_options),
        plan.job,
        task_id,
        cache_folder(local, plan.job, task_id),
        at_once=settings.parallel_transfers,
    )
    with local_errors("make a working directory for the state", directory):
        shutil.rmtree(directory, ignore_errors=True)
        directory.mkdir(parents=True)
    try:
        families = [POSITION_FAMILY, *(family for store in stores for family in store.families)]
        backend = RocksDbBackend(directory / "db", memory_bytes=settings.memory_budget_bytes, families=families)
        try:
            position = fill(backend)
            write = WriteBatch()
            write.put(POSITION_FAMILY, POSITION_KEY, position.encode())
            backend.write(write)
            backend.flush()
            backend.checkpoint(directory / "snapshot")
            state = checkpoints.save(directory / "snapshot", None, run_id=plan.run_id)
        finally:
            backend.close()
    finally:
        shutil.rmtree(directory, ignore_errors=True)
    return CommittedTask(state=state, position=position)
