"""Values by their places."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from statelib.kernels.compiled import Int32s, Int64s, Int64sOut, compiled, nothing

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
