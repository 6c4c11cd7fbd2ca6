"""A set of numbers below a limit, in order, inside kernels: its least element, its greatest, the next one.

A complete binary tree of flags in one array of twice as many bytes as there are leaves: node 1 is the root, the
children of node ``n`` are ``2 n`` and ``2 n + 1``, and the number ``i`` is the leaf ``leaves + i``. A node says whether
any leaf below it is in the set. All operations take a logarithmic number of steps.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from statelib.kernels.compiled import helper

if TYPE_CHECKING:
    from numpy.typing import NDArray

ABSENT = -1
"""There is no such number."""


def ordered_set(members: NDArray[np.bool_]) -> NDArray[np.uint8]:
    """The set of those numbers below ``len(members)`` that are members."""
    leaves = np.zeros(1 << max(len(members) - 1, 0).bit_length(), dtype=np.uint8)
    leaves[: len(members)] = members
    levels = [leaves]
    while len(levels[-1]) > 1:
        levels.append(levels[-1][0::2] | levels[-1][1::2])
    return np.concatenate([np.zeros(1, dtype=np.uint8), *reversed(levels)])


@helper
def insert(tree: NDArray[np.uint8], number: int) -> None:
    """Adds a number, if it is not there."""
    node = (len(tree) >> 1) + number
    while node > 0 and tree[node] == 0:
        tree[node] = 1
        node >>= 1


@helper
def remove(tree: NDArray[np.uint8], number: int) -> None:
    """Removes a number that is there."""
    node = (len(tree) >> 1) + number
    tree[node] = 0
    while node > 1 and tree[node ^ 1] == 0:
        node >>= 1
        tree[node] = 0


@helper
def first_from(tree: NDArray[np.uint8], number: int) -> int:
    """The least number that is there and not below ``number``, else `ABSENT`."""
    leaves = len(tree) >> 1
    if number >= leaves:
        return ABSENT
    node = leaves + number
    while tree[node] == 0:
        while node & 1:  # a right child has nothing to its right below its parent
            node >>= 1
            if node <= 1:
                return ABSENT
        node += 1
    while node < leaves:
        node = 2 * node + (tree[2 * node] == 0)
    found: int = node - leaves
    return found


@helper
def last(tree: NDArray[np.uint8]) -> int:
    """The greatest number that is there, else `ABSENT`."""
    leaves = len(tree) >> 1
    if tree[1] == 0:
        return ABSENT
    node = 1
    while node < leaves:
        node = 2 * node + (tree[2 * node + 1] != 0)
    found: int = node - leaves
    return found
