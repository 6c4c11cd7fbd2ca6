"""What Arrow's JSON reader lacks: bytes, which are base64, dates and times of day, and maps, objects with any names.

A document's maps become lists of pairs before Arrow reads it, and maps again afterwards.
"""

from __future__ import annotations

import base64
import binascii
import datetime as dt
from typing import Any

import pyarrow as pa

from statelib.serdes.spans import list_offsets


def readable(arrow_type: pa.DataType) -> pa.DataType:
    """The type that Arrow reads instead."""
    if _is_bytes(arrow_type) or pa.types.is_date(arrow_type) or pa.types.is_time(arrow_type):
        return pa.string()
    if pa.types.is_map(arrow_type):
        return pa.list_(pa.struct([("key", pa.string()), ("value", readable(arrow_type.item_type))]))
    if pa.types.is_struct(arrow_type):
        fields = [field.with_type(readable(field.type)) for field in arrow_type]
        return arrow_type if fields == list(arrow_type) else pa.struct(fields)
    if _is_list(arrow_type):
        items = readable(arrow_type.value_type)
        return arrow_type if items == arrow_type.value_type else pa.list_(items)
    return arrow_type


def has_map(arrow_type: pa.DataType) -> bool:
    """Whether there is a map in it."""
    if pa.types.is_struct(arrow_type):
        return any(has_map(field.type) for field in arrow_type)
    return pa.types.is_map(arrow_type) or (_is_list(arrow_type) and has_map(arrow_type.value_type))


def with_pairs(value: Any, arrow_type: pa.DataType) -> Any:
    """A document's data with pairs for maps; what is not of the type is left to the reader."""
    if isinstance(value, dict) and pa.types.is_map(arrow_type):
        return [{"key": key, "value": with_pairs(item, arrow_type.item_type)} for key, item in value.items()]
    if isinstance(value, dict) and pa.types.is_struct(arrow_type):
        known = {field.name: field.type for field in arrow_type}
        return {name: with_pairs(item, known[name]) for name, item in value.items() if name in known}
    if isinstance(value, list) and pa.types.is_map(arrow_type):
        raise ValueError("an array where an object is due")
    if isinstance(value, list) and _is_list(arrow_type):
        return [with_pairs(item, arrow_type.value_type) for item in value]
    return value


def with_objects(value: Any, arrow_type: pa.DataType) -> Any:
    """Arrow's data with an object for each map."""
    if value is None:
        return None
    if pa.types.is_map(arrow_type):
        return {str(key): with_objects(item, arrow_type.item_type) for key, item in value}
    if pa.types.is_struct(arrow_type):
        return {field.name: with_objects(value[field.name], field.type) for field in arrow_type}
    if _is_list(arrow_type):
        return [with_objects(item, arrow_type.value_type) for item in value]
    return value


def restored(array: pa.Array, arrow_type: pa.DataType) -> pa.Array:  # noqa: PLR0911 - one for each kind
    """What Arrow has read, as the type that it was to be.

    Raises:
        ValueError: A text is not base64, no date or time; a map's name is no key of its type.
    """
    if array.type == arrow_type:
        return array
    if _is_bytes(arrow_type):
        return pa.array([None if text is None else _bytes(text) for text in array.to_pylist()], arrow_type)
    if pa.types.is_time(arrow_type):  # Arrow casts texts to all but these
        return pa.array(
            [None if text is None else dt.time.fromisoformat(text) for text in array.to_pylist()], arrow_type
        )
    mask = array.is_null() if array.null_count else None
    if pa.types.is_struct(arrow_type):
        columns = [restored(array.field(field.name), field.type) for field in arrow_type]
        return pa.StructArray.from_arrays(columns, fields=list(arrow_type), mask=mask)
    if pa.types.is_map(arrow_type):
        pairs = array.flatten()
        keys = pairs.field("key").cast(arrow_type.key_type)
        items = restored(pairs.field("value"), arrow_type.item_type)
        return pa.MapArray.from_arrays(_offsets(array), keys, items, type=arrow_type, mask=mask)
    if pa.types.is_list(arrow_type):
        items = restored(array.flatten(), arrow_type.value_type)
        return pa.ListArray.from_arrays(_offsets(array), items, type=arrow_type, mask=mask)
    return array.cast(arrow_type)


def _offsets(array: pa.ListArray) -> pa.Array:
    """Of lists without gaps, as `flatten` gives the items."""
    return list_offsets(array.value_lengths().fill_null(0).to_numpy())


def _bytes(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except binascii.Error as error:
        raise ValueError(f"bytes are base64: {error}") from None


def _is_bytes(arrow_type: pa.DataType) -> bool:
    return bool(
        pa.types.is_binary(arrow_type)
        or pa.types.is_large_binary(arrow_type)
        or pa.types.is_fixed_size_binary(arrow_type)
    )


def _is_list(arrow_type: pa.DataType) -> bool:
    return bool(pa.types.is_list(arrow_type) or pa.types.is_large_list(arrow_type))
