"""Which functions a record passes on its way from a topic to a topic: the run of a small job, told call by call."""

from __future__ import annotations

import inspect
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

from examples import page_views
from hindstream.runs import open_warehouse
from hindstream.spark.phases import commit, plan, publish, task_work
from hindstream.spark.phases import spark_stage as stage
from statelib.commits import reconcile, record_audit
from statelib.commits import stage as put_down
from statelib.documents.manifests import Audit, Staged, TaskOutcome
from statelib.documents.plans import Plan
from statelib.settings.settings import load_settings
from tests.conftest import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from types import FrameType


def passed(directory: Path) -> dict[str, list[str]]:
    """By phase, ``file:function`` in the order of their first calls; an iterator's is when it first gives something.

    What Spark does is left out: tasks run in this process. The audit is of the ledger alone.
    """
    page_views.main(str(directory / "warehouse"))
    job = page_views.job()
    given = {"warehouse": str(directory / "warehouse"), "state_dir": str(directory / "state")}
    settings = load_settings(given, environ={})
    warehouse = open_warehouse(settings)
    told: dict[str, list[str]] = {}
    with _telling(told, "Plan"):
        planned = plan.run(job, settings)
    assert isinstance(planned, Plan)
    with _telling(told, "Replay"):
        outcomes: list[TaskOutcome] = []
        stages = task_work.stages_of(job, planned, warehouse, settings)
        for sub in stages.sub_topologies:
            does = [stage.work_on(work).do for work in stages.works(sub, outcomes)]
            outcomes += [TaskOutcome.model_validate_json(do("0")) for do in does]
        staged = put_down(warehouse, planned, Staged(run_id=planned.run_id, tasks=tuple(outcomes), seconds=0.0))
    with _telling(told, "Audit"):
        reconcile(job.topology, planned, staged)
        audit = Audit(run_id=planned.run_id, success=True, checks=(), data_docs=None, seconds=0.0)
        record_audit(warehouse, planned, audit)
    with _telling(told, "Commit"):
        commit.run(job, settings, planned.run_id)
    with _telling(told, "Publish"):
        publish.run(job, settings, planned.run_id)
    return told


@contextmanager
def _telling(told: dict[str, list[str]], phase: str) -> Iterator[None]:
    names: dict[str, None] = {}
    root = f"{ROOT}/"

    def tell(frame: FrameType, event: str, _: object) -> None:
        code = frame.f_code
        if event == ("return" if code.co_flags & inspect.CO_GENERATOR else "call") and code.co_filename.startswith(
            root
        ):
            names[f"{code.co_filename.removeprefix(root)}:{code.co_qualname}"] = None

    sys.setprofile(tell)
    try:
        yield
    finally:
        sys.setprofile(None)
        told[phase] = list(names)
