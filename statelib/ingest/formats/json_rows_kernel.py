"""Finds where the rows of a JSON text begin and end that are no lines, and how deep the rows of lines are nested."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from statelib.kernels.compiled import Bytes, Int64s, Int64sOut, compiled, i64

if TYPE_CHECKING:
    from numpy.typing import NDArray


@compiled(i64(Bytes, Int64sOut, Int64sOut))
def find_rows(data: NDArray[np.uint8], place: NDArray[np.int64], spans: NDArray[np.int64]) -> int:
    """Finds the rows that end in ``data``, which begins before a row.

    Args:
        data: uint8[n]: JSON text.
        place: int64[2]. Read and written: 1 within the brackets that are around all rows, else 0. Written: behind the
            last row, where the next call is to begin.
        spans: Written, int64[n + 2 at least]: beginning and end of each row.

    Returns:
        How many rows there are.
    """
    outer, rows, start, depth = place[0], 0, -1, 0
    string, escaped = False, False
    done = 0
    for at in range(len(data)):
        byte = data[at]
        if string:
            if escaped:
                escaped = False
            elif byte == 0x5C:  # backslash
                escaped = True
            elif byte == 0x22:
                string = False
            continue
        blank = byte <= 0x20
        opens, closes = byte | 0x20 == 0x7B, byte | 0x20 == 0x7D  # { or [, } or ]
        if start >= 0 and depth == 0 and (blank or closes or byte == 0x2C):  # a number or a name has ended
            spans[2 * rows], spans[2 * rows + 1] = start, at
            rows, start, done = rows + 1, -1, at
        if start < 0:
            if blank or byte == 0x2C:
                done = at + 1
                continue
            if byte == 0x5D and outer == 1:
                outer, done = 0, at + 1
                continue
            start = at
        if byte == 0x22:
            string = True
        elif opens:
            depth += 1
        elif closes and depth > 0:
            depth -= 1
            if depth == 0:
                spans[2 * rows], spans[2 * rows + 1] = start, at + 1
                rows, start, done = rows + 1, -1, at + 1
    place[0], place[1] = outer, done
    return rows


@compiled(i64(Bytes, Int64s, Int64s, Int64sOut))
def _find_depths(
    data: NDArray[np.uint8], starts: NDArray[np.int64], ends: NDArray[np.int64], depths: NDArray[np.int64]
) -> int:
    for row in range(len(starts)):
        depth, most = 0, 0
        string, escaped = False, False
        for at in range(starts[row], ends[row]):
            byte = data[at]
            if string:
                if escaped:
                    escaped = False
                elif byte == 0x5C:  # backslash
                    escaped = True
                elif byte == 0x22:
                    string = False
            elif byte == 0x22:
                string = True
            elif byte | 0x20 == 0x7B:  # { or [
                depth += 1
                most = max(most, depth)
            elif byte | 0x20 == 0x7D:  # } or ]
                depth -= 1
        depths[row] = most
    return len(starts)


def depths_of(data: NDArray[np.uint8], starts: NDArray[np.int64], ends: NDArray[np.int64]) -> NDArray[np.int64]:
    """How many objects and arrays are within one another.

    Args:
        data: uint8[n]: JSON text.
        starts: int64[rows]: where rows begin.
        ends: int64[rows]: where they end.

    Returns:
        int64[rows].
    """
    depths = np.empty(len(starts), np.int64)
    _find_depths(data, starts, ends, depths)
    return depths
