"""Arrow's types as Spark has them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from statelib.errors.kinds import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Callable

_SAME = {
    pa.bool_(), pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.float32(), pa.float64(), pa.string(), pa.binary(),
    pa.date32(), pa.null(),
}  # fmt: skip
_WIDER = {
    pa.uint8(): pa.int16(), pa.uint16(): pa.int32(), pa.uint32(): pa.int64(), pa.uint64(): pa.decimal128(20, 0),
    pa.float16(): pa.float32(), pa.large_string(): pa.string(), pa.string_view(): pa.string(),
    pa.large_binary(): pa.binary(), pa.binary_view(): pa.binary(), pa.date64(): pa.date32(),
    pa.time32("s"): pa.int32(), pa.time32("ms"): pa.int32(), pa.time64("us"): pa.int64(), pa.time64("ns"): pa.int64(),
}  # fmt: skip
_MOST_DIGITS = 38


def spark_schema(schema: pa.Schema) -> pa.Schema:
    """The same columns, of types that Spark reads.

    Raises:
        ConfigurationError: Spark has nothing for a type.
    """
    return pa.schema([pa.field(field.name, spark_type(field.type)) for field in schema])


def spark_type(arrow_type: pa.DataType) -> pa.DataType:
    """The type itself, or the next wider one that Spark has; times of day become their numbers.

    Raises:
        ConfigurationError: There is none.
    """
    if arrow_type in _SAME:
        return arrow_type
    if arrow_type in _WIDER:
        return _WIDER[arrow_type]
    for is_so, made in _OTHERS:
        if is_so(arrow_type):
            return made(arrow_type)
    raise ConfigurationError(f"Spark has no type for {arrow_type}", next_step="leave these columns out")


def spark_array(array: pa.Array, arrow_type: pa.DataType) -> pa.Array:
    """The values as `spark_type` has them."""
    if array.type == arrow_type:
        return array
    if pa.types.is_struct(array.type):
        children = [spark_array(child, field.type) for child, field in zip(array.flatten(), arrow_type, strict=True)]
        return pa.StructArray.from_arrays(children, fields=list(arrow_type), mask=array.is_null())
    return array.cast(arrow_type)


def _items(made: Callable[[pa.Field], pa.DataType]) -> Callable[[pa.DataType], pa.DataType]:
    return lambda arrow_type: made(pa.field("item", spark_type(arrow_type.value_type)))


_OTHERS: tuple[tuple[Callable[[pa.DataType], bool], Callable[[pa.DataType], pa.DataType]], ...] = (
    (pa.types.is_timestamp, lambda kind: pa.timestamp("us", kind.tz)),
    (pa.types.is_duration, lambda _: pa.duration("us")),
    (
        lambda kind: pa.types.is_decimal(kind) and kind.precision <= _MOST_DIGITS,
        lambda kind: pa.decimal128(kind.precision, kind.scale),
    ),
    (pa.types.is_fixed_size_binary, lambda _: pa.binary()),
    (pa.types.is_dictionary, lambda kind: spark_type(kind.value_type)),
    (
        pa.types.is_struct,
        lambda kind: pa.struct([pa.field(field.name, spark_type(field.type)) for field in kind]),
    ),
    (pa.types.is_map, lambda kind: pa.map_(spark_type(kind.key_type), spark_type(kind.item_type))),
    (lambda kind: pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind),
     _items(pa.list_)),
)  # fmt: skip
