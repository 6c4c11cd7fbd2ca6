"""The hot loops of aggregations of tables: each change takes an old value back from its aggregate and adds a new one.

A change is one element of all arrays but those by slot: ``slots`` is the aggregate that it changes, ``takes_back``
whether its old value is taken back (not from an aggregate that does not exist). Values that are not there are 0. The
state of all slots is kept up to date; ``out`` is the state after each change.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from statelib.kernels.compiled import (
    Bools,
    BoolsOut,
    Floats,
    FloatsOut,
    Int64s,
    Int64sOut,
    boolean,
    compiled,
    helper,
    i64,
    nothing,
)

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

NO_CHANGE = -1


@compiled(nothing(Int64s, Bools, Int64s, Int64s, boolean, BoolsOut, Int64sOut, BoolsOut, BoolsOut))
def existence(
    slots: NDArray[np.int64],
    is_added_to: NDArray[np.bool_],
    added: NDArray[np.int64],
    taken: NDArray[np.int64],
    may_be_emptied: bool,
    exists: NDArray[np.bool_],
    counts: NDArray[np.int64],
    takes_back: NDArray[np.bool_],
    out: NDArray[np.bool_],
) -> None:
    """Which aggregates exist.

    Args:
        slots: See the module's docstring.
        is_added_to: Whether the change has a new value.
        added: How many values (1 or 0) the change adds to those that count.
        taken: How many it takes back.
        may_be_emptied: Whether an aggregate exists while it has values that count; otherwise once it was added to.
        exists: By slot; kept up to date.
        counts: By slot, the values that count; changed.
        takes_back: By change: whether its aggregate exists before it.
        out: By change: whether it exists after it.
    """
    for change in range(len(slots)):
        slot = slots[change]
        takes_back[change] = exists[slot]
        if exists[slot]:
            counts[slot] -= taken[change]
        counts[slot] += added[change]
        exists[slot] = counts[slot] != 0 if may_be_emptied else exists[slot] or is_added_to[change]
        out[change] = exists[slot]


@compiled(nothing(Int64s, Bools, Int64s, Int64s, Int64sOut, Int64sOut))
def running_count_change(
    slots: NDArray[np.int64],
    takes_back: NDArray[np.bool_],
    new: NDArray[np.int64],
    old: NDArray[np.int64],
    state: NDArray[np.int64],
    out: NDArray[np.int64],
) -> None:
    """How many values there are: each change has 1 or 0 of them, new and old."""
    for change in range(len(slots)):
        slot = slots[change]
        if takes_back[change]:
            state[slot] -= old[change]
        state[slot] += new[change]
        out[change] = state[slot]


@helper
def _does_not_fit(a: int, b: int, result: int) -> bool:
    """Whether ``result`` is not the sum of two int64: both have a sign that it has not."""
    return ((a ^ result) & (b ^ result)) < 0


@compiled(i64(Int64s, Bools, Int64s, Int64s, Int64s, Int64sOut, Int64sOut))
def running_int_change(
    slots: NDArray[np.int64],
    takes_back: NDArray[np.bool_],
    new: NDArray[np.int64],
    old: NDArray[np.int64],
    left: NDArray[np.int64],
    state: NDArray[np.int64],
    out: NDArray[np.int64],
) -> int:
    """Sums of int64 values; ``left`` is how many values there are after each change: the sum of none is 0.

    Returns:
        The first change after which a sum does not fit into 64 bits, where it stops; `NO_CHANGE` if all do.
    """
    for change in range(len(slots)):
        slot = slots[change]
        before = state[slot]
        if takes_back[change]:
            without = before - old[change]
            if _does_not_fit(without, old[change], before):
                return change
            before = without
        after = before + new[change]
        if _does_not_fit(before, new[change], after):
            return change
        state[slot] = 0 if left[change] == 0 else after
        out[change] = state[slot]
    return NO_CHANGE


@compiled(nothing(Int64s, Bools, Floats, Floats, Int64s, FloatsOut, FloatsOut))
def running_float_change(
    slots: NDArray[np.int64],
    takes_back: NDArray[np.bool_],
    new: NDArray[np.float64],
    old: NDArray[np.float64],
    left: NDArray[np.int64],
    state: NDArray[np.float64],
    out: NDArray[np.float64],
) -> None:
    """Sums of float64 values; old values are taken back before new ones are added.

    ``left`` as for integers: what rounding, or a value that is not finite, has left behind is gone with the last one.
    """
    for change in range(len(slots)):
        slot = slots[change]
        if takes_back[change]:
            state[slot] -= old[change]
        state[slot] += new[change]
        if left[change] == 0:
            state[slot] = 0.0
        out[change] = state[slot]
