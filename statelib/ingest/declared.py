"""What a load was asked for, as its record keeps it: the next one without options asks for the same."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, Any

from statelib.errors.kinds import ConfigurationError
from statelib.ingest.sources.find import absolute
from statelib.job.lake_topic import LakeTopic

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from statelib.serdes.schema_source import SchemaSource

IN_CODE = "in_code"
"""Names options that are code, such as a serde of one's own: what is not said must not be taken for the default."""

_SERDES = ("key_serde", "value_serde")
_REGISTRY = "registry"
_TUPLES = ("source", "value", "columns")


def declaration_of(topic: LakeTopic) -> dict[str, object]:
    """The options of a topic that have a value, as JSON data; of a registry its URL, of what is code the names only."""
    given: dict[str, Any] = {field.name: getattr(topic, field.name) for field in fields(topic)}
    given[IN_CODE] = [name for name in (*_SERDES, _REGISTRY) if _is_code(given[name])]
    given["source"] = [absolute(source) for source in topic.sources]
    given[_REGISTRY] = getattr(topic.registry, "url", None)
    given |= {name: given[name] if isinstance(given[name], str) else None for name in _SERDES}
    kept = {name: list(value) if isinstance(value, tuple) else value for name, value in given.items()}
    return {
        name: dict(value) if name == "types" else value for name, value in kept.items() if value not in (None, [], {})
    }


def _is_code(option: Any) -> bool:
    return option is not None and not isinstance(option, str) and getattr(option, "url", None) is None


def topic_declared(declaration: Mapping[str, Any], registry: Callable[[str], SchemaSource]) -> LakeTopic:
    """The inverse of `declaration_of`.

    Args:
        declaration: What that gave.
        registry: Opens the registry with a URL.

    Raises:
        ConfigurationError: The topic was declared with code, which is not kept.
    """
    if in_code := declaration.get(IN_CODE):
        what = f"the topic was loaded by a declaration in Python, whose {' and '.join(in_code)} no record of it keeps"
        step = "name the declaration: hindstream ingest FILE.py:NAME"
        raise ConfigurationError(what, topic=declaration["name"], next_step=step)
    given: dict[str, Any] = {
        name: tuple(value) if name in _TUPLES and isinstance(value, list) else value
        for name, value in declaration.items()
    }
    if _REGISTRY in given:
        given[_REGISTRY] = registry(given[_REGISTRY])
    return LakeTopic(**given)
