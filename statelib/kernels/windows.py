"""The hot loop of time windows: which of its windows take a record."""

from __future__ import annotations

from typing import TYPE_CHECKING

from statelib.kernels.compiled import Int64s, Int64sOut, compiled, i64, several

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


@compiled(several(i64, 5)(*[Int64s] * 3, *[i64] * 4, *[Int64sOut] * 3))
def accept(
    key_code: NDArray[np.int64],
    timestamp: NDArray[np.int64],
    clock: NDArray[np.int64],
    size: int,
    advance: int,
    grace: int,
    origin: int,
    first_start: NDArray[np.int64],
    accepted: NDArray[np.int64],
    lateness: NDArray[np.int64],
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
        origin: Start of the first window of all, ms; no window holds a record before it.
        first_start: Out, int64: start of the first window that takes the record; the others follow by ``advance``.
        accepted: Out, int64: how many windows take it.
        lateness: Out, int64: stream time minus timestamp, ms.

    Returns:
        The sum of ``accepted``; how many windows do not take their records any more; and how many records have a key,
        how many of these come before the first window, and how many are taken by any.
    """
    updates: int = i64(0)
    expired: int = i64(0)
    keyed: int = i64(0)
    before: int = i64(0)
    taken: int = i64(0)
    for row in range(len(timestamp)):
        accepted[row] = lateness[row] = first_start[row] = 0
        if key_code[row] < 0:
            continue
        time = timestamp[row]
        lateness[row] = clock[row] - time
        keyed += 1
        if time < origin:
            before += 1
            continue
        since = time - origin
        last = since - since % advance
        first, windows = last, i64(1)
        if size > advance:  # else there is no other: divisions are what takes time here
            earliest = max(0, since - size + advance)
            first = earliest - earliest % advance
            windows = (last - first) // advance + 1
        last_expired = clock[row] - origin - grace - size
        late = min(windows, (last_expired - first) // advance + 1) if first <= last_expired else i64(0)
        first_start[row] = origin + first + late * advance
        accepted[row] = windows - late
        updates += windows - late
        expired += late
        taken += windows > late
    return updates, expired, keyed, before, taken
