"""Who takes events over HTTP, and says whether they are as OpenLineage's specification wants them."""

from __future__ import annotations

import inspect
import json
import os
import pkgutil
from contextlib import contextmanager
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib import import_module
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Any

from jsonschema import Draft202012Validator, FormatChecker
from openlineage.client import event_v2, facet_v2
from referencing import Registry, Resource

if TYPE_CHECKING:
    from collections.abc import Iterator

Event = dict[str, Any]

SPECIFICATION = os.environ.pop("HINDSTREAM_OPENLINEAGE_SPEC", None)  # of our own settings, commands know each
"""The folder ``spec`` of OpenLineage's repository; without it, events are held against the classes of its client."""


@contextmanager
def receiver(monkeypatch: Any, status: int = 201) -> Iterator[list[Event]]:
    """Collects what the client of this process sends."""
    events: list[Event] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            assert self.path == "/api/v1/lineage"
            events.append(json.loads(body))
            self.send_response(status)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    Thread(target=server.serve_forever, daemon=True).start()
    monkeypatch.setenv(
        "OPENLINEAGE__TRANSPORT", json.dumps({"type": "http", "url": f"http://127.0.0.1:{server.server_port}"})
    )
    try:
        yield events
    finally:
        server.shutdown()
        server.server_close()


def errors_of(event: Event) -> list[str]:
    """What is wrong with an event."""
    parts = [(event["schemaURL"], event), *((facet["_schemaURL"], facet) for facet in facets_of(event))]
    if SPECIFICATION:
        schemas = _schemas(SPECIFICATION)
        return [
            f"{error.json_path}: {error.message}"
            for url, part in parts
            for error in Draft202012Validator(
                {"$ref": url}, registry=schemas, format_checker=FormatChecker()
            ).iter_errors(part)
        ]
    return [error for url, part in parts if (error := _error_of_class(url, part))]


def facets_of(event: Event) -> list[dict[str, Any]]:
    """All facets of an event."""
    of_data = [
        data.get(kind, {})
        for data in event["inputs"] + event["outputs"]
        for kind in ("facets", "inputFacets", "outputFacets")
    ]
    return [facet for facets in (event["run"]["facets"], event["job"]["facets"], *of_data) for facet in facets.values()]


@cache
def _schemas(folder: str) -> Registry:
    texts = [path.read_text(encoding="utf-8") for path in Path(folder).rglob("*.json")]
    found = [json.loads(text) for text in texts if '"$id"' in text]
    return Registry().with_resources((schema["$id"], Resource.from_contents(schema)) for schema in found)


@cache
def _classes() -> dict[str, type]:
    """The client's class of each schema, of which it was generated."""
    package = import_module("openlineage.client.generated")
    modules = [import_module(f"{package.__name__}.{found.name}") for found in pkgutil.iter_modules(package.__path__)]
    classes = [of for module in (event_v2, facet_v2, *modules) for _, of in inspect.getmembers(module, inspect.isclass)]
    return {of._get_schema(): of for of in classes if "_get_schema" in vars(of)}


def _error_of_class(url: str, part: dict[str, Any]) -> str | None:
    if url.endswith("#/$defs/RunFacet"):
        return None  # our own, of which the schema says nothing
    if url not in _classes():
        return f"there is no schema {url}"
    known = {name: value for name, value in part.items() if name not in {"schemaURL", "_schemaURL", "_producer"}}
    try:
        _classes()[url](**known)
    except (TypeError, ValueError) as error:
        return f"{url}: {error}"
    return None
