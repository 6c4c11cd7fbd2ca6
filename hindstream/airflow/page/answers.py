"""What is answered to a browser: pages of our own, files of a warehouse, and what goes with each of them."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING

from fastapi import Response
from fastapi.responses import HTMLResponse, StreamingResponse

from hindstream.report.rendering import render

if TYPE_CHECKING:
    from collections.abc import Sequence

    from statelib.errors.kinds import HindstreamError
    from statelib.storage import Storage

HEADERS = {
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none';"
    " form-action 'none'; frame-ancestors 'self'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "private, no-store",
}
"""Whatever a page of a warehouse holds, a browser neither runs nor fetches it: it is shown where Airflow is at home."""


@dataclass(frozen=True, slots=True)
class Listed:
    """A line of a page that lists jobs.

    Attributes:
        reference: Where the job is, as in the DAG file.
        name: The job's; empty: not known yet.
        run: Its run, or why there is none.
        links: Texts and addresses.
    """

    reference: str
    name: str
    run: str
    links: Sequence[tuple[str, str]] = ()


def listed(title: str, what: str, jobs: Sequence[Listed], next_step: str = "") -> Response:
    """A page that lists jobs."""
    page = {"title": title, "what": what, "next_step": next_step, "jobs": jobs}
    return HTMLResponse(render("airflow.html.j2", page))


def said(title: str, what: str, next_step: str = "", *, status: int) -> Response:
    """A page that says why something else is not shown."""
    page = {"title": title, "what": what, "next_step": next_step, "jobs": ()}
    return HTMLResponse(render("airflow.html.j2", page), status_code=status)


def failed(error: HindstreamError, *, status: int) -> Response:
    """A page that says what has failed, where, and what comes next."""
    where = ", ".join(f"{name} {value}" for name, value in error.place.items())
    what = f"{_sentence(error.what)} ({where})." if where else f"{_sentence(error.what)}."
    return said("This cannot be shown", what, _sentence(error.next_step or ""), status=status)


def streamed(warehouse: Storage, path: str) -> Response:
    """An HTML file of a warehouse, part by part.

    Raises:
        ObjectNotFoundError: There is no such file.
    """
    parts = map(bytes, warehouse.chunks(path))
    first = next(parts, b"")  # before anything is answered: it may fail
    return StreamingResponse(chain([first], parts), media_type="text/html; charset=utf-8")


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]
