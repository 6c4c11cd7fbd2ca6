"""Makes the Airflow DAG that lets a new version of a live Kafka Streams application take the place of the old one.

::

    from hindstream.airflow import switch_over_dag

    dag = switch_over_dag(
        "/srv/jobs/delays_2.py:job",
        archive="/srv/jobs/delays_2.py:topics",
        start_shadow="kubectl scale deployment/shadow-delays-2 --replicas=2",
        stop_shadow="kubectl scale deployment/shadow-delays-2 --replicas=0",
        stop_old="kubectl scale deployment/delays-1 --replicas=0",
        start_old="kubectl scale deployment/delays-1 --replicas=2",
        start_new="kubectl scale deployment/delays-2 --replicas=2",
    )

A run replays the history, hands the state over to the shadow, starts it, waits until it has caught up, and compares
what both applications write. ``approve`` shows what differs and waits for a person. Behind *Approve* the old
application is stopped, the job replays to exactly where that has stopped, and the new application goes on there. Behind
*Reject* all is as it was. The shadow is stopped in either case. If the switch-over fails for good before the new
application is started, ``start_old`` starts the old one again, which goes on where it has stopped.

Without a shadow, it is the DAG of the way back: give the job of the old version and its ``SwitchOver``.

Any task can be killed, retried or cleared. `hindstream.spark.kafka.switch_over` says why no record is lost or comes
twice; ``hindstream switch`` is the same as commands.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import asdict
from datetime import timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Literal

from airflow.providers.standard.hooks.subprocess import SubprocessHook
from airflow.providers.standard.operators.bash import BashOperator
from airflow.sdk import DAG, chain, get_current_context, task
from airflow.sdk.exceptions import AirflowException, AirflowSkipException

from hindstream.airflow.approval import approval
from hindstream.airflow.archive import copy_topics
from hindstream.airflow.arguments import Given, id_of
from hindstream.airflow.runner import Runner, located
from hindstream.airflow.step import HindstreamStepOperator
from statelib.calls import function_checked
from statelib.errors.counted import counted
from statelib.errors.kinds import ConfigurationError

if TYPE_CHECKING:
    from hindstream.kafka.handover import HandedOver
    from hindstream.spark.kafka.switch_over import SwitchedOver
    from statelib.comparison.sinks import SinkDifferences
    from statelib.comparison.times import Interval
    from statelib.job.job import Job
    from statelib.job.switch_over import SwitchOver
    from statelib.settings.settings import Settings

Command = str | Callable[[], object]
"""A command of bash, or a function."""

BESIDE = ("archive", "replay", "hand_over", "start_shadow", "catch_up", "compare", "approve")
"""The tasks that run the new version beside the old one, in order; ``stop_shadow`` ends it."""

SWITCH = ("stop_old", "wait_for_stop", "archive_rest", "switch", "start_new", "wait_for_start")
"""The tasks behind the approval, in order; ``start_old`` stands beside them."""

_DOC = """Lets a new version of a live application take its place: {steps}. {asks}A task that has failed may be
cleared: it goes on. If the switch-over fails before `start_new`, `start_old` starts the old application again."""

_MAKE_RUNS = ("replay", "switch")
"""Of these, those that replay, whose runs have reports."""

_STOPS_WITHIN = timedelta(hours=1)

_log = logging.getLogger(__name__)


@function_checked
def switch_over_dag(
    job: str,
    *,
    archive: str,
    stop_old: str | Callable[[], object],
    start_old: str | Callable[[], object],
    start_new: str | Callable[[], object],
    start_shadow: str | Callable[[], object] | None = None,
    stop_shadow: str | Callable[[], object] | None = None,
    switch: str | None = None,
    take_over: str | None = None,
    new_state_dir: str | None = None,
    max_lag: int = 100,
    observe: timedelta = timedelta(0),
    by: Literal["latest", "set", "order"] | None = None,
    tolerance: float | None = None,
    ignore: Sequence[str] = (),
    stopped: bool = False,
    poke_interval: timedelta = timedelta(minutes=1),
    dag_id: str | None = None,
    tags: Sequence[str] = ("hindstream",),
    conn_id: str | None = None,
    config: str | None = None,
    **given: object,
) -> DAG:
    """The DAG that lets a new version of a live application take the place of the old one.

    Commands are of bash, or functions. They may be repeated, and end when what they do is done. Those that start an
    application end when it has been started; nobody waits until it has restored its state.

    Args:
        job: The job of the new version, as for `hindstream.airflow.replay.replay_dag`.
        archive: The topics that it reads, in the form of ``job``.
        stop_old: Stops all instances of the old application, so that nothing starts them again.
        start_old: Starts it again, if the switch-over has failed.
        start_new: Starts the new application.
        start_shadow: Starts the shadow, whose hosts have no state of it; None: there is none, and nobody is asked.
        stop_shadow: Stops it.
        switch: The `SwitchOver`, in the form of ``job``; None: ``switch`` beside the job.
        take_over: A `Handover` in the form of ``job``: the job has not replayed the history, but takes over from the
            application of the hand-over, which has been stopped before. For the way back. None: it replays.
        new_state_dir: Where ``switch`` also writes the local state of the new application, which then starts without a
            restore: a folder that all of Airflow's workers have, since a retry may be another one's. ``start_new``
            copies the application's tasks from there to its hosts. A template. None: it restores its changelogs.
        max_lag: How many offsets an application may be behind in a partition to have caught up.
        observe: How long the time is, by the records' own times, that both applications have results of before they
            are compared.
        by: How outputs are compared; None: by the topology.
        tolerance: By how much numbers may differ; None: not at all.
        ignore: Fields to leave out.
        stopped: Whether ``stop_old`` can be trusted where groups do not tell (protocol ``streams``).
        poke_interval: How often the broker is asked for lags and groups.
        dag_id: The DAG's id; None: made from ``job``.
        tags: Tags of the DAG in Airflow.
        conn_id: As for `hindstream.airflow.replay.replay_dag`.
        config: As for `hindstream.airflow.replay.replay_dag`.
        given: Settings, and arguments of Airflow's DAG and tasks, as for `hindstream.airflow.replay.replay_dag`.

    Raises:
        ConfigurationError: A shadow can be started and not stopped, or the other way round; there is no setting of that
            name, a setting cannot have that value, or an argument is of another type.
    """
    arguments = Given.to(switch_over_dag, job, given)
    if (start_shadow is None) != (stop_shadow is None):
        advice = "give both start_shadow and stop_shadow, or neither"
        raise ConfigurationError("one command of the shadow is missing", job=job, next_step=advice)
    has_shadow = start_shadow is not None
    beside = BESIDE if has_shadow else ("archive", "replay" if take_over is None else "take_over")
    names = (*beside, *SWITCH)
    asks = "`approve` waits for a person (*Required actions*); *Reject* changes nothing. " if has_shadow else ""
    with arguments.dag(
        dag_id or id_of(job, "switch_over"),
        tags=tags,
        doc_md=_DOC.format(steps=" → ".join(names), asks=asks),
    ) as dag:
        of_job = arguments.of_operators(job, conn_id, config)
        steps = _Steps(
            Runner(**of_job),
            job,
            archive,
            switch,
            take_over,
            stopped=stopped,
        )
        waiting: dict[str, Any] = {"mode": "reschedule", "poke_interval": poke_interval.total_seconds()}

        def step(name: str, **given: Any) -> Any:
            if name in _MAKE_RUNS:
                return HindstreamStepOperator(task_id=name, step=getattr(steps, name), step_kwargs=given, **of_job)
            return task(task_id=name, multiple_outputs=False)(getattr(steps, name))(**given)

        first = [step(name) for name in beside[: 3 if has_shadow else 2]]
        if start_shadow is not None and stop_shadow is not None:
            shadow = [
                _command("start_shadow", start_shadow),
                task.sensor(task_id="catch_up", **waiting)(steps.catch_up)(max_lag, _ms(observe)),
                step("compare", by=by, tolerance=tolerance, ignore=list(ignore)),
                approval(
                    "{{ ti.xcom_pull(task_ids='compare')['subject'] }}", "ti.xcom_pull(task_ids='compare')['text']"
                ),
            ]
            chain(shadow, _command("stop_shadow", stop_shadow).as_teardown())
            first += shadow
        stops_within = _STOPS_WITHIN.total_seconds()
        second = [
            _command("stop_old", stop_old),
            task.sensor(task_id="wait_for_stop", timeout=stops_within, **waiting)(steps.wait_for_stop)(),
            task(task_id="archive_rest")(steps.archive)(),
            step("switch", new_state_dir=new_state_dir),
        ]
        start = _command("start_new", start_new)
        chain(*first, *second, start, task.sensor(task_id="wait_for_start", **waiting)(steps.wait_for_start)(max_lag))
        again = task(task_id="start_old", trigger_rule="one_failed", do_xcom_push=False)(_start_again)
        # Not behind start_new: nobody knows then which of the two runs.
        chain(second, again(start_old, beside[-1]))
    return dag


def _command(task_id: str, command: Command) -> Any:
    if isinstance(command, str):
        return BashOperator(task_id=task_id, bash_command=command, do_xcom_push=False)
    return task(task_id=task_id, do_xcom_push=False)(command)()


def _ms(span: timedelta) -> int:
    return span // timedelta(milliseconds=1)


class _Steps:
    """The tasks."""

    def __init__(
        self, runner: Runner, job: str, archive: str, switch: str | None, take_over: str | None, *, stopped: bool
    ) -> None:
        self._runner = runner
        self._topics = archive
        self._reference = switch or job.partition(":")[0]
        self._take_over = take_over
        self._stopped = stopped

    def archive(self) -> None:
        """Copies new records of the topics."""
        copy_topics(self._runner, self._topics)

    def replay(self) -> int:
        """Replays what the job has not replayed yet; gives its newest commit."""

        def do(job: Job, settings: Settings) -> int:
            from hindstream.runs import open_warehouse  # noqa: PLC0415
            from hindstream.spark.phases.pipeline import run_slice  # noqa: PLC0415
            from statelib.commits import CommitLog  # noqa: PLC0415

            run_slice(job, settings)
            return CommitLog(open_warehouse(settings), job.name).head_number()

        return int(self._runner.call(do))

    def take_over(self) -> int:
        """Takes over from the application that was live before; gives the commit."""

        def do(job: Job, settings: Settings) -> int:
            from hindstream.spark.kafka.takeover import take_over  # noqa: PLC0415
            from statelib.job.handover import load_handover  # noqa: PLC0415

            handover = load_handover(located(str(self._take_over)))
            return take_over(job, handover, settings, stopped=self._stopped).commit.commit

        return int(self._runner.call(do))

    def hand_over(self) -> int:
        """Hands the state over to the shadow, instead of what an earlier one had; gives the commit."""

        def do(_: Job, settings: Settings) -> HandedOver:
            from hindstream.kafka.handover import hand_over  # noqa: PLC0415

            shadow = self._switch().require_shadow()
            return hand_over(shadow, settings, replace=True, stopped=self._stopped)

        done = self._runner.call(do)
        _log.info("%s continues from commit %d", done.group, done.commit)
        return int(done.commit)

    def catch_up(self, max_lag: int, observe_ms: int) -> bool:
        """Whether the shadow has caught up, and there is enough to compare."""

        def do(job: Job, settings: Settings) -> bool:
            from hindstream.kafka.cluster import Cluster  # noqa: PLC0415
            from hindstream.kafka.live_outputs import progress  # noqa: PLC0415
            from hindstream.runs import open_warehouse  # noqa: PLC0415
            from statelib.commits import CommitLog  # noqa: PLC0415

            made = CommitLog(open_warehouse(settings), job.name).read(_pulled("hand_over"))
            found = progress(Cluster(settings), job, self._switch(), made)
            _log.info(
                "%s is %s behind at most; %d ms of results can be compared",
                found.shadow.group,
                counted(found.shadow.most, "offset"),
                found.comparable_ms,
            )
            return found.shadow.most <= max_lag and found.comparable_ms >= max(observe_ms, 1)

        return bool(self._runner.call(do))

    def compare(self, by: Any, tolerance: float | None, ignore: list[str]) -> dict[str, Any]:
        """Says what differs, for the person who approves it."""

        def do(job: Job, settings: Settings) -> tuple[SinkDifferences, Interval]:
            from hindstream.kafka.cluster import Cluster  # noqa: PLC0415
            from hindstream.kafka.live_outputs import OutputsAsked, compare_outputs  # noqa: PLC0415
            from statelib.comparison.fields import Rules  # noqa: PLC0415

            asked = OutputsAsked(by, Rules(tolerance, {}, frozenset(ignore)), examples=0)
            commit = _pulled("hand_over")
            with TemporaryDirectory(prefix="hindstream-switch-") as scratch:
                of = (Cluster(settings), job, self._switch(), settings, Path(scratch))
                return compare_outputs(*of, commit=commit, asked=asked)

        from hindstream.console.differences import interval_sentences, told_of_sinks  # noqa: PLC0415

        found, within = self._runner.call(do)
        told = told_of_sinks(found, interval_sentences(within))
        _log.info("%s", told.text)
        return asdict(told)

    def wait_for_stop(self) -> bool:
        """Whether the old application has stopped."""

        def do(_: Job, settings: Settings) -> bool:
            from hindstream.kafka.cluster import Cluster  # noqa: PLC0415

            try:
                Cluster(settings).check_stopped(self._switch().old, assumed=self._stopped)
            except ConfigurationError as running:
                _log.info("%s", running)
                return False
            return True

        return bool(self._runner.call(do))

    def switch(self, new_state_dir: str | None) -> list[dict[str, object]]:
        """Replays to where the old application has stopped, and hands over to the new one; gives where that goes on."""

        def do(job: Job, settings: Settings) -> SwitchedOver:
            from hindstream.spark.kafka.switch_over import switch_over  # noqa: PLC0415

            state_dir = None if new_state_dir is None else Path(new_state_dir)
            return switch_over(job, self._switch(), settings, stopped=self._stopped, state_dir=state_dir)

        done = self._runner.call(do)
        _log.info("%s continues where %s has stopped", done.new, done.old)
        places = sorted(done.offsets.items())
        return [{"topic": topic, "partition": partition, "offset": offset} for (topic, partition), offset in places]

    def wait_for_start(self, max_lag: int) -> bool:
        """Whether the new application is at work and has caught up."""

        def do(job: Job, settings: Settings) -> bool:
            from hindstream.kafka.cluster import Cluster  # noqa: PLC0415
            from hindstream.kafka.lag import group_lag  # noqa: PLC0415
            from hindstream.kafka.live_outputs import sources_in_kafka  # noqa: PLC0415

            switch = self._switch()
            found = group_lag(Cluster(settings), switch.new.application_id, sources_in_kafka(job, switch))
            _log.info("%s is %s behind at most", found.group, counted(found.most, "offset"))
            return found.most <= max_lag and any(of.time_ms is not None for of in found.partitions)

        return bool(self._runner.call(do))

    def _switch(self) -> SwitchOver:
        from statelib.job.switch_over import load_switch_over  # noqa: PLC0415

        return load_switch_over(located(self._reference))


def _start_again(command: Command, last_before: str) -> None:
    """Starts the old application, if it was to be stopped: if the task before has succeeded."""
    if _pulled(last_before) is None:
        raise AirflowSkipException("the old application was not stopped")
    if not isinstance(command, str):
        command()
    elif (code := SubprocessHook().run_command(["bash", "-c", command]).exit_code) != 0:
        raise AirflowException(f"the command has ended with exit code {code}: {command}")


def _pulled(task_id: str) -> Any:
    return get_current_context()["ti"].xcom_pull(task_ids=task_id)
