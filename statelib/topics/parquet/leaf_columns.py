"""The Parquet columns that an Arrow column is stored as, such as ``value.amount`` or ``headers.list.element.key``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Iterator


def leaf_columns(schema: pa.Schema) -> list[str]:
    """The names of the Parquet columns of ``schema``, such as ``value.amount`` or ``headers.list.element.key``."""
    return [leaf for field in schema for leaf in _leaves_of_type(field.name, field.type)]


def leaves(path: str, array: pa.Array) -> Iterator[tuple[str, pa.Array | None]]:
    """The names of a column's Parquet columns, each with its values; those in lists and maps without."""
    if pa.types.is_struct(array.type):
        for field, values in zip(array.type, array.flatten(), strict=True):
            yield from leaves(f"{path}.{field.name}", values)
    elif pa.types.is_nested(array.type):
        yield from ((leaf, None) for leaf in _leaves_of_type(path, array.type))
    else:
        yield path, array


def _leaves_of_type(path: str, type_: pa.DataType) -> Iterator[str]:
    if pa.types.is_struct(type_):
        for field in type_:
            yield from _leaves_of_type(f"{path}.{field.name}", field.type)
    elif pa.types.is_map(type_):
        yield from _leaves_of_type(f"{path}.key_value.key", type_.key_type)
        yield from _leaves_of_type(f"{path}.key_value.value", type_.item_type)
    elif pa.types.is_list(type_):
        yield from _leaves_of_type(f"{path}.list.element", type_.value_type)
    else:
        yield path
