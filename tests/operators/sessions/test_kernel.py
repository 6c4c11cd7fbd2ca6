from __future__ import annotations

import numpy as np

from statelib.operators.aggregation.accumulators.kernel import NO_SLOT, NO_UPDATE
from statelib.operators.sessions.kernel import NOT_STORED
from statelib.operators.sessions.slots_kernel import Assigned, SessionSlots, is_stored


def slots_for(gap: int = 5, grace: int = 20, retention: int = 100) -> SessionSlots:
    slots = SessionSlots(gap, grace, retention, -1)
    slots.reserve_keys(4)
    return slots


def put(slots: SessionSlots, *records: tuple[int, int], once: bool = False) -> Assigned:
    keys, times = (np.array(column, dtype=np.int64) for column in zip(*records, strict=True))
    clock = np.maximum(np.maximum.accumulate(np.where(keys >= 0, times, -1)), slots.store_time)
    return slots.assign(keys, times, clock, once=once)


def test_a_session_keeps_its_slot_and_the_newer_of_two_is_absorbed() -> None:
    slots = slots_for()
    found = put(slots, (0, 0), (1, 0), (0, 10), (-1, 99), (0, 5), (0, 12))
    assert found.rows.tolist() == [0, 1, 2, 4, 5]
    assert found.slots.tolist() == [0, 1, 2, 0, 0]
    assert found.absorbed.tolist() == [NO_SLOT] * 3 + [2, NO_SLOT]
    assert found.accepted.tolist() == [True, True, True, False, True, True]
    assert found.lateness.tolist() == [0, 0, 0, 0, 5, 0]
    assert found.emissions[["slot", "start", "end", "update", "prior_update", "replaces"]].tolist() == [
        (0, 0, 0, 0, NO_UPDATE, 0),
        (1, 0, 0, 1, NO_UPDATE, 0),
        (2, 10, 10, 2, NO_UPDATE, 0),
        (0, 0, 0, NO_UPDATE, 0, 1),
        (2, 10, 10, NO_UPDATE, 2, 1),
        (0, 0, 10, 3, 0, 0),
        (0, 0, 10, NO_UPDATE, 3, 1),
        (0, 0, 12, 4, 3, 0),
    ]
    assert slots.sessions["alive"].tolist() == [1, 1, 0]
    assert (slots.store_time, len(slots)) == (12, 3)


def test_once_stops_before_a_session_is_touched_again() -> None:
    slots = slots_for()
    records = [(0, 0), (1, 0), (0, 20), (0, 3), (1, 1)]
    done = []
    while sum(done) < len(records):
        done.append(len(put(slots, *records[sum(done) :], once=True).accepted))
    assert done == [3, 2]
    assert (slots.store_time, slots.sessions["end"].tolist()) == (20, [3, 1, 20])


def test_late_records_and_unseen_sessions() -> None:
    slots = slots_for(gap=5, grace=0, retention=5)
    assert put(slots, (0, 0), (1, 10), (0, 4), (0, 5)).accepted.tolist() == [True, True, False, True]
    assert slots.sessions["start"].tolist() == [0, 10, 5]  # the session at 0 is out of retention
    assert slots.last_expired_end == 5


def test_stored_sessions_lie_below_those_in_memory() -> None:
    slots = slots_for()
    put(slots, (1, 50))
    keys, starts, ends = (np.array(column) for column in ([0, 1, 1], [7, 10, 30], [9, 12, 40]))
    bounds = {"start": starts, "end": ends, "stored_start": starts, "stored_end": ends}
    assert slots.add_stored(keys, **bounds).tolist() == [1, 2, 3]
    assert is_stored(slots.sessions).tolist() == [False, True, True, True]
    found = put(slots, (1, 45), (1, 31), (1, 13), (1, 20), (0, 30))
    assert found.slots.tolist() == [3, 3, 4]
    assert found.accepted.tolist() == [True, True, False, False, True]
    assert slots.sessions["older"][[3, 2]].tolist() == [2, NO_SLOT]


def test_remove_and_keep_number_anew() -> None:
    slots = slots_for(gap=1)
    put(slots, (0, 0), (0, 10), (1, 10), (0, 20), (0, 30))
    slots.remove(np.array([1, 4]))
    assert slots.sessions["alive"].tolist() == [1, 0, 1, 1, 0]
    slots.keep(np.array([0, 2, 3]))
    assert len(slots) == 3
    assert slots.sessions["older"].tolist() == [NO_SLOT, NO_SLOT, 0]
    found = put(slots, (0, 10), (0, 21), (1, 11), (0, 31))
    assert found.slots.tolist() == [3, 2, 1, 4]
    assert found.emissions["start"].tolist() == [10, 20, 20, 10, 10, 31]
    slots.clear()
    slots.reserve_keys(1)
    assert put(slots, (0, 31)).slots.tolist() == [0]
    assert (slots.sessions["stored_end"] == NOT_STORED).all()


def test_a_session_that_is_not_seen_any_more_can_be_removed() -> None:
    slots = slots_for(gap=5, grace=0, retention=5)
    put(slots, (0, 0), (1, 10), (0, 5))  # the new session of key 0 does not know of the one at 0
    assert slots.sessions["older"].tolist() == [NO_SLOT, NO_SLOT, NO_SLOT]
    slots.remove(np.array([0, 2]))
    assert slots.sessions["alive"].tolist() == [0, 1, 0]
    assert put(slots, (0, 10)).slots.tolist() == [3]


def test_many_sessions_grow_the_arrays() -> None:
    slots = slots_for(gap=1, grace=100_000, retention=200_000)
    times = np.arange(5_000) * 3
    clock = np.full(5_000, times[-1])
    found = slots.assign(np.zeros(5_000, dtype=np.int64), times[::-1].copy(), clock, once=False)
    assert len(slots) == len(found.rows) == 5_000
    bytes_before = slots.memory_bytes()
    joined = slots.assign(np.zeros(4_999, dtype=np.int64), times[1:] - 1, clock[1:], once=False)
    assert (joined.absorbed != NO_SLOT).sum() == 0  # 3 apart: each record is next to one session only
    assert slots.sessions["end"].max() == times[-1]
    assert slots.memory_bytes() >= bytes_before
