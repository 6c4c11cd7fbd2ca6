"""Makes the newest state of a job anew of its changelogs: see `statelib.task.rebuilt_head`."""

from __future__ import annotations

import uuid
from functools import partial
from typing import TYPE_CHECKING

from hindstream.runs import now_ms, open_warehouse
from hindstream.spark.phases.task_work import task_settings
from statelib.documents.manifests import CommittedTask
from statelib.errors.kinds import HindstreamError
from statelib.task import rebuilt_head

if TYPE_CHECKING:
    from collections.abc import Sequence

    from statelib.documents.manifests import Commit
    from statelib.settings.settings import Settings
    from statelib.task.rebuilt_head import RebuildPreview, TaskRebuild


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
    """Does it: a single task here, several on Spark.

    Raises:
        HindstreamError: See `statelib.task.rebuilt_head.rebuild_head` and
            `hindstream.spark.tasks.works.run_works`.
    """
    warehouse = open_warehouse(settings)

    def carry_out(works: Sequence[TaskRebuild]) -> list[CommittedTask]:
        if len(works) == 1:
            return [works[0].run(uuid.uuid4().hex[:8])]
        from hindstream.spark.session.session import spark_context  # noqa: PLC0415  (Spark is not imported for what needs none)
        from hindstream.spark.tasks.works import Work, run_works  # noqa: PLC0415

        described = [Work(job, w.plan.run_id, w.task_id, w.settings.state_dir, partial(_rebuilt, w)) for w in works]
        made = run_works(spark_context(settings), described, name=f"{job}, state rebuilt")
        return [CommittedTask.model_validate_json(task) for task in made]

    return rebuilt_head.rebuild_head(
        warehouse,
        job,
        task_settings(warehouse, settings),
        carry_out=carry_out,
        now_ms=now_ms(),
        everything=everything,
        supersede=supersede,
    )


def _rebuilt(work: TaskRebuild, attempt: str) -> bytes:
    return work.run(attempt).model_dump_json().encode()
