"""How full a suppression buffer was while updates came of which only a `Passage` is at hand."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from statelib.kernels.compiled import Bools, Int64s, Int64sOut, compiled, helper, i64, nothing
from statelib.operators.suppress.layout_kernel import Figures

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

NO_BYTES = -(1 << 62)


@helper
def _first_from(values: NDArray[np.int64], count: int, bound: int) -> int:
    """The first of ``count`` ascending values that is at least ``bound``; ``count`` if none is."""
    low: int = i64(0)
    length: int = i64(count)
    while length > 0:
        half = length // 2
        if values[low + half] < bound:
            low += half + 1
            length -= half + 1
        else:
            length = half
    return low


@compiled(nothing(i64, i64, *[Int64s] * 3, Bools, *[Int64s] * 3, *[Int64sOut] * 5, Figures))
def follow(
    records: int,
    size: int,
    stream_time: NDArray[np.int64],
    rows: NDArray[np.int64],
    growing: NDArray[np.int64],
    is_new: NDArray[np.bool_],
    more_bytes: NDArray[np.int64],
    due: NDArray[np.int64],
    due_bytes: NDArray[np.int64],
    leaving: NDArray[np.int64],
    new_records: NDArray[np.int64],
    new_bytes: NDArray[np.int64],
    most_bytes: NDArray[np.int64],
    trigger: NDArray[np.int64],
    figures: Any,
) -> None:
    """How full the buffer was after each update: what growing ones add to a window stays until it is due.

    Between two updates at which windows leave, the buffer gets more keys, but a window may also get smaller.

    Args:
        records: How many keys waited before.
        size: Their bytes.
        stream_time: int64, by record, ms; ascending.
        rows: int64, by update, of which there is at least one: the record that made it; ascending.
        growing: int64: the updates that may grow something.
        is_new: bool, by these: whether it buffers a key that was not there.
        more_bytes: int64, by these: how much larger it makes the buffer.
        due: int64, by key that leaves, ascending: the stream time at which it does, ms; reached by the last record.
        due_bytes: int64, by key that leaves: its size.
        leaving: Room for one more than the keys that leave, int64: gets the updates that make any leave.
        new_records: The same, all zero.
        new_bytes: The same, all zero.
        most_bytes: The same, all `NO_BYTES`; gets the most that ``new_bytes`` have come to.
        trigger: Out, int64, by key that leaves: the update that makes it leave.
        figures: `FIGURES`, one element; gets the maxima, which are those before anything leaves, and the sums of how
            full the buffer is after each update.
    """
    updates = len(rows)
    leavings: int = i64(0)
    for key in range(len(due)):
        if key == 0 or due[key] != due[key - 1]:
            update = _first_from(rows, updates, _first_from(stream_time, len(stream_time), due[key]))
            if leavings == 0 or leaving[leavings - 1] != update:
                leaving[leavings] = update
                leavings += 1
        trigger[key] = leaving[leavings - 1]
    state = figures[0]
    state.sum_records, state.sum_bytes = records * updates, size * updates
    for n in range(len(growing)):
        stretch = _first_from(leaving, leavings, growing[n])
        new_records[stretch] += is_new[n]
        new_bytes[stretch] += more_bytes[n]
        if most_bytes[stretch] == NO_BYTES and growing[n] > (leaving[stretch - 1] + 1 if stretch else 0):
            most_bytes[stretch] = 0  # after the updates before
        most_bytes[stretch] = max(most_bytes[stretch], new_bytes[stretch])
        state.sum_records += is_new[n] * (updates - growing[n])
        state.sum_bytes += more_bytes[n] * (updates - growing[n])
    gone = i64(0)
    for stretch in range(leavings + 1):
        records += new_records[stretch]
        state.max_records = max(state.max_records, records)
        more = 0 if most_bytes[stretch] == NO_BYTES else most_bytes[stretch]
        state.max_bytes = max(state.max_bytes, size + more)
        size += new_bytes[stretch]
        while stretch < leavings and gone < len(due) and trigger[gone] == leaving[stretch]:
            records -= 1
            size -= due_bytes[gone]
            state.sum_records -= updates - trigger[gone]
            state.sum_bytes -= due_bytes[gone] * (updates - trigger[gone])
            gone += 1
