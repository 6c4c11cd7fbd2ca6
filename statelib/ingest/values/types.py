"""The types of a lake's fields: what an archive stores them as, and as what fields of text files are read.

Types that Delta has not become the next ones that hold the same values:

==========================================  ==========================================
in the file                                 in the archive
==========================================  ==========================================
unsigned integers of 8, 16, 32 bits         int16, int32, int64
unsigned integers of 64 bits                decimal(20, 0)
floating-point numbers of 16 bits           float32
timestamps in nanoseconds                   in microseconds: what is finer is cut off
times of day                                int32 or int64 since midnight, in the file's own unit
durations                                   int64 in the file's own unit
dictionaries, views, large and fixed sizes  their plain types
extension types                             what they are stored as
a struct without fields, nothing but nulls  left out until a file has more
==========================================  ==========================================

In CSV and JSON a number's text tells its type. A field that has ``1`` in one place and ``1.5`` in another holds
doubles; every other difference makes a row that cannot be read.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from statelib.columns.arrow_buffers import is_any_list
from statelib.errors.did_you_mean import did_you_mean
from statelib.errors.kinds import ConfigurationError
from statelib.topics.parquet.schema_changes import IN_DOUBLES, united

if TYPE_CHECKING:
    from collections.abc import Callable

_PLAIN = {
    pa.uint8(): pa.int16(), pa.uint16(): pa.int32(), pa.uint32(): pa.int64(), pa.uint64(): pa.decimal128(20, 0),
    pa.float16(): pa.float32(), pa.date64(): pa.date32(), pa.large_string(): pa.string(), pa.string_view(): pa.string(),
    pa.large_binary(): pa.binary(), pa.binary_view(): pa.binary(),
}  # fmt: skip
"""Types of a fixed layout that become others."""

_MOST_DIGITS = 38

_BY_NAME = {
    "bool": pa.bool_(), "boolean": pa.bool_(), "int": pa.int64(), "integer": pa.int32(), "bigint": pa.int64(),
    "long": pa.int64(), "int32": pa.int32(), "int64": pa.int64(), "float": pa.float32(), "float32": pa.float32(),
    "double": pa.float64(), "float64": pa.float64(), "string": pa.string(), "text": pa.string(), "date": pa.date32(),
    "timestamp": pa.timestamp("us", "UTC"), "timestamp_ntz": pa.timestamp("us"), "binary": pa.binary(),
}  # fmt: skip
_DECIMAL = re.compile(r"decimal\((\d{1,2}),\s*(\d{1,2})\)")


def type_named(name: str) -> pa.DataType:
    """The type that an option names, such as ``double`` or ``decimal(10,2)``.

    Raises:
        ConfigurationError: There is no such type.
    """
    if found := _DECIMAL.fullmatch(name):
        digits, scale = int(found[1]), int(found[2])
        if 1 <= digits <= _MOST_DIGITS and scale <= digits:
            return pa.decimal128(digits, scale)
    if name.lower() not in _BY_NAME:
        step = did_you_mean(name, [*_BY_NAME, "decimal(DIGITS,SCALE)"], "one of:")
        raise ConfigurationError("there is no such type", type=name, next_step=step)
    return _BY_NAME[name.lower()]


def storable(type_: pa.DataType) -> pa.DataType | None:
    """The type in the archive of a field of a file; None: the field is left out. See the module's docstring."""
    if isinstance(type_, pa.BaseExtensionType):
        return storable(type_.storage_type)
    if pa.types.is_dictionary(type_):
        return storable(type_.value_type)
    if pa.types.is_struct(type_):
        fields = [(field.name, storable(field.type)) for field in type_]
        kept = [(name, inner) for name, inner in fields if inner is not None]
        return pa.struct(kept) if kept else None
    if pa.types.is_map(type_):
        item = storable(type_.item_type)
        key = storable(type_.key_type)
        return None if item is None or key is None else pa.map_(key, item)
    if is_any_list(type_) or _is_other_list(type_):
        inner = storable(type_.value_type)
        return None if inner is None else pa.list_(inner)
    return None if pa.types.is_null(type_) else _storable_scalar(type_)


def _is_other_list(type_: pa.DataType) -> bool:
    is_view = pa.types.is_list_view(type_) or pa.types.is_large_list_view(type_)
    return bool(is_view or pa.types.is_fixed_size_list(type_))


def _as_list(array: pa.Array) -> pa.ListArray:
    """Arrow casts views of lists wrongly."""
    lengths = pc.list_value_length(array).fill_null(0).to_numpy(zero_copy_only=False)
    offsets = np.concatenate([np.zeros(1, np.int32), np.cumsum(lengths, dtype=np.int32)])
    mask = array.is_null() if array.null_count else None
    return pa.ListArray.from_arrays(pa.array(offsets), array.flatten(), mask=mask)


def _storable_scalar(type_: pa.DataType) -> pa.DataType:
    if pa.types.is_timestamp(type_):
        return pa.timestamp("us", "UTC" if type_.tz else None)
    if pa.types.is_decimal(type_) and type_.precision <= _MOST_DIGITS:
        return pa.decimal128(type_.precision, type_.scale)
    if pa.types.is_fixed_size_binary(type_):
        return pa.binary()
    if pa.types.is_time(type_) or pa.types.is_duration(type_):
        return pa.int32() if pa.types.is_time32(type_) else pa.int64()
    return _PLAIN.get(type_, type_)


def stored(array: pa.Array, wanted: pa.DataType) -> pa.Array:  # noqa: PLR0911 - one for each kind
    """A field's values in the type that `storable` gives, or in a wider one that files were united to."""
    if array.type.equals(wanted):
        return array
    if isinstance(array, pa.ExtensionArray):
        return stored(array.storage, wanted)
    if pa.types.is_dictionary(array.type):
        return stored(array.dictionary_decode(), wanted)
    if pa.types.is_struct(array.type) and pa.types.is_struct(wanted):
        return _struct(array, wanted)
    if _is_other_list(array.type):
        return stored(_as_list(array), wanted)
    if is_any_list(array.type) and not pa.types.is_map(array.type) and pa.types.is_list(wanted):
        plain = array.cast(pa.list_(array.type.value_type))
        return _list(plain, lambda items: stored(items, wanted.value_type))
    if pa.types.is_map(array.type) and pa.types.is_map(wanted):
        return _map(array, wanted)
    return _scalar(array, wanted)


def _scalar(array: pa.Array, wanted: pa.DataType) -> pa.Array:
    if pa.types.is_null(wanted):
        if array.null_count < len(array):
            raise pa.ArrowInvalid(f"there are values of type {array.type}")
        return pa.nulls(len(array))
    is_cut_off = pa.types.is_timestamp(array.type) and array.type.unit == "ns"
    return array.cast(wanted, safe=not is_cut_off)


def _struct(array: pa.StructArray, wanted: pa.StructType) -> pa.StructArray:
    columns = dict(zip((field.name for field in array.type), array.flatten(), strict=True))
    made = [
        stored(columns[field.name], field.type) if field.name in columns else pa.nulls(len(array), field.type)
        for field in wanted
    ]
    return pa.StructArray.from_arrays(made, fields=list(wanted), mask=array.is_null() if array.null_count else None)


def _list(array: pa.ListArray, of_items: Callable[[pa.Array], pa.Array]) -> pa.ListArray:
    mask = array.is_null() if array.null_count else None
    if array.offset:
        array = pa.concat_arrays([array, array.slice(0, 0)])  # a list with a mask may not be a slice
        mask = array.is_null() if array.null_count else None
    return pa.ListArray.from_arrays(array.offsets, of_items(array.values), mask=mask)


def _map(array: pa.MapArray, wanted: pa.MapType) -> pa.MapArray:
    if array.offset:
        array = pa.concat_arrays([array, array.slice(0, 0)])
    mask = array.is_null() if array.null_count else None
    keys, items = stored(array.keys, wanted.key_type), stored(array.items, wanted.item_type)
    return pa.MapArray.from_arrays(array.offsets, keys, items, mask=mask)


def united_text(old: pa.DataType, new: pa.DataType, field: str) -> pa.DataType:
    """The type of a field of CSV or JSON that was read as ``old`` in one place and as ``new`` in another.

    Raises:
        ConfigurationError: There is none; it names the field.
    """
    return united(old, new, field, (*IN_DOUBLES, pa.int64()))


def grown(known: pa.DataType, found: pa.DataType) -> pa.DataType:
    """A type that stays what it is, with the fields of structs that it has not had yet."""
    if pa.types.is_null(known):
        return found
    if pa.types.is_struct(known) and pa.types.is_struct(found):
        more = {inner.name: inner.type for inner in found}
        kept = [
            (inner.name, grown(inner.type, more.pop(inner.name)) if inner.name in more else inner.type)
            for inner in known
        ]
        return pa.struct([*kept, *more.items()])
    if pa.types.is_list(known) and pa.types.is_list(found):
        return pa.list_(grown(known.value_type, found.value_type))
    return known
