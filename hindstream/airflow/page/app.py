"""The pages beside DAGs, as an application below Airflow's: see `hindstream.airflow.plugin`.

::

    /dags/<dag>                                                 the report of the DAG's job, or a list of its jobs
    /dags/<dag>/runs/<run>                                      the report of the run's run, or a list
    /dags/<dag>/runs/<run>/tasks/<task>/<map index>/jobs/<job>/...  a file of the task's warehouse, at its path there

Who may see the runs of the DAG in Airflow, by its auth manager, may read reports and Data Docs of the job that the task
was about, and nothing else of the warehouse. Nothing is written. Pages lead to each other by relative addresses, which
stay below the task as they stay below the job in the warehouse.
"""

from __future__ import annotations

import logging
import re
from pathlib import Path
from typing import TYPE_CHECKING

from airflow.api_fastapi.auth.managers.models.resource_details import DagAccessEntity
from airflow.api_fastapi.core_api.security import requires_access_dag
from airflow.utils.session import create_session
from fastapi import Depends, FastAPI, HTTPException, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import RedirectResponse
from starlette.exceptions import HTTPException as AnyHTTPException

from hindstream.airflow.page.answers import HEADERS, Listed, failed, listed, said, streamed
from hindstream.airflow.page.places import Place, UnknownDagError, fields_of, jobs_of, place_at, places_of
from hindstream.airflow.page.warehouses import open_warehouse
from hindstream.report.layout import INDEX
from statelib.errors.kinds import HindstreamError
from statelib.storage.errors import ObjectNotFoundError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from statelib.storage import Storage

_READER = [Depends(requires_access_dag("GET", DagAccessEntity.RUN))]

_NAME = r"[A-Za-z0-9._=+@,:~-]+"
_SHOWN = re.compile(rf"(?:reports/(?P<page>[\w-]+)|great_expectations(?:/{_NAME})+)\.html")
"""What is shown of a job's folder; names have the characters that a store keeps."""

_FOUND = 302
_NOT_FOUND = 404
_UNREADABLE = 503

_log = logging.getLogger(__name__)

app = FastAPI(title="Hindstream", docs_url=None, redoc_url=None, openapi_url=None)


@app.get("/dags/{dag_id}", dependencies=_READER)
def show_dag(dag_id: str) -> Response:
    """The report of a DAG's job; a list, if it has several or none that has run."""
    with create_session() as session:
        jobs = [(job.reference, _by_name(job.newest(session, dag_id))) for job in jobs_of(session, dag_id)]
    found = [(reference, place) for reference, places in jobs for place in (places or (None,))]
    match found:
        case []:
            return _none(dag_id)
        case [(_, Place() as place)]:
            return RedirectResponse(_from_dag(place.page(INDEX)), status_code=_FOUND)
    rows = [_row(reference, place, _from_dag) for reference, place in found]
    if any(row.links for row in rows):
        return listed("Jobs", "The jobs of this DAG, each with its newest run.", rows)
    step = f"Trigger the DAG, here or by airflow dags trigger {dag_id}. If it has run, the logs say why."
    return listed("No runs yet", "No task of this DAG has made a run of its job.", rows, step)


@app.get("/dags/{dag_id}/runs/{run_id}", dependencies=_READER)
def show_run(dag_id: str, run_id: str) -> Response:
    """The report of what a DAG run has replayed; a list, if that were several runs or none."""
    with create_session() as session:
        found = places_of(session, dag_id, run_id)
        has_jobs = bool(found or jobs_of(session, dag_id))
    match found:
        case [] if not has_jobs:
            return _none(dag_id)
        case []:
            what = (
                "This DAG run has made no run of a job: its slice is not planned yet, or there was nothing to replay."
            )
            return listed("No run", what, (), "The log of its first task says which.")
        case [(_, place)]:
            return RedirectResponse(_from_run(place.page(place.run)), status_code=_FOUND)
    rows = [_row(reference, place, _from_run) for reference, place in found]
    return listed("Runs", "What this DAG run has replayed.", rows)


@app.get("/dags/{dag_id}/runs/{run_id}/tasks/{task_id}/{map_index}/jobs/{job}/{path:path}", dependencies=_READER)
def show_page(dag_id: str, run_id: str, task_id: str, map_index: int, job: str, path: str) -> Response:
    """A file of the job that a task instance was about."""
    shown = _SHOWN.fullmatch(path)
    with create_session() as session:
        place = place_at(session, dag_id, run_id, task_id, map_index) if shown is not None else None
        if shown is None or place is None or place.job != job or ".." in path.split("/"):
            raise HTTPException(_NOT_FOUND)
        fields = fields_of(session, place)
    warehouse = open_warehouse(dag_id, fields)
    try:
        return streamed(warehouse, f"jobs/{job}/{path}")
    except ObjectNotFoundError:
        return _not_written(warehouse, place, shown["page"], fields.job)


@app.get("/icon.svg")
def icon() -> Response:
    """The picture on the tabs."""
    return Response(Path(__file__).with_name("icon.svg").read_bytes(), media_type="image/svg+xml")


@app.middleware("http")
async def guard(request: Request, answer: Callable[[Request], Awaitable[Response]]) -> Response:
    """Every answer has the headers that keep a browser from running what it is shown."""
    response = await answer(request)
    response.headers.update(HEADERS)
    return response


@app.exception_handler(HindstreamError)
def not_readable(_: Request, error: Exception) -> Response:
    """Says why something cannot be read, and what comes next."""
    assert isinstance(error, HindstreamError)  # noqa: S101 - for the type
    _log.warning("a page cannot be shown: %s", error)
    return failed(error, status=_NOT_FOUND if isinstance(error, UnknownDagError) else _UNREADABLE)


@app.exception_handler(AnyHTTPException)
def refused(_: Request, error: Exception) -> Response:
    """Says why somebody is not shown something."""
    status = getattr(error, "status_code", _NOT_FOUND)
    return said(*_REFUSALS.get(status, _REFUSALS[_NOT_FOUND]), status=status)


@app.exception_handler(RequestValidationError)
def no_address(_: Request, __: Exception) -> Response:
    """An address that no page can have."""
    return said(*_REFUSALS[_NOT_FOUND], status=_NOT_FOUND)


_REFUSALS = {
    401: (
        "You are not logged in",
        "Airflow does not know who you are.",
        "Log in to Airflow, then load this again.",
    ),
    403: (
        "You may not see this",
        "You may not see the runs of this DAG in Airflow.",
        "Ask an administrator of Airflow for the permission to read the DAG and its runs.",
    ),
    405: ("Nothing is changed here", "Pages can only be looked at.", ""),
    _NOT_FOUND: ("There is no such page", "Neither a report nor Data Docs of this task has that address.", ""),
}


def _none(dag_id: str) -> Response:
    what = f"No task of {dag_id} is one of Hindstream's, so there is nothing to show."
    step = "Tasks that replay a job come from replay_dag, replay_task_group or the operators of hindstream.airflow."
    return listed("No jobs", what, (), step)


def _not_written(warehouse: Storage, place: Place, page: str | None, reference: str) -> Response:
    """Why a file is not there: the state of the run says it."""
    from hindstream.report.documents import load_run  # noqa: PLC0415 - few ask, and it imports the engine's documents

    if page is None:
        step = f"The next report phase writes them, or hindstream data-docs {reference}"
        return said("Not there", "The Data Docs of this run are not written yet, or expired.", step, status=_NOT_FOUND)
    run_id = place.run if page == INDEX else page
    try:
        status = load_run(warehouse, place.job, run_id).status
    except HindstreamError as error:
        return failed(error, status=_NOT_FOUND)
    what = f"Run {run_id} of {place.job} is {status}. No report has been written yet."
    step = f"Wait for the DAG run to end; if it has ended: hindstream report {reference}"
    return said("No report yet", what, step, status=_NOT_FOUND)


def _by_name(places: list[Place]) -> list[Place]:
    """One a job: its report is the same, whichever run leads there."""
    return list({place.job: place for place in places}.values())


def _row(reference: str, place: Place | None, address: Callable[[str], str]) -> Listed:
    if place is None:
        return Listed(reference, "", "no run yet")
    links = (("report of the job", address(place.page(INDEX))), ("of the run", address(place.page(place.run))))
    return Listed(reference, place.job, place.run, links)


def _from_dag(page: str) -> str:
    """A page's address as seen from that of a DAG. It is relative, since Airflow may be below a prefix."""
    return page.removeprefix("dags/")


def _from_run(page: str) -> str:
    """The same, as seen from that of a DAG run."""
    return f"../../{_from_dag(page)}"
