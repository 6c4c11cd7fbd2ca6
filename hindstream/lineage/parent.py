"""The run that has started this process, such as a task of Airflow: as a scheduler says it in the environment.

::

    OPENLINEAGE_PARENT_ID=<namespace>/<job>/<run id>        and OPENLINEAGE_ROOT_PARENT_ID, of the run above all
    OPENLINEAGE_CONTEXT={"parent": {"run": {"runId": ...}, "job": {"namespace": ..., "name": ...}, "root": ...}}

Source: what OpenLineage's integration of dbt reads; the macros of Airflow's provider give the first form.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, NamedTuple
from uuid import UUID

if TYPE_CHECKING:
    from collections.abc import Mapping


class RunName(NamedTuple):
    """A run of a job."""

    namespace: str
    job: str
    run_id: str


class Parent(NamedTuple):
    """The run above ours, and the one above all."""

    run: RunName
    root: RunName


def parent_of(environ: Mapping[str, str]) -> Parent | None:
    """What the environment says; None: nothing that can be understood."""
    context = _of_context(environ.get("OPENLINEAGE_CONTEXT", ""))
    if context is not None:
        return context
    run = _of_text(environ.get("OPENLINEAGE_PARENT_ID", ""))
    return None if run is None else Parent(run, _of_text(environ.get("OPENLINEAGE_ROOT_PARENT_ID", "")) or run)


def _of_text(text: str) -> RunName | None:
    namespace, _, rest = text.partition("/")
    job, _, run_id = rest.rpartition("/")
    return _checked(namespace, job, run_id)


def _of_context(text: str) -> Parent | None:
    try:
        parent = json.loads(text)["parent"]
        run = _checked(parent["job"]["namespace"], parent["job"]["name"], parent["run"]["runId"])
        above = parent.get("root")
        root = _checked(above["job"]["namespace"], above["job"]["name"], above["run"]["runId"]) if above else None
    except (ValueError, KeyError, TypeError, AttributeError):
        return None
    return None if run is None else Parent(run, root or run)


def _checked(namespace: object, job: object, run_id: object) -> RunName | None:
    try:
        uuid = UUID(str(run_id))
    except ValueError:
        return None
    return RunName(str(namespace), str(job), str(uuid)) if namespace and job else None
