"""Which updates of a windowed table come after the final result of their window.

Sessions end with a timestamp that is still theirs, so one that closes at a stream time still takes records at that very
stream time: their updates would be second final results.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from statelib.arrow_buffers import valid_of
from statelib.errors import InternalError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from statelib.batch import Batch


def repeats_of_final_results(batch: Batch, stream_time: int, wait_ms: int) -> NDArray[np.bool_]:
    """Which records are values of closed windows that had a value already when they closed.

    Such a record replaces a value, or it comes right after the tombstone of the same window, with the same cause.

    Args:
        batch: Updates of a windowed table with the codes of their keys, windows apart, and with the values that they
            replace.
        stream_time: Before the first record, ms.
        wait_ms: How long after its end, in stream time, a window closes.

    Returns:
        bool, one a record.

    Raises:
        InternalError: The batch lacks what it should have.
    """
    if batch.windows is None or batch.prior is None or batch.key_code is None:
        raise InternalError("final results are told by windows, key codes and prior values, and one of them is missing")
    start, end = batch.windows.start, batch.windows.end
    stream_times = np.maximum.accumulate(np.concatenate([[stream_time], batch.timestamp]))
    replaces = valid_of(batch.prior)
    is_tombstone = ~valid_of(batch.value)
    again = (is_tombstone & replaces)[:-1]
    for column in (batch.key_code, start, end, batch.sequence):
        again = again & (column[1:] == column[:-1])
    had_a_value = replaces.copy()
    had_a_value[1:] |= again
    repeats: NDArray[np.bool_] = (end <= stream_times[:-1] - wait_ms) & ~is_tombstone & had_a_value
    return repeats
