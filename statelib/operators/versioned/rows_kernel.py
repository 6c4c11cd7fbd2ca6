"""Finds rows of a versioned store's segments among others, in order of key and segment."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from statelib.kernels.compiled import Int64s, Int64sOut, compiled, nothing

if TYPE_CHECKING:
    from numpy.typing import NDArray

NOT_FOUND = -1


@compiled(nothing(Int64s, Int64s, Int64s, Int64s, Int64sOut))
def _match(
    key: NDArray[np.int64],
    segment: NDArray[np.int64],
    among_key: NDArray[np.int64],
    among_segment: NDArray[np.int64],
    found: NDArray[np.int64],
) -> None:
    other = 0
    for row in range(len(key)):
        while other < len(among_key) and (
            among_key[other] < key[row] or (among_key[other] == key[row] and among_segment[other] < segment[row])
        ):
            other += 1
        if other < len(among_key) and among_key[other] == key[row] and among_segment[other] == segment[row]:
            found[row] = other
        else:
            found[row] = NOT_FOUND


def match_rows(
    key: NDArray[np.int64],
    segment: NDArray[np.int64],
    among_key: NDArray[np.int64],
    among_segment: NDArray[np.int64],
) -> NDArray[np.int64]:
    """Where each row is ``among`` others, or `NOT_FOUND`.

    Args:
        key: int64[n], ascending.
        segment: int64[n], ascending within a key.
        among_key: int64[m], as ``key``.
        among_segment: int64[m], as ``segment``.

    Returns:
        int64[n].
    """
    found = np.empty(len(key), np.int64)
    _match(key, segment, among_key, among_segment, found)
    return found
