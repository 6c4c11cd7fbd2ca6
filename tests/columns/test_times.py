from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from statelib.columns.times import instant_text, unit_hint

SECOND = 1000


@pytest.mark.parametrize(
    ("time_ms", "text"),
    [
        (0, "1970-01-01T00:00:00.000Z"),
        (-1, "1969-12-31T23:59:59.999Z"),
        (1_700_000_000_123, "2023-11-14T22:13:20.123Z"),
        (253_402_300_799_999, "9999-12-31T23:59:59.999Z"),
        (253_402_300_800_000, "+10000-01-01T00:00:00.000Z"),
        (1_700_000_000_000_000, "+55840-11-08T22:13:20.000Z"),
        (-62_135_596_800_001, "0000-12-31T23:59:59.999Z"),
        (-62_167_219_200_001, "-0001-12-31T23:59:59.999Z"),
        (2**63 - 1, "+292278994-08-17T07:12:55.807Z"),  # Java's Instant.ofEpochMilli says so
        (-(2**63) + 1, "-292275055-05-16T16:47:04.193Z"),
        (-(2**63), "-9223372036854775808 ms"),
    ],
)
def test_any_time_can_be_shown(time_ms: int, text: str) -> None:
    assert instant_text(time_ms) == text


@given(st.datetimes(timezones=st.just(UTC)))
def test_it_is_what_python_says(time: datetime) -> None:
    time = time.replace(microsecond=time.microsecond // SECOND * SECOND)
    time_ms = round((time - datetime(1970, 1, 1, tzinfo=UTC)).total_seconds() * SECOND)
    assert instant_text(time_ms) == time.isoformat(timespec="milliseconds").replace("+00:00", "Z")


@pytest.mark.parametrize(
    ("time", "unit"),
    [
        (1_700_000_000, "seconds"),
        (1_700_000_000_000, None),
        (1_700_000_000_000_000, "microseconds"),
        (1_700_000_000_000_000_000, "nanoseconds"),
        (0, None),
        (-1, None),
        (2**63 - 1, None),
        (-(2**63), None),
        (4_102_444_800_000, None),  # 2100
    ],
)
def test_another_unit_is_noticed(time: int, unit: str | None) -> None:
    assert unit_hint(time) == ("" if unit is None else f", which looks like {unit} taken for milliseconds")
