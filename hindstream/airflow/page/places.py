"""Which tasks of a DAG do something to a job, and which run each of them was about.

Airflow's database knows it: the serialised DAG has the fields of the operators, the links of a task the job's name and
the run. Nobody's code is run for it, and nothing that a user of Airflow's API can write says which warehouse is opened.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

from airflow.models.dagbag import DBDagBag
from airflow.models.renderedtifields import RenderedTaskInstanceFields
from airflow.models.taskinstancekey import TaskInstanceKey
from airflow.models.xcom import XComModel
from sqlalchemy import String, cast, select

from hindstream.airflow.links import REPORT_KEY, job_and_run, shown_below
from statelib.errors.kinds import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from sqlalchemy import Select
    from sqlalchemy.orm import Session

_NAMES = ("job", "settings", "conn_id", "config")
_OPENS = ("warehouse", "storage_")
"""Beginnings of the settings by which a warehouse is opened."""

_TEMPLATE = ("{{", "{%")
_HIDDEN = "***"


class UnknownDagError(ConfigurationError):
    """Airflow has no such DAG, or none that it could read."""


@dataclass(frozen=True, slots=True)
class Fields:
    """What an operator was given.

    Attributes:
        job: Where the job is, as in the DAG file.
        settings: Those by which a warehouse is opened.
        conn_id: The connection; None: none.
        config: The settings file; None: as `statelib.settings.settings.load_settings` finds it.
        is_known: Whether nothing of it depends on the run.
    """

    job: str
    settings: Mapping[str, Any]
    conn_id: str | None
    config: str | None
    is_known: bool = True

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> Self:
        """Those among the values of an operator's fields."""
        given = values.get("settings")
        opens = {k: v for k, v in given.items() if k.startswith(_OPENS)} if isinstance(given, dict) else {}
        kept = {"job": values.get("job"), "conn_id": values.get("conn_id"), "config": values.get("config")}
        text = json.dumps([*kept.values(), opens], default=str)
        is_known = (given is None or isinstance(given, dict)) and not any(m in text for m in (*_TEMPLATE, _HIDDEN))
        return cls(str(kept["job"]), opens, kept["conn_id"] or None, kept["config"] or None, is_known)


@dataclass(frozen=True, slots=True)
class Place:
    """A task instance that was about a run of a job."""

    dag_id: str
    run_id: str
    task_id: str
    map_index: int
    job: str
    run: str

    def page(self, name: str) -> str:
        """Where a page of the job's reports is, below the prefix of the plug-in."""
        below = shown_below(self.dag_id, self.run_id, self.task_id, self.map_index)
        return f"{below}/jobs/{self.job}/reports/{name}.html"


@dataclass(frozen=True, slots=True)
class JobOfDag:
    """A job of a DAG, and the tasks that do something to it.

    Attributes:
        reference: Where the job is, as in the DAG file.
        tasks: Their ids.
    """

    reference: str
    tasks: tuple[str, ...]

    def newest(self, session: Session, dag_id: str) -> list[Place]:
        """The job's runs in the last DAG run that had one: one, or several if the task is mapped."""
        of_tasks = _reports(dag_id).where(XComModel.task_id.in_(self.tasks))
        last = session.execute(of_tasks.order_by(XComModel.timestamp.desc()).limit(1)).first()
        if last is None:
            return []
        rows = session.execute(of_tasks.where(XComModel.run_id == last.run_id).order_by(XComModel.timestamp))
        return list({(place.job, place.run): place for place in _places(rows)}.values())


def jobs_of(session: Session, dag_id: str) -> list[JobOfDag]:
    """The jobs of a DAG in its newest version.

    Raises:
        UnknownDagError: Airflow has no such DAG.
    """
    tasks: dict[str, list[str]] = {}
    references: dict[str, str] = {}
    for task in _dag(session, dag_id).tasks:
        if all(link.xcom_key != REPORT_KEY for link in task.operator_extra_links):
            continue
        values = _values(task)
        same = task.task_id if task.is_mapped else json.dumps([values.get(name) for name in _NAMES], sort_keys=True)
        tasks.setdefault(same, []).append(task.task_id)
        references[same] = str(values.get("job") or task.task_id)
    return [JobOfDag(references[same], tuple(ids)) for same, ids in tasks.items()]


def places_of(session: Session, dag_id: str, run_id: str) -> list[tuple[str, Place]]:
    """What a DAG run has replayed: runs, each with where its job is, by whichever tasks of whichever version."""
    rows = session.execute(_reports(dag_id).where(XComModel.run_id == run_id).order_by(XComModel.timestamp))
    found: dict[tuple[object, ...], tuple[str, Place]] = {}
    for place in _places(rows):
        try:
            fields = fields_of(session, place)
        except ConfigurationError:  # whoever opens it is told why
            found[place.task_id, place.job, place.run] = place.task_id, place
        else:
            opened_by = json.dumps([fields.job, fields.settings, fields.conn_id, fields.config], sort_keys=True)
            found[opened_by, place.job, place.run] = fields.job, place
    return list(found.values())


def place_at(session: Session, dag_id: str, run_id: str, task_id: str, map_index: int) -> Place | None:
    """The run that a task instance was about; None: it was about none."""
    asked = _reports(dag_id).where(
        XComModel.run_id == run_id, XComModel.task_id == task_id, XComModel.map_index == map_index
    )
    return next(iter(_places(session.execute(asked))), None)


def fields_of(session: Session, place: Place) -> Fields:
    """The fields of a task instance's operator, as they were rendered; else as in the DAG file.

    Raises:
        ConfigurationError: They depend on the run, and Airflow has forgotten how they were rendered.
    """
    key = TaskInstanceKey(place.dag_id, place.task_id, place.run_id, map_index=place.map_index)
    rendered = RenderedTaskInstanceFields.get_templated_fields(key, session=session)
    if rendered is not None and (found := Fields.of(rendered)).is_known:
        return found
    dag = _dag(session, place.dag_id)
    if dag.has_task(place.task_id):
        written = Fields.of(_values(dag.get_task(place.task_id)))
        if written.is_known:
            return written
    step = (
        "look at a newer run, or raise [core] num_dag_runs_to_retain_rendered_fields"
        " and max_templated_field_length in Airflow's settings"
    )
    what = "the task's warehouse depends on its run, and Airflow no longer has the settings of this one"
    raise ConfigurationError(what, dag=place.dag_id, run=place.run_id, task=place.task_id, next_step=step)


def _dag(session: Session, dag_id: str) -> Any:
    dag = DBDagBag().get_latest_version_of_dag(dag_id, session=session)
    if dag is None:
        step = "look at the import errors on Airflow's home page"
        raise UnknownDagError("Airflow has no such DAG", dag=dag_id, next_step=step)
    return dag


def _values(task: Any) -> dict[str, Any]:
    if task.is_mapped:
        return dict(task.partial_kwargs)
    return {name: getattr(task, name, None) for name in _NAMES}


def _reports(dag_id: str) -> Select[Any]:
    """The addresses of reports that tasks of a DAG have left; those of tasks without a run are empty, and left out."""
    columns = XComModel.run_id, XComModel.task_id, XComModel.map_index, XComModel.value
    is_report = cast(XComModel.value, String).like("%/reports/%")
    return select(*columns, XComModel.dag_id).where(XComModel.dag_id == dag_id, XComModel.key == REPORT_KEY, is_report)


def _places(rows: Iterable[Any]) -> Iterable[Place]:
    for row in rows:
        found = job_and_run(_text(row.value))
        if found is not None:
            yield Place(row.dag_id, row.run_id, row.task_id, row.map_index, *found)


def _text(value: object) -> object:
    """A value as it was pushed: Airflow keeps it as JSON in a column of JSON."""
    try:
        return json.loads(value) if isinstance(value, str) else value
    except ValueError:
        return value
