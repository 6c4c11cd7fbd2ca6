"""Times of rows: what a value means does not depend on those beside it, and none is made up."""

from __future__ import annotations

import datetime as dt
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from statelib.ingest.values.times import TimeRule, read_times

ZONES = ("UTC", "America/New_York", "Australia/Lord_Howe", "Asia/Kathmandu")
EDGES = [
    "2013-03-10 02:30:00", "2013-03-10T02:59:59.999", "2013-11-03 01:30:00", "2013-11-03T01:30:00-05:00",
    "2013-10-06 02:15:00", "2013-01-01", "20130101", "2013-01-01T00:00Z", "2013-01-01 00:00:00.123456789",
    "1970-01-01", "1969-12-31T23:59:59", "", " 2013-01-01 ", "nonsense", "2013-02-30",
]  # fmt: skip
TEXTS = st.one_of(
    st.sampled_from(EDGES),
    st.datetimes(dt.datetime(1969, 1, 1), dt.datetime(2100, 1, 1)).map(lambda time: time.isoformat(sep=" ")),  # noqa: DTZ001
    st.datetimes(dt.datetime(2013, 3, 10), dt.datetime(2013, 3, 11)).map(dt.datetime.isoformat),  # noqa: DTZ001
)


@given(texts=st.lists(st.one_of(st.none(), TEXTS), min_size=1, max_size=8), zone=st.sampled_from(ZONES))
def test_a_text_means_the_same_whatever_stands_beside_it(texts: list[str | None], zone: str) -> None:
    rule = TimeRule(timezone=zone)
    together = read_times(pa.array(texts, pa.string()), rule)
    for n, text in enumerate(texts):
        alone = read_times(pa.array([text], pa.string()), rule)
        assert (alone.known[0], alone.microseconds[0]) == (together.known[n], together.microseconds[n])


@given(time=st.datetimes(dt.datetime(1970, 1, 3), dt.datetime(2100, 1, 1)), zone=st.sampled_from(ZONES))  # noqa: DTZ001
def test_a_clock_is_read_as_python_reads_it(time: dt.datetime, zone: str) -> None:
    aware = time.replace(tzinfo=ZoneInfo(zone))
    there = aware.astimezone(dt.UTC).astimezone(ZoneInfo(zone)).replace(tzinfo=None)
    if there != time:
        return  # a spring's hour leaves it out
    read = read_times(pa.array([time.isoformat()]), TimeRule(timezone=zone))
    since = aware - dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
    assert read.known[0]
    assert read.microseconds[0] == since // dt.timedelta(microseconds=1)


@pytest.mark.parametrize(
    "format_", ["%Y-%m-%d %H:%M:%S", "%Y-%m-%d %H:%M:%S.%f"], ids=["read by Arrow", "read by Python"]
)
def test_an_hour_that_spring_leaves_out_is_the_next_that_there_is(format_: str) -> None:
    text = dt.datetime(2013, 3, 10, 2, 30).strftime(format_)  # noqa: DTZ001
    read = read_times(pa.array([text]), TimeRule(format=format_, timezone="America/New_York"))
    assert read.microseconds[0] == 1_362_898_800_000_000


@pytest.mark.parametrize(
    "values",
    [
        pa.array([2**62], pa.timestamp("s")),
        pa.array([2**62], pa.timestamp("ms")),
        pa.array([-(2**62)], pa.timestamp("ms", "Asia/Tokyo")),
        pa.array([2**31 - 1], pa.date32()),
        pa.array([2**62], pa.int64()),
        pa.array([2**64 - 1], pa.uint64()),
        pa.array([-1], pa.timestamp("ns")),
        pa.array([float("inf")]),
        pa.array([None], pa.timestamp("us")),
    ],
)
def test_a_time_that_no_record_can_have_is_not_known(values: pa.Array) -> None:
    assert not read_times(values, TimeRule(unit="s")).known.any()


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
@given(numbers=st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1, max_size=5))
def test_numbers_are_times_or_not_known(unit: str, numbers: list[int]) -> None:
    in_us = {"s": 10**6, "ms": 10**3, "us": 1}
    read = read_times(pa.array(numbers, pa.int64()), TimeRule(unit=unit))  # type: ignore[arg-type]
    exact = [number // 1000 if unit == "ns" else number * in_us[unit] for number in numbers]
    known = [0 <= one <= 9_223_372_036_854_775_000 for one in exact]
    assert read.known.tolist() == known
    assert np.array_equal(read.microseconds[read.known], [one for one, good in zip(exact, known, strict=True) if good])
