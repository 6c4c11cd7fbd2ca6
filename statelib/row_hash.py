"""Rows of any type as 64-bit hashes: equal rows have equal ones, and different rows hardly ever."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from statelib.arrow_buffers import spans_of
from statelib.kernels.hashing import hash_spans
from statelib.row_format import encode_rows

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray


def hash_rows(columns: Sequence[pa.Array]) -> NDArray[np.uint64]:
    """uint64[n]: one hash for each row of ``columns``, all n values long.

    Null equals null, NaN equals NaN, and 0.0 equals -0.0. The hash of a row is the same in every process of a machine
    with the same byte order; it is for comparing, not for storing.
    """
    rows = pa.StructArray.from_arrays([_canonical(column) for column in columns], [str(n) for n in range(len(columns))])
    data, start, length = spans_of(encode_rows(rows))
    hashes = np.empty(len(rows), np.uint64)
    hash_spans(data, start, length, hashes)
    return hashes


def _canonical(column: pa.Array) -> pa.Array:
    """Floating-point numbers that are equal get equal bytes."""
    if not pa.types.is_floating(column.type):
        return column
    positive = pc.add(column, pa.scalar(0.0, column.type))  # -0.0 + 0.0 is 0.0
    return pc.if_else(pc.is_nan(positive), pa.scalar(float("nan"), column.type), positive)
