"""What stores with headers take and give (KIP-1271)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from statelib.errors.kinds import InputError
from statelib.records.batch import NO_TIMESTAMP
from statelib.serdes.single_values import as_struct

if TYPE_CHECKING:
    from collections.abc import Mapping

Headers: TypeAlias = "tuple[tuple[str, bytes | None], ...]"
"""Pairs of a name and bytes, in order; a name may come twice. As those of a `Record`."""


class ValueTimestampHeaders(NamedTuple):
    """A value, its timestamp in milliseconds, and headers (Kafka's ``ValueTimestampHeaders``)."""

    value: Any
    timestamp: int
    headers: Headers = ()

    @classmethod
    def make(cls, value: Any, timestamp: int, headers: Headers = ()) -> ValueTimestampHeaders | None:
        """All three, or None if there is no value."""
        return None if value is None else cls(value, timestamp, headers)


class AggregationWithHeaders(NamedTuple):
    """What a session has, and headers (Kafka's ``AggregationWithHeaders``)."""

    aggregation: Any
    headers: Headers = ()

    @classmethod
    def make(cls, aggregation: Any, headers: Headers = ()) -> AggregationWithHeaders | None:
        """Both, or None if there is no aggregation."""
        return None if aggregation is None else cls(aggregation, headers)


def kept(value: Any, store: str) -> tuple[Any, int]:
    """(what `WithHeadersSerde` writes, timestamp in ms) of what was given to ``put``; (None, `NO_TIMESTAMP`) of None.

    Raises:
        InputError: It has no headers, or the timestamp is negative.
    """
    given: ValueTimestampHeaders | None = _of_kind(value, ValueTimestampHeaders, store)
    if given is None or given.value is None:
        return None, NO_TIMESTAMP
    if given.timestamp < 0:
        raise InputError(f"timestamp {given.timestamp} is negative", store=store)
    return _together(given.value, given.headers), given.timestamp


def shown(found: Mapping[str, Any], timestamp: int) -> ValueTimestampHeaders:
    """What a reader gets of what `WithHeadersSerde` reads."""
    return ValueTimestampHeaders(found["value"], timestamp, _headers(found))


def kept_aggregation(value: Any, store: str) -> Any:
    """As `kept`, of a session, which has no timestamp."""
    given: AggregationWithHeaders | None = _of_kind(value, AggregationWithHeaders, store)
    return None if given is None or given.aggregation is None else _together(given.aggregation, given.headers)


def shown_aggregation(found: Mapping[str, Any] | None) -> AggregationWithHeaders | None:
    """As `shown`, of a session; None stays None."""
    return None if found is None else AggregationWithHeaders(found["value"], _headers(found))


def _together(value: Any, headers: Headers) -> dict[str, Any]:
    pairs = [{"key": name, "value": of} for name, of in headers]
    return {"value": as_struct(value), "headers": pairs}


def _headers(found: Mapping[str, Any]) -> Headers:
    return tuple((header["key"], header["value"]) for header in found["headers"] or ())


def _of_kind(value: Any, kind: type[Any], store: str) -> Any:
    if value is None or isinstance(value, kind):
        return value
    raise InputError(f"{value!r} has no headers", store=store, next_step=f"{kind.__name__}.make(...)")
