"""The hot loop of time windows: which of its windows take a record."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from statelib.kernels.compiled import Int64s, Int64sOut, compiled, helper, i64, several

if TYPE_CHECKING:
    from numpy.typing import NDArray


@helper
def _quotient(of: int, divisor: int) -> int:
    """Of whole numbers that are not negative: a division without a sign has no branches."""
    quotient: int = i64(np.uint64(of) // np.uint64(divisor))
    return quotient


@compiled(several(i64, 5)(*[Int64s] * 3, *[i64] * 4, *[Int64sOut] * 4))
def accept(
    key_code: NDArray[np.int64],
    timestamp: NDArray[np.int64],
    clock: NDArray[np.int64],
    size: int,
    advance: int,
    grace: int,
    origin: int,
    first_window: NDArray[np.int64],
    accepted: NDArray[np.int64],
    lateness: NDArray[np.int64],
    late: NDArray[np.int64],
) -> tuple[int, int, int, int, int]:
    """Decides for each record which of its windows still take it: those with ``end > stream time - grace``.

    Records with null keys (code < 0) have no windows (Kafka's ``KStreamWindowAggregate``).

    Args:
        key_code: int64.
        timestamp: int64, ms.
        clock: int64, the stream time at each record, ms.
        size: Size of the windows, ms.
        advance: From one window's start to the next's, ms.
        grace: Grace period, ms.
        origin: Start of window number 0, ms; no window holds a record before it.
        first_window: Out, int64: number of the first window that takes the record; the others follow.
        accepted: Out, int64: how many windows take it.
        lateness: Out, int64: stream time minus timestamp, ms.
        late: Out, int64, room for all records: those that none of their windows takes any more.

    Returns:
        The sum of ``accepted``; how many windows do not take their records any more; and how many records have a key,
        how many of these come before the first window, and how many are late.
    """
    updates: int = i64(0)
    expired: int = i64(0)
    keyed: int = i64(0)
    before: int = i64(0)
    too_late: int = i64(0)
    for row in range(len(timestamp)):
        time, now = timestamp[row], clock[row]
        has_key, since = key_code[row] >= 0, time - origin
        keyed += has_key
        lateness[row] = now - time if has_key else 0
        if not has_key or since < 0:
            before += has_key
            first_window[row] = accepted[row] = 0
            continue
        last = _quotient(since, advance)
        first = last
        if size > advance:  # else there is no other: divisions are what takes time here
            first = _quotient(max(0, since - size + advance), advance)
        last_expired = now - origin - grace - size
        open_from = first
        if first * advance <= last_expired:
            open_from = min(last, _quotient(last_expired, advance)) + 1
            expired += open_from - first
            late[too_late] = row
            too_late += open_from > last
        first_window[row] = open_from
        accepted[row] = last + 1 - open_from
        updates += last + 1 - open_from
    return updates, expired, keyed, before, too_late


@compiled(several(i64, 5)(*[Int64s] * 4, i64, *[Int64sOut] * 3))
def accept_one(
    key_code: NDArray[np.int64],
    timestamp: NDArray[np.int64],
    clock: NDArray[np.int64],
    end: NDArray[np.int64],
    grace: int,
    accepted: NDArray[np.int64],
    lateness: NDArray[np.int64],
    late: NDArray[np.int64],
) -> tuple[int, int, int, int, int]:
    """As `accept`, where each record is in one window, of which the end is known.

    Args:
        key_code: int64.
        timestamp: int64, ms.
        clock: int64, the stream time at each record, ms.
        end: int64, when its window ends, ms.
        grace: Grace period, ms.
        accepted: Out, int64: 1 if the window takes the record, else 0.
        lateness: Out, int64: stream time minus timestamp, ms.
        late: Out, int64, room for all records: those that their window does not take any more.

    Returns:
        As `accept`; no record comes before the first window.
    """
    updates: int = i64(0)
    keyed: int = i64(0)
    too_late: int = i64(0)
    for row in range(len(timestamp)):
        has_key = key_code[row] >= 0
        keyed += has_key
        lateness[row] = clock[row] - timestamp[row] if has_key else 0
        accepted[row] = has_key and end[row] > clock[row] - grace
        updates += accepted[row]
        if has_key and not accepted[row]:
            late[too_late] = row
            too_late += 1
    return updates, too_late, keyed, i64(0), too_late
