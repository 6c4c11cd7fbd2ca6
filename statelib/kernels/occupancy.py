"""How full a suppression buffer was while updates came of which only the last ones are at hand (`Passage`)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from statelib.kernels.compiled import Bools, Int64s, Int64sOut, compiled, i64, nothing
from statelib.kernels.suppression_layout import Figures

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


@compiled(nothing(i64, i64, *[Int64s] * 2, Bools, *[Int64s] * 3, *[Int64sOut] * 3, Figures))
def follow(
    records: int,
    size: int,
    stream_time: NDArray[np.int64],
    first: NDArray[np.int64],
    is_new: NDArray[np.bool_],
    more_bytes: NDArray[np.int64],
    due: NDArray[np.int64],
    due_bytes: NDArray[np.int64],
    new_records: NDArray[np.int64],
    new_bytes: NDArray[np.int64],
    trigger: NDArray[np.int64],
    figures: Any,
) -> None:
    """Goes through all updates, in order: what the first one of each window adds stays until the window is due.

    Args:
        records: How many keys waited before.
        size: Their bytes.
        stream_time: int64, at each update, ms; ascending.
        first: int64, by window: its first update.
        is_new: bool, by window: whether that one buffers a key that was not there.
        more_bytes: int64, by window: how much larger it makes the buffer.
        due: int64, by key that leaves, ascending: the stream time at which it does, ms.
        due_bytes: int64, by key that leaves: its size.
        new_records: Room by update, int64, all zero.
        new_bytes: The same.
        trigger: Out, int64, by key that leaves: the update that makes it leave.
        figures: `FIGURES`, one element; gets the maxima, which are those before anything leaves, and the sums of how
            full the buffer is after each update.
    """
    for window in range(len(first)):
        new_records[first[window]] += is_new[window]
        new_bytes[first[window]] += more_bytes[window]
    state = figures[0]
    gone = i64(0)
    state.sum_records = state.sum_bytes = 0
    for update in range(len(stream_time)):
        records += new_records[update]
        size += new_bytes[update]
        state.max_records = max(state.max_records, records)
        state.max_bytes = max(state.max_bytes, size)
        while gone < len(due) and due[gone] <= stream_time[update]:
            trigger[gone] = update
            records -= 1
            size -= due_bytes[gone]
            gone += 1
        state.sum_records += records
        state.sum_bytes += size
