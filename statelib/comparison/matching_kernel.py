"""Matches rows of two sides by their hashes: a hash table for each bucket, which fits the processor's cache."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from statelib.kernels.compiled import Int64s, Int64sOut, UInt64sOut, compiled, helper, i64, nothing

if TYPE_CHECKING:
    from numpy.typing import NDArray

DELETED = np.uint64(0)
"""The content of a tombstone; no other row has it."""

NONE = -1
"""There is no such row."""


@helper
def _slot(
    key: np.uint64, check: np.uint64, keys: NDArray[np.uint64], checks: NDArray[np.uint64], used: NDArray[np.int64]
) -> int:
    """The slot of a key, or the free one where it belongs."""
    mask = len(keys) - 1
    slot: int = i64(key & np.uint64(mask))
    while used[slot] != 0 and (keys[slot] != key or checks[slot] != check):
        slot = (slot + 1) & mask
    return slot


@compiled(nothing(UInt64sOut, UInt64sOut, UInt64sOut, Int64s, UInt64sOut, UInt64sOut, Int64sOut, UInt64sOut, Int64sOut))
def put_newest(
    keys: NDArray[np.uint64],
    checks: NDArray[np.uint64],
    contents: NDArray[np.uint64],
    places: NDArray[np.int64],
    table_keys: NDArray[np.uint64],
    table_checks: NDArray[np.uint64],
    used: NDArray[np.int64],
    newest: NDArray[np.uint64],
    newest_places: NDArray[np.int64],
) -> None:
    """Puts rows of one side into a table of keys; of each key the row with the highest place stays.

    Args:
        keys: Hashes of the keys, by row.
        checks: Others of the same keys.
        contents: Hashes of all else.
        places: Of the rows, none negative.
        table_keys: By slot, a power of two that is larger than the number of keys; filled by this, as all that follow.
        table_checks: By slot.
        used: By slot, whether it has a key: 0 or 1.
        newest: By slot, the content of the side's newest row.
        newest_places: By slot, its place, or `NONE`.
    """
    for row in range(len(keys)):
        slot = _slot(keys[row], checks[row], table_keys, table_checks, used)
        if used[slot] == 0:
            used[slot] = 1
            table_keys[slot] = keys[row]
            table_checks[slot] = checks[row]
        if places[row] > newest_places[slot]:
            newest_places[slot] = places[row]
            newest[slot] = contents[row]


@compiled(nothing(UInt64sOut, UInt64sOut, UInt64sOut, UInt64sOut, UInt64sOut, Int64sOut))
def count_rows(
    keys: NDArray[np.uint64],
    contents: NDArray[np.uint64],
    checks: NDArray[np.uint64],
    table_keys: NDArray[np.uint64],
    table_checks: NDArray[np.uint64],
    counts: NDArray[np.int64],
) -> None:
    """Counts equal rows; ``counts`` has 1 more than their number, and 0 in a free slot."""
    for row in range(len(keys)):
        key = keys[row] ^ contents[row]
        slot = _slot(key, checks[row] ^ contents[row], table_keys, table_checks, counts)
        if counts[slot] == 0:
            table_keys[slot] = key
            table_checks[slot] = checks[row] ^ contents[row]
            counts[slot] = 1
        counts[slot] += 1


@compiled(i64(UInt64sOut, UInt64sOut, UInt64sOut, UInt64sOut, UInt64sOut, Int64sOut, Int64sOut))
def surplus_rows(
    keys: NDArray[np.uint64],
    contents: NDArray[np.uint64],
    checks: NDArray[np.uint64],
    table_keys: NDArray[np.uint64],
    table_checks: NDArray[np.uint64],
    counts: NDArray[np.int64],
    rows: NDArray[np.int64],
) -> int:
    """Writes to ``rows`` those that the other side, counted by `count_rows`, does not have, or not as often.

    Of equal rows the first ones find their like. Returns how many rows it has written.
    """
    found: int = i64(0)
    for row in range(len(keys)):
        slot = _slot(keys[row] ^ contents[row], checks[row] ^ contents[row], table_keys, table_checks, counts)
        if counts[slot] > 1:
            counts[slot] -= 1
        else:
            rows[found] = row
            found += 1
    return found
