"""What an aggregation logs, and the rows that its log tells of."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from statelib.serdes import serde_for
from statelib.stores.stored_rows import stored_rows, stored_type, stored_value

if TYPE_CHECKING:
    from numpy.typing import NDArray


def states(walked: pa.StructArray, removed: NDArray[np.bool_]) -> pa.Array:
    """What a store keeps after each update of an aggregation; null where ``removed`` (empty: nowhere)."""
    values = stored_value(walked)
    return values.take(pa.array(np.arange(len(values)), mask=removed)) if len(removed) else values


def rows_of_values(values: pa.Array, row: pa.Schema) -> pa.Array:
    """The bytes of rows as windows have them, given the bytes of the values that are logged."""
    decoded = stored_rows(serde_for(stored_type(row)).deserialize(values), row)
    masked = pa.StructArray.from_arrays(decoded.flatten(), fields=list(row), mask=values.is_null())
    return serde_for(masked.type).serialize(masked)
