"""The functions of a recorded test as mappers, as the DSL here takes them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from statelib import per_record
from tests.peers.functions import Table, has_windowed_keys, results, type_or_string
from tests.peers.recording import WINDOWED_BOUNDS, plain

if TYPE_CHECKING:
    from collections.abc import Callable

    from statelib.operators.mappers.mapping import Mapper

Function = dict[str, Any]


def mapper(told: Function, type_: pa.DataType | None = None, of: Callable[[Any], Any] = plain) -> Mapper:
    """A function of a value, or of a key and a value.

    Args:
        told: It, as it was recorded.
        type_: The Arrow type of its results; None: as they show.
        of: What is made of a result.
    """
    table, made = Table(told, of), type_ or type_or_string(results(told))
    if told["type"] in {"ValueMapper", "Function"}:
        return per_record(table, made, "value")
    if has_windowed_keys(told):
        return per_record(lambda value, *key: table(_windowed(*key), value), made, "value", "key", *WINDOWED_BOUNDS)
    return per_record(table, made, "key", "value")


def predicate(told: Function) -> Mapper:
    """A ``Predicate``."""
    return mapper(told, pa.bool_())


def part(told: Function, number: int) -> Mapper:
    """The key (0), or the value (1), of what a function makes of a record."""

    def of(result: Any) -> Any:
        return None if result is None else plain(result["pair"][number])

    parts = [result["pair"][number] for result in results(told) if result]
    return mapper(told, type_or_string(parts), of)


def values(told: Function) -> Mapper:
    """A function that makes several values of one."""
    items = [item for result in results(told) if result for item in result["list"]]
    return mapper(told, pa.list_(type_or_string(items)), _items)


def records(told: Function) -> Mapper:
    """A function that makes several records of one."""
    pairs = [item["pair"] for result in results(told) if result for item in result["list"]]
    key, value = (type_or_string([pair[number] for pair in pairs]) for number in (0, 1))
    return mapper(told, pa.list_(pa.struct([("key", key), ("value", value)])), _pairs)


def joiner(told: Function) -> Mapper:
    """A ``ValueJoiner``, with or without the key."""
    columns = ("left", "right") if told["type"] == "ValueJoiner" else ("key", "left", "right")
    return per_record(Table(told), type_or_string(results(told)), *columns)


def topics(told: Function) -> list[str]:
    """Those that a ``TopicNameExtractor`` has chosen."""
    return list(dict.fromkeys(result for result in results(told) if result is not None)) or ["nothing-was-sent"]


def _windowed(key: Any, start: Any, end: Any) -> dict[str, Any]:
    return {"key": key, "window_start": start, "window_end": end}


def _items(told: Any) -> list[Any] | None:
    return None if told is None else [plain(item) for item in told["list"]]


def _pairs(told: Any) -> list[dict[str, Any]] | None:
    if told is None:
        return None
    return [{"key": plain(item["pair"][0]), "value": plain(item["pair"][1])} for item in told["list"]]
