"""Where the rows of several sorted tables are in their merged order, compared column by column."""

from __future__ import annotations

from typing import TYPE_CHECKING

from statelib.kernels.compiled import Int64s, Int64sOut, compiled, helper, i64, nothing

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


@helper
def _is_before(places: NDArray[np.int64], width: int, one: int, other: int, ties: bool) -> bool:
    """Whether a row comes before another one; ``ties``: where they are equal."""
    for column in range(width):
        left, right = places[one * width + column], places[other * width + column]
        if left != right:
            return bool(left < right)
    return ties


@compiled(nothing(Int64s, i64, Int64s, Int64sOut, Int64sOut))
def merge_places(
    places: NDArray[np.int64],
    width: int,
    ends: NDArray[np.int64],
    heads: NDArray[np.int64],
    rank: NDArray[np.int64],
) -> None:
    """Merges tables; of equal rows that of the earlier table comes first.

    Args:
        places: The rows of all tables, one after the other, each ``width`` numbers; ascending in each table.
        width: The number of columns.
        ends: By table, the row behind its last one.
        heads: By table, its first row; changes.
        rank: By row, its place in the merged order: the result.
    """
    place: int = i64(0)
    while place < len(rank):
        first = second = i64(-1)
        for table in range(len(ends)):
            if heads[table] == ends[table]:
                continue
            if first < 0 or _is_before(places, width, heads[table], heads[first], False):
                first, second = i64(table), first
            elif second < 0 or _is_before(places, width, heads[table], heads[second], False):
                second = i64(table)
        row = heads[first]
        while True:
            rank[row] = place
            place += 1
            row += 1
            if row == ends[first] or (
                second >= 0 and not _is_before(places, width, row, heads[second], first < second)
            ):
                break
        heads[first] = row
