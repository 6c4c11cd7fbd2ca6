"""How many bytes values take when they are serialised, column by column.

Numbers, dates and times take their width, strings and bytes their length, null nothing: what Kafka's own serialisers
write. A struct takes the sum of its fields, a list that of its elements.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from statelib.arrow_buffers import valid_of

if TYPE_CHECKING:
    from numpy.typing import NDArray


def serialized_bytes(column: pa.Array) -> NDArray[np.int64]:
    """int64, the size of each value."""
    kind = column.type
    if pa.types.is_dictionary(kind):
        return serialized_bytes(column.dictionary_decode())
    if pa.types.is_struct(kind):
        fields = [serialized_bytes(field) for field in column.flatten()]
        return np.sum(fields, axis=0, dtype=np.int64) if fields else np.zeros(len(column), dtype=np.int64)
    if pa.types.is_map(kind):
        column = column.cast(pa.list_(pa.struct([("key", kind.key_type), ("value", kind.item_type)])))
        kind = column.type
    if pa.types.is_nested(kind):
        elements = serialized_bytes(pc.list_flatten(column))
        parents = np.asarray(pc.list_parent_indices(column))
        return np.bincount(parents, weights=elements, minlength=len(column)).astype(np.int64)
    if pa.types.is_null(kind):
        return np.zeros(len(column), dtype=np.int64)
    try:
        width: int | NDArray[np.int64] = max(1, kind.bit_width // 8)  # a boolean takes a byte
    except ValueError:  # of variable width
        width = np.asarray(pc.fill_null(pc.binary_length(column), 0))
    if column.null_count == 0:
        return np.full(len(column), width, dtype=np.int64)
    return valid_of(column) * np.int64(width)
