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
from typing import TYPE_CHECKING, Any, Self

from airflow.sdk import DAG, BaseOperator

from statelib.settings.settings import check_settings

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

_NOT_OF_A_DAG = {"self", "task_group", "schedule"}
_NOT_OF_TASKS = {
    *("self", "kwargs", "dag", "task_id", "task_group", "default_args", "params", "resources"),
    *("do_xcom_push", "multiple_outputs", "trigger_rule", "task_display_name"),  # by these our tasks work together
}

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
            ConfigurationError: A name is neither a setting's nor one of Airflow's, or a setting cannot have that value.
        """
        given = dict(given)
        conn_id: Any = given.pop(_FORMER_CONN_ID, None)
        if conn_id is not None:
            said = f"{function.__name__}({job!r}): {_FORMER_CONN_ID} is conn_id now, and will be refused in version 0.4"
            warnings.warn(said, DeprecationWarning, stacklevel=4)
        own = _parameters(function)
        dag = _parameters(DAG.__init__) - _NOT_OF_A_DAG - own if has_dag else set()
        tasks = _parameters(BaseOperator.__init__) - _NOT_OF_TASKS - own - dag
        if not has_dag:
            tasks |= {"default_args"}
        settings = {name: value for name, value in given.items() if name not in dag | tasks}
        check_settings(settings, place=f"{function.__name__}({job!r})", besides=sorted(own | dag | tasks))
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
    place, _, name = job.rpartition(":")
    parts = [part for part in re.split(r"[/.]+", place.removesuffix(".py")) if part] or [place]
    words = [part for part in parts if part not in _SAYS_NOTHING][-1:] or parts[-1:]
    words += [] if name in _SAYS_NOTHING else [name]
    return "_".join([action, *(re.sub(r"\W+", "_", word).strip("_") for word in words)])


def _parameters(function: Callable[..., object]) -> set[str]:
    return {name for name, of in inspect.signature(function).parameters.items() if of.kind is not of.VAR_KEYWORD}
