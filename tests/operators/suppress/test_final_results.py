"""Final results: of each window one, the aggregate of all records that were accepted for it."""

from __future__ import annotations

import struct
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from statelib.errors.kinds import ConfigurationError
from statelib.operators.aggregation.definition import Aggregate, Reduce, single
from statelib.operators.aggregation.sql_functions import count
from statelib.operators.sessions.operator import SessionAggregate
from statelib.operators.sliding.operator import SlidingAggregate
from statelib.operators.suppress.definition import BufferConfig, Suppressed
from statelib.operators.suppress.operator import RunningSuppress, Suppress
from statelib.operators.windows.day_windows import DayWindows
from statelib.operators.windows.definition import SessionWindows, SlidingWindows, TimeWindows
from statelib.operators.windows.operator import WindowAggregate
from tests.effort import examples
from tests.operators.chain import Chain, Record, Row, rows_of
from tests.operators.sessions.examples import WINDOWS, session_records
from tests.reference.session_aggregate import all_values
from tests.reference.suppress import Buffer

if TYPE_CHECKING:
    from statelib.operators.base import OperatorSpec
    from statelib.operators.windows.definition import AnyWindows
    from statelib.settings.semantics import Semantics

RECORDS = session_records(st.none() | st.integers(0, 9))
HALF_HOUR_MS = 1_800_000
FRIDAY_BEFORE_SUMMER = 1_711_700_000_000 // HALF_HOUR_MS
"""The 29th of March 2024; clocks are changed two days later."""
UNBOUNDED = BufferConfig.unbounded()
FINAL = Suppressed.until_window_closes(UNBOUNDED)
VALUES = Aggregate(
    list, lambda _, value, values: [*values, value], pa.list_(pa.int64()), lambda _, one, other: one + other
)
BETWEEN = st.sampled_from(["nothing", "flush", "restart"])
CUTS = st.lists(st.sampled_from(["nothing", "flush", "spill", "restart"]), min_size=1, max_size=5)
BUFFERS = st.sampled_from([
    UNBOUNDED,
    BufferConfig.max_records(0).spill_to_disk_when_full(),
    BufferConfig.max_records(2).spill_to_disk_when_full(),
    BufferConfig.max_bytes(0).spill_to_disk_when_full(),
    BufferConfig.max_records(10_000).shut_down_when_full(),
])  # fmt: skip


def aggregate_of(windows: AnyWindows, aggregator: Any) -> OperatorSpec:
    """An aggregation of stream records by windows of any kind."""
    match windows:
        case SessionWindows():
            return SessionAggregate("w", windows, aggregator, needs_prior=True)
        case SlidingWindows():
            return SlidingAggregate("w", windows, aggregator, needs_prior=True)
    return WindowAggregate("w", windows, aggregator, needs_prior=True)


@st.composite
def any_windows(draw: st.DrawFn) -> AnyWindows:
    size, grace = draw(st.integers(0, 12)), draw(st.sampled_from([0, 0, 1, 5, 15]))
    kind = draw(st.sampled_from(["tumbling", "hopping", "days", "sliding", "session"]))
    if kind == "days":
        return DayWindows("Europe/Berlin", grace * HALF_HOUR_MS)
    if kind == "sliding":
        return SlidingWindows(size, grace)
    if kind == "session":
        return SessionWindows(size, grace)
    advance = size + 1 if kind == "tumbling" else draw(st.integers(1, size + 1))
    return TimeWindows(size + 1, advance, grace, draw(st.sampled_from([0, 0, 5])))


@st.composite
def histories(draw: st.DrawFn) -> tuple[AnyWindows, list[Record]]:
    """Windows, and records at and about the times at which these close."""
    windows = draw(any_windows())
    unit, first = (HALF_HOUR_MS, FRIDAY_BEFORE_SUMMER) if isinstance(windows, DayWindows) else (1, 0)
    first += draw(st.sampled_from([0, 0, 100]))
    wait = windows.final_after_ms("kafka-4.3") // unit
    moves = st.sampled_from([0, 0, 1, 1, 2, 5, wait, wait + 1])
    late = st.sampled_from([0, 0, 0, 1, 2, 5, wait, wait + 1, wait + 12, 2 * wait])
    now, records = first, []
    for number in range(draw(st.integers(0, 30))):
        now += draw(moves)
        key = draw(st.sampled_from(["a", "a", "a", "b", "ab", None]))
        records.append(Record(key, number, max(0, now - draw(late)) * unit))
    return windows, records


def results(
    specs: list[OperatorSpec], records: list[Record], size: int, cuts: list[str], semantics: Semantics = "kip"
) -> list[Row]:
    """What a chain lets go, its end sealed."""
    chain = Chain(specs, pa.int64(), semantics=semantics)
    rows = chain.run(records, size, *cuts)[-1]
    final = chain.operators[-1]
    assert isinstance(final, RunningSuppress)
    sealed = rows_of(final.seal([chain.forwarded([])[-2]]))
    return rows + [replace(row, sequence=len(records)) for row in sealed]


def check(windows: AnyWindows, updates: list[Row], finals: list[Row]) -> None:
    """Compares final results with the updates that would have come without any suppression."""
    history: dict[Any, list[Row]] = {}
    for row in updates:
        history.setdefault((row.key, row.window), []).append(row)
    by_window = {(row.key, row.window): row for row in finals}
    assert len(by_window) == len(finals), "one a window"
    for window, rows in history.items():
        final, last = by_window.pop(window, None), rows[-1]
        if final is None:
            assert last.value is None
        elif last.value is None:  # an open session that was final has been extended: it is another one now
            assert isinstance(windows, SessionWindows)
            assert (final.value, final.sequence < last.sequence) == (rows[-2].value, True)
        else:
            assert (final.value, final.timestamp) == (last.value, last.timestamp)
            assert final.sequence >= last.sequence
    assert by_window == {}


@examples(120)
@given(histories(), st.integers(1, 12), CUTS, BUFFERS)
def test_each_is_of_all_records_that_the_window_has_taken(
    history: tuple[AnyWindows, list[Record]], size: int, cuts: list[str], buffer: Any
) -> None:
    windows, records = history
    aggregate = aggregate_of(windows, VALUES)
    (updates,) = Chain([aggregate], pa.int64()).run(records, max(len(records), 1))
    final = Suppress("b", Suppressed.until_window_closes(buffer), windows)
    check(windows, updates, results([aggregate, final], records, size, cuts))


@examples(100)
@example(
    (TimeWindows(10, 5, 0), [Record(key, at, at) for key, at in [("k", 1), ("j", 7), ("k", 8), ("j", 12), ("j", 13)]]),
    [(5, "first")], UNBOUNDED, 1, ["nothing"],
)  # fmt: skip
@given(
    histories(), st.lists(st.tuples(st.integers(0, 40), st.sampled_from(["first", "record", "last"])), max_size=2),
    st.sampled_from([BufferConfig.max_records(1), BufferConfig.max_records(3), UNBOUNDED]), st.integers(1, 12), CUTS,
)  # fmt: skip
def test_those_behind_time_limits_are_too(
    history: tuple[AnyWindows, list[Record]], limits: list[tuple[int, Any]], buffer: Any, size: int, cuts: list[str]
) -> None:
    """An update may be held back till others are long past the end of its window."""
    windows, records = history
    aggregate = aggregate_of(windows, VALUES)
    records = [*records, *(Record("z", 0, time) for time in later(records))]  # each level lets all go
    (updates,) = Chain([aggregate], pa.int64()).run(records, 40)
    held: list[OperatorSpec] = [
        Suppress(f"held-{number}", limited(limit, buffer, clock), windows)
        for number, (limit, clock) in enumerate(limits)
    ]
    final = Suppress("final", FINAL, windows, held_ms=max((limit for limit, _ in limits), default=0))
    finals = results([aggregate, *held, final], records, size, cuts)
    check(windows, [row for row in updates if row.key != "z"], [row for row in finals if row.key != "z"])


def later(records: list[Record]) -> range:
    """Four times that are far later than all others, and from each other."""
    last = max((record.timestamp for record in records), default=0)
    far = 10_000 if last < HALF_HOUR_MS else 400 * 24 * 3_600_000
    return range(last + far, last + 5 * far, far)


def limited(limit: int, buffer: Any = UNBOUNDED, clock: Any = "first") -> Suppressed:
    return Suppressed.until_time_limit(timedelta(milliseconds=limit), buffer, clock=clock)


def kept(windows: AnyWindows, records: list[Record], semantics: Semantics = "kip") -> list[tuple[Any, Any]]:
    """Windows and final values of key A, which come before the end of the input."""
    specs = [aggregate_of(windows, Reduce(lambda a, b: a + b)), Suppress("b", FINAL, windows)]
    chains = [Chain(specs, pa.string(), semantics=semantics).run(records, size, "restart")[1] for size in (1, 9)]
    assert chains[0] == chains[1]
    return [(row.window, row.value) for row in chains[0] if row.key == "A"]


@pytest.mark.parametrize(
    ("windows", "records", "finals"),
    [
        (SlidingWindows(10, 0), "A1@100 A2@100 Az@200", [((90, 100), "12")]),
        (SlidingWindows(10, 0), "A1@0 A2@5 A3@10 A4@17", [((0, 10), "123"), ((1, 11), "23"), ((6, 16), "3")]),
        (SlidingWindows(10, 5), "A1@100 Bb@105 A2@100 Bz@200", [((90, 100), "12")]),
        (SlidingWindows(10, 5), "A1@100 Bb@105 A2@100 Bb@106 A3@100 Bz@200", [((90, 100), "12")]),
        (SlidingWindows(0, 0), "A1@7 A2@7 Bb@8", [((7, 7), "12")]),
        (SessionWindows(5, 0), "A1@10 Bb@15 A2@10 Bb@16", [((10, 10), "12")]),
        (SessionWindows(5, 3), "A1@10 Bb@18 A2@9 A3@10 Bb@19", [((9, 10), "123")]),
        (SessionWindows(0, 0), "A1@7 A2@7 Bb@8", [((7, 7), "12")]),
        (TimeWindows(10, 10, 0), "A1@9 A2@9 Bb@10 A3@9 Bb@20", [((0, 10), "12")]),
        (TimeWindows(10, 5, 5), "A1@9 Bb@14 A2@9 Bb@15 A3@9 Bb@20", [((0, 10), "12"), ((5, 15), "123")]),
    ],
)
def test_a_record_at_the_very_end_is_in_it(windows: AnyWindows, records: str, finals: list[Any]) -> None:
    given_records = [Record(one[0], one[1], int(one[3:])) for one in records.split()]
    assert kept(windows, given_records) == finals


def test_windows_that_wait_for_a_record_at_their_end_are_open() -> None:
    windows = SlidingWindows(10, 5)
    chain = Chain([aggregate_of(windows, single(count())), Suppress("b", FINAL, windows)], pa.int64())
    chain.run([Record("a", 1, 100), Record("b", 1, 105)], 2)
    assert (chain.metrics[1].held_after, chain.operators[1].oldest_buffer_time) == (2, 100)  # type: ignore[attr-defined]
    chain.flush()
    assert chain.operators[0].open_windows() == 2  # type: ignore[attr-defined]


def test_a_strict_buffer_has_room_for_those_that_close_now() -> None:
    """At stream time 110 the window to 100 may still change, so it counts; a millisecond later it does not."""
    windows = SlidingWindows(10, 10)
    for time, fails in ((110, True), (111, False)):
        strict = Suppressed.until_window_closes(BufferConfig.max_records(1).shut_down_when_full())
        chain = Chain([aggregate_of(windows, single(count())), Suppress("b", strict, windows)], pa.int64())
        chain.process([Record("a", 1, 100)])
        if fails:
            with pytest.raises(ConfigurationError, match="holds 2 records"):
                chain.process([Record("b", 1, time)])
        else:
            assert [row.window for row in chain.process([Record("b", 1, time)])[1]] == [(90, 100)]


def expected_rows(windows: SessionWindows, records: list[Record], limit: int | None) -> list[Row]:
    """The two models in a row."""
    sessions = all_values(windows.gap_ms, windows.grace_period_ms)
    wait = windows.gap_ms + windows.grace_period_ms + 1 if limit is None else limit
    buffer = Buffer(wait, final=limit is None)
    rows = []
    for i, record in enumerate(records):
        for start, end, value, prior in sessions.process(record.key, record.value, record.timestamp):
            window = str(record.key).encode() + struct.pack(">qq", end, start)
            time = end if limit is None else None
            for raw, left, timestamp, old in buffer.process(window, value, end, prior=prior, time=time):
                ends = struct.unpack(">qq", raw[-16:])
                rows.append(Row(i, raw[:-16].decode(), left, timestamp, ends[::-1], old))
    return rows


@given(WINDOWS, RECORDS, st.integers(1, 10), BETWEEN)
def test_final_sessions_like_the_reference(
    windows: SessionWindows, records: list[Record], size: int, between: str
) -> None:
    specs = [aggregate_of(windows, VALUES), Suppress("b", FINAL, windows)]
    assert Chain(specs, pa.int64()).run(records, size, between)[1] == expected_rows(windows, records, None)


@given(WINDOWS, RECORDS, st.integers(0, 30), st.integers(1, 10), BETWEEN)
def test_sessions_behind_a_time_limit_like_the_reference(
    windows: SessionWindows, records: list[Record], limit: int, size: int, between: str
) -> None:
    specs = [aggregate_of(windows, VALUES), Suppress("b", limited(limit), windows)]
    assert Chain(specs, pa.int64()).run(records, size, between)[1] == expected_rows(windows, records, limit)


def test_the_shipped_library_forwards_a_session_again_that_changes_as_it_closes() -> None:
    records = [Record("B", "b", 15), Record("A", "1", 10), Record("A", "2", 10)]
    assert kept(SessionWindows(5, 0), records, "kafka-4.3") == [((10, 10), "1"), ((10, 10), "2")]


def test_a_session_that_was_final_and_is_extended_gets_a_result_of_its_own() -> None:
    windows = SessionWindows(5, 0)
    chain = Chain([aggregate_of(windows, single(count())), Suppress("b", FINAL, windows)], pa.int64())
    records = [Record("k", 0, 8), Record("other", 0, 16), Record("k", 0, 11), Record("k", 0, 10), Record("z", 0, 40)]
    final = chain.run(records, 5)[1]
    shown = [(row.window, row.value) for row in final]
    assert shown == [((8, 8), 1), ((8, 11), 3), ((16, 16), 1)]
    assert chain.metrics[1].accounts == {"emitted": 3, "tombstone": 1, "replaced": 2}
    assert chain.metrics[1].unaccounted == 0
