"""A column of what was computed for some rows only, as a column of all rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from statelib.arrow_buffers import bitmap_of

if TYPE_CHECKING:
    from numpy.typing import NDArray


def scatter(values: pa.Array, there: NDArray[np.bool_]) -> pa.Array:
    """One element for each of ``there``: the next of ``values`` where it is true, else null."""
    if len(values) == len(there):
        return values
    place = np.zeros(len(there), dtype=np.int64)
    place[there] = np.arange(len(values))
    places = pa.Array.from_buffers(pa.int64(), len(there), [bitmap_of(there), pa.py_buffer(place)])
    return _spread(values, places)


def _spread(values: pa.Array, places: pa.Int64Array) -> pa.Array:
    """The values at ``places``, null where those are; a struct's field by field, which Arrow takes longer for."""
    if not pa.types.is_struct(values.type) or not values.type.num_fields:
        return values.take(places)
    fields = [_spread(values.field(number), places) for number in range(values.type.num_fields)]
    null = places.is_null()
    if values.null_count:
        null = pc.or_kleene(null, values.is_null().take(places))
    return pa.StructArray.from_arrays(fields, fields=list(values.type), mask=null)
