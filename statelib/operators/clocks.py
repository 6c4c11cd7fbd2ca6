"""The stream time that decides what is late: an operator's own, or the task's."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from statelib.columns.stream_time import keyed_stream_time

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from statelib.records.batch import Batch, Uptake

WindowClock = Literal["operator", "task"]
"""Whose records move the stream time: those with a key that reach the operator, as in Kafka's windowed aggregations, or
all that the task takes up, as in KIP-655."""


def stream_times(
    of: WindowClock, batch: Batch, key_code: NDArray[np.int64], uptake: Uptake, before: int
) -> NDArray[np.int64]:
    """The stream time at each record, the record itself included.

    Args:
        of: Whose it is.
        batch: The records.
        key_code: int64, their key codes.
        uptake: What the batch is processed with.
        before: The operator's stream time before the first record, ms.

    Returns:
        int64, ms, ascending.
    """
    if of == "task":
        return uptake.stream_time_of(batch)
    return keyed_stream_time(key_code, batch.timestamp, before)
