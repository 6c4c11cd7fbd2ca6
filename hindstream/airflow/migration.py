"""Makes the Airflow DAG that migrates stores of a job: KIP-889's manual procedure, with one task per step.

::

    from hindstream.airflow import migration_dag

    dag = migration_dag("/srv/jobs/rates.py:job", stores=["rates"], warehouse="s3://lake/warehouse")

A run makes a plan, waits for a person to approve it, and executes it. Nothing is changed before the approval, or by a
rejection. Any task can be killed, retried or cleared: it detects what has been done. If a task fails for good, the job
stays held, and ``roll_back`` says so. Only if values of the stores have changed, ``roll_back`` undoes the migration and
releases the job. `hindstream.spark.migration.migrate` has the steps; ``hindstream migrate`` is the same as a command.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from airflow.sdk import DAG, Param, chain, get_current_context, task
from airflow.sdk.exceptions import AirflowSkipException

from hindstream.airflow.approval import approval
from hindstream.airflow.arguments import Given, id_of
from hindstream.airflow.runner import Runner
from hindstream.airflow.step import HindstreamStepOperator
from statelib.calls import function_checked

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hindstream.spark.migration.migrate import MigrationPreview
    from statelib.job.job import Job
    from statelib.settings.settings import Settings

STEPS = ("plan", "approve", "hold", "clean_local_state", "set_compaction_lag", "restore", "verify", "release")
"""The tasks of a migration, in order; ``roll_back`` stands beside them."""

_DOC = """Migrates stores of `{job}`: {steps}. `approve` waits for a person (*Required actions*); nothing is changed
before, nor by *Reject*. A task that has failed may be cleared: it goes on. `roll_back` says what a failure has left."""

_log = logging.getLogger(__name__)


@function_checked
def migration_dag(
    job: str,
    *,
    stores: Sequence[str],
    dag_id: str | None = None,
    tags: Sequence[str] = ("hindstream",),
    conn_id: str | None = None,
    config: str | None = None,
    **given: object,
) -> DAG:
    """The DAG that migrates stores of a job to what its current topology declares.

    Args:
        job: As for `hindstream.airflow.replay.replay_dag`.
        stores: The names of the stores, unless the run's parameter ``stores`` names others.
        dag_id: The DAG's id; None: made from ``job``.
        tags: Tags of the DAG in Airflow.
        conn_id: As for `hindstream.airflow.replay.replay_dag`.
        config: As for `hindstream.airflow.replay.replay_dag`.
        given: Settings, and arguments of Airflow's DAG and tasks, as for `hindstream.airflow.replay.replay_dag`.

    Raises:
        ConfigurationError: There is no setting of that name, a setting cannot have that value, or an argument is of
            another type.
    """
    arguments = Given.to(migration_dag, job, given)
    param = Param(list(stores), type="array", items={"type": "string"}, minItems=1, title="Stores to migrate")
    with arguments.dag(
        dag_id or id_of(job, "migrate"),
        tags=tags,
        params={"stores": param},
        doc_md=_DOC.format(job=job, steps=" → ".join(STEPS)),
    ) as dag:
        of_job = arguments.of_operators(job, conn_id, config)
        steps = _Steps(Runner(**of_job))
        approve = approval("Migrate {{ params.stores | join(', ') }}?", "ti.xcom_pull(task_ids='plan')['text']")
        tasks: dict[str, Any] = {
            name: task(task_id=name, multiple_outputs=False)(getattr(steps, name))()
            for name in STEPS
            if name not in {"approve", "restore"}
        }
        tasks["restore"] = HindstreamStepOperator(task_id="restore", step=steps.restore, **of_job)
        chain(*({**tasks, "approve": approve}[name] for name in STEPS))
        # Not after the release: were it the only leaf, it would make a failed run a success.
        roll_back = task(task_id="roll_back", trigger_rule="one_failed")(steps.roll_back)()
        chain([tasks[name] for name in STEPS[2:-1]], roll_back)
    return dag


class _Steps:
    """The tasks."""

    def __init__(self, runner: Runner) -> None:
        self._runner = runner

    def plan(self) -> dict[str, object]:
        """Says what would be done, for the person who approves it."""

        def do(job: Job, settings: Settings) -> MigrationPreview:
            from hindstream.spark.migration import migrate  # noqa: PLC0415

            return migrate.preview(job, settings, _stores())

        found = self._runner.call(do)
        text = "\n".join(found.lines())
        _log.info("%s", text)
        return {"head": found.head, "text": text, "evolution": found.evolution.model_dump(mode="json")}

    def hold(self) -> None:
        """Holds the job, for what was approved."""

        def do(job: Job, settings: Settings) -> None:
            from hindstream.spark.migration import migrate  # noqa: PLC0415
            from statelib.documents.topologies import Evolution  # noqa: PLC0415

            approved = Evolution.model_validate(_pulled("plan")["evolution"])
            migrate.hold(job, settings, _stores(), approved=approved)

        self._runner.call(do)

    def clean_local_state(self) -> list[dict[str, object]]:
        """Removes what the newest commit does not name from every host."""

        def do(job: Job, settings: Settings) -> list[dict[str, object]]:
            from dataclasses import asdict  # noqa: PLC0415

            from hindstream.spark.placement.hosts import clean_hosts  # noqa: PLC0415

            return [{"host": host, **asdict(found)} for host, found in clean_hosts(job.name, settings)]

        return _logged(self._runner.call(do))

    def set_compaction_lag(self) -> dict[str, int]:
        """Sets how long the stores' changelogs are not compacted; gives it in ms, by store with a changelog."""

        def do(job: Job, settings: Settings) -> dict[str, int]:
            from hindstream.spark.migration import migrate  # noqa: PLC0415

            return migrate.lag(job, settings, _stores())

        lags: dict[str, int] = self._runner.call(do)
        _log.info("min.compaction.lag.ms: %s", lags or "no store has a changelog")
        return lags

    def restore(self) -> int:
        """Makes the stores anew, in a commit; gives its number."""

        def do(job: Job, settings: Settings) -> int:
            from hindstream.spark.migration import migrate  # noqa: PLC0415
            from hindstream.spark.phases import report  # noqa: PLC0415

            made = migrate.restore(job, settings, _stores())
            report.write(job, settings, made.run_id)
            return made.commit

        return int(self._runner.call(do))

    def verify(self) -> list[dict[str, object]]:
        """Compares the latest values, and says how far back the history reaches."""

        def do(job: Job, settings: Settings) -> list[dict[str, object]]:
            from dataclasses import asdict  # noqa: PLC0415

            from hindstream.runs import open_warehouse  # noqa: PLC0415
            from hindstream.spark.migration import migrate  # noqa: PLC0415
            from statelib.commits import CommitLog  # noqa: PLC0415

            made = CommitLog(open_warehouse(settings), job.name).read(_pulled("restore"))
            found = migrate.verify(job.name, settings, made)
            said = _logged([{"store": part.store, "task": part.task_id, **asdict(part.comparison)} for part in found])
            differences = sum(part.comparison.differences for part in found)
            get_current_context()["ti"].xcom_push(key="differences", value=differences)
            migrate.check_equal(job.name, found)
            return said

        return list(self._runner.call(do))

    def release(self) -> None:
        """Lets the job go."""

        def do(job: Job, settings: Settings) -> None:
            from hindstream.spark.migration import migrate  # noqa: PLC0415

            migrate.release(job.name, settings, _stores())

        self._runner.call(do)

    def roll_back(self) -> int:
        """Takes back a migration that has changed values; after any other failure only says what there is.

        Gives the number of the commit that is the head then.
        """

        def do(job: Job, settings: Settings) -> int:
            from hindstream.spark.migration import migrate  # noqa: PLC0415

            if not _pulled("verify", "differences"):
                raise AirflowSkipException(migrate.standing(job, settings, _stores()))
            head = migrate.take_back(job, settings, _stores())
            _log.warning(
                "%s: latest values were not what they were before. The migration was undone: commit %d is the"
                " head, with the former state, and the job is free for its former topology",
                job.name,
                head.commit,
            )
            return head.commit

        return int(self._runner.call(do))


def _stores() -> list[str]:
    return list(get_current_context()["params"]["stores"])


def _pulled(task_id: str, key: str = "return_value") -> Any:
    return get_current_context()["ti"].xcom_pull(task_ids=task_id, key=key)


def _logged(rows: list[dict[str, object]]) -> list[dict[str, object]]:
    """A line for each row in the task's log; the rows are its XCom."""
    for row in rows:
        _log.info("%s", ", ".join(f"{name} {value}" for name, value in row.items()))
    return rows
