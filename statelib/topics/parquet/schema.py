"""The columns of a topic at rest.

==========  =======================================  ====================================================
column      Arrow type                               in the Delta table
==========  =======================================  ====================================================
offset      int64                                    long
timestamp   timestamp[ms, UTC]                       timestamp (its Parquet files may hold milliseconds)
key         any storable type                        its Delta type
value       any storable type, mostly struct;        its Delta type
            null is a tombstone
headers     list<struct<key: string, value: binary>>;  array<struct<key: string, value: binary>>
            not in a file whose records have none
partition   int32, not in the files                  integer, the partition column
==========  =======================================  ====================================================

Offset and timestamp come first because Delta keeps statistics of the first columns only.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import pyarrow as pa

from statelib.columns.arrow_buffers import is_any_list
from statelib.errors.kinds import ConfigurationError
from statelib.topics.parquet.schema_changes import unknown_fields
from statelib.topics.parquet.stored_keys import KEY, type_to_write

if TYPE_CHECKING:
    from collections.abc import Sequence

TIMESTAMP = pa.timestamp("ms", "UTC")
HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
HEADERS_COLUMN = "headers"
"""The column that a file may do without; to every reader of Delta a column that is missing in a file is null."""

_AS_THEY_ARE = frozenset({
    pa.bool_(), pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.float32(), pa.float64(),
    pa.string(), pa.binary(), pa.date32(),
})  # fmt: skip

_MOST_DEEP = 32
"""Delta's log is JSON, and its readers end at 128 brackets; a struct within another takes three."""


def topic_schema(key: pa.DataType, value: pa.DataType) -> pa.Schema:
    """The columns of a topic's files.

    Types that hold the same values as one of Delta's become that one: dictionaries their values, large and view types
    the plain ones, timestamps microseconds (in UTC where they have a time zone). All fields may be null.

    Raises:
        ConfigurationError: Delta cannot hold the type exactly (unsigned and 16-bit floating-point numbers, nanoseconds,
            times of day, ...), or a struct has no fields or two whose names differ in case only.
    """
    return pa.schema([
        ("offset", pa.int64()),
        ("timestamp", TIMESTAMP),
        ("key", _storable(key, "key")),
        ("value", _storable(value, "value")),
        ("headers", HEADERS),
    ])  # fmt: skip


def topic_schema_of(columns: pa.Schema) -> pa.Schema:
    """`topic_schema` of the types that the columns ``key`` and ``value`` have."""
    return topic_schema(columns.field("key").type, columns.field("value").type)


def _storable(type_: pa.DataType, path: str) -> pa.DataType:
    if path.count(".") > _MOST_DEEP:
        what = f"Delta's log does not hold types that are nested deeper than {_MOST_DEEP} times"
        step = "leave the field out: name the fields of the values"
        raise ConfigurationError(what, field=".".join(path.split(".")[:3]), next_step=step)
    if pa.types.is_map(type_):
        return pa.map_(_storable(type_.key_type, f"{path}.key"), _storable(type_.item_type, f"{path}.value"))
    if is_any_list(type_):
        return pa.list_(_storable(type_.value_type, f"{path}.element"))
    if pa.types.is_dictionary(type_):
        return _storable(type_.value_type, path)
    if pa.types.is_struct(type_) and type_.num_fields:
        if ended := [field.name for field in type_ if "\0" in field.name]:
            what = f"Delta cannot hold a field whose name has a zero byte: {ended[0]!r}"
            step = "rename it, or leave it out: name the fields of the values"
            raise ConfigurationError(what, field=path, next_step=step)
        twice = [name for name, count in Counter(field.name.lower() for field in type_).items() if count > 1]
        if not twice:
            return pa.struct([(field.name, _storable(field.type, f"{path}.{field.name}")) for field in type_])
        step = "rename one of them, or leave it out: name the fields of the values"
        raise ConfigurationError(f"Delta cannot tell two fields named {twice[0]} apart", field=path, next_step=step)
    scalar = _storable_scalar(type_)
    if scalar is None:
        step = "cast the field, for example to int64, string or timestamp[us]"
        raise ConfigurationError(f"a topic archive cannot hold {type_}", field=path, next_step=step)
    return scalar


def _storable_scalar(type_: pa.DataType) -> pa.DataType | None:
    """The type of Delta's that holds the same values; None: there is none."""
    if type_ in _AS_THEY_ARE or pa.types.is_decimal128(type_):
        return type_
    if pa.types.is_large_string(type_) or pa.types.is_string_view(type_):
        return pa.string()
    if pa.types.is_large_binary(type_) or pa.types.is_fixed_size_binary(type_) or pa.types.is_binary_view(type_):
        return pa.binary()
    if pa.types.is_timestamp(type_) and type_.unit != "ns":
        return pa.timestamp("us", "UTC" if type_.tz else None)
    return None


def conform(records: pa.RecordBatch | pa.Table, schema: pa.Schema) -> pa.Table:
    """The records with exactly the columns of ``schema``: put in order, cast without loss, what is missing is null.

    Headers may be missing, and fields of structs. Keys that are encoded as files can take them over stay so.

    Raises:
        ConfigurationError: A column is missing, a column or a field is unknown, or one does not fit its type.
    """
    names = records.schema.names
    unknown = sorted(set(names) - set(schema.names))
    missing = sorted(set(schema.names) - set(names) - {HEADERS_COLUMN})
    if unknown or missing:
        what = f"records for a topic archive have the columns {', '.join(names)}"
        raise ConfigurationError(what, missing=", ".join(missing) or None, unknown=", ".join(unknown) or None)
    columns = [
        _cast(records.column(field.name), field) if field.name in names else pa.nulls(records.num_rows, field.type)
        for field in schema
    ]
    return pa.Table.from_arrays(columns, names=schema.names)


def _cast(column: pa.Array | pa.ChunkedArray, field: pa.Field) -> pa.Array | pa.ChunkedArray:
    type_ = type_to_write(column.type, field.type) if field.name == KEY else field.type
    if column.type.equals(type_):
        return column
    if unknown := list(unknown_fields(field.type, column.type, field.name)):
        what = f"the topic archive has no place for {', '.join(unknown)}"
        step = "leave it out, or let the archive have it: TopicArchive.ensure with the new schema"
        raise ConfigurationError(what, column=field.name, next_step=step)
    try:
        return column.cast(type_)
    except pa.ArrowException as error:
        what = f"the column {field.name} does not fit the topic archive: {error}"
        step = f"make it {field.type}, or archive the topic anew with {column.type}"
        raise ConfigurationError(what, column=field.name, next_step=step) from error


def project(schema: pa.Schema, columns: Sequence[str]) -> pa.Schema:
    """The part of ``schema`` that ``columns`` name, in the schema's order.

    Args:
        schema: Columns of a topic.
        columns: Names; ``value.amount`` is only that field of the struct ``value``.

    Raises:
        ConfigurationError: There is no such column.
    """
    wanted = [name.split(".") for name in columns]
    return pa.schema(_project_fields(list(schema), wanted, ""))


def _project_fields(fields: list[pa.Field], wanted: list[list[str]], parent: str) -> list[pa.Field]:
    by_name = {field.name: field for field in fields}
    for path in wanted:
        if path[0] not in by_name or (path[1:] and not pa.types.is_struct(by_name[path[0]].type)):
            known = ", ".join(by_name)
            raise ConfigurationError(f"a topic has no column {parent}{'.'.join(path)}", next_step=f"use one of {known}")
    chosen = []
    for field in fields:
        inner = [path[1:] for path in wanted if path[0] == field.name]
        if inner and all(inner):
            within = _project_fields(list(field.type), inner, f"{parent}{field.name}.")
            chosen.append(field.with_type(pa.struct(within)))
        elif inner:
            chosen.append(field)
    return chosen
