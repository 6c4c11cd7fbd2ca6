"""Columns by the ids that Iceberg gives them: a name may have changed since a file was written, an id never does.

Source: the Iceberg specification, "Column Projection" and "Name Mapping Serialization".
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from statelib.columns.arrow_buffers import is_any_list
from statelib.ingest.values.types import storable, stored

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

_ID = b"PARQUET:field_id"


def id_of(field: pa.Field) -> int | None:
    """A field's id; None: it has none."""
    found = (field.metadata or {}).get(_ID)
    return None if found is None else int(found)


def plain(wanted: pa.Schema) -> pa.Schema:
    """The columns of a table as `by_field_ids` gives them."""
    return pa.schema([(field.name, storable(field.type) or pa.null()) for field in wanted])


def by_field_ids(
    rows: pa.RecordBatch, given: pa.Schema, wanted: pa.Schema, absent: Mapping[int, pa.Scalar]
) -> pa.RecordBatch:
    """Rows of a file as rows of the table, in the types of `plain`.

    Args:
        rows: The rows.
        given: Their columns, with ids.
        wanted: The table's columns, with ids.
        absent: By id, the value of a column that the file lacks; of all others it is null.

    Raises:
        ArrowException: A value does not fit the table's type.
    """
    types = plain(wanted)
    made = [
        stored(_column(rows.columns, list(given), field, absent, rows.num_rows), type_.type)
        for field, type_ in zip(wanted, types, strict=True)
    ]
    return pa.RecordBatch.from_arrays(made, schema=types)


def _column(
    arrays: Sequence[pa.Array], given: Sequence[pa.Field], wanted: pa.Field, absent: Mapping[int, pa.Scalar], count: int
) -> pa.Array:
    """A field among those of a file or of a struct, whatever it is called there."""
    number = id_of(wanted)
    assert number is not None  # noqa: S101 - the table's fields have ids
    for array, field in zip(arrays, given, strict=True):
        if id_of(field) == number:
            return _rearranged(array, field.type, wanted.type, absent)
    if number in absent:
        return pa.repeat(absent[number], count)
    return pa.nulls(count, storable(wanted.type) or pa.null())


def _rearranged(array: pa.Array, given: pa.DataType, wanted: pa.DataType, absent: Mapping[int, pa.Scalar]) -> pa.Array:
    """The same values, with the fields of their structs by ids; the types of plain values stay those of the file."""
    if pa.types.is_struct(wanted) and pa.types.is_struct(given):
        parts = [array.field(n) for n in range(given.num_fields)]
        made = [_column(parts, list(given), field, absent, len(array)) for field in wanted]
        fields = [pa.field(field.name, column.type) for field, column in zip(wanted, made, strict=True)]
        return pa.StructArray.from_arrays(made, fields=fields, mask=array.is_null()) if made else pa.nulls(len(array))
    if pa.types.is_map(wanted) and pa.types.is_map(given):
        keys = _rearranged(array.keys, given.key_type, wanted.key_type, absent)
        items = _rearranged(array.items, given.item_type, wanted.item_type, absent)
        entries = pa.StructArray.from_arrays([keys, items], names=["key", "value"])
        return _with_children(array, pa.map_(keys.type, items.type), entries)
    if is_any_list(wanted) and is_any_list(given):
        if pa.types.is_fixed_size_list(given):
            array = array.cast(pa.list_(given.value_type))
        items = _rearranged(array.values, given.value_type, wanted.value_type, absent)
        is_large = pa.types.is_large_list(array.type)
        return _with_children(array, pa.large_list(items.type) if is_large else pa.list_(items.type), items)
    return array


def _with_children(array: pa.Array, type_: pa.DataType, children: pa.Array) -> pa.Array:
    """The same lists of other items; a slice stays one."""
    return pa.Array.from_buffers(type_, len(array), array.buffers()[:2], array.null_count, array.offset, [children])


def with_mapped_ids(schema: pa.Schema, name_mapping: str | None) -> pa.Schema:
    """The columns of a file that has no ids, with those that a table's mapping gives their names.

    Args:
        schema: The file's.
        name_mapping: The mapping as JSON; None: the table has none, and no column of the file is known.
    """
    if name_mapping is None or any(id_of(field) is not None for field in schema):
        return schema
    return pa.schema(_mapped(list(schema), json.loads(name_mapping)))


def _mapped(fields: Iterable[pa.Field], mapping: Sequence[Mapping[str, Any]]) -> list[pa.Field]:
    known = {name: one for one in mapping for name in one["names"]}
    return [_mapped_field(field, known.get(field.name, {})) for field in fields]


def _mapped_field(field: pa.Field, mapped: Mapping[str, Any]) -> pa.Field:
    inner, type_ = mapped.get("fields", ()), field.type
    if pa.types.is_struct(type_):
        type_ = pa.struct(_mapped(list(type_), inner))
    elif pa.types.is_map(type_):
        key, value = _mapped([type_.key_field.with_name("key"), type_.item_field.with_name("value")], inner)
        type_ = pa.map_(key, value)
    elif is_any_list(type_):
        (item,) = _mapped([type_.value_field.with_name("element")], inner)
        type_ = pa.large_list(item) if pa.types.is_large_list(type_) else pa.list_(item)
    number = mapped.get("field-id")
    metadata = None if number is None else {_ID: str(number).encode()}
    return pa.field(field.name, type_, field.nullable, metadata)
