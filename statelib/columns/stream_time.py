"""Stream times: the largest timestamp so far."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from statelib.kernels.compiled import Int64s, Int64sOut, compiled, i64, nothing

if TYPE_CHECKING:
    from numpy.typing import NDArray


@compiled(nothing(Int64s, i64, Int64sOut))
def _run(timestamp: NDArray[np.int64], before: int, out: NDArray[np.int64]) -> None:
    now = before
    for row in range(len(timestamp)):
        now = max(now, timestamp[row])
        out[row] = now


@compiled(nothing(Int64s, Int64s, i64, Int64sOut))
def _run_keyed(key_code: NDArray[np.int64], timestamp: NDArray[np.int64], before: int, out: NDArray[np.int64]) -> None:
    now = before
    for row in range(len(timestamp)):
        if key_code[row] >= 0:
            now = max(now, timestamp[row])
        out[row] = now


def running_stream_time(timestamp: NDArray[np.int64], before: int) -> NDArray[np.int64]:
    """The largest of ``before`` and the timestamps up to each record, itself included.

    Args:
        timestamp: int64[n], ms.
        before: Before the first record, ms.

    Returns:
        int64[n], ms, ascending.
    """
    times = np.empty(len(timestamp), np.int64)
    _run(np.ascontiguousarray(timestamp), before, times)
    return times


def keyed_stream_time(key_code: NDArray[np.int64], timestamp: NDArray[np.int64], before: int) -> NDArray[np.int64]:
    """As `running_stream_time`; only records that have a key (int64[n], code >= 0) move it."""
    times = np.empty(len(timestamp), np.int64)
    _run_keyed(key_code, timestamp, before, times)
    return times
