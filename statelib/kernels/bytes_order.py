"""Bytewise order of keys inside kernels: the order of RocksDB and of Kafka's ``Bytes``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from statelib.kernels.compiled import Bytes, compiled, helper, i64

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


@helper
def compare(data: NDArray[np.uint8], a_start: int, a_end: int, b_start: int, b_end: int) -> int:
    """Compares two byte strings of ``data`` (unsigned bytes, a prefix comes first): below, equal to or above 0."""
    a_length = a_end - a_start
    b_length = b_end - b_start
    for i in range(min(a_length, b_length)):
        difference: int = i64(data[a_start + i]) - i64(data[b_start + i])
        if difference != 0:
            return difference
    return a_length - b_length


@compiled(i64(Bytes, i64, i64, i64, i64))
def compare_bytes(data: NDArray[np.uint8], a_start: int, a_end: int, b_start: int, b_end: int) -> int:
    """`compare`, to be called from Python."""
    return compare(data, a_start, a_end, b_start, b_end)
