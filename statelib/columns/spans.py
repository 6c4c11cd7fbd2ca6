"""Copies and compares pieces of byte arrays: what takes serialised rows apart and puts them together."""

from __future__ import annotations

from typing import TYPE_CHECKING

from statelib.kernels.compiled import (
    Bytes,
    BytesOut,
    Int64s,
    Int64sOut,
    compiled,
    helper,
    load_word,
    nothing,
    store_word,
)

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


@helper
def copy_bytes(source: NDArray[np.uint8], start: int, target: NDArray[np.uint8], at: int, length: int) -> None:
    """Copies ``source[start:][:length]`` to ``target[at:]``, eight bytes at a time: what is copied is mostly short.

    Within one array bytes may be moved to a lower index.
    """
    if length >= 8:
        last = load_word(source, start + length - 8)  # overlaps the word before it, which may be overwritten by then
        for position in range(0, length - 8, 8):
            store_word(target, at + position, load_word(source, start + position))
        store_word(target, at + length - 8, last)
    else:
        for position in range(length):
            target[at + position] = source[start + position]


@helper
def equal_bytes(a: NDArray[np.uint8], a_start: int, b: NDArray[np.uint8], b_start: int, length: int) -> bool:
    """Whether ``a[a_start:][:length]`` and ``b[b_start:][:length]`` are the same, eight bytes at a time."""
    if length >= 8:
        for position in range(0, length - 8, 8):
            if load_word(a, a_start + position) != load_word(b, b_start + position):
                return False
        last = length - 8  # overlaps the word before it
        return bool(load_word(a, a_start + last) == load_word(b, b_start + last))
    position = 0
    while position < length and a[a_start + position] == b[b_start + position]:
        position += 1
    return position == length


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
        copy_bytes(source, source_start[row], target, target_start[row], length[row])


@compiled(nothing(Bytes, Int64s, Int64s, BytesOut, Int64sOut))
def append_spans(
    source: NDArray[np.uint8],
    source_start: NDArray[np.int64],
    length: NDArray[np.int64],
    target: NDArray[np.uint8],
    target_end: NDArray[np.int64],
) -> None:
    """As `copy_spans` to ``target_end``, which then is where each copy ends."""
    for row in range(len(length)):
        copy_bytes(source, source_start[row], target, target_end[row], length[row])
        target_end[row] += length[row]
