"""Where the rows of several sorted columns are in their merged order."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from statelib.kernels.compiled import Int64s, Int64sOut, compiled, i64, nothing

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

_NEVER = np.iinfo(np.int64).max
_PLACES = np.arange(1 << 17)
"""Those of a batch of the usual size, which mostly come from one column."""
_PLACES.flags.writeable = False


@compiled(nothing(Int64s, Int64s, Int64sOut, Int64sOut))
def _merge(
    times: NDArray[np.int64], ends: NDArray[np.int64], heads: NDArray[np.int64], rank: NDArray[np.int64]
) -> None:
    """Fills ``rank``; columns lie one after the other from ``heads``, which move, to ``ends``."""
    place: int = i64(0)
    while place < len(times):
        first: int = i64(-1)
        for column in range(len(ends)):
            if heads[column] < ends[column] and (first < 0 or times[heads[column]] < times[heads[first]]):
                first = column
        below = through = i64(_NEVER)  # the others come then: those before it already at the same time
        for column in range(len(ends)):
            if column != first and heads[column] < ends[column]:
                if column < first:
                    below = min(below, times[heads[column]])
                else:
                    through = min(through, times[heads[column]])
        row = heads[first]
        while True:  # runs are mostly long
            rank[row] = place
            place += 1
            row += 1
            if row == ends[first] or times[row] >= below or times[row] > through:
                break
        heads[first] = row


@compiled(nothing(Int64s, Int64s, Int64sOut))
def put_at(values: NDArray[np.int64], rank: NDArray[np.int64], column: NDArray[np.int64]) -> None:
    """Puts each value where its rank says."""
    for row in range(len(values)):
        column[rank[row]] = values[row]


def merge_ranks(columns: Sequence[NDArray[np.int64]]) -> list[NDArray[np.int64]]:
    """The places of all rows of ``columns`` (int64, ascending), from 0; of equal ones the earlier column is first.

    Returns:
        int64, as long as each column.
    """
    if sum(len(column) > 0 for column in columns) <= 1:
        return [_PLACES[: len(column)] if len(column) <= len(_PLACES) else np.arange(len(column)) for column in columns]
    bounds = np.cumsum([0, *(len(column) for column in columns)])
    rank = np.empty(bounds[-1], np.int64)
    _merge(np.concatenate(columns), bounds[1:], bounds[:-1].copy(), rank)
    return [rank[start:end] for start, end in pairwise(bounds)]
