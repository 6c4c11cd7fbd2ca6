"""The arrays that stream-stream joins work on, and what the numbers in them stand for.

A *row* is a record that others may meet, or that waits for one: see `statelib.operators.joins.stream_stream.kernel`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from statelib.kernels.compiled import records_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from statelib.operators.joins.stream_stream.definition import JoinWindows
    from statelib.settings.semantics import Semantics

LEFT, RIGHT = 0, 1
SIDES = (LEFT, RIGHT)
NO_ROW = -1
NEVER = -1
"""The least time of nothing."""

WITHOUT_VALUE, WITHOUT_KEY, LONE_WITHOUT_KEY, JOINED, HELD, LONE, STORED, EXPIRED, UNMATCHED, FAILED = range(10)
"""What becomes of a record that arrives: it has no value, or no key, and is dropped, or is a lone result without a key;
it meets others; it meets nobody, and is held, or a lone result at once, or stored for those that come, or not even
that: its segment has expired, or nobody could see it; the joiner fails for one of its results."""
NO_STOP = -1
"""No result for which the joiner fails."""

ROW = np.dtype(
    [
        ("time", np.int64),  # the record's timestamp
        ("key_code", np.int64),
        ("arrival", np.int64),  # a running number
        ("value", np.int64),  # its number among the values of its side
        ("older", np.int64),  # the next older row of the list, else NO_ROW
        ("rank", np.int64),  # see the kernel's docstring
        ("side", np.int8),  # LEFT or RIGHT
        ("linked", np.int8),  # 1: in the list of its key and side
        ("held", np.int8),  # 1: in the ordered set of its side
        ("in_window_store", np.int8),  # 1: the window store has it, or may have it
        ("in_held_store", np.int8),  # 1: the store of held records has it
    ],
    align=True,
)
ARRIVAL = np.dtype(
    [
        ("row", np.int64),  # NO_ROW: it is dropped, for want of key or value
        ("time", np.int64),
        ("wall_clock", np.int64),  # ms
        ("outcome", np.int64),  # see above; out, but for a record without key or value
        ("expired", np.int64),  # out, 1: its segment of its side's store had expired
        ("lateness", np.int64),  # out, stream time minus timestamp, ms
        ("behind", np.int64),  # out, the clock of its side's store minus timestamp, ms
    ]
)
RESULT = np.dtype(
    [
        ("trigger", np.int64),  # the record that caused it
        ("left", np.int64),  # row, else NO_ROW
        ("right", np.int64),
        ("time", np.int64),
    ]
)
POLICY = np.dtype(
    [
        ("before", np.int64),  # ms, as of JoinWindows
        ("after", np.int64),
        ("grace", np.int64),
        ("segment", np.int64),  # the length of a store's segment, ms
        ("keeps_left", np.int64),  # 1: a left record that meets nobody gives a lone result
        ("keeps_right", np.int64),
        ("holds", np.int64),  # 1: lone results wait
        ("as_shipped", np.int64),  # 1: semantics="kafka-4.3"
        ("emit_interval", np.int64),  # ms of wall clock from one scan for lone results to the next, as shipped
    ]
)
CLOCKS = np.dtype(
    [
        ("stream_time", np.int64),  # of the join
        ("left", np.int64),  # of the left side's store
        ("right", np.int64),
        ("least_held", np.int64),  # as shipped: what it takes for the least time of held records; NEVER: none
        ("next_scan", np.int64),  # as shipped: wall clock
    ]
)

Rows, Arrivals, Results, Policies, Clocks = (records_of(dtype) for dtype in (ROW, ARRIVAL, RESULT, POLICY, CLOCKS))
"""As kernels take them."""

_LEAST_SEGMENT_MS = 60_000


def policy_of(
    windows: JoinWindows,
    semantics: Semantics,
    *,
    keeps_left: bool = False,
    keeps_right: bool = False,
    holds: bool = False,
    emit_interval_ms: int = 0,
) -> NDArray[Any]:
    """`POLICY`, one.

    Args:
        windows: Who meets whom.
        semantics: Of the run.
        keeps_left: Whether a left record that meets nobody gives a lone result.
        keeps_right: The same of a right one.
        holds: Whether lone results wait.
        emit_interval_ms: The pause between two looks for lone results, as shipped.
    """
    policy = np.zeros(1, dtype=POLICY)
    policy["before"], policy["after"] = windows.before_ms, windows.after_ms
    policy["grace"] = windows.grace_period_ms
    policy["segment"] = max(windows.retention_ms // 2, _LEAST_SEGMENT_MS)
    policy["keeps_left"], policy["keeps_right"] = keeps_left, keeps_right
    policy["holds"] = holds
    policy["as_shipped"] = semantics != "kip"
    policy["emit_interval"] = emit_interval_ms
    return policy
