"""What the templates of a job and its test say of a topic's fields: calls, values and results, as Python's text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hindstream.projects.shape import UNIT_MS
from hindstream.projects.source_text import (
    column_text,
    field_type,
    literal,
    mapper_text,
    number_of,
    sample,
    value_text,
)
from statelib.columns.windowed_type import is_windowed_struct

if TYPE_CHECKING:
    import pyarrow as pa

    from hindstream.projects.shape import Shape
    from hindstream.projects.source_text import FieldPath

_HISTORY_DAYS = 30
_ROWS_TESTED = 3
_RECORDS_TESTED = 4
"""Of the test of an aggregation: two that count, one that closes their window, one that is too late."""


def aggregation_texts(of: Shape) -> dict[str, Any]:
    """What the templates of an aggregation and its test have in the place of names, by these names."""
    size_ms, grace_ms = (n * UNIT_MS[unit] for n, unit in (of.window, of.grace))
    given: dict[FieldPath, Any] = (
        {} if of.group_by is None else {of.group_by: sample(field_type(of.group_by, of.value_type))}
    )
    ones = [dict(given) for _ in range(_RECORDS_TESTED)]
    number = of.number
    results: dict[str, Any] = {"records": 2}
    if number is not None:
        type_ = field_type(number, of.value_type)
        numbers = [number_of(type_, n) for n in (1, 3, 1, 3)]
        for one, value in zip(ones, numbers, strict=True):
            one[number] = value
        plain = [float(value) if "decimal" in str(type_) else value for value in numbers[:2]]
        results |= {"total": sum(plain), "largest": max(plain)}
    if of.id is not None and of.repeats:
        for n, one in enumerate(ones, 1):
            one[of.id] = sample(field_type(of.id, of.value_type), n)
    key = sample(of.key_type) if of.has_keys else None
    group: Any = "all" if of.group_by is None else given[of.group_by]
    if of.has_keys:
        group = sample(of.key_type.field("key").type) if is_windowed_struct(of.key_type) else key
    return {
        "window": f"{of.window[1]}={of.window[0]}",
        "grace": f"{of.grace[1]}={of.grace[0]}",
        "size_ms": size_ms,
        "closes_ms": size_ms + grace_ms,
        "deduplication": _once(of) if of.repeats else None,
        "grouping": _grouping(of),
        "number": None if number is None else mapper_text(number, of.value_type),
        "key": literal(key),
        "values": [_value(one, of) for one in ones],
        "results": literal(results),
        "group": literal(group),
    }


def deduplication_texts(of: Shape) -> dict[str, Any]:
    """As `aggregation_texts`, of a deduplication."""
    keys = [sample(of.key_type, n) if of.has_keys else None for n in (1, 2)]
    if of.id is not None:
        ids = [{of.id: sample(field_type(of.id, of.value_type), n)} for n in (1, 2)]
        call = _once(of)
        keys = [keys[0], keys[0]]
    elif of.has_keys:
        ids, call = [{}, {}], "deduplicate_by_key(timedelta(days=1)"
    else:  # what is the same in all is the same event
        ids = [{path: sample(field_type(path, of.value_type), n)} for n in (1, 2) for path in [_any_field(of)]]
        call = f"deduplicate({mapper_text(_any_field(of), of.value_type)}, timedelta(days=1)"
    return {
        "deduplication": call,
        "keys": [literal(key) for key in keys],
        "values": [_value(one, of) for one in ids],
        "column": None if of.id is None or "." in "".join(of.id) else column_text(of.id),
    }


def table_texts(of: Shape) -> dict[str, Any]:
    """As `aggregation_texts`, of a table's rows by category."""
    given: dict[FieldPath, Any] = {}
    if of.category is not None:
        given[of.category] = sample(field_type(of.category, of.value_type))
    ones = [dict(given) for _ in range(_ROWS_TESTED)]
    results: dict[str, Any] = {"rows": 1}
    if of.number is not None:
        type_ = field_type(of.number, of.value_type)
        numbers = [number_of(type_, n) for n in (1, 3, 5)]
        for one, value in zip(ones, numbers, strict=True):
            one[of.number] = value
        results["total"] = float(numbers[-1]) if "decimal" in str(type_) else numbers[-1]
    keys = [sample(of.key_type, n) for n in (1, 2)]
    grouping = _by_all("row") if of.category is None else f"group_by({mapper_text(of.category, of.value_type)})"
    return {
        "category": of.category,
        "history": f"{_HISTORY_DAYS} days",
        "history_days": _HISTORY_DAYS,
        "grouping": grouping,
        "number": None if of.number is None else mapper_text(of.number, of.value_type),
        "keys": [literal(key) for key in keys],
        "values": [_value(one, of) for one in ones],
        "results": literal(results),
        "group": literal("all" if of.category is None else given[of.category]),
    }


def _once(of: Shape) -> str:
    """The call that drops what has an id that came before, without its end."""
    assert of.id is not None  # noqa: S101 - asked for where there is one
    by = "deduplicate_by_key_value" if of.has_keys else "deduplicate"
    return f"{by}({mapper_text(of.id, of.value_type)}, timedelta(days=1)"


def _value(given: dict[FieldPath, Any], of: Shape) -> str:
    """A value for a test; never null, which would be a tombstone."""
    if given:
        return value_text(given)
    return literal(sample(of.value_type))


def _any_field(of: Shape) -> FieldPath:
    path: FieldPath = ()
    type_: pa.DataType = of.value_type
    while hasattr(type_, "names") and type_.names:
        path = (*path, type_.names[0])
        type_ = field_type(path, of.value_type)
    return path


def _grouping(of: Shape) -> str:
    if of.has_keys:
        return 'group_by("key.key")' if is_windowed_struct(of.key_type) else "group_by_key()"
    if of.group_by is not None:
        return f"group_by({mapper_text(of.group_by, of.value_type)})"
    return _by_all("value")


def _by_all(of: str) -> str:
    return f'group_by(per_record(lambda key, {of}: "all", pa.string()))'
