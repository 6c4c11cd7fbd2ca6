"""What a function that makes a DAG is given beside its own arguments: settings, and arguments of Airflow's.

What Airflow's ``DAG`` takes is the DAG's: ``max_active_runs``, ``dagrun_timeout``, ``on_failure_callback``. What its
operators take is every task's, as in ``default_args``: ``pool``, ``queue``, ``owner``, ``execution_timeout``. All else
are settings; no setting has a name of Airflow's. Of what both take, the DAG's counts, as in any DAG.
"""

from __future__ import annotations

import inspect
import re
import warnings
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import cache
from typing import TYPE_CHECKING, Any, Self

from airflow.sdk import DAG, BaseOperator

from statelib.errors.did_you_mean import did_you_mean
from statelib.errors.kinds import ConfigurationError
from statelib.settings.settings import check_settings

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

_NOT_OF_A_DAG = {"self", "task_group", "schedule"}
_BY_WHICH_TASKS_WORK_TOGETHER = {"do_xcom_push", "multiple_outputs", "trigger_rule", "task_display_name"}
_NOT_OF_TASKS = {
    *("self", "kwargs", "dag", "task_id", "task_group", "default_args", "params", "resources"),
    *_BY_WHICH_TASKS_WORK_TOGETHER,
}

_AIRFLOWS_OWN = "_airflow_"
"""How arguments begin that Airflow gives to operators."""

_FORMER_CONN_ID = "storage_conn_id"

_SAYS_NOTHING = ("job", "jobs", "make_job", "build")

RETRIES: dict[str, Any] = {"retries": 2, "retry_delay": timedelta(minutes=1)}
"""Of all tasks, unless others are given."""


@dataclass(frozen=True, slots=True)
class Given:
    """What is given beside a function's own arguments.

    Attributes:
        settings: By name.
        of_dag: Arguments of the DAG.
        of_tasks: Arguments of all tasks.
        conn_id: The connection, where it was given by its former name.
    """

    settings: dict[str, object]
    of_dag: dict[str, Any]
    of_tasks: dict[str, Any]
    conn_id: str | None

    @classmethod
    def to(
        cls, function: Callable[..., object], job: str, given: Mapping[str, object], *, has_dag: bool = True
    ) -> Given:
        """Tells settings, the DAG's arguments and the tasks' apart.

        Args:
            function: What it is given to.
            job: What the function is called for.
            given: By name, without the function's own arguments.
            has_dag: Whether the function makes a DAG; else it makes tasks for one.

        Raises:
            ConfigurationError: A name is neither a setting's nor one of Airflow's, or is not for these tasks; a setting
                cannot have that value; or the job is none that could be loaded.
        """
        place = f"{function.__name__}({job!r})"
        check_reference(job, place)
        given = dict(given)
        conn_id: Any = given.pop(_FORMER_CONN_ID, None)
        if conn_id is not None:
            said = f"{function.__name__}({job!r}): {_FORMER_CONN_ID} is conn_id now, and will be refused in version 0.4"
            warnings.warn(said, DeprecationWarning, stacklevel=4)
        own = _parameters(function)
        of_dags = _parameters(DAG.__init__) - _NOT_OF_A_DAG - own
        dag = of_dags if has_dag else set()
        tasks = _parameters(BaseOperator.__init__) - _NOT_OF_TASKS - own - dag
        if not has_dag:
            tasks |= {"default_args"}
        settings = {name: value for name, value in given.items() if name not in dag | tasks}
        _check_not_for_these_tasks(settings, of_dags - dag, place)
        check_settings(settings, place=place, besides=sorted(own | dag | tasks))
        return cls(
            settings,
            {name: value for name, value in given.items() if name in dag},
            {name: value for name, value in given.items() if name in tasks},
            conn_id,
        )

    def for_dag(self, **ours: Any) -> dict[str, Any]:
        """The arguments of the DAG: ours, and over them what is given. Parameters and ``default_args`` are joined."""
        joined = {name: {**ours.get(name, {}), **(self.of_dag.get(name) or {})} for name in ("params", "default_args")}
        joined["default_args"] |= self.of_tasks
        return {**ours, **self.of_dag, **joined}

    def dag(self, dag_id: str, *, tags: Sequence[str], schedule: Any = None, **ours: Any) -> DAG:
        """A DAG of which one run is at work at a time; without a ``schedule`` runs are only triggered.

        Args:
            dag_id: Its id.
            tags: Its tags in Airflow.
            schedule: Any schedule of Airflow.
            ours: Its other arguments, as for `for_dag`.
        """
        ours = {"catchup": False, "max_active_runs": 1, "default_args": RETRIES, **ours}
        return DAG(dag_id, schedule=schedule, tags=list(tags), **self.for_dag(**ours))

    def apart(self, *names: str) -> tuple[Self, dict[str, Any]]:
        """All but some arguments of tasks, which are not for every task, and these."""
        rest = {name: value for name, value in self.of_tasks.items() if name not in names}
        return replace(self, of_tasks=rest), {name: self.of_tasks[name] for name in names if name in self.of_tasks}

    def of_operators(self, job: str, conn_id: str | None, config: str | None) -> dict[str, Any]:
        """What all operators of `hindstream.airflow.operators` are given."""
        return {"job": job, "settings": self.settings, "conn_id": conn_id or self.conn_id, "config": config}

    def for_group(self, **ours: Any) -> Any:  # a dict, which the stubs of a group do not know
        """``default_args`` of a group of tasks."""
        given = dict(self.of_tasks)
        return {**ours, **(given.pop("default_args", None) or {}), **given}


def id_of(job: str, action: str) -> str:
    """The id of a DAG that does something to a job: ``replay_flights`` of ``/srv/jobs/flights.py:job``.

    Args:
        job: Where the job is. A file or module that says no more than ``job`` gives way to its folder or package.
        action: What the DAG does.
    """
    place, _, name = job.partition(":")
    parts = [part for part in re.split(r"[/.]+", place.removesuffix(".py")) if part] or [place]
    words = [part for part in parts if part not in _SAYS_NOTHING][-1:] or parts[-1:]
    words += [] if name in {"", *_SAYS_NOTHING} else [name]
    return "_".join([action, *(re.sub(r"\W+", "_", word).strip("_") for word in words)])


def check_reference(reference: str, place: str) -> None:
    """Refuses what cannot name a job, when Airflow reads the DAG file; whether there is one, a task sees.

    Args:
        reference: ``PACKAGE.MODULE:NAME``, or a path; a template may say it.
        place: Where, for the error.

    Raises:
        ConfigurationError: It has neither form.
    """
    of, _, name = reference.partition(":")
    is_module = all(part.isidentifier() for part in of.split("."))
    if not is_template(reference) and not ((of.endswith(".py") or is_module) and (not name or name.isidentifier())):
        step = "give FILE.py:NAME or PACKAGE.MODULE:NAME"
        raise ConfigurationError(
            f"{reference!r} names neither a file of Python nor a module", place=place, next_step=step
        )


def check_names_of(operator: type[BaseOperator], names: Iterable[str], place: str) -> None:
    """Refuses what an operator does not take, and says what may have been meant, which Airflow does not.

    Args:
        operator: The operator.
        names: What it is given.
        place: Where, for the error.

    Raises:
        ConfigurationError: It does not take one of them.
    """
    for name in set(names) - _parameters(BaseOperator.__init__):
        known = set().union(*(_parameters(one.__init__) for one in operator.__mro__ if issubclass(one, BaseOperator)))
        if name not in known and not name.startswith(_AIRFLOWS_OWN):
            step = did_you_mean(name, sorted(known - {"self"}), "take")
            raise ConfigurationError(f"there is no argument {name}", place=place, next_step=step)


def check_settings_of_task(settings: object, place: str) -> None:
    """Refuses what is no setting, and what one cannot be, as far as no template says it.

    Args:
        settings: By name; or what another task gives.
        place: Where, for the error.

    Raises:
        ConfigurationError: As `statelib.settings.settings.check_settings`.
    """
    if isinstance(settings, dict):
        known = {name: None if _has_template(value) else value for name, value in settings.items()}
        check_settings(known, place=place)


def is_template(value: object) -> bool:
    """Whether only a task that runs knows the value: a template of Airflow, or what another task gives."""
    return not isinstance(value, str) or "{{" in value or "{%" in value


def _has_template(value: object) -> bool:
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, list | tuple) else ()
    return any(map(_has_template, parts)) if parts else isinstance(value, str) and is_template(value)


def _check_not_for_these_tasks(names: Collection[str], of_dags: Collection[str], place: str) -> None:
    for name in names:
        if name in of_dags:
            step = f"give it to the DAG: DAG(..., {name}=...)"
            raise ConfigurationError(f"{name} is the DAG's, and these are tasks in one", place=place, next_step=step)
        if name in _BY_WHICH_TASKS_WORK_TOGETHER:
            raise ConfigurationError(
                f"the tasks work together by their own {name}", place=place, next_step="leave it out"
            )


@cache
def _parameters(function: Callable[..., object]) -> frozenset[str]:
    return frozenset(
        name for name, of in inspect.signature(function).parameters.items() if of.kind is not of.VAR_KEYWORD
    )
