"""The hot loop of sessions: which sessions of its key a record belongs to, and what becomes of them.

The sessions of a working set lie in one array, numbered by *slot*; those of a key form a list from the newest to the
oldest, so that a record that is in order looks at one of them. A session keeps its slot while it grows. Where a record
joins two sessions, the newer one is absorbed by the older one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from statelib.kernels.compiled import BoolsOut, Int64s, Int64sOut, compiled, helper, i64, records_of, several
from statelib.operators.aggregation.accumulators.kernel import NO_SLOT, NO_UPDATE
from statelib.operators.sessions.slot_lists_kernel import Sessions, link

if TYPE_CHECKING:
    from numpy.typing import NDArray

NOT_STORED = -1

EMISSION = np.dtype(
    [
        ("row", np.int64),  # the record that caused it
        ("slot", np.int64),
        ("start", np.int64),  # of the session
        ("end", np.int64),
        ("update", np.int64),  # whose result is the value; NO_UPDATE: a tombstone
        ("prior_update", np.int64),  # whose result is replaced; NO_UPDATE: the slot's state before the call, if at all
        ("replaces", np.int64),  # 1: there is something that it replaces
    ]
)


_Emissions = records_of(EMISSION)


@helper
def _reached(
    key: int, time: int, gap: int, expired: int, newest: NDArray[np.int64], sessions: Any
) -> tuple[int, int, int, int]:
    """The sessions of ``key`` no further from ``time`` than the gap, of those that end after ``expired``.

    Returns:
        Slots, or `NO_SLOT`: of the sessions above and below the place of a new one in the list of the key, then of the
        newer and the older one that are reached (the older one only if the newer one is there).
    """
    above = i64(NO_SLOT)
    newer = newest[key]
    while newer != NO_SLOT and sessions[newer].start > time + gap:
        above = newer
        newer = sessions[newer].older
    if newer != NO_SLOT and sessions[newer].end <= expired:
        newer = i64(NO_SLOT)  # nor are the older ones seen
    below = newer
    older = i64(NO_SLOT)
    if newer != NO_SLOT:
        if sessions[newer].end < time - gap:
            newer = i64(NO_SLOT)
        else:
            older = sessions[newer].older
    if older != NO_SLOT and (sessions[older].end < time - gap or sessions[older].end <= expired):
        older = i64(NO_SLOT)
    return above, below, newer, older


@helper
def _open(session: Any, key: int, below: int) -> None:
    """Makes a slot a new session, whose bounds are still to be set."""
    session.key_code = key
    session.older = below
    session.alive = 1
    session.stored_start = NOT_STORED
    session.stored_end = NOT_STORED
    session.last_update = NO_UPDATE


@helper
def _emit(emission: Any, row: int, slot: int, session: Any, update: int, first_update: int) -> None:
    emission.row = row
    emission.slot = slot
    emission.start = session.start
    emission.end = session.end
    emission.update = update
    emission.prior_update = session.last_update - first_update if session.last_update >= first_update else NO_UPDATE


@compiled(
    several(i64, 5)(*[Int64s] * 3, *[i64] * 7, Int64sOut, Sessions, *[Int64sOut] * 3, _Emissions, BoolsOut, Int64sOut)
)
def assign(
    key_code: NDArray[np.int64],
    timestamp: NDArray[np.int64],
    clock: NDArray[np.int64],
    gap: int,
    grace: int,
    retention: int,
    once: int,
    store_time: int,
    known: int,
    first_update: int,
    newest: NDArray[np.int64],
    sessions: Any,
    rows: NDArray[np.int64],
    slots: NDArray[np.int64],
    absorbed: NDArray[np.int64],
    emissions: Any,
    accepted: NDArray[np.bool_],
    lateness: NDArray[np.int64],
) -> tuple[int, int, int, int, int]:
    """Puts each record into the sessions no further away than the gap, which become one, or into a new session.

    The record is late iff the session that would come out of it has ``end < stream time - gap - grace`` (Kafka's
    ``KStreamSessionWindowAggregate``). A session with ``end <= store time - retention`` is not seen any more. Records
    with null keys (code < 0) have no sessions.

    Args:
        key_code: int64.
        timestamp: int64, ms.
        clock: int64, the stream time at each record, ms.
        gap: Inactivity gap, ms.
        grace: Grace period, ms.
        retention: How long after its end a session is seen, ms.
        once: 1: stop before a record that touches a session which this call has updated already.
        store_time: The largest end of a session so far, ms.
        known: How many slots are taken.
        first_update: Number of the first update of this call in the working set.
        newest: int64, by key code: the slot of the newest session, else `NO_SLOT`.
        sessions: `SESSION`, by slot; with room for one more a record.
        rows: Out, int64, by update: the record.
        slots: Out, int64, by update: the slot of the session that the record is in now.
        absorbed: Out, int64, by update: the slot of the session merged into that, else `NO_SLOT`.
        emissions: Out, `EMISSION`: for each update a tombstone of each session that it changes, by end, then the new
            one; a session of one timestamp that keeps it has no tombstone. Room for three a record.
        accepted: Out, bool, by record: whether it is in a session.
        lateness: Out, int64, by record: stream time minus timestamp, ms.

    Returns:
        How many records are done; the numbers of updates and of emissions; the new values of ``known`` and
        ``store_time``.
    """
    updates = i64(0)
    emitted = i64(0)
    for row in range(len(key_code)):
        key = key_code[row]
        accepted[row] = False
        lateness[row] = 0
        if key < 0:
            continue
        time = timestamp[row]
        above, below, newer, older = _reached(key, time, gap, store_time - retention, newest, sessions)
        start = end = time
        if newer != NO_SLOT:
            if once and sessions[newer].last_update >= first_update:
                return row, updates, emitted, known, store_time
            start = min(start, sessions[newer].start)
            end = max(end, sessions[newer].end)
        if older != NO_SLOT:
            if once and sessions[older].last_update >= first_update:
                return row, updates, emitted, known, store_time
            start = min(start, sessions[older].start)
        lateness[row] = clock[row] - time
        if end < clock[row] - gap - grace:
            continue
        accepted[row] = True
        changed = newer != NO_SLOT and (start != time or end != time)
        if changed:
            for touched in (older, newer):
                if touched != NO_SLOT:
                    emission = emissions[emitted]
                    _emit(emission, row, touched, sessions[touched], NO_UPDATE, first_update)
                    emission.replaces = 1
                    emitted += 1
        if newer == NO_SLOT:
            slot = known
            known += 1
            _open(sessions[slot], key, below)
            link(above, key, slot, newest, sessions)
        elif older == NO_SLOT:
            slot = newer
        else:
            slot = older
            sessions[newer].alive = 0
            link(above, key, older, newest, sessions)
        session = sessions[slot]
        session.start = start
        session.end = end
        emission = emissions[emitted]
        _emit(emission, row, slot, session, updates, first_update)
        emission.replaces = 1 if newer != NO_SLOT and not changed else 0
        emitted += 1
        session.last_update = first_update + updates
        rows[updates] = row
        slots[updates] = slot
        absorbed[updates] = newer if older != NO_SLOT else NO_SLOT
        updates += 1
        store_time = max(store_time, end)
    return len(key_code), updates, emitted, known, store_time
