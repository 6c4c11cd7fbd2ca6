"""What may become of the values of a topic while it grows, and reading what was written before and after as one type.

=========================  ==================================================================================
a field                    in the topic
=========================  ==================================================================================
is new                     null in all records before it
is missing                 stays, and is null in the new records
stands elsewhere           stays where it is: fields are told apart by their names
holds wider numbers        becomes as wide, if one type of numbers has both without loss: see `_wider`
has had nothing but nulls  becomes what it is
is anything else           cannot be: the topic is refused, with the field's name
=========================  ==================================================================================

The same holds for the fields of structs, the elements of lists and the values of maps. Keys stay as they are: a key of
another type has other bytes, and so lies in another partition.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from statelib.columns.arrow_buffers import is_any_list, valid_of
from statelib.errors.kinds import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

_WIDER = (
    (pa.int8(), pa.int16(), pa.int32(), pa.int64()),
    (pa.float32(), pa.float64()),
)
"""Each type holds exactly what those before it hold."""

_IN_FLOATS = (pa.int8(), pa.int16())
IN_DOUBLES = (*_IN_FLOATS, pa.int32())
"""Integers that floating-point numbers hold."""

_DIGITS = {pa.int8(): 3, pa.int16(): 5, pa.int32(): 10, pa.int64(): 19}
_MOST_DIGITS = 38


class DoesNotFitError(ValueError):
    """A value cannot be read as the type that is wanted.

    Attributes:
        row: Where it is in the array.
        field: Its path.
        value: It, as text.
        wanted: The type.
    """

    def __init__(self, row: int, field: str, value: str, wanted: pa.DataType) -> None:
        super().__init__(f"{field} is {value}, which is no {wanted}")
        self.row = row


def united(
    old: pa.DataType, new: pa.DataType, field: str = "value", in_doubles: Collection[pa.DataType] = IN_DOUBLES
) -> pa.DataType:
    """The type of a topic of ``old`` values that takes ``new`` ones as well; ``old`` itself if it does.

    Args:
        old: The type of the values that there are.
        new: That of others.
        field: For the error.
        in_doubles: Types of integers that may become doubles.

    Raises:
        ConfigurationError: There is none; it names the field.
    """
    if new.equals(old) or pa.types.is_null(new):
        return old
    if pa.types.is_null(old):
        return new
    if pa.types.is_struct(old) and pa.types.is_struct(new):
        more = {inner.name: inner.type for inner in new}
        kept = [
            (inner.name, united(inner.type, more.pop(inner.name), f"{field}.{inner.name}", in_doubles))
            if inner.name in more
            else (inner.name, inner.type)
            for inner in old
        ]
        return pa.struct([*kept, *more.items()])
    if pa.types.is_list(old) and pa.types.is_list(new):
        return pa.list_(united(old.value_type, new.value_type, f"{field}[]", in_doubles))
    if pa.types.is_map(old) and pa.types.is_map(new) and old.key_type.equals(new.key_type):
        return pa.map_(old.key_type, united(old.item_type, new.item_type, f"{field}[]", in_doubles))
    wider = _wider(old, new, in_doubles)
    if wider is None:
        raise ConfigurationError(
            f"the topic archive's {field} is {old}, not {new}",
            field=field,
            next_step=f"bring it to {old}, or write to another topic",
        )
    return wider


def _wider(one: pa.DataType, other: pa.DataType, in_doubles: Collection[pa.DataType]) -> pa.DataType | None:
    """The type of numbers that holds all of both; None: no type does.

    Doubles hold integers of 32 bits, floats those of 16; decimals hold integers and other decimals as long as 38 digits
    do. It is what Delta calls type widening.
    """
    for types in _WIDER:
        if one in types and other in types:
            return max(one, other, key=types.index)
    for integer, floating in ((one, other), (other, one)):
        if integer in in_doubles and floating in _WIDER[1]:
            return floating if integer in _IN_FLOATS else pa.float64()
    if pa.types.is_decimal128(one) or pa.types.is_decimal128(other):
        return _decimal(one, other)
    return None


def _decimal(one: pa.DataType, other: pa.DataType) -> pa.DataType | None:
    """With the digits of both before the point and behind it."""
    if not all(pa.types.is_decimal128(kind) or kind in _DIGITS for kind in (one, other)):
        return None
    places = [
        (_DIGITS[kind], 0) if kind in _DIGITS else (kind.precision - kind.scale, kind.scale) for kind in (one, other)
    ]
    before, behind = (max(digits) for digits in zip(*places, strict=True))
    return pa.decimal128(before + behind, behind) if before + behind <= _MOST_DIGITS else None


def changes(old: pa.DataType, new: pa.DataType, field: str = "value") -> Iterator[str]:
    """What is different, in words: all that `united` allows, and of what it does not the name of the field."""
    if pa.types.is_struct(old) and pa.types.is_struct(new):
        before = {inner.name: inner.type for inner in old}
        now = {inner.name: inner.type for inner in new}
        for name in [*before, *(name for name in now if name not in before)]:
            path = f"{field}.{name}"
            if name not in now:
                yield f"{path} is gone"
            elif name not in before:
                yield f"{path} ({now[name]}) is new"
            else:
                yield from changes(before[name], now[name], path)
        if before.keys() == now.keys() and list(before) != list(now):
            yield f"the fields of {field} stand in another order"
    elif pa.types.is_list(old) and pa.types.is_list(new):
        yield from changes(old.value_type, new.value_type, f"{field}[]")
    elif pa.types.is_map(old) and pa.types.is_map(new) and old.key_type.equals(new.key_type):
        yield from changes(old.item_type, new.item_type, f"{field}[]")
    elif not old.equals(new):
        yield f"{field} was {old} and is {new}"


def still_has(old: pa.DataType, new: pa.DataType) -> bool:
    """Whether ``new`` values have all fields of ``old`` ones, of the same types; others may be new."""
    if pa.types.is_struct(old) and pa.types.is_struct(new):
        now = {inner.name: inner.type for inner in new}
        return all(inner.name in now and still_has(inner.type, now[inner.name]) for inner in old)
    if is_any_list(old) and is_any_list(new):
        return still_has(old.value_type, new.value_type)
    if pa.types.is_map(old) and pa.types.is_map(new):
        return still_has(old.key_type, new.key_type) and still_has(old.item_type, new.item_type)
    return bool(old.equals(new))


def unknown_fields(topic: pa.DataType, found: pa.DataType, field: str = "value") -> Iterator[str]:
    """The fields of ``found`` that ``topic`` has no place for; Arrow's cast leaves them out without a word."""
    if pa.types.is_struct(topic) and pa.types.is_struct(found):
        known = {inner.name: inner.type for inner in topic}
        for inner in found:
            path = f"{field}.{inner.name}"
            if inner.name not in known:
                yield path
            else:
                yield from unknown_fields(known[inner.name], inner.type, path)
    elif is_any_list(topic) and is_any_list(found):
        yield from unknown_fields(topic.value_type, found.value_type, f"{field}[]")
    elif pa.types.is_map(topic) and pa.types.is_map(found):
        yield from unknown_fields(topic.item_type, found.item_type, f"{field}[]")


def read_as(array: pa.Array, wanted: pa.DataType, field: str = "value") -> pa.Array:
    """The same values in another type: of a struct the fields that it has, null where the array has none.

    Args:
        array: Values of a type that `united` puts together with ``wanted``; wider numbers may be read as narrow ones.
        wanted: The type.
        field: For errors.

    Raises:
        DoesNotFitError: A number does not fit.
    """
    if array.type.equals(wanted):
        return array
    if pa.types.is_struct(array.type) and pa.types.is_struct(wanted):
        return _struct_as(array, wanted, field)
    if pa.types.is_list(array.type) and pa.types.is_list(wanted):
        items = read_as(_items(array), wanted.value_type, f"{field}[]")
        return pa.ListArray.from_arrays(_offsets(array), items, mask=array.is_null())
    if pa.types.is_map(array.type) and pa.types.is_map(wanted):
        first, last = array.offsets[0].as_py(), array.offsets[-1].as_py()
        keys, items = array.keys.slice(first, last - first), array.items.slice(first, last - first)
        values = read_as(items, wanted.item_type, f"{field}[]")
        return pa.MapArray.from_arrays(_offsets(array), keys, values, mask=array.is_null())
    return _number_as(array, wanted, field)


def _struct_as(array: pa.StructArray, wanted: pa.StructType, field: str) -> pa.StructArray:
    """A null struct's fields are null, as Parquet has them."""
    columns = dict(zip((inner.name for inner in array.type), array.flatten(), strict=True))
    made = [
        read_as(columns[inner.name], inner.type, f"{field}.{inner.name}")
        if inner.name in columns
        else pa.nulls(len(array), inner.type)
        for inner in wanted
    ]
    mask = pa.array(~valid_of(array)) if array.null_count else None
    return pa.StructArray.from_arrays(made, fields=list(wanted), mask=mask)


def _number_as(array: pa.Array, wanted: pa.DataType, field: str) -> pa.Array:
    try:
        made = array.cast(wanted, safe=not pa.types.is_floating(wanted))
    except pa.ArrowException:
        made = None
    if made is not None and (not pa.types.is_floating(wanted) or _is_same(array, made)):
        return made
    row = next(row for row in range(len(array)) if not _fits(array.slice(row, 1), wanted))
    raise DoesNotFitError(row, field, str(array[row].as_py()), wanted)


def _fits(array: pa.Array, wanted: pa.DataType) -> bool:
    try:
        return _is_same(array, array.cast(wanted, safe=not pa.types.is_floating(wanted)))
    except pa.ArrowException:
        return False


def _is_same(array: pa.Array, made: pa.Array) -> bool:
    """Whether numbers are what they were; NaN is."""
    back = made.cast(array.type, safe=False)
    if not pa.types.is_floating(array.type):
        return bool(back.equals(array))
    one, other = (np.asarray(pc.fill_null(numbers, 0.0)) for numbers in (array, back))
    return bool(np.array_equal(one, other, equal_nan=True))


def _items(array: pa.ListArray) -> pa.Array:
    first, last = array.offsets[0].as_py(), array.offsets[-1].as_py()
    return array.values.slice(first, last - first)


def _offsets(array: pa.ListArray | pa.MapArray) -> pa.Array:
    return pc.subtract(array.offsets, array.offsets[0])
