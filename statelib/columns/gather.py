"""Values by their places, or by whether they are kept."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from statelib.kernels.compiled import Bools, Int32s, Int64s, Int64sOut, compiled, i64, nothing

if TYPE_CHECKING:
    from numpy.typing import NDArray


@compiled(nothing(Int64s, Int32s, Int64sOut))
def _gather(values: NDArray[np.int64], places: NDArray[np.int32], gathered: NDArray[np.int64]) -> None:
    for i in range(len(places)):
        gathered[i] = values[places[i]]


def gather(values: NDArray[np.int64], places: NDArray[np.int32]) -> NDArray[np.int64]:
    """int64: the values at ``places``, none of them negative; numpy would make these longer first."""
    gathered = np.empty(len(places), dtype=np.int64)
    _gather(values, places, gathered)
    return gathered


@compiled(i64(Int64s, Bools, Int64sOut))
def _compress(values: NDArray[np.int64], keep: NDArray[np.bool_], kept: NDArray[np.int64]) -> int:
    """Without a branch that nobody can foretell; one more in ``kept`` than are kept."""
    count: int = i64(0)
    for i in range(len(values)):
        kept[count] = values[i]
        count += keep[i]
    return count


def compress(values: NDArray[np.int64], keep: NDArray[np.bool_]) -> NDArray[np.int64]:
    """int64: the values (int64[n]) for which ``keep`` (bool[n]) is true, in less than half of numpy's time."""
    kept = np.empty(len(values) + 1, dtype=np.int64)
    return kept[: _compress(np.ascontiguousarray(values), keep, kept)]
