"""A column of what was computed for some rows only, as a column of all rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from statelib.columns.arrow_buffers import bitmap_of, taken

if TYPE_CHECKING:
    from numpy.typing import NDArray


def scatter(values: pa.Array, there: NDArray[np.bool_]) -> pa.Array:
    """One element for each of ``there``: the next of ``values`` where it is true, else null."""
    if len(values) == len(there):
        return values
    place = np.zeros(len(there), dtype=np.int64)
    place[there] = np.arange(len(values))
    places = pa.Array.from_buffers(pa.int64(), len(there), [bitmap_of(there), pa.py_buffer(place)])
    return taken(values, places)
