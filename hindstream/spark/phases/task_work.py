"""Turns a plan and the settings into the work of its stages."""

from __future__ import annotations

from importlib.metadata import version
from typing import TYPE_CHECKING

from statelib.commits import CommitLog
from statelib.job.user_code import code_digest
from statelib.settings.local_dir import for_all_hosts
from statelib.task import Stages, TaskSettings

if TYPE_CHECKING:
    from statelib.documents.plans import Plan
    from statelib.job.job import Job
    from statelib.settings.settings import Settings
    from statelib.storage import Storage


def stages_of(job: Job, plan: Plan, warehouse: Storage, settings: Settings) -> Stages:
    """The stages of a planned run, which continues from the commit before it, and from earlier tries at itself.

    Raises:
        ConfigurationError: The plan is of another topology than the job's.
    """
    previous = CommitLog(warehouse, job.name).read(plan.commit - 1) if plan.commit > 1 else None
    code = f"{version('hindstream')} {code_digest()}"
    return Stages(job.topology, plan, previous, warehouse, task_settings(warehouse, settings), code=code)


def task_settings(warehouse: Storage, settings: Settings) -> TaskSettings:
    """What is the same for all tasks."""
    return TaskSettings(
        warehouse=warehouse.uri(""),
        state_dir=for_all_hosts(settings.state_dir),
        storage_options=settings.store_options,
        memory_budget_bytes=settings.memory_budget_bytes,
        batch_records=settings.batch_records,
        semantics=settings.semantics,
        on_bad_record=settings.on_bad_record,
        on_processing_error=settings.on_processing_error,
        on_future_record=settings.on_future_record,
        on_late_record=settings.on_late_record,
        parallel_transfers=settings.parallel_transfers,
    )
