"""What a load was asked for, as its record keeps it: the next one without options asks for the same."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, Any

from statelib.job.lake_topic import LakeTopic

if TYPE_CHECKING:
    from collections.abc import Mapping

_NOT_KEPT = ("key_serde",)
_TUPLES = ("source", "value")


def declaration_of(topic: LakeTopic) -> dict[str, object]:
    """The options of a topic that have a value, as JSON data; a serde for keys is code, and is not kept."""
    given = {field.name: getattr(topic, field.name) for field in fields(topic) if field.name not in _NOT_KEPT}
    kept = {name: list(value) if isinstance(value, tuple) else value for name, value in given.items()}
    return {
        name: dict(value) if name == "types" else value for name, value in kept.items() if value not in (None, [], {})
    }


def topic_declared(declaration: Mapping[str, Any]) -> LakeTopic:
    """The inverse of `declaration_of`."""
    given: dict[str, Any] = {
        name: tuple(value) if name in _TUPLES and isinstance(value, list) else value
        for name, value in declaration.items()
    }
    return LakeTopic(**given)
