"""The plug-in of Airflow: a tab beside each DAG and each of its runs. The entry point ``airflow.plugins``.

Airflow imports this in each of its processes, those of tasks too. What it shows is imported with the first request.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from airflow.sdk.plugins_manager import AirflowPlugin

from hindstream.airflow.links import DAG_TAB, PREFIX, RUN_TAB

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, MutableMapping

    Scope = MutableMapping[str, Any]
    Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
    Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]


class Page:
    """`hindstream.airflow.page.app`, loaded when it is first asked for something."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers a request (ASGI)."""
        app = await asyncio.to_thread(_app)  # what it imports takes too long for a loop that serves others
        await app(scope, receive, send)


def _app() -> Any:
    from hindstream.airflow.page.app import app  # noqa: PLC0415

    return app


class HindstreamPlugin(AirflowPlugin):
    """The tabs, and the pages in them."""

    name = "hindstream"
    fastapi_apps = [  # noqa: RUF012 - as Airflow declares it
        {"name": "Hindstream", "app": Page(), "url_prefix": f"/{PREFIX}"}
    ]
    external_views = [  # noqa: RUF012
        {
            "name": "Hindstream",
            "href": f"{PREFIX}/dags/{{DAG_ID}}",
            "destination": "dag",
            "url_route": DAG_TAB,
            "icon": f"{PREFIX}/icon.svg",
        },
        {
            "name": "Hindstream",
            "href": f"{PREFIX}/dags/{{DAG_ID}}/runs/{{RUN_ID}}",
            "destination": "dag_run",
            "url_route": RUN_TAB,
            "icon": f"{PREFIX}/icon.svg",
        },
    ]
