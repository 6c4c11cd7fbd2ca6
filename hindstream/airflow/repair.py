"""Makes Airflow tasks that repair a job that was wrong: in a DAG of their own, or as a group in anybody's.

::

    from hindstream.airflow import repair_dag

    dag = repair_dag("jobs/flights.py:job", conn_id="lake")

A run is triggered with the time since when the job is wrong::

    airflow dags trigger repair_flights --conf '{"from": "2013-07-01T00:00Z"}'

A fork replays what the job has replayed since then, with the corrected file, and is compared with the job. ``approve``
shows what differs, and waits for a person. *Approve* publishes the differences as one commit of the job; *Reject*
changes nothing. ``drop`` deletes the fork in any case. ``hindstream repair`` is the same as a command.
"""

from __future__ import annotations

import logging
from collections.abc import Collection
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from airflow.sdk import DAG, Param, TaskGroup, chain, task

from hindstream.airflow.approval import approval
from hindstream.airflow.arguments import Given, id_of
from hindstream.airflow.assets import alias_as_outlet, published_topics, tell
from hindstream.airflow.fork_steps import ForkSteps, trial_of
from hindstream.airflow.operators import HindstreamOperator
from hindstream.airflow.runner import Runner, located
from statelib.calls import function_checked
from statelib.errors.kinds import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from airflow.sdk import Context

    from statelib.job.job import Job
    from statelib.settings.settings import Settings

STEPS = ("fork", "replay", "compare", "approve", "publish", "drop")
"""The tasks of a repair, in order."""

_DOC = """Repairs `{job}` since the time of the parameter `from`: {steps}. Pause the job's own DAG meanwhile: if the job
commits, the repair is refused. """
_GROUP = "repair"
_ASKS = "`approve` waits for a person (*Required actions*); *Reject* changes nothing."

_log = logging.getLogger(__name__)


@function_checked
def repair_dag(
    job: str,
    *,
    then: str | None = None,
    approve: bool = True,
    dag_id: str | None = None,
    tags: Sequence[str] = ("hindstream",),
    conn_id: str | None = None,
    config: str | None = None,
    **given: object,
) -> DAG:
    """The DAG that repairs a job. Its runs are triggered, with the parameters ``from``, ``to``, ``keys`` and ``late``.

    Args:
        job: As for `repair_task_group`.
        then: As for `repair_task_group`.
        approve: As for `repair_task_group`.
        dag_id: The DAG's id; None: made from ``job``.
        tags: Tags of the DAG in Airflow.
        conn_id: As for `hindstream.airflow.replay.replay_dag`.
        config: As for `hindstream.airflow.replay.replay_dag`.
        given: Settings, and arguments of Airflow's DAG and tasks, as for `hindstream.airflow.replay.replay_dag`.

    Raises:
        ConfigurationError: There is no setting of that name, a setting cannot have that value, or an argument is of
            another type.
    """
    arguments = Given.to(repair_dag, job, given)
    when = "ISO 8601 with time zone, or milliseconds since 1970"
    params = {
        "from": Param(type=["string", "integer"], title="Since when the job is wrong", description=when),
        "to": Param(None, type=["null", "string", "integer"], title="Until when", description=f"{when}; none: now"),
        "keys": Param([], type="array", title="Keys that may change", description="none: all"),
        "late": Param(False, type="boolean", title="Let in late records", description="with the job's own file"),
    }
    steps = [name for name in STEPS if approve or name != "approve"]
    with arguments.dag(
        dag_id or id_of(job, "repair"),
        tags=tags,
        render_template_as_native_obj=True,
        params=params,
        doc_md=_DOC.format(job=job, steps=" → ".join(steps)) + (_ASKS if approve else ""),
    ) as dag:
        of_run = {"start": "from", "end": "to", "late": "late", "keys": "keys"}
        asked = {name: f"{{{{ params['{of}'] }}}}" for name, of in of_run.items()}
        of_job = arguments.of_operators(job, conn_id, config)
        with TaskGroup(_GROUP):
            _tasks(of_job, _Steps(Runner(**of_job), then, _GROUP), asked, approve=approve)
    return dag


@function_checked
def repair_task_group(
    job: str,
    *,
    start: str,
    end: str | None = None,
    then: str | None = None,
    keys: Sequence[str] | str = (),
    late: bool | str = False,
    approve: bool = True,
    group_id: str = _GROUP,
    conn_id: str | None = None,
    config: str | None = None,
    **given: object,
) -> TaskGroup:
    """The tasks that repair a job that was wrong, in the DAG in whose context this is called.

    Args:
        job: The corrected job, in the form of `hindstream.airflow.replay.replay_dag`'s ``job``.
        start: Since when the job is wrong: ISO 8601 with time zone, or ms; a template of Airflow may say it.
        end: Until when; the same. Before ``start`` and after ``end`` the job's own file counts. None: until now.
        then: The job's own file, in the form of ``job``, if it is not ``job``.
        keys: The keys that may change, as text; if others would, nothing is published. None are given: all may. A
            template may give a list, in a DAG with ``render_template_as_native_obj``.
        late: Whether ``job`` is the job's own file, and what came too late for its windows is let in; the same.
        approve: Whether a person is asked before anything is published.
        group_id: The group's id in the DAG.
        conn_id: As for `hindstream.airflow.replay.replay_dag`.
        config: As for `hindstream.airflow.replay.replay_dag`.
        given: Settings, and arguments of Airflow's tasks, as for `hindstream.airflow.replay.replay_task_group`.

    Raises:
        ConfigurationError: There is no setting of that name, a setting cannot have that value, or an argument is of
            another type.
    """
    arguments = Given.to(repair_task_group, job, given, has_dag=False)
    asked = {"start": start, "end": end, "late": late, "keys": keys}
    of_job = arguments.of_operators(job, conn_id, config)
    with TaskGroup(group_id, default_args=arguments.for_group()) as group:
        _tasks(of_job, _Steps(Runner(**of_job), then, group_id), asked, approve=approve)
    return group


def _tasks(of_job: dict[str, Any], steps: _Steps, asked: dict[str, Any], *, approve: bool) -> None:
    """The tasks of a repair, in the group of the context."""
    keys = asked.pop("keys")
    begun: Any = task(task_id="fork", multiple_outputs=False)(steps.fork)(**asked)
    replayed = task(task_id="replay", do_xcom_push=False)(steps.replay)(begun)
    told = task(task_id="compare", multiple_outputs=False)(steps.compare)(begun, keys=keys)
    of_compare, of_fork = (f"ti.xcom_pull(task_ids='{steps.group_id}.{name}')" for name in ("compare", "fork"))
    person = [approval(f"{{{{ {of_compare}['subject'] }}}}", f"{of_compare}['text']")] if approve else []
    publish = HindstreamRepairOperator(
        task_id="publish",
        fork=f"{{{{ {of_fork}['trial']['new']['fork'] }}}}",
        end=f"{{{{ {of_fork}['end_ms'] }}}}",
        **of_job,
    )
    drop = task(task_id="drop", do_xcom_push=False)(steps.drop)().as_teardown()
    chain(begun, replayed, told, *person, publish, drop)
    [begun, replayed, told] >> drop


class HindstreamRepairOperator(HindstreamOperator):
    """Publishes what a fork has corrected as one commit of its job; each sink's asset gets an event.

    Args:
        fork: The fork, which has replayed what the job has.
        end: When the interval ends that it corrects, as for `repair_task_group`; None or nothing: it has no end.
        kwargs: As for `hindstream.airflow.operators.HindstreamOperator`.
    """

    template_fields: Collection[str] = (*HindstreamOperator.template_fields, "fork", "end")

    def __init__(self, *, fork: str, end: str | None = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.fork = fork
        self.end = end
        self.sinks = alias_as_outlet(self)

    def execute(self, context: Context) -> str:
        """The id of the run that the repair is."""

        def publish(job: Job, settings: Settings) -> str:
            from hindstream.spark.phases import report  # noqa: PLC0415 - parsing a DAG file must stay quick
            from hindstream.trials.repairs import publish_repair  # noqa: PLC0415
            from hindstream.trials.sentences import repaired_told  # noqa: PLC0415

            done = publish_repair(job, self.fork, settings, end_ms=_time_of("end", self.end))
            _log.info("%s", repaired_told(done))
            tell(context, self.sinks, published_topics(job, settings, done.commit.run_id))
            report.write(job, settings, done.commit.run_id)
            return done.commit.run_id

        return str(self._call(publish, lambda run_id: run_id))


class _Steps(ForkSteps):
    """The tasks."""

    def __init__(self, runner: Runner, then: str | None, group_id: str) -> None:
        super().__init__(runner, group_id)
        self._then = then

    def fork(self, start: Any, end: Any, late: Any) -> dict[str, Any]:
        """Makes the fork; gives what is replayed, when the interval ends, and what to tell of it."""

        def do(job: Job, settings: Settings) -> dict[str, Any]:
            from hindstream.runs import open_warehouse  # noqa: PLC0415
            from hindstream.slices import time_ms  # noqa: PLC0415
            from hindstream.trials.forks import begin  # noqa: PLC0415
            from hindstream.trials.repairs import planned_repair  # noqa: PLC0415
            from hindstream.trials.sentences import repair_told, repairs_told  # noqa: PLC0415

            warehouse, start_ms, end_ms = open_warehouse(settings), time_ms("from", str(start)), _time_of("to", end)
            planned = planned_repair(
                warehouse, job, self._own(), self.name(), start_ms=start_ms, end_ms=end_ms, late=_is_true(late)
            )
            told = repair_told(planned, self._runner.job, self._then, start_ms, end_ms)
            said = [*told, *repairs_told(warehouse, planned.trial)]
            begin(planned.trial, settings, outlives_process=True)
            trial = planned.trial.model_dump(mode="json")
            return {"trial": trial, "end_ms": end_ms, "late": planned.late is not None, "told": said}

        found: dict[str, Any] = self._runner.call(do)
        for sentence in found["told"]:
            _log.info("%s", sentence)
        return found

    def replay(self, begun: dict[str, Any]) -> None:
        """Replays what the fork lacks."""

        def do(job: Job, settings: Settings) -> None:
            from hindstream.runs import open_warehouse  # noqa: PLC0415
            from hindstream.trials.replay import replay  # noqa: PLC0415
            from statelib.repair.lateness import check_let_in  # noqa: PLC0415

            replay(trial_of(begun["trial"]), job, None, settings, then=self._own() or job)
            if begun["late"]:
                check_let_in(open_warehouse(settings), self.name())

        self._runner.call(do)

    def compare(self, begun: dict[str, Any], keys: Any) -> dict[str, Any]:
        """Says what differs, for the person who approves it, if no other keys do than may."""

        def do(job: Job, settings: Settings) -> dict[str, Any]:
            from hindstream.runs import open_warehouse  # noqa: PLC0415
            from hindstream.trials.differences import differences_told  # noqa: PLC0415
            from hindstream.trials.repairs import check_keys  # noqa: PLC0415

            told = differences_told(trial_of(begun["trial"]), settings, split_ms=begun["end_ms"])
            check_keys(open_warehouse(settings), job.name, self.name(), _keys(keys))
            return asdict(told) | {"text": "\n".join([told.text, *begun["told"]])}

        found: dict[str, Any] = self._runner.call(do)
        _log.info("%s", found["text"])
        return found

    def _own(self) -> Job | None:
        """The job as it is, if it is another file."""
        from statelib.job.job import load_job  # noqa: PLC0415

        return None if self._then is None else load_job(located(self._then))


def _time_of(option: str, given: Any) -> int | None:
    """What a template has given; None: nothing."""
    from hindstream.slices import time_ms  # noqa: PLC0415

    return None if given in {None, "", "None"} else time_ms(option, str(given))


def _is_true(given: Any) -> bool:
    """What a template has given."""
    if (text := str(given).lower()) not in {"true", "false"}:
        raise ConfigurationError(
            f"late is true or false, not {given!r}", next_step="change it where the run is triggered"
        )
    return text == "true"


def _keys(given: Any) -> list[str]:
    """What a template has given: a text would be taken for the list of its letters."""
    if isinstance(given, str):
        step = "give a list; a template gives one in a DAG with render_template_as_native_obj=True"
        raise ConfigurationError(f"keys are a list, not {given!r}", next_step=step)
    return [str(key) for key in given]
