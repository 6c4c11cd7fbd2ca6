"""Makes a group of Airflow tasks that try another version of a job, and ask a person whether its changes are wanted.

::

    from hindstream.airflow import try_task_group

    with DAG("release", schedule=None):
        try_task_group("/srv/next/flights.py:job", against="flight-delays") >> deploy()

The group forks the job, replays its history with the new version, and compares the two. ``approve`` shows what differs
and waits for a person. What stands behind the group runs if the answer is *Approve*, and is skipped if it is *Reject*.
The fork is there until then, to be looked at (``hindstream show``, ``hindstream diff``). ``drop`` ends it in any case.
``hindstream try`` is the same as a command.
"""

from __future__ import annotations

import logging
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Literal

from airflow.sdk import TaskGroup, task

from hindstream.airflow.approval import approval
from hindstream.airflow.arguments import Given
from hindstream.airflow.fork_steps import ForkSteps, trial_of
from hindstream.airflow.runner import Runner
from statelib.calls import function_checked

if TYPE_CHECKING:
    from collections.abc import Sequence

    from statelib.commits.versions.trials import Trial
    from statelib.comparison.fields import Rules
    from statelib.job.job import Job
    from statelib.settings.settings import Settings

STEPS = ("fork", "replay", "compare", "approve", "drop")
"""The tasks of a trial, in order."""

_log = logging.getLogger(__name__)


@function_checked
def try_task_group(
    new: str,
    *,
    against: str | None = None,
    start: str | None = None,
    end: str | None = None,
    sample_keys: str | None = None,
    sinks: Sequence[str] = (),
    by: Literal["latest", "set", "order"] | None = None,
    tolerance: float | None = None,
    ignore: Sequence[str] = (),
    group_id: str = "try",
    conn_id: str | None = None,
    config: str | None = None,
    **given: object,
) -> TaskGroup:
    """The tasks that try another version of a job, in the DAG in whose context this is called.

    Args:
        new: The other version, in the form of `hindstream.airflow.replay.replay_dag`'s ``job``.
        against: The job: its name, or where it is, and maybe ``@COMMIT``; None: the one whose name the version has.
        start: The version goes on from the newest commit that has taken up nothing from this time on: ISO 8601 with
            time zone, or ms; a template of Airflow may say it. None: it replays from the beginning.
        end: Where both are compared; the same. None: where the job's commit has ended.
        sample_keys: The share of the keys that is replayed and compared: ``1%`` or ``0.01``; None: all.
        sinks: The sinks to compare, as ``hindstream diff --sink`` names them; none: all.
        by: How they are compared; None: by the topology.
        tolerance: By how much numbers may differ; None: not at all.
        ignore: Fields to leave out.
        group_id: The group's id in the DAG.
        conn_id: As for `hindstream.airflow.replay.replay_dag`.
        config: As for `hindstream.airflow.replay.replay_dag`.
        given: Settings, and arguments of Airflow's tasks, as for `hindstream.airflow.replay.replay_task_group`.

    Raises:
        ConfigurationError: There is no setting of that name, a setting cannot have that value, or an argument is of
            another type.
    """
    arguments = Given.to(try_task_group, new, given, has_dag=False)
    steps = _Steps(Runner(**arguments.of_operators(new, conn_id, config)), against, group_id)
    with TaskGroup(group_id, default_args=arguments.for_group()) as group:
        trial = task(task_id="fork", multiple_outputs=False)(steps.fork)(
            start=start, end=end, sample_keys=sample_keys, sinks=list(sinks), tolerance=tolerance, ignore=list(ignore)
        )
        replayed = task(task_id="replay", do_xcom_push=False)(steps.replay)(trial)
        told = task(task_id="compare", multiple_outputs=False)(steps.compare)(
            trial, sinks=list(sinks), by=by, tolerance=tolerance, ignore=list(ignore)
        )
        pulled = f"ti.xcom_pull(task_ids='{group_id}.compare')"
        approve = approval(f"{{{{ {pulled}['subject'] }}}}", f"{pulled}['text']")
        drop = task(task_id="drop", do_xcom_push=False)(steps.drop)().as_teardown()
        trial >> replayed >> told >> approve >> drop
        [trial, replayed, told] >> drop
    return group


class _Steps(ForkSteps):
    """The tasks."""

    def __init__(self, runner: Runner, against: str | None, group_id: str) -> None:
        super().__init__(runner, group_id)
        self._against = against

    def fork(
        self,
        start: str | None,
        end: str | None,
        sample_keys: str | None,
        sinks: list[str],
        tolerance: float | None,
        ignore: list[str],
    ) -> dict[str, Any]:
        """Makes the forks, if there will be what is to be compared; gives what is tried."""

        def do(new: Job, settings: Settings) -> Trial:
            from hindstream.runs import open_warehouse  # noqa: PLC0415
            from hindstream.slices import time_ms  # noqa: PLC0415
            from hindstream.trials.forks import begin  # noqa: PLC0415
            from hindstream.trials.wanted import Against, check_compared, planned, share_of  # noqa: PLC0415

            times = [None if text is None else time_ms(of, text) for of, text in (("from", start), ("to", end))]
            against = Against.of(self._against, new)
            warehouse = open_warehouse(settings)
            share = None if sample_keys is None else share_of(sample_keys)
            trial = planned(warehouse, new, against, self.name(), start_ms=times[0], end_ms=times[1], sample_keys=share)
            check_compared(warehouse, trial, new, sinks, None, _rules(tolerance, ignore))
            begin(trial, settings, outlives_process=True)
            return trial

        found: dict[str, Any] = self._runner.call(do).model_dump(mode="json")
        return found

    def replay(self, trial: Any) -> None:
        """Replays what the forks lack."""

        def do(new: Job, settings: Settings) -> None:
            from hindstream.trials.replay import replay  # noqa: PLC0415
            from hindstream.trials.wanted import Against  # noqa: PLC0415

            replay(trial_of(trial), new, Against.of(self._against, new).version, settings)

        self._runner.call(do)

    def compare(
        self, trial: Any, sinks: list[str], by: Any, tolerance: float | None, ignore: list[str]
    ) -> dict[str, Any]:
        """Says what differs, for the person who approves it."""

        def do(_: Job, settings: Settings) -> dict[str, Any]:
            from hindstream.trials.differences import differences_told  # noqa: PLC0415

            rules = _rules(tolerance, ignore)
            return asdict(differences_told(trial_of(trial), settings, sinks=sinks, way=by, rules=rules))

        found: dict[str, Any] = self._runner.call(do)
        _log.info("%s", found["text"])
        return found


def _rules(tolerance: float | None, ignore: Sequence[str]) -> Rules:
    """What counts as equal."""
    from statelib.comparison.fields import Rules  # noqa: PLC0415

    return Rules(tolerance, {}, frozenset(ignore))
