"""Whether events are as OpenLineage's specification wants them: its JSON schemas are in the folder `specification`."""

from __future__ import annotations

import json
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from jsonschema import Draft202012Validator, FormatChecker
from referencing import Registry, Resource

if TYPE_CHECKING:
    from collections.abc import Sequence

Event = dict[str, Any]

_SCHEMAS = Path(__file__).with_name("specification")
_FORMATS = FormatChecker()  # its own checks of these two need further packages


@_FORMATS.checks("date-time", raises=ValueError)
def _is_time(text: object) -> bool:
    return datetime.fromisoformat(str(text)).tzinfo is not None


@_FORMATS.checks("uri", raises=ValueError)
def _is_uri(text: object) -> bool:
    return bool(urlsplit(str(text)).scheme)


def check_specified(events: Sequence[Event]) -> None:
    """Fails if anything is wrong with any of ours; those of others have facets of their own."""
    errors = [error for event in events if _is_ours(event) for error in errors_of(event)]
    assert not errors, "\n".join(errors)


def events_of(file: Path) -> list[Event]:
    """What clients have written to a file; ours must be as specified."""
    events = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    check_specified(events)
    return events


def errors_of(event: Event) -> list[str]:
    """What is wrong with an event and its facets: each is held against the schema that it names."""
    parts = [(event["schemaURL"], event), *((facet["_schemaURL"], facet) for facet in _facets_of(event))]
    return [
        f"{url} {error.json_path}: {error.message}"
        for url, part in parts
        for error in Draft202012Validator({"$ref": url}, registry=_schemas(), format_checker=_FORMATS).iter_errors(part)
    ]


def _is_ours(event: Event) -> bool:
    return str(event["producer"]).startswith("pkg:pypi/hindstream@")


def _facets_of(event: Event) -> list[dict[str, Any]]:
    of_data = [
        data.get(kind, {})
        for data in event["inputs"] + event["outputs"]
        for kind in ("facets", "inputFacets", "outputFacets")
    ]
    return [facet for facets in (event["run"]["facets"], event["job"]["facets"], *of_data) for facet in facets.values()]


@cache
def _schemas() -> Registry:
    found = [json.loads(path.read_text(encoding="utf-8")) for path in _SCHEMAS.rglob("*.json")]
    return Registry().with_resources((schema["$id"], Resource.from_contents(schema)) for schema in found)
