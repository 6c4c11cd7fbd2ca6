"""Arrow types, values and paths of fields as the text of a Python program."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.types as pt

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

FieldPath = tuple[str, ...]
"""Fields from the value inwards; of a value that is no struct: none."""

_LONG = 100
"""Characters that stand on one line."""

_COLUMNS = frozenset({"headers", "key", "left", "right", "timestamp", "value", "window_end", "window_start"})
"""What a path begins with that is no field of the value."""


def type_text(type_: pa.DataType) -> str:
    """The call that makes a type: ``pa.struct([("id", pa.string())])``."""
    if pt.is_struct(type_):
        return f"pa.struct([{', '.join(f'({literal(field.name)}, {type_text(field.type)})' for field in type_)}])"
    if pt.is_map(type_):
        return f"pa.map_({type_text(type_.key_type)}, {type_text(type_.item_type)})"
    if pt.is_list(type_):
        return f"pa.list_({type_text(type_.value_type)})"
    if pt.is_timestamp(type_):
        return (
            f"pa.timestamp({literal(type_.unit)}, {literal(type_.tz)})"
            if type_.tz
            else f"pa.timestamp({literal(type_.unit)})"
        )
    if pt.is_decimal(type_):
        return f"pa.decimal128({type_.precision}, {type_.scale})"
    names = {"bool": "bool_", "double": "float64", "float": "float32", "date32[day]": "date32"}
    return f"pa.{names.get(str(type_), str(type_))}()"


def declared_type(type_: pa.DataType) -> str:
    """As `type_text`; of a struct that is long, a field a line."""
    text = type_text(type_)
    if not pt.is_struct(type_) or len(text) <= _LONG:
        return text
    fields = "".join(f"        ({literal(field.name)}, {type_text(field.type)}),\n" for field in type_)
    return f"pa.struct(\n    [\n{fields}    ]\n)"


def mapper_text(path: FieldPath, of_value: pa.DataType) -> str:
    """A mapper that gives a field of the value: a path where one can be written, else an expression.

    A decimal becomes a double, since there are no sums of decimals.
    """
    if not path:
        return f"{_expression(path)}.cast(pa.float64())" if pt.is_decimal(of_value) else literal("value")
    if pt.is_decimal(field_type(path, of_value)):
        return f"{_expression(path)}.cast(pa.float64())"
    if not all(path) or any("." in name for name in path):
        return _expression(path)
    return literal(".".join(("value", *path) if path[0] in _COLUMNS else path))


def column_text(path: FieldPath) -> str:
    """A field of the value as an expectation names it."""
    return literal(".".join(("value", *path)))


def field_type(path: FieldPath, of_value: pa.DataType) -> pa.DataType:
    """The type of a field of the value."""
    for name in path:
        of_value = of_value.field(name).type
    return of_value


def sample(type_: pa.DataType, number: int = 1) -> Any:
    """A value of a type as Python data; another one for another number, as far as it has others.

    Args:
        type_: The type.
        number: From 1 to 9.
    """
    if pt.is_struct(type_):
        return {field.name: sample(field.type, number) for field in type_}
    if pt.is_map(type_):
        return [(sample(type_.key_type, number), sample(type_.item_type, number))]
    if pt.is_list(type_):
        return [sample(type_.value_type, number)]
    for is_of_kind, value in _SAMPLES:
        if is_of_kind(type_):
            return value(type_, number)
    return number_of(type_, number)


def _time(type_: pa.DataType, number: int) -> datetime:
    return datetime(2024, 1, number, tzinfo=UTC if type_.tz else None)


_SAMPLES: tuple[tuple[Callable[[pa.DataType], bool], Callable[[pa.DataType, int], Any]], ...] = (
    (pt.is_timestamp, _time),
    (pt.is_boolean, lambda _, number: bool(number % 2)),
    (pt.is_date, lambda _, number: date(2024, 1, number)),
    (pt.is_string, lambda _, number: "abcdefghi"[number - 1]),
    (pt.is_binary, lambda _, number: b"abcdefghi"[number - 1 : number]),
)


def number_of(type_: pa.DataType, number: int) -> Any:
    """The number from 1 to 9 as a value of a numeric type; an eighth of it where a decimal has only digits behind."""
    if not pt.is_decimal(type_):
        return float(number) if pt.is_floating(type_) else number
    if type_.precision > type_.scale:
        return Decimal(number)
    tenth = 3  # digits that an eighth takes
    return Decimal(number) / 8 if type_.scale >= tenth and number < 8 else Decimal("0.5")  # noqa: PLR2004 - below 1


def value_text(fields: Mapping[FieldPath, Any]) -> str:
    """A value in which some fields are given, the others left out: null. Of the path of no names: the value."""
    if () in fields:
        return literal(fields[()])
    value: dict[str, Any] = {}
    for path, given in fields.items():
        inner = value
        for name in path[:-1]:
            inner = inner.setdefault(name, {})
        inner[path[-1]] = given
    return literal(value)


def literal(value: object) -> str:
    """The text of a value: of a struct, list or map, and of the types of `sample`."""
    if isinstance(value, dict):
        return f"{{{', '.join(f'{literal(name)}: {literal(inner)}' for name, inner in value.items())}}}"
    if isinstance(value, list):
        return f"[{', '.join(map(literal, value))}]"
    if isinstance(value, tuple):
        return f"({', '.join(map(literal, value))})"
    return _scalar(value)


def _scalar(value: object) -> str:
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)  # in double quotes; its escapes are Python's
    if isinstance(value, datetime):
        zone = ", tzinfo=UTC" if value.tzinfo else ""
        return f"datetime({value.year}, {value.month}, {value.day}{zone})"
    if isinstance(value, date):
        return f"date({value.year}, {value.month}, {value.day})"
    return f"Decimal({literal(str(value))})" if isinstance(value, Decimal) else repr(value)


def _expression(path: FieldPath) -> str:
    return f"pc.field({', '.join(map(literal, ('value', *path)))})"
