"""How many bytes values take when they are serialised, column by column.

Numbers, dates and times take their width, strings and bytes their length, null nothing: what Kafka's own serialisers
write. A struct takes the sum of its fields, a list that of its elements.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from statelib.columns.arrow_buffers import valid_of
from statelib.columns.lists import parents_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

_TWO_UNITS = r"[\x{10000}-\x{10FFFF}]"
"""The characters that are two units in UTF-16."""


def serialized_bytes(column: pa.Array) -> NDArray[np.int64]:
    """int64, the size of each value."""
    size = _size(column)
    return np.full(len(column), size, dtype=np.int64) if isinstance(size, int) else size


def kafka_header_sizes(headers: pa.Array) -> NDArray[np.int64]:
    """int64, what Kafka counts for the headers of each record that waits (``residentMemorySizeEstimate``).

    That is the UTF-16 units of their keys and the bytes of their values.

    Args:
        headers: Lists of structs of a key and a value.
    """
    keys, values = pc.list_flatten(headers).flatten()
    units = pc.add(pc.utf8_length(keys), pc.count_substring_regex(keys, _TWO_UNITS))
    sizes = np.asarray(units).astype(np.int64) + serialized_bytes(values)
    return np.bincount(parents_of(headers), weights=sizes, minlength=len(headers)).astype(np.int64)


def _size(column: pa.Array) -> int | NDArray[np.int64]:
    """As `serialized_bytes`, or one number if all have the same size."""
    kind = column.type
    if pa.types.is_dictionary(kind):
        return _size(column.dictionary_decode())
    if pa.types.is_struct(kind):
        return sum((_size(field) for field in column.flatten()), 0)
    if pa.types.is_map(kind):
        column = column.cast(pa.list_(pa.struct([("key", kind.key_type), ("value", kind.item_type)])))
        kind = column.type
    if pa.types.is_nested(kind):
        elements = serialized_bytes(pc.list_flatten(column))
        return np.bincount(parents_of(column), weights=elements, minlength=len(column)).astype(np.int64)
    if pa.types.is_null(kind):
        return 0
    try:
        width = max(1, kind.bit_width // 8)  # a boolean takes a byte
    except ValueError:  # of variable width
        return np.asarray(pc.fill_null(pc.binary_length(column), 0)).astype(np.int64)
    return valid_of(column) * np.int64(width) if column.null_count else width
