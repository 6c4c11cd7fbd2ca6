"""When windows begin and end, against a look at every time."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from statelib import ConfigurationError, DayWindows, TimeWindows
from statelib.columns.window_grids import FAR_FUTURE_MS, LONGEST_DAY_MS, DayGrid, RegularGrid, WindowGrid
from statelib.operators.windows.definition import windows_of

HOUR_MS = 3_600_000
CHANGES = [
    ("Europe/Berlin", date(2024, 3, 31), 23), ("Europe/Berlin", date(2024, 10, 27), 25), ("UTC", date(2024, 3, 31), 24),
    ("America/New_York", date(2013, 3, 10), 23), ("America/New_York", date(2013, 11, 3), 25),
    ("America/Sao_Paulo", date(2018, 11, 4), 23),  # clocks skip midnight
    ("America/Sao_Paulo", date(2018, 2, 17), 25),  # and show the last hour of a day twice
    ("America/Havana", date(2012, 11, 4), 25),  # the first hour
    ("America/St_Johns", date(2006, 10, 29), 25),  # go back a minute after midnight, into the day before
    ("Africa/Monrovia", date(1972, 1, 7), 23.258),  # by 44 minutes and 30 seconds
    ("Australia/Lord_Howe", date(2024, 4, 7), 24.5), ("Antarctica/Troll", date(2024, 3, 31), 22),
    ("Pacific/Apia", date(2011, 12, 30), 0),  # there was none
    ("Asia/Kolkata", date(2024, 1, 1), 24),
]  # fmt: skip


def first_time_of(zone: str, day: date) -> int:
    """The first second at which a clock there shows the day or a later one, ms."""
    there = ZoneInfo(zone)
    second = int(datetime(day.year, day.month, day.day, tzinfo=UTC).timestamp()) - 16 * 3_600
    while datetime.fromtimestamp(second, UTC).astimezone(there).date() < day:
        second += 30
    return 1_000 * second


@pytest.mark.parametrize(("zone", "day", "hours"), CHANGES)
def test_a_day_is_what_clocks_show(zone: str, day: date, hours: float) -> None:
    start, end = (first_time_of(zone, one) for one in (day, day + timedelta(days=1)))
    assert round((end - start) / HOUR_MS, 3) == hours
    grid, number = DayGrid(zone), (day - date(1969, 12, 31)).days
    bounds = grid.start_of(np.array([number, number + 1]))
    assert bounds.tolist() == [start, end]
    if start < end:
        numbers, ends = grid.holding(np.array([end - 1, start, (start + end) // 2, end, start - 1]))
        assert numbers.tolist()[:4] == [number, number, number, number + 1]
        assert numbers[4] < number
        assert ends.tolist()[:3] == [end] * 3
        assert grid.end_of(bounds[:1]).tolist() == [end]


@given(st.sampled_from(sorted({zone for zone, *_ in CHANGES})), st.lists(st.integers(0, 2**41), min_size=1))
def test_each_time_is_in_one_day(zone: str, times: list[int]) -> None:
    grid, time = DayGrid(zone), np.array([*times, 0, FAR_FUTURE_MS])
    numbers, ends = grid.holding(time)
    starts = grid.start_of(numbers)
    assert (starts <= time).all()
    assert (time < ends).all()
    assert (ends - starts <= LONGEST_DAY_MS).all()
    assert (grid.start_of(numbers + 1) == ends).all()
    assert (grid.numbers_of(starts) == numbers).all()
    assert (np.argsort(numbers, kind="stable") == np.argsort(starts, kind="stable")).all()


def test_no_window_begins_before_1970() -> None:
    for zone, first_end in (("America/New_York", 5 * HOUR_MS), ("Asia/Tokyo", 15 * HOUR_MS), ("UTC", 24 * HOUR_MS)):
        grid = DayGrid(zone)
        numbers, ends = grid.holding(np.array([0]))
        assert (grid.start_of(numbers).tolist(), ends.tolist()) == ([0], [first_end])
        assert grid.end_of(np.array([0])).tolist() == [first_end]
    windows = TimeWindows.of_size_with_no_grace(timedelta(milliseconds=10)).offset(timedelta(milliseconds=3))
    assert windows.grid.start_of(np.arange(3)).tolist() == [0, 3, 13]
    assert windows.end_of(np.array([0, 3, 13])).tolist() == [3, 13, 23]


@st.composite
def grids(draw: st.DrawFn) -> tuple[WindowGrid, int]:
    """A grid, and about how far its windows are apart."""
    if draw(st.booleans()):
        return DayGrid(draw(st.sampled_from(["America/New_York", "Asia/Tokyo", "Africa/Monrovia"]))), 24 * HOUR_MS
    size = draw(st.integers(1, 20))
    windows = TimeWindows(size, draw(st.integers(1, size)), 0, draw(st.integers(-50, 50)))
    return windows.grid, windows.advance_ms


@given(grids(), st.integers(-2, 60), st.integers(-3, 3))
def test_the_last_window_that_has_begun_or_ended(made: tuple[WindowGrid, int], windows: int, more: int) -> None:
    grid, apart = made
    time = windows * apart + more
    numbers = np.arange(100)
    start = grid.start_of(numbers)
    end = grid.end_of(start)
    assert np.flatnonzero(start <= time).max(initial=-1) == max(grid.last_begun(time), -1)
    ended = np.flatnonzero(end <= time)
    assert len(ended) == max(grid.last_ended(time), -1) + 1 or isinstance(grid, DayGrid)
    assert (end[: max(grid.last_ended(time) + 1, 0)] <= time).all()
    assert (end[max(grid.last_ended(time) + 1, 0) :] > time).all()
    assert (grid.numbers_of(start)[start < np.roll(start, -1)] == numbers[start < np.roll(start, -1)]).all()


def test_they_are_what_the_api_says() -> None:
    days = DayWindows.of_zone_and_grace("Europe/Berlin", timedelta(hours=2))
    assert (
        days
        == DayWindows("Europe/Berlin", 2 * HOUR_MS)
        == DayWindows.of_zone_with_no_grace("Europe/Berlin").grace(timedelta(hours=2))
    )
    assert windows_of(days.describe()) == days
    shifted = TimeWindows.of_size_with_no_grace(timedelta(hours=1)).offset(timedelta(minutes=-15))
    assert windows_of(shifted.describe()) == shifted
    assert "offset_ms" not in TimeWindows(10, 10, 0).describe()
    assert shifted.grid == RegularGrid(-HOUR_MS // 4, HOUR_MS, HOUR_MS)
    for wrong, hint in (("Europe/Berlim", "did you mean Europe/Berlin"), ("", "name one"), ("../etc", "name one")):
        with pytest.raises(ConfigurationError, match=rf"no time zone.*{hint}"):
            DayWindows.of_zone_with_no_grace(wrong)
    with pytest.raises(ConfigurationError, match="whole number of milliseconds"):
        shifted.offset(timedelta(microseconds=1))
