"""The hot loops of aggregations: each walks the updates in order and writes down the running value of the window.

All have the same shape. An update is a pair ``(rows[u], slots[u])``: the record and the (key, window) that it changes.
``values`` and ``valid`` belong to records (an empty ``valid``: no nulls), ``state`` and ``seen`` to slots (``seen``:
the slot has taken a value that is not null), ``out`` and ``out_seen`` to updates: state and seen after the update; both
are empty where nobody asks for that.

Sessions merge and sliding windows are copied: ``absorbed`` (by update; empty: none ever) is the slot whose state is
added to that of ``slots[u]`` before the record is, or `NO_SLOT`. Where ``rows[u]`` is `NO_ROW` no record is added.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

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
    u64,
)
from statelib.records.batch import NO_TIMESTAMP

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

NO_UPDATE = -1
NO_SLOT = -1
NO_ROW = -1


@helper
def has_value(row: int, valid: NDArray[np.bool_]) -> bool:
    """Whether there is a record, and its value is not null."""
    return row != NO_ROW and (not len(valid) or valid[row])


@helper
def other_slot(absorbed: NDArray[np.int64], update: int) -> int:
    """The slot that is merged into the update's own, or `NO_SLOT`."""
    slot: int = absorbed[update] if len(absorbed) else NO_SLOT
    return slot


@compiled(nothing(Int64s, Int64s, Int64s, Bools, Int64sOut, Int64sOut))
def latest_timestamp(
    rows: NDArray[np.int64],
    slots: NDArray[np.int64],
    timestamp: NDArray[np.int64],
    removed: NDArray[np.bool_],
    state: NDArray[np.int64],
    out: NDArray[np.int64],
) -> None:
    """The largest record timestamp of each window; `NO_TIMESTAMP` in ``state`` is a window that does not exist.

    ``removed`` (by update; empty: none) marks updates after which the window does not exist.
    """
    for update in range(len(rows)):
        slot = slots[update]
        latest = max(state[slot], timestamp[rows[update]])
        state[slot] = NO_TIMESTAMP if len(removed) and removed[update] else latest
        if len(out):
            out[update] = latest


@compiled(nothing(Int64s, Int64s, Int64s, Int64sOut))
def touch(
    rows: NDArray[np.int64], slots: NDArray[np.int64], timestamp: NDArray[np.int64], latest: NDArray[np.int64]
) -> None:
    """As `latest_timestamp` (in ``latest``), where nothing is removed and nobody asks for it after each update."""
    for update in range(len(rows)):
        slot = u64(slots[update])
        latest[slot] = max(latest[slot], timestamp[u64(rows[update])])


@compiled(nothing(Int64s, Int64s, Int64s, Bools, Int64sOut, Int64sOut))
def running_count(
    rows: NDArray[np.int64],
    slots: NDArray[np.int64],
    absorbed: NDArray[np.int64],
    valid: NDArray[np.bool_],
    state: NDArray[np.int64],
    out: NDArray[np.int64],
) -> None:
    """The number of values that are not null."""
    for update in range(len(rows)):
        slot = u64(slots[update])
        other = other_slot(absorbed, update)
        if other != NO_SLOT:
            state[slot] += state[other]
        if has_value(rows[update], valid):
            state[slot] += 1
        if len(out):
            out[update] = state[slot]


@helper
def _overflows(a: int, b: int) -> bool:
    """Whether the sum of two int64 does not fit into 64 bits: both have a sign that it has not."""
    return ((a ^ (a + b)) & (b ^ (a + b))) < 0


@compiled(i64(*[Int64s] * 4, Bools, Int64sOut, BoolsOut, Int64sOut, BoolsOut))
def running_int_sum(
    rows: NDArray[np.int64],
    slots: NDArray[np.int64],
    absorbed: NDArray[np.int64],
    values: NDArray[np.int64],
    valid: NDArray[np.bool_],
    state: NDArray[np.int64],
    seen: NDArray[np.bool_],
    out: NDArray[np.int64],
    out_seen: NDArray[np.bool_],
) -> int:
    """The sum of int64 values.

    Returns:
        The first update whose sum does not fit into 64 bits, where it stops; `NO_UPDATE` if all do.
    """
    for update in range(len(rows)):
        slot = u64(slots[update])
        row = rows[update]
        other = other_slot(absorbed, update)
        if other != NO_SLOT:
            if _overflows(state[slot], state[other]):
                return update
            state[slot] += state[other]
            seen[slot] |= seen[other]
        if has_value(row, valid):
            if _overflows(state[slot], values[u64(row)]):
                return update
            state[slot] += values[u64(row)]
            seen[slot] = True
        if len(out):
            out[update] = state[slot]
            out_seen[update] = seen[slot]
    return NO_UPDATE


@compiled(nothing(*[Int64s] * 3, Floats, Bools, FloatsOut, BoolsOut, FloatsOut, BoolsOut))
def running_float_sum(
    rows: NDArray[np.int64],
    slots: NDArray[np.int64],
    absorbed: NDArray[np.int64],
    values: NDArray[np.float64],
    valid: NDArray[np.bool_],
    state: NDArray[np.float64],
    seen: NDArray[np.bool_],
    out: NDArray[np.float64],
    out_seen: NDArray[np.bool_],
) -> None:
    """The sum of float64 values, added up in the order of the records."""
    for update in range(len(rows)):
        slot = u64(slots[update])
        row = rows[update]
        other = other_slot(absorbed, update)
        if other != NO_SLOT:
            state[slot] += state[other]
            seen[slot] |= seen[other]
        if has_value(row, valid):
            state[slot] += values[u64(row)]
            seen[slot] = True
        if len(out):
            out[update] = state[slot]
            out_seen[update] = seen[slot]


@helper
def _below(a: Any, b: Any) -> bool:
    """The order of SQL: a NaN is above all numbers."""
    less: bool = a < b or (b != b and a == a)  # noqa: PLR0124 - only a NaN differs from itself
    return less


@helper
def _precedes(a: Any, b: Any, largest: bool) -> bool:
    """Whether ``a`` takes the place of ``b``; of equal ones neither does."""
    return _below(b, a) if largest else _below(a, b)


@compiled(
    nothing(boolean, *[Int64s] * 4, Bools, Int64sOut, BoolsOut, Int64sOut, BoolsOut),
    nothing(boolean, *[Int64s] * 3, Floats, Bools, FloatsOut, BoolsOut, FloatsOut, BoolsOut),
)
def running_extreme(
    largest: bool,
    rows: NDArray[np.int64],
    slots: NDArray[np.int64],
    absorbed: NDArray[np.int64],
    values: NDArray[Any],
    valid: NDArray[np.bool_],
    state: NDArray[Any],
    seen: NDArray[np.bool_],
    out: NDArray[Any],
    out_seen: NDArray[np.bool_],
) -> None:
    """The ``largest``, or else the smallest, of int64 or float64 values; of equal ones the first."""
    for update in range(len(rows)):
        slot = slots[update]
        row = rows[update]
        other = other_slot(absorbed, update)
        if other != NO_SLOT and seen[other] and (not seen[slot] or _precedes(state[other], state[slot], largest)):
            state[slot] = state[other]
            seen[slot] = True
        if has_value(row, valid) and (not seen[slot] or _precedes(values[row], state[slot], largest)):
            state[slot] = values[row]
            seen[slot] = True
        if len(out):
            out[update] = state[slot]
            out_seen[update] = seen[slot]


@compiled(nothing(Int64s, Int64s, Int64sOut, Int64sOut))
def previous_update(
    of: NDArray[np.int64], slots: NDArray[np.int64], last: NDArray[np.int64], out: NDArray[np.int64]
) -> None:
    """For each update of ``slots``, the last one of slot ``of[u]`` before it, else `NO_UPDATE`.

    ``last`` (by slot) begins as `NO_UPDATE`.
    """
    for update in range(len(slots)):
        out[update] = last[of[update]]
        last[slots[update]] = update
