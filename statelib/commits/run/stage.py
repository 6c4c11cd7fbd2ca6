"""Second phase: puts down what a run made, complete or not at all.

The replay writes its files under names of its attempts; ``staged.json`` names the attempts that count. It is created
only if absent: of two drivers that replayed one plan the first decides, and the other goes on with that result.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from statelib.commits.layout import Runs
from statelib.documents.places import place_of
from statelib.errors.fault_points import step
from statelib.errors.kinds import InternalError

if TYPE_CHECKING:
    from statelib.documents.manifests import Staged, TaskOutcome
    from statelib.documents.plans import Plan
    from statelib.storage import Storage


def stage(warehouse: Storage, plan: Plan, staged: Staged) -> Staged:
    """Stores ``staged`` as the result of ``plan``, unless the run has one.

    Returns:
        The result that stands: ``staged``, or the one that another driver, or an earlier try of this one, stored.

    Raises:
        InternalError: ``staged`` is not a complete result of ``plan``.
    """
    check_complete(plan, staged)
    runs = Runs(warehouse, plan.job)
    step("stage.before-create")
    if warehouse.put_if_absent(runs.layout.staged(plan.run_id), staged.encode()):
        step("stage.created")
        return staged
    standing = read_staged(warehouse, plan)
    if standing is None:
        raise InternalError("the staged result was there and is gone", run=plan.run_id)
    return standing


def read_staged(warehouse: Storage, plan: Plan) -> Staged | None:
    """What the run of ``plan`` has staged; None: it has to replay.

    Raises:
        CorruptedDataError: The document is damaged.
        InternalError: It is not a complete result of ``plan``.
    """
    staged = Runs(warehouse, plan.job).staged(plan.run_id)
    if staged is not None:
        check_complete(plan, staged)
    return staged


def check_complete(plan: Plan, staged: Staged) -> None:
    """Makes sure that every planned task is there exactly once, and ended where the plan says.

    Raises:
        InternalError: It is not so; the message names the task.
    """
    if staged.run_id != plan.run_id:
        raise InternalError(f"a result of run {staged.run_id} was staged for another", run=plan.run_id)
    counts = Counter(outcome.task_id for outcome in staged.tasks)
    planned = {task.task_id: task for task in plan.tasks}
    for task_id in sorted(counts.keys() | planned.keys()):
        if task_id not in planned:
            raise InternalError("the result has a task that was not planned", run=plan.run_id, task=task_id)
        if counts[task_id] != 1:
            raise InternalError(f"the result has the task {counts[task_id]} times", run=plan.run_id, task=task_id)
    for outcome in staged.tasks:
        _check_position(plan, outcome)
        ends = {place_of(part.topic, part.partition): part.end_offset for part in planned[outcome.task_id].sources}
        for place, end in ends.items():
            reached = outcome.position.source_offsets.get(place)
            if reached != end:
                what = f"the task ended at offset {reached} of {place}, planned was {end}"
                raise InternalError(what, run=plan.run_id, task=outcome.task_id)
        _check_sinks(plan, outcome)


def _check_position(plan: Plan, outcome: TaskOutcome) -> None:
    position = outcome.position
    found = (position.task_id, position.commit, position.fingerprint)
    expected = (outcome.task_id, plan.commit, plan.fingerprint)
    if found != expected:
        what = f"the task's position says (task, commit, topology) {found}, expected is {expected}"
        raise InternalError(what, run=plan.run_id, task=outcome.task_id)


def _check_sinks(plan: Plan, outcome: TaskOutcome) -> None:
    """The position has to know of every topic that was written to: publishing goes by it."""
    for sink in outcome.sinks:
        place = place_of(sink.topic, sink.file.partition)
        after = outcome.position.sink_offsets.get(place, 0)
        if after <= sink.file.last_offset:
            what = f"the next offset of {place} is {after}, after a file that goes up to {sink.file.last_offset}"
            raise InternalError(what, run=plan.run_id, task=outcome.task_id)
