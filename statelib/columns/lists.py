"""Lists, and which of their rows each element is of."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

if TYPE_CHECKING:
    from numpy.typing import NDArray


def lengths_of(lists: pa.Array) -> NDArray[np.int64]:
    """int64, how many elements each row has; none, if it is null."""
    return np.asarray(pc.fill_null(pc.list_value_length(lists), 0)).astype(np.int64)


def parents_of(lists: pa.Array) -> NDArray[np.int64]:
    """int64, the row of each element of ``lists.flatten()``.

    That leaves out what lies behind a null row, as all of a fixed size have; Arrow's ``list_parent_indices`` does not.
    """
    return np.repeat(np.arange(len(lists)), lengths_of(lists))
