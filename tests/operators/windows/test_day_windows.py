"""Aggregations by the days of a time zone: of 23 and of 25 hours, at their bounds, with grace, held back, counted."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from statelib import BufferConfig, DayWindows, Suppressed
from statelib.operators.aggregation.definition import Reduce, several, single
from statelib.operators.aggregation.sql_functions import count, sum_
from statelib.operators.deduplication.distinct import Distinct
from statelib.operators.suppress.operator import Suppress
from statelib.operators.suppress.store import resolve_references
from statelib.operators.windows.operator import RunningWindowAggregate, WindowAggregate
from tests.effort import examples
from tests.operators.chain import Chain, Record, Row, rows_of

if TYPE_CHECKING:
    from statelib.operators.base import OperatorSpec

HOUR_MS = 3_600_000
ZONES = {
    "Europe/Berlin": date(2024, 3, 31),
    "America/New_York": date(2024, 11, 3),
    "America/Sao_Paulo": date(2018, 11, 4),
}
FINAL = Suppressed.until_window_closes(BufferConfig.unbounded())


def midnight(zone: str, day: date) -> int:
    return round(datetime(day.year, day.month, day.day, tzinfo=ZoneInfo(zone)).timestamp() * 1000)


def day_of(zone: str, time_ms: int) -> tuple[int, int]:
    """By the zone's clocks; no midnight of these zones comes twice."""
    day = datetime.fromtimestamp(time_ms / 1000, UTC).astimezone(ZoneInfo(zone)).date()
    return midnight(zone, day), midnight(zone, day + timedelta(days=1))


@st.composite
def histories(draw: st.DrawFn) -> tuple[DayWindows, list[Record]]:
    """Some days about a change of clocks; records at midnight, a little before and after, late ones."""
    zone, day = draw(st.sampled_from(sorted(ZONES.items())))
    windows = DayWindows(zone, draw(st.sampled_from([0, 1, HOUR_MS, 30 * HOUR_MS])))
    bounds = [midnight(zone, day + timedelta(days=n)) for n in range(-1, 3)]
    now, records = bounds[0] - HOUR_MS, []
    for number in range(draw(st.integers(0, 25))):
        now += draw(st.sampled_from([0, 1, HOUR_MS, 7 * HOUR_MS]))
        near = draw(st.sampled_from([*bounds, None, None, None]))
        time = now if near is None else min(now, near + draw(st.sampled_from([-1, 0, 1])))
        late = draw(st.sampled_from([0, 0, windows.grace_period_ms, HOUR_MS, 24 * HOUR_MS]))
        records.append(Record(draw(st.sampled_from(["a", "a", "b", None])), number, time - late))
    return windows, records


def expected_rows(windows: DayWindows, records: list[Record]) -> tuple[list[Row], list[Row], int]:
    """Updates, final results and how many records were late."""
    taken: dict[tuple[Any, tuple[int, int]], list[Any]] = {}
    updates, finals, late, stream_time = [], [], 0, -1
    for i, record in enumerate(records):
        if record.key is None:
            continue
        stream_time = max(stream_time, record.timestamp)
        window = day_of(windows.zone, record.timestamp)
        if window[1] <= stream_time - windows.grace_period_ms:
            late += 1
            continue
        values = taken.setdefault((record.key, window), [])
        values.append(record)
        value = {"n": len(values), "sum": sum(one.value for one in values)}
        updates.append(Row(i, record.key, value, max(one.timestamp for one in values), window))
    emitted: set[Any] = set()
    for i, row in enumerate(updates):
        clock = max(one.timestamp for one in updates[: i + 1])
        latest = {(one.key, one.window): one for one in updates[: i + 1] if one.window}
        for _, key, (start, end) in sorted((window[1], key, window) for key, window in latest):
            if end <= clock - windows.grace_period_ms and (key, start) not in emitted:
                emitted.add((key, start))
                found = latest[key, (start, end)]
                finals.append(Row(row.sequence, key, found.value, found.timestamp, (start, end)))
    return updates, finals, late


@examples(60)
@given(histories(), st.integers(1, 10), st.lists(st.sampled_from(["nothing", "flush", "spill", "restart"]), max_size=4))
def test_like_the_clocks_of_the_zone(history: tuple[DayWindows, list[Record]], size: int, between: list[str]) -> None:
    windows, records = history
    updates, finals, late = expected_rows(windows, records)
    functions = several(n=count(), sum=sum_("value"))
    specs: list[OperatorSpec] = [WindowAggregate("w", windows, functions), Suppress("s", FINAL, windows)]
    contents = []
    for condensed in (False, True):
        chain = Chain(specs, pa.int64(), condensed=condensed)
        rows = chain.run(records, size, *between)
        if not condensed:
            assert rows[0] == updates
        assert rows[1] == finals
        rest = rows_of(chain.operators[1].seal([chain.forwarded([])[0]]))  # type: ignore[attr-defined]
        latest = {(row.key, row.window): row.value for row in updates}
        assert {(row.key, row.window): row.value for row in [*finals, *rest]} == latest
        chain.restart()
        assert sum(metrics.counters.get("late-record-drop", 0) for metrics in chain.finished[0]) == late
        resolve_references(chain.backend, ["s"])
        contents.append((chain.content(), chain.clocks))
    assert contents[0] == contents[1]


@examples(60)
@given(histories(), st.integers(1, 10))
def test_open_days_are_counted_and_distinct_gives_the_first_of_each(
    history: tuple[DayWindows, list[Record]], size: int
) -> None:
    windows, records = history
    chain = Chain([WindowAggregate("w", windows, Reduce(lambda a, b: a + b))], pa.int64())
    updates = chain.run(records, size, "flush")[0]
    chain.flush()
    clock = max((record.timestamp for record in records if record.key is not None), default=-1)
    still = {(row.key, row.window) for row in updates if row.window and row.window[1] > clock - windows.grace_period_ms}
    operator = chain.operators[0]
    assert isinstance(operator, RunningWindowAggregate)
    assert operator.open_windows() == len(still)
    keyed = [record for record in records if record.key is not None]  # null keys move the clock of distinct()
    first = Chain([Distinct("d", windows)], pa.int64()).run(keyed, max(len(keyed), 1))[0]
    expected: dict[Any, Any] = {}
    for row in expected_rows(windows, keyed)[0]:
        expected.setdefault((row.key, row.window), keyed[row.sequence].value)
    assert {(row.key, row.window): row.value for row in first} == expected


@pytest.mark.parametrize(
    ("zone", "day", "hours"),
    [
        ("Europe/Berlin", date(2024, 3, 31), 23),
        ("Europe/Berlin", date(2024, 10, 27), 25),
        ("UTC", date(2024, 3, 31), 24),
    ],
)
def test_a_day_on_which_clocks_are_changed_is_one_window(zone: str, day: date, hours: int) -> None:
    start = midnight(zone, day)
    records = [Record("k", 1, start + hour * HOUR_MS) for hour in range(hours + 1)]
    specs = [WindowAggregate("w", DayWindows(zone, 0), single(count())), Suppress("s", FINAL, DayWindows(zone, 0))]
    final = Chain(specs, pa.int64()).run(records, 100)[1]
    assert [(row.window, row.value) for row in final] == [((start, start + hours * HOUR_MS), hours)]


def test_an_outlier_costs_no_look_at_all_days_between() -> None:
    windows = DayWindows("Europe/Berlin", 0)
    year_9999 = 253_402_214_400_000
    records = [Record("k", 1, time) for time in (0, 1_700_000_000_000, year_9999)]
    (rows,) = Chain([WindowAggregate("w", windows, single(count()))], pa.int64()).run(records, 3)
    assert [row.value for row in rows] == [1, 1, 1]
    assert rows[1].window == day_of("Europe/Berlin", 1_700_000_000_000)
