"""Whether keys of several inputs can meet: keys are equal if their bytes are, and the bytes depend on the type.

Types may differ in what the bytes do not show: how Arrow lays values out (``string``, ``large_string`` and
``string_view``; a dictionary stands for its values), whether fields may be null, and the time zone of timestamps. All
else makes other bytes, or the same ones of another meaning: numbers of another width, timestamps of another unit, the
fields of a struct in another order, windows of another kind or size. Such keys would meet nobody, or the wrong ones,
and nobody would be told. (As with Kafka's serdes, where the types of both sides are the application's own affair.)

The type of no values at all (``null``) goes with any other.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from statelib.columns.windowed_type import WindowedType
from statelib.errors.kinds import ConfigurationError
from statelib.records.key_column import KeyColumn, WindowedKeys
from statelib.serdes import serde_for

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from statelib.records.batch import Batch

_ONE_TYPE = "let the mapper give one type: cast what it gives, or say which with per_record()"
"""The way round where one mapper gives now this type, now that."""


def type_form(of: pa.DataType) -> pa.DataType:
    """The type without what the bytes of its values do not show; two types with one form go together."""
    form = of
    if pa.types.is_dictionary(of):
        form = type_form(of.value_type)
    elif pa.types.is_large_string(of) or pa.types.is_string_view(of):
        form = pa.string()
    elif pa.types.is_large_binary(of) or pa.types.is_binary_view(of):
        form = pa.binary()
    elif pa.types.is_timestamp(of):
        form = pa.timestamp(of.unit)
    elif isinstance(of, WindowedType):
        form = WindowedType(type_form(of.key_type), of.windows)
    elif pa.types.is_struct(of):
        form = pa.struct([(field.name, type_form(field.type)) for field in of])
    elif pa.types.is_map(of):
        form = pa.map_(type_form(of.key_type), type_form(of.item_type))
    elif pa.types.is_list(of) or pa.types.is_large_list(of):
        form = pa.list_(type_form(of.value_type))
    return form


def go_together(one: pa.DataType, other: pa.DataType) -> bool:
    """Whether equal values of both types have equal bytes."""
    if one == other or pa.types.is_null(one) or pa.types.is_null(other):
        return True
    return bool(type_form(one) == type_form(other))


def check_types(one: pa.DataType, other: pa.DataType, *, node: str, what: str, way_round: str) -> None:
    """Looks whether what two inputs of a node have can meet.

    Args:
        one: The type of the one's keys, or values.
        other: That of the other's.
        node: The node's name.
        what: What is wrong if they cannot, with ``{}`` for both types.
        way_round: How one side comes to the other's type.

    Raises:
        ConfigurationError: They cannot.
    """
    if not go_together(one, other):
        step = f"{way_round}{_hint(one, other)}"
        raise ConfigurationError(what.format(one, other), node=node, next_step=step)


def with_keys_of_one_type(batches: Sequence[Batch]) -> list[Batch]:
    """Batches whose keys go together, with keys of one type: the first that is not ``null``."""
    wanted = _first([batch.keys.without_windows.type for batch in batches])
    return [
        batch if batch.keys.without_windows.type == wanted else replace(batch, keys=_of_type(batch.keys, wanted))
        for batch in batches
    ]


def _of_type(keys: KeyColumn, wanted: pa.DataType) -> KeyColumn:
    """The keys, those of windowed ones without their windows, as another type of the same bytes."""
    if not isinstance(keys, WindowedKeys):
        return KeyColumn(keys.plain.cast(wanted))
    inner = wanted.key_type if isinstance(wanted, WindowedType) else wanted
    return WindowedKeys(_of_type(keys.without_windows, inner), keys.windows, keys.kind, keys.code)


def with_values_of_one_type(batches: Sequence[Batch]) -> list[Batch]:
    """The same of values that go together."""
    values = of_one_type([batch.value for batch in batches])
    return [replace(batch, value=value) for batch, value in zip(batches, values, strict=True)]


def of_one_type(arrays: Sequence[pa.Array]) -> list[pa.Array]:
    """Arrays that go together, of one type: the first that is not ``null``."""
    wanted = _first([array.type for array in arrays])
    return [array if array.type == wanted else array.cast(wanted) for array in arrays]


def keys_of_rows(new: pa.Array, old: pa.Array, *, node: str, what: str) -> tuple[pa.Array, pa.Array, NDArray[np.bool_]]:
    """The keys that a mapper gives new and old rows, of one type; and which are the same: none where either is null.

    Raises:
        ConfigurationError: The types do not go together; ``what`` and ``node`` as of `check_types`.
    """
    check_types(new.type, old.type, node=node, what=what, way_round=_ONE_TYPE)
    new, old = of_one_type([new, old])
    serde = serde_for(new.type)
    same = pc.equal(serde.serialize(new), serde.serialize(old))
    return new, old, np.asarray(pc.fill_null(same, False))


def _first(types: Sequence[pa.DataType]) -> pa.DataType:
    return next((of for of in types if not pa.types.is_null(of)), types[0])


def _hint(one: pa.DataType, other: pa.DataType) -> str:
    """What is different where that is hard to see."""
    if not (pa.types.is_struct(one) and pa.types.is_struct(other)) or one == other:
        return ""
    fields = [{field.name: type_form(field.type) for field in of} for of in (one, other)]
    if fields[0] != fields[1]:
        return ""
    return f"; the fields are the same in another order: bring them into the order {', '.join(fields[1])}"
