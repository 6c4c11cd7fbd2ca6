"""The hot loop of sliding windows: which windows of its key a record changes, and which it makes.

The windows of a working set lie in one array, numbered by *slot*; those of a key form a list from the latest start to
the earliest, so that a record that is in order looks at the head of it.

A record at time t, with a time difference d, updates every window of its key that holds t. It makes its *left window*
``[t - d, t]``, which begins as a copy of the latest window before it if that reaches into it; its *right window*
``[t + 1, t + 1 + d]`` if later records are there already, as a copy of what holds them; and the right window of the
record before it, if that holds t. Before t = d windows would begin below 0: one window ``[0, d]`` stands for all left
ones. Source: Kafka's ``KStreamSlidingWindowAggregate``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from statelib.kernels.compiled import Bools, Int64s, Int64sOut, compiled, helper, i64, nothing, records_of
from statelib.operators.aggregation.accumulators.kernel import NO_ROW, NO_SLOT, NO_UPDATE
from statelib.operators.sessions.slot_lists_kernel import SlidingWindows, link

if TYPE_CHECKING:
    from numpy.typing import NDArray

UPDATE = np.dtype(
    [
        ("row", np.int64),  # the record that caused it
        ("adds", np.int64),  # that record again, or NO_ROW: the window is a copy, and the record is not added
        ("slot", np.int64),
        ("copied", np.int64),  # the slot whose state the window begins with, else NO_SLOT
        ("timestamp", np.int64),  # the largest of the window's records after it
        ("position", np.int64),  # among all updates, in which order it is forwarded
        ("is_new", np.int64),  # 1: it makes the window
    ]
)
POLICY = np.dtype(
    [
        ("difference", np.int64),  # time difference, ms
        ("grace", np.int64),  # grace period, ms
        ("retention", np.int64),  # how long after its start a window is seen, ms
        ("once", np.int64),  # 1: stop before a record that looks at a window which this call has updated already
    ]
)
PROGRESS = np.dtype(
    [
        ("rows", np.int64),  # records that are done
        ("updates", np.int64),  # made for them
        ("slots", np.int64),  # taken
        ("store_time", np.int64),  # the largest start of a window so far
        ("full", np.int64),  # 1: it stopped because there was no room for the updates of the next record
    ]
)


_Updates, _Policy, _Progress = (records_of(dtype) for dtype in (UPDATE, POLICY, PROGRESS))


@helper
def _find(windows: Any, newest: int, start: int, first_seen: int) -> int:
    """The slot of the window with this start in the list from ``newest`` on, else `NO_SLOT`."""
    slot = newest
    while slot != NO_SLOT and windows[slot].start > start:
        slot = windows[slot].older
    return slot if start >= first_seen and slot != NO_SLOT and windows[slot].start == start else i64(NO_SLOT)


@helper
def _change(
    slot: int, row: int, adds: int, copied: int, timestamp: int, position: int, is_new: int, first_update: int,
    windows: Any, updates: Any, progress: Any,
) -> None:  # fmt: skip
    """Adds an update of a window."""
    update = updates[progress.updates]
    update.row = row
    update.adds = adds
    update.slot = slot
    update.copied = copied
    update.timestamp = timestamp
    update.position = position
    update.is_new = is_new
    windows[slot].timestamp = timestamp
    windows[slot].last_update = first_update + progress.updates
    progress.updates += 1
    progress.store_time = max(progress.store_time, windows[slot].start)


@helper
def _make(key: int, start: int, windows: Any, newest: NDArray[np.int64], progress: Any) -> int:
    """Puts a new window into the list of its key; gives its slot."""
    slot: int = progress.slots
    progress.slots += 1
    above = i64(NO_SLOT)
    below = newest[key]
    while below != NO_SLOT and windows[below].start > start:
        above = below
        below = windows[below].older
    made = windows[slot]
    made.key_code = key
    made.start = start
    made.older = below
    made.alive = 1
    made.stored = 0
    made.last_update = NO_UPDATE
    link(above, key, slot, newest, windows)
    return slot


@helper
def _look(
    head: int, time: int, difference: int, first_seen: int, windows: Any
) -> tuple[int, int, int, int, int, bool, int]:
    """What there is around a record, in the list from ``head`` on.

    Returns:
        How many windows hold the record, but for ``[0, d]`` of an early one; the slots of the latest of these, of the
        latest window before the record, and of its left window (or of ``[0, d]``), else `NO_SLOT`; the time of the
        record before it, else -1; whether there is one of the same time; and the last update of all these windows.
    """
    early = time < difference
    holding = i64(0)
    latest = before = left = i64(NO_SLOT)
    previous = i64(-1)
    again = False
    touched = i64(NO_UPDATE)
    slot = head
    while slot != NO_SLOT and windows[slot].start >= first_seen:
        window = windows[slot]
        touched = max(touched, window.last_update)
        end = window.start + difference
        if early and window.start == 0:
            left = slot
            previous = window.timestamp if window.timestamp < time else previous
        elif early or end > time:
            latest = slot if latest == NO_SLOT else latest
            holding += 1
        elif end == time:
            left = slot
            holding += 1
            if window.timestamp >= time:
                again = True
                break
            previous = window.timestamp
        else:
            before = slot
            previous = window.timestamp
            break
        slot = window.older
    return holding, latest, before, left, previous, again, touched


@compiled(
    nothing(
        Int64s, Int64s, Int64s, Bools, _Policy, i64, Int64sOut, SlidingWindows, _Updates, *[Int64sOut] * 3, _Progress
    )
)
def slide(
    key_code: NDArray[np.int64],
    timestamp: NDArray[np.int64],
    clock: NDArray[np.int64],
    skipped: NDArray[np.bool_],
    policies: Any,
    first_update: int,
    newest: NDArray[np.int64],
    windows: Any,
    updates: Any,
    accepted: NDArray[np.int64],
    expired: NDArray[np.int64],
    lateness: NDArray[np.int64],
    progresses: Any,
) -> None:
    """Takes up records from ``progress.rows`` on, as long as there is room for their updates.

    A window takes a record iff ``end >= stream time - grace``; a record with ``timestamp + difference < stream time -
    grace`` is dropped whole. Windows with ``start <= store time - retention`` are not seen any more.

    Args:
        key_code: int64.
        timestamp: int64, ms.
        clock: int64, the stream time at each record, ms.
        skipped: Records that are dropped for a null key or value.
        policies: One `POLICY`.
        first_update: Number of the first update of this call in the working set.
        newest: int64, by key code: the slot of the window with the latest start, else `NO_SLOT`.
        windows: `SLIDING_WINDOW`, by slot; with room for three more a record.
        updates: Out, `UPDATE`, in the order in which states change.
        accepted: Out, int64, by record: how many windows have changed.
        expired: Out, int64, by record: how many windows have not, because they are closed.
        lateness: Out, int64, by record: stream time minus timestamp, ms.
        progresses: In and out, one `PROGRESS`.
    """
    policy = policies[0]
    progress = progresses[0]
    progress.full = 0
    difference = policy.difference
    for row in range(progress.rows, len(key_code)):
        accepted[row] = expired[row] = lateness[row] = 0
        if skipped[row]:
            progress.rows = row + 1
            continue
        key = key_code[row]
        time = timestamp[row]
        early = time < difference
        first_seen = max(progress.store_time - policy.retention + 1, time - 2 * difference)
        head = newest[key]
        while head != NO_SLOT and windows[head].start > time + 1:
            head = windows[head].older
        touched = i64(NO_UPDATE)
        has_right = head != NO_SLOT and windows[head].start == time + 1 and time + 1 >= first_seen
        if head != NO_SLOT and windows[head].start == time + 1:
            touched = windows[head].last_update
            head = windows[head].older
        holding, latest, before, left, previous, again, others = _look(head, time, difference, first_seen, windows)
        if policy.once and max(touched, others) >= first_update:
            return
        if progress.updates + holding + 3 > len(updates):
            progress.full = 1
            return
        progress.rows = row + 1
        lateness[row] = clock[row] - time
        close = clock[row] - policy.grace
        if time + difference < close:
            expired[row] = 1
            continue
        first = progress.updates
        late = i64(0)

        # Its right window comes first: it begins with a state that does not have the record yet.
        if early and latest == NO_SLOT:
            latest = left
        makes_right = not has_right and not again and latest != NO_SLOT and windows[latest].timestamp > time
        if makes_right:
            made = _make(key, time + 1, windows, newest, progress)
            _change(
                made, row, NO_ROW, latest, windows[latest].timestamp, 0, 1, first_update, windows, updates, progress
            )

        # The windows that hold it. Kafka forwards them by descending start, but by ascending start if it is early.
        changed = progress.updates
        slot = head
        while holding > 0:
            window = windows[slot]
            if not early or window.start != 0:
                holding -= 1
                if window.start + difference >= close:
                    latest_time = max(time, window.timestamp)
                    position = first + progress.updates - changed
                    _change(slot, row, row, NO_SLOT, latest_time, position, 0, first_update, windows, updates, progress)
                else:
                    late += 1
            slot = window.older
        position = first + progress.updates - changed
        if early:
            for i in range(changed, progress.updates):
                updates[i].position = first + progress.updates - 1 - i
            if makes_right:
                updates[first].position = position
                position += 1

        # The right window of the record before it.
        missing = not again and previous >= 0 and (early or previous + 1 + difference >= time)
        if missing and _find(windows, newest[key], previous + 1, first_seen) == NO_SLOT:
            if previous + 1 + difference >= close:
                made = _make(key, previous + 1, windows, newest, progress)
                _change(made, row, row, NO_SLOT, time, position, 1, first_update, windows, updates, progress)
                position += 1
            else:
                late += 1

        # Its left window; for an early record that is [0, d], which may be there already.
        if early or left == NO_SLOT:
            start = i64(0) if early else time - difference
            if start + difference < close:
                late += 1
            elif left != NO_SLOT:
                latest_time = max(time, windows[left].timestamp)
                _change(left, row, row, NO_SLOT, latest_time, position, 0, first_update, windows, updates, progress)
                position += 1
            else:
                made = _find(windows, newest[key], start, first_seen)
                if (
                    made != NO_SLOT
                ):  # it has just been made, as the right window of the record before: Kafka says it twice
                    _change(made, row, NO_ROW, NO_SLOT, time, position, 1, first_update, windows, updates, progress)
                else:
                    made = _make(key, start, windows, newest, progress)
                    copied = before if start <= previous else i64(NO_SLOT)
                    _change(made, row, row, copied, time, position, 1, first_update, windows, updates, progress)
                position += 1
        if makes_right and not early:
            updates[first].position = position
        accepted[row] = progress.updates - first
        expired[row] = late
