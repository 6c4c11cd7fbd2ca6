"""The logical types of the Open Data Contract Standard, and those of Arrow that hold such values."""

from __future__ import annotations

import pyarrow as pa

LOGICAL_TYPE = "expect_column_to_have_logical_type"
"""An expectation of our own: ``column`` of the archive holds values of ``logical_type``. It is answered by the plan."""

LOGICAL_TYPES = ("string", "date", "timestamp", "time", "number", "integer", "object", "array", "boolean", "map")
"""All but ``vector``, which no topic can hold as such."""


def logical_type(of: pa.DataType) -> str | None:  # noqa: PLR0911 - one for each
    """The logical type of values; None: bytes have none."""
    if pa.types.is_boolean(of):
        return "boolean"
    if pa.types.is_integer(of):
        return "integer"
    if pa.types.is_floating(of) or pa.types.is_decimal(of):
        return "number"
    if pa.types.is_string(of) or pa.types.is_large_string(of):
        return "string"
    if pa.types.is_date(of):
        return "date"
    if pa.types.is_timestamp(of):
        return "timestamp"
    if pa.types.is_struct(of):
        return "object"
    if pa.types.is_map(of):
        return "map"
    return "array" if pa.types.is_list(of) or pa.types.is_large_list(of) else None


def holds(of: pa.DataType, wanted: str) -> bool:
    """Whether all values of a type are of a logical one: a whole number is a number too, and bytes may be anything."""
    found = logical_type(of)
    return found is None or found == wanted or (found == "integer" and wanted == "number")


def type_at(schema: pa.Schema, column: str) -> pa.DataType | None:
    """The type of a column of a topic's archive, or of a field of a struct (``value.amount``); None: there is none."""
    of: pa.DataType = pa.struct([*schema, pa.field("partition", pa.int32())])
    for name in column.split("."):
        if not pa.types.is_struct(of) or (index := of.get_field_index(name)) < 0:
            return None
        of = of.field(index).type
    return of
