"""When scheduled calls are due, as Kafka's ``PunctuationQueue`` has it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from statelib.errors.kinds import ConfigurationError, CorruptedDataError
from statelib.operators.processors.codec import StoredCall, decode_calls, encode_calls
from statelib.operators.processors.punctuation import PunctuationQueue, Schedule, Scheduler, begin
from statelib.stores.backend import WriteBatch
from statelib.stores.memory import MemoryBackend


def calls(interval_ms: int, stream_times: list[int]) -> list[int]:
    made: list[int] = []
    queue = PunctuationQueue()
    queue.add(Schedule("#0", interval_ms, made.append))
    for time in stream_times:
        queue.punctuate(time)
    return made


def test_first_at_once_then_at_multiples_of_the_interval() -> None:
    assert calls(10, [3, 7, 9, 10, 11, 20, 29, 30]) == [3, 10, 20, 30]


def test_what_was_missed_is_made_up_for_once() -> None:
    assert calls(10, [0, 5, 47, 48, 50, 51, 60]) == [0, 47, 50, 60]
    now = 1_700_000_000_000
    assert calls(10, [now + 3, now + 9, now + 10]) == [now + 3, now + 10]


def test_nothing_without_stream_time() -> None:
    assert calls(10, [-1]) == []


def test_the_earliest_due_comes_first_equal_ones_as_in_javas_priority_queue() -> None:
    made: list[str] = []
    queue = PunctuationQueue()
    for name, interval_ms in (("a", 10), ("b", 20), ("c", 10), ("d", 5)):
        queue.add(Schedule(name, interval_ms, lambda _, name=name: made.append(name)))
    queue.punctuate(0)
    # By hand: the heap is [a0 b0 c0 d0]; without a, with a10: [d0 b0 c0 a10]; without d, with d5: [b0 d5 c0 a10]; ...
    assert made == ["a", "d", "b", "c"]
    made.clear()
    queue.punctuate(20)
    assert sorted(made) == ["a", "b", "c", "d"], "each once"
    assert made[:1] == ["d"], "which was due at 5"


def test_cancelled_calls_are_not_made() -> None:
    made: list[int] = []
    queue = PunctuationQueue()
    schedule = Schedule("#0", 10, made.append)
    queue.add(schedule)
    queue.punctuate(1)
    schedule.cancel()
    queue.punctuate(100)
    assert (made, queue.next_due_ms) == ([1], None)
    itself = Schedule("#1", 10, lambda time: (made.append(time), itself.cancel()))
    queue.add(itself)
    queue.punctuate(200)
    queue.punctuate(300)
    assert made == [1, 200]


def by_wall_clock(name: str, interval_ms: int, made: list[tuple[str, int]], start_ms: int = -1) -> Schedule:
    def tell(time: int) -> None:
        made.append((name, time))

    return Schedule(name, interval_ms, tell, start_ms, by_wall_clock=True, waits=True)


def test_by_the_wall_clock_the_first_call_comes_an_interval_after_the_first_record() -> None:
    made: list[tuple[str, int]] = []
    queue = PunctuationQueue()
    queue.add(by_wall_clock("init", 10, made))
    queue.add(by_wall_clock("past", 10, made, start_ms=5))
    queue.add(by_wall_clock("later", 10, made, start_ms=130))
    assert queue.next_due_ms is None
    queue.add(Schedule("stream", 10, lambda time: made.append(("stream", time))))
    for time in (103, 112, 113, 134):
        queue.begin_clock(time)
        queue.punctuate(time)
    assert made == [
        ("stream", 103),
        *[("stream", 112), ("past", 112)],
        ("init", 113),
        *[("stream", 134), ("past", 134), ("init", 134), ("later", 134)],
    ]


@given(
    st.lists(st.tuples(st.integers(1, 7), st.integers(0, 40), st.booleans()), max_size=8),
    st.lists(st.integers(0, 9), max_size=20),
)
def test_a_queue_that_was_stored_goes_on_as_it_was(schedules: list[tuple[int, int, bool]], steps: list[int]) -> None:
    made: list[tuple[str, int]] = []

    def schedule(name: str, interval_ms: int, is_by_wall_clock: bool) -> Schedule:
        if is_by_wall_clock:
            return by_wall_clock(name, interval_ms, made)
        return Schedule(name, interval_ms, lambda time: made.append((name, time)))

    whole, cut = PunctuationQueue(), PunctuationQueue()
    results = []
    for queue, restart in ((whole, False), (cut, True)):
        made.clear()
        current, time = queue, 0
        waiting = [(at, f"#{n}", interval, wall) for n, (interval, at, wall) in enumerate(schedules)]
        for step in steps:
            time += step
            current.begin_clock(time)
            for entry in [entry for entry in waiting if entry[0] <= time]:
                current.add(schedule(*entry[1:]))
                waiting.remove(entry)
            current.punctuate(time)
            if restart:
                stored = decode_calls(encode_calls(current.stored()), "N")
                current = PunctuationQueue()
                current.restore(stored, lambda call: schedule(call.callback, call.interval_ms, call.by_wall_clock))
        results.append(list(made))
    assert results[0] == results[1]


def test_golden_bytes() -> None:
    raw = bytes.fromhex(
        "01 00000002 0000000000000304 000000000000000a 00 0002 2330 0000000000000001 0000000000000002 01 0001 66"
    )
    stored = [StoredCall(772, 10, False, "#0"), StoredCall(1, 2, True, "f")]
    assert encode_calls(stored) == raw
    assert decode_calls(raw, "N") == stored
    for damaged in (b"", raw[:-1], raw + b"x", raw[:3]):
        with pytest.raises(CorruptedDataError, match="scheduled calls"):
            decode_calls(damaged, "N")
    with pytest.raises(ConfigurationError, match="written in format 3, and this release reads formats 1 to 2"):
        decode_calls(b"\x03" + raw[1:], "N")


def test_golden_bytes_of_calls_by_the_wall_clock() -> None:
    raw = bytes.fromhex(
        "02 00000002 0000000000000304 000000000000000a 02 0002 2330 ffffffffffffffff 0000000000000002 07 0001 66"
    )
    stored = [StoredCall(772, 10, False, "#0", by_wall_clock=True), StoredCall(-1, 2, True, "f", True, True)]
    assert encode_calls(stored) == raw
    assert decode_calls(raw, "N") == stored


class Owner:
    def tell(self, time: int) -> None:
        """A callback."""


def test_the_next_slice_must_find_callbacks_again() -> None:
    backend, owner = MemoryBackend(), Owner()

    def begun(*intervals: int, by_wall_clock: bool = False) -> Scheduler:
        scheduler = Scheduler(backend, "N", "N.punctuation", owner)
        for interval in intervals:
            scheduler.schedule(interval, lambda time: None, by_wall_clock=by_wall_clock)
        begin([scheduler])
        return scheduler

    scheduler = begun(10, 20)
    scheduler.schedule(30, owner.tell)
    for callback in (lambda time: None, Owner().tell, print):
        with pytest.raises(ConfigurationError, match="must be a method of the processor"):
            scheduler.schedule(30, callback)
    write = WriteBatch()
    scheduler.flush(write)
    backend.write(write)
    again = begun(10, 20)
    assert [call[1:4] for call in again.queue.stored("N")] == [
        (10, False, "#0"),
        (20, False, "#1"),
        (30, False, "tell"),
    ]
    write = WriteBatch()
    again.flush(write)
    assert len(write) == 0, "nothing has changed"
    for others in ((10,), (10, 21), ()):
        with pytest.raises(ConfigurationError, match="init no longer schedules"):
            begun(*others)
    with pytest.raises(ConfigurationError, match="init no longer schedules"):
        begun(10, 20, by_wall_clock=True)
