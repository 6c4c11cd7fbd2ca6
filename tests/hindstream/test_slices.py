from __future__ import annotations

import itertools
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from hindstream.slices import slice_ends_ms, time_ms, time_of, time_zone
from statelib.errors.kinds import ConfigurationError

NEW_YORK = ZoneInfo("America/New_York")


def times(ends: list[int], zone: ZoneInfo) -> list[str]:
    return [f"{datetime.fromtimestamp(end / 1000, zone):%m-%d %H:%M}" for end in ends]


def test_months_begin_at_midnight_where_the_start_is() -> None:
    ends = slice_ends_ms(datetime(2013, 1, 1, tzinfo=NEW_YORK), datetime(2014, 1, 1, tzinfo=NEW_YORK), "month")
    assert times(ends, NEW_YORK) == [*(f"{month:02}-01 00:00" for month in range(2, 13)), "01-01 00:00"]


def test_a_month_that_is_shorter_ends_on_its_last_day() -> None:
    ends = slice_ends_ms(datetime(2013, 1, 31, tzinfo=UTC), datetime(2013, 5, 1, tzinfo=UTC), "month")
    assert times(ends, ZoneInfo("UTC")) == ["02-28 00:00", "03-31 00:00", "04-30 00:00", "05-01 00:00"]


def test_a_day_of_25_hours_is_one_slice_and_25_hours() -> None:
    start, end = datetime(2013, 11, 3, tzinfo=NEW_YORK), datetime(2013, 11, 4, tzinfo=NEW_YORK)
    assert len(slice_ends_ms(start, end, "day")) == 1
    assert len(slice_ends_ms(start, end, "hour")) == 25


def test_an_hour_that_comes_twice_is_two_hours() -> None:
    first, second = (datetime(2008, 11, 2, 1, tzinfo=NEW_YORK, fold=fold) for fold in (0, 1))
    assert slice_ends_ms(first, second, "hour") == [round(second.timestamp() * 1000)]
    with pytest.raises(ConfigurationError, match="ends before it begins"):
        slice_ends_ms(second, first, "hour")


def test_the_last_slice_ends_where_the_backfill_does() -> None:
    ends = slice_ends_ms(datetime(2013, 1, 1, tzinfo=UTC), datetime(2013, 1, 10, 12, tzinfo=UTC), "week")
    assert times(ends, ZoneInfo("UTC")) == ["01-08 00:00", "01-10 12:00"]


@given(
    st.datetimes(datetime(1980, 1, 1), datetime(2030, 1, 1), timezones=st.timezones()),  # noqa: DTZ001
    st.integers(1, 3_000),
    st.sampled_from(["hour", "day", "week", "month"]),
)
@example(datetime(2011, 12, 28, tzinfo=ZoneInfo("Pacific/Apia")), 100, "day")
def test_ends_ascend_and_reach_the_end(start: datetime, hours: int, every: str) -> None:
    end = datetime.fromtimestamp(start.timestamp() + hours * 3600, start.tzinfo)
    ends = slice_ends_ms(start, end, every)
    assert ends == sorted(set(ends))
    assert ends[0] > start.timestamp() * 1000
    assert ends[-1] == round(end.timestamp() * 1000)


def test_a_backfill_that_ends_before_it_begins_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="ends before it begins"):
        slice_ends_ms(datetime(2013, 2, 1, tzinfo=UTC), datetime(2013, 1, 1, tzinfo=UTC), "day")


@pytest.mark.parametrize(
    ("zone", "start", "end", "ends"),
    [
        ("Pacific/Apia", "2011-12-28", "2012-01-01", ["12-29 00:00", "12-31 00:00", "01-01 00:00"]),
        ("Pacific/Apia", "2011-12-28T12:00", "2012-01-01", ["12-29 12:00", "12-31 12:00", "01-01 00:00"]),
        ("Pacific/Kwajalein", "1993-08-19", "1993-08-23", ["08-20 00:00", "08-22 00:00", "08-23 00:00"]),
        ("America/Sao_Paulo", "2018-11-03", "2018-11-06", ["11-04 01:00", "11-05 00:00", "11-06 00:00"]),
        ("Africa/Cairo", "2024-04-25", "2024-04-28", ["04-26 01:00", "04-27 00:00", "04-28 00:00"]),
        ("Asia/Kathmandu", "1985-12-31", "1986-01-02", ["01-01 00:15", "01-02 00:00"]),
        ("Australia/Lord_Howe", "2024-04-06", "2024-04-08", ["04-07 00:00", "04-08 00:00"]),
    ],
)
def test_a_day_that_a_zone_skips_is_no_slice_and_a_midnight_that_it_skips_is_the_next_time(
    zone: str, start: str, end: str, ends: list[str]
) -> None:
    there = time_zone(zone)
    assert times(slice_ends_ms(time_of("from", start, there), time_of("to", end, there), "day"), there) == ends


@pytest.mark.parametrize("every", ["hour", "day", "week", "month"])
@pytest.mark.parametrize("zone", ["UTC", "Pacific/Apia", "America/New_York"])
def test_the_last_days_that_there_are(zone: str, every: str) -> None:
    there = time_zone(zone)
    start, end = time_of("from", "9999-12-01", there), time_of("to", "9999-12-31T06:00", there)
    assert slice_ends_ms(start, end, every)[-1] == round(end.timestamp() * 1000)


def test_a_time_without_zone_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="no time zone"):
        slice_ends_ms(datetime(2013, 2, 1), datetime(2013, 3, 1, tzinfo=UTC), "day")  # noqa: DTZ001


def test_times_as_milliseconds() -> None:
    day = 1_370_044_800_000
    for text in ("2013-06-01", "2013-06-01T02:00+02:00", "2013-06-01T00:00Z", str(day)):
        assert time_ms("since", text) == day
    for text, message in (
        ("2013-06-01T00:00", "has no time zone"),
        ("June", "'June' is no time"),
        ("9" * 20, "no record"),
    ):
        with pytest.raises(ConfigurationError, match=message) as refused:
            time_ms("since", text)
        assert refused.value.place == {"setting": "--since"}


def test_times_of_a_named_zone() -> None:
    zone = time_zone("America/New_York")
    start, end = time_of("from", "2013-11-02", zone), time_of("to", "2013-11-05T05:00Z", zone)
    assert times(slice_ends_ms(start, end, "day"), NEW_YORK) == ["11-03 00:00", "11-04 00:00", "11-05 00:00"]
    hours = [round((b - a) / 3_600_000) for a, b in itertools.pairwise(slice_ends_ms(start, end, "day"))]
    assert hours == [25, 24]


def test_a_time_with_an_offset_is_brought_to_the_zone_that_slices_are_of() -> None:
    zone = time_zone("America/New_York")
    start, end = time_of("from", "2013-03-10T05:00Z", zone), time_of("to", "2013-03-12T00:00-04:00", zone)
    assert times(slice_ends_ms(start, end, "day"), NEW_YORK) == ["03-11 00:00", "03-12 00:00"]
    assert time_of("from", "2013-03-10T05:00-03:00", None).isoformat() == "2013-03-10T05:00:00-03:00"


def test_what_is_no_zone_and_no_time_is_refused() -> None:
    with pytest.raises(ConfigurationError, match=r"no time zone 'America/NewYork'.*did you mean America/New_York"):
        time_zone("America/NewYork")
    with pytest.raises(ConfigurationError, match="name one of the tz database"):
        time_zone("../etc/passwd")
    with pytest.raises(ConfigurationError, match=r"'yesterday' is no time \(setting --from\)"):
        time_of("from", "yesterday", None)
