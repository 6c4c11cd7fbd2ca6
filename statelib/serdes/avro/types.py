"""The Arrow type of an Avro schema: such as a topic archive can hold.

=====================================  ==============================================================================
Avro                                   Arrow
=====================================  ==============================================================================
boolean, int, long, float, double      bool, int32, int64, float, double
string, bytes, fixed                   string, binary, binary
enum                                   string
record, array, map                     struct, list, map<string, ...>
union of null and another type         that type; every Arrow field may be null
decimal                                decimal128(precision, scale); at most 38 digits
date                                   date32
timestamp-millis, -micros              timestamp[ms, UTC], timestamp[us, UTC]
local-timestamp-millis, -micros        timestamp[ms], timestamp[us]
(local-)timestamp-nanos                int64: nanoseconds since 1970
time-millis, time-micros               int32, int64: since midnight
uuid (of a string or a fixed)          string
=====================================  ==============================================================================

Delta tables have no times of day and no nanoseconds, so these stay numbers, as for Spark's ``from_avro``.
"""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, Any
from uuid import UUID

import pyarrow as pa

from statelib.errors.kinds import ConfigurationError
from statelib.serdes.avro.schema import (
    Array,
    Enum,
    Fixed,
    Map,
    NoDefault,
    Primitive,
    Record,
    Union,
    describe,
    nullable,
)

if TYPE_CHECKING:
    from statelib.serdes.avro.schema import Field, Logical, Node

_PRIMITIVES = {
    "null": pa.null(),
    "boolean": pa.bool_(),
    "int": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "bytes": pa.binary(),
    "string": pa.string(),
}
_LOGICAL = {
    "date": pa.date32(),
    "timestamp-millis": pa.timestamp("ms", "UTC"),
    "timestamp-micros": pa.timestamp("us", "UTC"),
    "local-timestamp-millis": pa.timestamp("ms"),
    "local-timestamp-micros": pa.timestamp("us"),
    "uuid": pa.string(),
}
_MOST_DIGITS = 38


def arrow_type_of(node: Node, path: str = "") -> pa.DataType:
    """The type of the module's table.

    Raises:
        ConfigurationError: A union of several types, a decimal of more than 38 digits.
    """
    node, _ = nullable(node)
    match node:
        case Primitive(kind, logical):
            return _logical_type(logical, path) or _PRIMITIVES[kind]
        case Fixed(_, _, logical):
            return _logical_type(logical, path) or pa.binary()
        case Enum():
            return pa.string()
        case Record(_, fields):
            types = [
                (item.names[0], arrow_type_of(item.type, f"{path}.{item.names[0]}".lstrip("."))) for item in fields
            ]
            return pa.struct(types)
        case Array(items):
            return pa.list_(arrow_type_of(items, f"{path}[]"))
        case Map(values):
            return pa.map_(pa.string(), arrow_type_of(values, f"{path}{{}}"))
        case Union():
            raise ConfigurationError(
                f"a column has one type, and the Avro schema has here a {describe(node)}",
                field=path or None,
                next_step="declare the schema with one of them (records with another are then not decoded), "
                "or without the field",
            )


def _logical_type(logical: Logical | None, path: str) -> pa.DataType | None:
    if logical is None:
        return None
    if logical.name != "decimal":
        return _LOGICAL.get(logical.name)
    if logical.precision > _MOST_DIGITS:
        raise ConfigurationError(
            f"a decimal has at most {_MOST_DIGITS} digits here, and the Avro schema has a {logical}",
            field=path or None,
            next_step="declare the schema without this logicalType: the field is then its bytes",
        )
    return pa.decimal128(logical.precision, logical.scale)


def default_of(field: Field) -> Any:
    """A field's default as Python data for Arrow.

    Raises:
        ConfigurationError: It does not fit the field's type.
    """
    try:
        return _default(field.type, field.default)
    except (AttributeError, TypeError, ValueError) as error:
        raise ConfigurationError(
            f"the default of a field of the Avro schema is no {describe(field.type)}: {error}",
            field=field.names[0],
            next_step="fix the default",
        ) from None


def _default(node: Node, value: Any) -> Any:
    one, has_null = nullable(node)
    if value is None:
        if has_null or one == Primitive("null"):
            return None
        raise ValueError("it is null")
    match one:
        case Record(_, fields):
            given = {item.names[0]: value.get(item.names[0], item.default) for item in fields}
            if NoDefault in given.values():
                raise ValueError(f"{describe(node)} lacks a field")
            return {item.names[0]: _default(item.type, given[item.names[0]]) for item in fields}
        case Array(items):
            return [_default(items, item) for item in value]
        case Map(values):
            return [(key, _default(values, item)) for key, item in value.items()]
        case Primitive("bytes", logical) | Fixed(_, _, logical):
            return _default_bytes(value.encode("latin-1"), logical)  # in JSON, characters of the same numbers
        case Enum(_, symbols) if value not in symbols:
            raise ValueError(f"{value!r} is no symbol")
        case Primitive("null"):
            raise ValueError(f"{value!r} is not null")
    return value


def _default_bytes(data: bytes, logical: Logical | None) -> Any:
    if logical is None:
        return data
    if logical.name == "decimal":
        whole = int.from_bytes(data, "big", signed=True)
        return Decimal(f"{whole}e-{logical.scale}")  # exact, where arithmetic would round to 28 digits
    return str(UUID(bytes=data))
