from __future__ import annotations

import struct
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from statelib.errors.kinds import ConfigurationError
from statelib.operators.aggregation.definition import Aggregate, Reduce, single
from statelib.operators.aggregation.sql_functions import count
from statelib.operators.sliding.operator import SlidingAggregate
from statelib.operators.suppress.definition import BufferConfig, Suppressed
from statelib.operators.suppress.operator import Suppress
from statelib.operators.windows.definition import SlidingWindows
from tests.operators.aggregation.functions import SQL, row, values
from tests.operators.chain import Chain, Record, Row
from tests.reference.sliding_aggregate import SlidingWindowed
from tests.reference.sql_functions import sql, timed
from tests.reference.suppress import Buffer

if TYPE_CHECKING:
    from statelib.settings.semantics import Semantics

INTEGERS = row(pa.int32())
VALUES = values(st.integers(-9, 9))
RECORDS = st.lists(st.builds(Record, st.sampled_from([None, "", "a", "b"]), VALUES, st.integers(0, 60)), max_size=40)
NEARBY = st.lists(st.builds(Record, st.just("a"), VALUES, st.integers(0, 12)), max_size=12)
WINDOWS = st.builds(SlidingWindows, st.integers(0, 20), st.integers(0, 30))
SEMANTICS = st.sampled_from(["kip", "kafka-4.3"])
BETWEEN = st.sampled_from(["nothing", "flush", "restart"])


def reference(windows: SlidingWindows, semantics: Any) -> SlidingWindowed:
    seen_ms = SlidingAggregate("w", windows, SQL).seen_ms(semantics)
    return SlidingWindowed(windows.time_difference_ms, windows.grace_period_ms, seen_ms)


def expected_rows(model: SlidingWindowed, records: list[Record]) -> list[Row]:
    rows = []
    for i, record in enumerate(records):
        value = timed(record.value, record.timestamp)
        for start, taken, timestamp, before in model.process(record.key, value, record.timestamp):
            window = (start, start + model.difference_ms)
            rows.append(Row(i, record.key, sql(taken), timestamp, window, None if before is None else sql(before)))
    return rows


def without_prior(rows: list[Row]) -> list[Any]:
    return [(row.sequence, row.key, row.value, row.timestamp, row.window) for row in rows]


@given(WINDOWS, RECORDS | NEARBY, st.integers(1, 10), BETWEEN)
@example(SlidingWindows(7, 1), [Record("a", {"x": 1}, time) for time in (1, 9, 1)], 1, "nothing")
@example(SlidingWindows(4, 0), [Record("a", {"x": 1}, time) for time in (2, 6, 11, 7)], 1, "nothing")
def test_sql_like_the_reference(windows: SlidingWindows, records: list[Record], size: int, between: str) -> None:
    model = reference(windows, "kip")
    expected = expected_rows(model, records)
    chain = Chain([SlidingAggregate("w", windows, SQL, needs_prior=True)], INTEGERS)
    assert chain.run(records, size, between) == [expected]
    chain.restart()
    late = sum(metrics.counters.get("late-record-drop", 0) for metrics in chain.finished[0])
    assert late == model.late_windows


@given(WINDOWS, RECORDS | NEARBY, st.integers(1, 10), BETWEEN)
@example(SlidingWindows(7, 1), [Record("a", {"x": 1}, time) for time in (1, 9, 1)], 1, "nothing")
@example(SlidingWindows(4, 0), [Record("a", {"x": 1}, time) for time in (2, 6, 11, 7)], 1, "nothing")
def test_the_shipped_library_like_the_reference(
    windows: SlidingWindows, records: list[Record], size: int, between: str
) -> None:
    expected = expected_rows(reference(windows, "kafka-4.3"), records)
    chain = Chain([SlidingAggregate("w", windows, SQL, needs_prior=True)], INTEGERS, semantics="kafka-4.3")
    assert without_prior(chain.run(records, size, between)[0]) == without_prior(expected)


@given(WINDOWS, RECORDS, st.integers(1, 10), BETWEEN)
@example(SlidingWindows(7, 1), [Record("a", {"x": 1}, time) for time in (1, 9, 1)], 1, "nothing")
@example(SlidingWindows(4, 0), [Record("a", {"x": 1}, time) for time in (2, 6, 11, 7)], 1, "nothing")
def test_python_functions_like_the_reference(
    windows: SlidingWindows, records: list[Record], size: int, between: str
) -> None:
    def add(key: str, value: dict[str, int | None], aggregate: list[int]) -> list[int]:
        aggregate.append(value["x"] or 0)  # a function that changes its argument harms nobody
        return aggregate

    model = reference(windows, "kip")
    expected = [
        (i, start, [value["x"] or 0 for value in values], timestamp)
        for i, record in enumerate(records)
        for start, values, timestamp, _ in model.process(record.key, record.value, record.timestamp)
    ]
    spec = SlidingAggregate("w", windows, Aggregate(list, add, pa.list_(pa.int64())), needs_prior=True)
    (rows,) = Chain([spec], INTEGERS).run(records, size, between)
    assert [(row.sequence, row.window and row.window[0], row.value, row.timestamp) for row in rows] == expected


@given(WINDOWS, RECORDS, st.integers(1, 10), st.integers(1, 10))
def test_state_does_not_depend_on_batches(windows: SlidingWindows, records: list[Record], one: int, other: int) -> None:
    content = []
    for size in (one, other):
        chain = Chain([SlidingAggregate("w", windows, SQL)], INTEGERS)
        chain.run(records, size)
        chain.flush()
        content.append(chain.content())
    assert content[0] == content[1]


@given(RECORDS, st.integers(1, 10), BETWEEN)
def test_windows_that_a_function_removes(records: list[Record], size: int, between: str) -> None:
    """Batches, flushes and restarts change nothing of what comes out."""

    def drop_nines(_: str, value: dict[str, int | None], aggregate: int) -> int | None:
        return None if value["x"] == 9 else aggregate + (value["x"] or 0)

    spec = SlidingAggregate("w", SlidingWindows(5, 10), Aggregate(lambda: 0, drop_nines, pa.int64()), needs_prior=True)
    assert Chain([spec], INTEGERS).run(records, size, between) == Chain([spec], INTEGERS).run(records, 1, "restart")


@given(WINDOWS, RECORDS | NEARBY, st.integers(1, 10), BETWEEN)
def test_final_results_like_the_reference(
    windows: SlidingWindows, records: list[Record], size: int, between: str
) -> None:
    """They come when stream time has passed end and grace period: till then a window takes records."""
    model, buffer = reference(windows, "kip"), Buffer(windows.grace_period_ms + 1, final=True)
    expected: list[Row] = []
    for i, record in enumerate(records):
        value = timed(record.value, record.timestamp)
        for start, taken, timestamp, before in model.process(record.key, value, record.timestamp):
            window = record.key.encode() + struct.pack(">q", start)
            prior = None if before is None else sql(before)
            end = start + windows.time_difference_ms
            for raw, result, time, old in buffer.process(window, sql(taken), timestamp, prior=prior, time=end):
                (first,) = struct.unpack(">q", raw[-8:])
                bounds = (first, first + windows.time_difference_ms)
                expected.append(Row(i, raw[:-8].decode(), result, time, bounds, old))
    final = Suppress("b", Suppressed.until_window_closes(BufferConfig.unbounded()), windows)
    chain = Chain([SlidingAggregate("w", windows, SQL, needs_prior=True), final], INTEGERS)
    assert chain.run(records, size, between)[1] == expected


def test_every_set_of_records_within_the_difference_has_a_window() -> None:
    chain = Chain([SlidingAggregate("w", SlidingWindows(10, 50), single(count()))], pa.int64())
    (rows,) = chain.run([Record("k", 1, time) for time in (20, 25, 32, 22)], 4)
    latest = {row.window: row.value for row in rows}
    assert latest == {
        (10, 20): 1,
        (12, 22): 2,
        (15, 25): 3,
        (21, 31): 2,
        (22, 32): 3,
        (23, 33): 2,
        (26, 36): 1,
    }


def test_nulls_are_dropped_and_counted_and_do_not_move_the_clock() -> None:
    chain = Chain([SlidingAggregate("w", SlidingWindows(10, 0), single(count()))], pa.int64())
    records = [Record("k", 1, 20), Record(None, 1, 100), Record("k", None, 100), Record("k", 1, 25), Record("k", 1, 9)]
    chain.run(records, 5)
    assert chain.metrics[0].accounts == {"aggregated": 2, "late": 1, "null-key": 1, "null-value": 1}
    assert chain.metrics[0].counters["late-record-drop"] == 1


@pytest.mark.parametrize("semantics", ["kip", "kafka-4.3"])
def test_a_right_window_that_is_the_left_window_of_the_next_record_is_forwarded_twice(semantics: Semantics) -> None:
    chain = Chain([SlidingAggregate("w", SlidingWindows(7, 1), single(count()))], pa.int64(), semantics=semantics)
    (rows,) = chain.run([Record("a", 1, time) for time in (1, 9, 1)], 1)
    assert [(row.sequence, row.window, row.value) for row in rows] == [
        (0, (0, 7), 1),
        (1, (2, 9), 1),
        (1, (2, 9), 1),
    ]


def test_a_flush_before_the_first_window() -> None:
    chain = Chain([SlidingAggregate("w", SlidingWindows(10, 0), single(count()))], pa.int64())
    (rows,) = chain.run([Record("a", None, 20), Record("b", None, 20), Record("a", 1, 20)], 2, "flush")
    assert [row.value for row in rows] == [1]


def test_the_shipped_library_gives_what_a_record_is_added_to_as_prior() -> None:
    spec = SlidingAggregate("w", SlidingWindows(10, 10), single(count()), needs_prior=True)
    records = [Record("k", 1, 20), Record("k", 1, 25), Record("k", 1, 22)]
    for semantics, priors in (("kip", [None, None, None, 1, 2, None, None]), ("kafka-4.3", [0, 0, 1, 1, 2, 1, None])):
        (rows,) = Chain([spec], pa.int64(), semantics=semantics).run(records, 3)  # type: ignore[arg-type]
        assert [row.prior for row in rows] == priors


def test_a_reduce_copies_and_does_not_merge() -> None:
    spec = SlidingAggregate("w", SlidingWindows(10, 10), Reduce(lambda a, b: 10 * a + b))
    (rows,) = Chain([spec], pa.int64()).run([Record("k", n + 1, time) for n, time in enumerate((20, 25, 22))], 1)
    assert [(row.window, row.value) for row in rows] == [
        ((10, 20), 1),
        ((21, 31), 2),
        ((15, 25), 12),
        ((21, 31), 23),
        ((15, 25), 123),
        ((12, 22), 13),
        ((23, 33), 2),
    ]


def test_many_windows_over_one_record() -> None:
    """More updates for each record than there is room for at first."""
    records = [Record("k", 1, 100 + n) for n in range(100)] + [Record("k", 1, 150)]
    chain = Chain([SlidingAggregate("w", SlidingWindows(90, 200), single(count()), needs_prior=True)], pa.int64())
    model = reference(SlidingWindows(90, 200), "kip")
    expected = [
        (i, start, len(values))
        for i, record in enumerate(records)
        for start, values, _, _ in model.process(record.key, record.value, record.timestamp)
    ]
    (rows,) = chain.run(records, len(records))
    assert [(row.sequence, row.window and row.window[0], row.value) for row in rows] == expected


def test_a_short_retention_is_refused() -> None:
    windows = SlidingWindows.of_time_difference_and_grace(timedelta(seconds=10), timedelta(seconds=5))
    with pytest.raises(ConfigurationError, match="25000 ms"):
        SlidingAggregate("w", windows, single(count()), retention_ms=24_999).check("NODE")
