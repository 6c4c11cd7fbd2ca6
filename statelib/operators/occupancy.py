"""How full a buffer was while updates came of which only the last ones are at hand (`statelib.batch.Passage`)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from statelib.batch import Passage


def occupancy(
    before: int, most: int, passage: Passage, more: NDArray[Any], gone: NDArray[np.int64], less: NDArray[np.int64] | int
) -> tuple[int, int]:
    """How full a buffer is while updates come, given how full it was before.

    Args:
        before: Records, or bytes.
        most: The most there has ever been.
        passage: The updates.
        more: One a window: what its first update adds.
        gone: int64, by what leaves: after which update it does.
        less: What it takes along.

    Returns:
        The sum of how full it is after each update; and the most ever, which is before anything leaves.
    """
    added, taken = (np.zeros(len(passage), dtype=np.int64) for _ in range(2))
    added[passage.first] = more
    np.add.at(taken, gone, less)
    after = before + np.cumsum(added - taken)
    return int(after.sum()), max(most, int((after + taken).max()))
