"""Makes the newest state of a job anew of its changelogs: see `statelib.task.rebuilt_head`."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING

from spark_jobs.runs import now_ms, open_warehouse
from spark_jobs.task_work import task_settings
from statelib.errors import HindstreamError
from statelib.task import rebuilt_head

if TYPE_CHECKING:
    from statelib.config import Settings
    from statelib.manifests import Commit
    from statelib.task.rebuilt_head import RebuildPreview


def preview(job: str, settings: Settings, *, everything: bool = False) -> RebuildPreview:
    """What would be done. Errors as of `statelib.task.rebuilt_head.preview_rebuild`."""
    warehouse = open_warehouse(settings)
    return rebuilt_head.preview_rebuild(warehouse, job, everything=everything, at_once=settings.parallel_transfers)


def is_possible(job: str, settings: Settings) -> bool:
    """Whether some of the newest state is damaged, and its changelogs are there."""
    try:
        return bool(preview(job, settings).changelogs)
    except HindstreamError:
        return False


def rebuild(job: str, settings: Settings, *, everything: bool, supersede: bool) -> Commit:
    """Does it. Errors as of `statelib.task.rebuilt_head.rebuild_head`."""
    warehouse = open_warehouse(settings)
    return rebuilt_head.rebuild_head(
        warehouse,
        job,
        task_settings(warehouse, settings),
        attempt=uuid.uuid4().hex[:8],
        now_ms=now_ms(),
        everything=everything,
        supersede=supersede,
    )
