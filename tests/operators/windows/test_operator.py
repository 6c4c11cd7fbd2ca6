from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from statelib.columns.window_grids import FAR_FUTURE_MS
from statelib.errors.kinds import ConfigurationError, InputError
from statelib.operators.aggregation.definition import Aggregate, Reduce, several, single
from statelib.operators.aggregation.sql_functions import count, max_, min_, sum_
from statelib.operators.windows.definition import TimeWindows, UnlimitedWindows
from statelib.operators.windows.operator import RunningWindowAggregate, WindowAggregate
from statelib.stores.header import HEADER_KEY
from tests.operators.aggregation.functions import SQL, SUMS, row, values
from tests.operators.chain import Chain, Record, Row
from tests.reference.sql_functions import MODELS, sql, timed
from tests.reference.sql_functions import SUMS as MODELS_OF_SUMS
from tests.reference.window_aggregate import TimeWindowed

KEYS = st.sampled_from([None, "", "a", "ab", "b", "a\0"])
INTEGERS = row(pa.int32())
FLOATS = row(pa.float64())


def records_of(numbers: st.SearchStrategy[Any]) -> st.SearchStrategy[list[Record]]:
    return st.lists(st.builds(Record, KEYS, values(numbers), st.integers(0, 60)), max_size=40)


@st.composite
def time_windows(draw: st.DrawFn) -> TimeWindows:
    size = draw(st.integers(1, 20))
    offset = draw(st.sampled_from([0, 0, 1, 7, -3, 25]))
    return TimeWindows(size, draw(st.integers(1, size)), draw(st.integers(0, 15)), offset)


def model(windows: TimeWindows) -> TimeWindowed:
    return TimeWindowed(windows.size_ms, windows.advance_ms, windows.grace_period_ms, windows.offset_ms)


def end_of(windows: TimeWindows, start: int) -> int:
    return int(windows.end_of(np.array([start]))[0])


def expected_rows(windows: TimeWindows, records: list[Record], models: Any = MODELS) -> tuple[list[Row], TimeWindowed]:
    reference = model(windows)
    rows = []
    for i, record in enumerate(records):
        value = timed(record.value, record.timestamp)
        for start, taken, timestamp in reference.process(record.key, value, record.timestamp):
            window = (start, end_of(windows, start))
            prior = sql(taken[:-1], models) if len(taken) > 1 else None
            rows.append(Row(i, record.key, sql(taken, models), timestamp, window, prior))
    return rows, reference


@given(
    time_windows(), records_of(st.integers(-9, 9)), st.integers(1, 10), st.sampled_from(["nothing", "flush", "restart"])
)
def test_integers_like_the_reference(windows: TimeWindows, records: list[Record], size: int, between: str) -> None:
    expected, reference = expected_rows(windows, records)
    chain = Chain([WindowAggregate("w", windows, SQL, needs_prior=True)], INTEGERS)
    assert chain.run(records, size, between) == [expected]
    chain.restart()
    late = sum(metrics.counters.get("late-record-drop", 0) for metrics in chain.finished[0])
    assert late == reference.late_windows


@given(time_windows(), records_of(st.floats(width=32, allow_nan=False)), st.integers(1, 10))
def test_floats_are_added_in_order(windows: TimeWindows, records: list[Record], size: int) -> None:
    chain = Chain([WindowAggregate("w", windows, SUMS, needs_prior=True)], FLOATS)
    assert repr(chain.run(records, size, "restart")) == repr([expected_rows(windows, records, MODELS_OF_SUMS)[0]])


@given(time_windows(), records_of(st.integers(-9, 9)), st.integers(1, 10), st.integers(1, 10))
def test_state_does_not_depend_on_batches(windows: TimeWindows, records: list[Record], one: int, other: int) -> None:
    content = []
    for size in (one, other):
        chain = Chain([WindowAggregate("w", windows, SQL)], INTEGERS)
        chain.run(records, size)
        chain.flush()
        content.append(chain.content())
    assert content[0] == content[1]


@given(time_windows(), records_of(st.integers(-9, 9)), st.integers(1, 10), st.booleans())
def test_open_windows_are_counted_after_each_flush(
    windows: TimeWindows, records: list[Record], size: int, restarts: bool
) -> None:
    reference = model(windows)
    chain = Chain([WindowAggregate("w", windows, SQL)], INTEGERS)
    for first in range(0, len(records), size):
        some = records[first : first + size]
        chain.process(some)
        chain.flush()
        for record in some:
            reference.process(record.key, record.value, record.timestamp)
        horizon = reference.stream_time - windows.grace_period_ms
        operator = chain.operators[0]
        assert isinstance(operator, RunningWindowAggregate)
        assert operator.open_windows() == sum(end_of(windows, start) > horizon for _, start in reference.windows)
        if restarts:
            chain.restart()


@given(time_windows(), records_of(st.integers(-9, 9)), st.integers(1, 10), st.sampled_from(["nothing", "restart"]))
def test_python_functions_like_sql(windows: TimeWindows, records: list[Record], size: int, between: str) -> None:
    def add(key: str, value: dict[str, int] | None, aggregate: list[int]) -> list[int]:
        assert key is not None
        return [*aggregate, (value or {}).get("x") or 0]

    spec = WindowAggregate("w", windows, Aggregate(list, add, pa.list_(pa.int64())), needs_prior=True)
    (rows,) = Chain([spec], INTEGERS).run(records, size, between)
    expected, _ = expected_rows(windows, records)
    assert [(r.sequence, r.window, r.timestamp, len(r.value), sum(r.value)) for r in rows] == [
        (r.sequence, r.window, r.timestamp, r.value["rows"], r.value["total"] or 0) for r in expected
    ]
    assert [r.prior and len(r.prior) for r in rows] == [r.prior and r.prior["rows"] for r in expected]


def run(aggregator: Any, values: list[Any], value_type: pa.DataType, **spec: Any) -> list[Row]:
    """One window takes all values, a record at a time with a restart after each."""
    chain = Chain([WindowAggregate("w", TimeWindows(1000, 1000, 0), aggregator, **spec)], value_type)
    return chain.run([Record("k", value, i) for i, value in enumerate(values)], 1, "restart")[0]


def test_a_reduce_whose_first_value_is_null_stores_nothing() -> None:
    rows = run(Reduce(lambda a, b: a + b), [None, 2, 3], pa.int64(), needs_prior=True)
    assert [(row.value, row.prior, row.timestamp) for row in rows] == [(None, None, 0), (2, None, 1), (5, 2, 2)]


def test_a_function_that_gives_none_removes_the_window() -> None:
    drop_at_three = Aggregate(lambda: 0, lambda _, value, sum_: None if value == 3 else sum_ + value, pa.int64())
    chain = Chain([WindowAggregate("w", TimeWindows(1000, 1000, 0), drop_at_three, needs_prior=True)], pa.int64())
    records = [Record("k", value, 10 - i) for i, value in enumerate([1, 3, 5])]
    for size, between in ((3, "nothing"), (1, "restart")):
        (rows,) = Chain([chain.specs[0]], pa.int64()).run(records, size, between)
        assert [(row.value, row.prior, row.timestamp) for row in rows] == [(1, None, 10), (None, 1, 10), (5, None, 8)]
    chain.run(records[:1], 1, "restart")
    chain.run(records[1:2], 1, "restart")
    assert chain.content()["w"] == []


def test_the_shipped_library_gives_the_initializer_as_prior() -> None:
    spec = WindowAggregate("w", TimeWindows(10, 10, 0), single(count()), needs_prior=True)
    records = [Record("k", 1, 0), Record("k", 1, 1)]
    for semantics, first in (("kip", None), ("kafka-4.3", 0)):
        (rows,) = Chain([spec], pa.int64(), semantics=semantics).run(records, 2)  # type: ignore[arg-type]
        assert [(row.value, row.prior) for row in rows] == [(1, first), (2, 1)]


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        (pa.int8(), [3, None, -4]),
        (pa.uint32(), [3, 2**32 - 1]),
        (pa.float32(), [1.5, None, 0.25]),
        (pa.date32(), [5, 3]),
        (pa.timestamp("ms", "UTC"), [5, None, 3]),
        (pa.duration("s"), [5, 7]),
        (pa.time32("s"), [5, 7]),
    ],
    ids=str,
)
def test_extremes_keep_their_type(kind: pa.DataType, values: list[Any]) -> None:
    column = pa.array(values, pa.float32() if kind == pa.float32() else pa.int64())
    narrow = column.cast(pa.int32()) if kind in {pa.date32(), pa.time32("s")} else column
    typed = narrow.cast(kind).to_pylist()
    rows = run(several(least=min_("value"), most=max_("value")), typed, kind)
    there = [value for value in typed if value is not None]
    assert rows[-1].value == {"least": min(there), "most": max(there)}


def test_nan_is_above_all_numbers() -> None:
    rows = run(several(least=min_("value"), most=max_("value")), [math.nan, 1.0, math.inf], pa.float64())
    assert [row.value["least"] for row in rows[1:]] == [1.0, 1.0]
    assert all(math.isnan(row.value["most"]) for row in rows)


def test_a_sum_of_integers_that_overflows_is_an_error() -> None:
    assert run(single(sum_("value")), [2**62, 2**62 - 1, -5], pa.int64())[1].value == 2**63 - 1
    with pytest.raises(InputError, match="64 bits"):
        run(single(sum_("value")), [2**62, 2**62], pa.int64())


@pytest.mark.parametrize("of", [pa.string(), pa.bool_(), pa.decimal256(50, 2)], ids=str)
def test_there_is_no_sum_of_what_is_no_number(of: pa.DataType) -> None:
    with pytest.raises(ConfigurationError, match="there is no sum of"):
        run(single(sum_("value")), [None], of)


def test_changed_types_are_refused() -> None:
    chain = Chain([WindowAggregate("w", TimeWindows(1000, 1000, 0), single(sum_("value")))], pa.int64())
    chain.run([Record("k", 1, 0)], 1, "restart")
    chain.value_type = pa.float64()
    with pytest.raises(ConfigurationError, match="types of a store's rows have changed"):
        chain.process([Record("k", 1.0, 0)])
    chain = Chain([WindowAggregate("w", TimeWindows(1000, 1000, 0), single(sum_("value")))], pa.int64())
    chain.process([Record("k", 1, 0)])
    chain.value_type = pa.float64()
    with pytest.raises(ConfigurationError, match="has changed from int64 to double"):
        chain.process([Record("k", 1.0, 0)])


def test_late_and_null_keyed_records_are_counted() -> None:
    chain = Chain([WindowAggregate("w", TimeWindows(10, 5, 3), single(count()))], pa.int64())
    times = [("a", 4), ("a", 20), (None, 99), ("a", 4), ("a", 9), ("a", 13)]
    chain.process([Record(key, 1, time) for key, time in times])
    (metrics,) = chain.metrics
    assert metrics.accounts == {"aggregated": 3, "late": 2, "null-key": 1}
    assert metrics.counters == {"late-record-drop": 4}
    assert metrics.records_in == len(times)
    assert metrics.unaccounted == 0
    assert (metrics.lateness.max_ms, sum(metrics.lateness.counts)) == (16, 5)


def test_expired_windows_leave_memory_and_store(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("statelib.operators.windows.operator._COMPACT_FROM_SLOTS", 4)
    spec = WindowAggregate("w", TimeWindows(10, 10, 5), single(count()))
    records = [Record(f"k{i % 3}", i, i) for i in range(200)]
    chain = Chain([spec], pa.int64())
    rows = chain.run(records, 7)
    assert len(chain.operators[0]._memory) < 25
    assert rows == Chain([spec], pa.int64()).run(records, 200)
    chain.flush()
    assert len(chain.content()["w.by-start"]) == 6 + 1  # starts 180 and 190: 190 - 15 is out; and the header
    chain.process([Record("k0", 0, 1_000)])
    chain.flush()
    assert len(chain.content()["w.by-start"]) == 1 + 1


def test_retention_must_cover_size_and_grace() -> None:
    with pytest.raises(ConfigurationError, match="retention"):
        WindowAggregate("w", TimeWindows(10, 10, 5), single(count()), retention_ms=14).check("NODE")


def test_longer_retention_keeps_closed_windows() -> None:
    chain = Chain([WindowAggregate("w", TimeWindows(10, 10, 0), single(count()), retention_ms=50)], pa.int64())
    chain.run([Record("k", 1, time) for time in (0, 10, 20, 60)], 1, "restart")
    starts = [int.from_bytes(key[:8], "big") for key, _ in chain.content()["w.by-start"] if key != HEADER_KEY]
    assert starts == [20, 60]


def test_windows_are_what_the_api_says() -> None:
    windows = TimeWindows.of_size_and_grace(timedelta(minutes=1), timedelta(seconds=5)).advance_by(
        timedelta(seconds=20)
    )
    assert windows == TimeWindows(60_000, 20_000, 5_000)
    assert TimeWindows.of_size_with_no_grace(timedelta(seconds=1)) == TimeWindows(1_000, 1_000, 0)
    for advance in (timedelta(minutes=2), timedelta(0), timedelta(microseconds=1)):
        with pytest.raises(ConfigurationError):
            windows.advance_by(advance)
    with pytest.raises(ConfigurationError, match="nothing to aggregate"):
        several()


@pytest.mark.parametrize("between", ["nothing", "restart"])
def test_one_window_takes_all_records_from_its_start_on(between: str) -> None:
    windows = UnlimitedWindows.of().start_on(datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC))
    chain = Chain([WindowAggregate("w", windows, single(count()), needs_prior=True)], pa.int64())
    year_2100 = 4_102_444_800_000
    records = [Record("k", 1, time) for time in (999, 1000, year_2100, 1001, 0)]
    (rows,) = chain.run(records, 1 if between == "restart" else 5, between)
    assert [(row.window, row.value, row.timestamp) for row in rows] == [
        ((1000, FAR_FUTURE_MS), 1, 1000),
        ((1000, FAR_FUTURE_MS), 2, year_2100),
        ((1000, FAR_FUTURE_MS), 3, year_2100),
    ]
    chain.restart()
    accounts = [metrics.accounts for run in chain.finished for metrics in run]
    assert sum(account.get("before-first-window", 0) for account in accounts) == 2
    assert sum(account.get("late", 0) for account in accounts) == 0


def test_a_start_needs_a_time_zone_and_cannot_be_before_1970() -> None:
    with pytest.raises(ConfigurationError, match="no time zone"):
        UnlimitedWindows.of().start_on(datetime(2020, 1, 1))  # noqa: DTZ001
    with pytest.raises(ConfigurationError, match="1970 or later"):
        UnlimitedWindows.of().start_on(datetime(1969, 1, 1, tzinfo=UTC))
