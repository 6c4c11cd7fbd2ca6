"""Copies pieces of one byte array into another: what takes serialised rows apart and puts them together."""

from __future__ import annotations

from typing import TYPE_CHECKING

from statelib.kernels.compiled import Bytes, BytesOut, Int64s, compiled, nothing

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


@compiled(nothing(Bytes, Int64s, Int64s, BytesOut, Int64s))
def copy_spans(
    source: NDArray[np.uint8],
    source_start: NDArray[np.int64],
    length: NDArray[np.int64],
    target: NDArray[np.uint8],
    target_start: NDArray[np.int64],
) -> None:
    """Copies ``source[source_start[i]:][:length[i]]`` to ``target[target_start[i]:]`` for each ``i``.

    All three index arrays are int64 of one length; nothing is checked.
    """
    for row in range(len(length)):
        read = source_start[row]
        write = target_start[row]
        for position in range(length[row]):
            target[write + position] = source[read + position]
