"""A column of what was computed for some rows only, as a column of all rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

if TYPE_CHECKING:
    from numpy.typing import NDArray


def scatter(values: pa.Array, there: NDArray[np.bool_]) -> pa.Array:
    """One element for each of ``there``: the next of ``values`` where it is true, else null."""
    return values if len(values) == len(there) else values.take(pa.array(np.cumsum(there) - 1, mask=~there))
