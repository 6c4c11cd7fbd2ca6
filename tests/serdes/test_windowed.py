"""Windowed keys; Kafka's own bytes of time windows are in tests/golden (``partitioner``)."""

from __future__ import annotations

import datetime as dt
import pickle
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from statelib import DayWindows, TimeWindows
from statelib.columns.times import LAST_TIME_MS
from statelib.described.stored_values import described_serde
from statelib.errors.kinds import InputError
from statelib.serdes import StringSerde, serde_for
from statelib.serdes.windowed import SessionWindowedSerde, TimeWindowedSerde

TIMES = TimeWindowedSerde.of(StringSerde(), dt.timedelta(seconds=1))
SESSIONS = SessionWindowedSerde(serde_for(pa.int32()))
FAR = LAST_TIME_MS


def windows(serde: Any, *rows: tuple[Any, int, int] | None) -> pa.Array:
    values = [row and {"key": row[0], "window_start": row[1], "window_end": row[2]} for row in rows]
    return pa.array(values, serde.arrow_type)


def test_a_time_window_is_its_key_and_its_start() -> None:
    values = windows(TIMES, ("a", 258, 1_258), None, ("", 0, 1_000), ("a", FAR, FAR))
    data = TIMES.serialize(values)
    assert [one and one.hex() for one in data.to_pylist()] == [
        "61" + "0000000000000102", None, "00" * 8, "61" + FAR.to_bytes(8, "big").hex(),
    ]  # fmt: skip
    assert TIMES.deserialize(data).equals(values)
    assert TIMES.deserialize(data[1:3]).equals(values[1:3])
    assert TIMES.serialize(values[2:]).equals(data[2:])


def test_ends_follow_from_starts_by_the_windows() -> None:
    """A day of 23 hours; one that was cut off in 1970."""
    days = TimeWindowedSerde.of(StringSerde(), DayWindows.of_zone_with_no_grace("Europe/Berlin"))
    hour, spring = 3_600_000, 1_711_839_600_000
    values = windows(
        days, ("a", spring, spring + 23 * hour), ("b", 0, 23 * hour), ("a", spring + 23 * hour, spring + 47 * hour)
    )
    data = days.serialize(values)
    assert data[0].as_py() == b"a" + spring.to_bytes(8, "big")
    assert days.deserialize(data).equals(values)
    with pytest.raises(InputError, match="a window of 86400000 ms in a serde of days of Europe/Berlin"):
        days.serialize(windows(days, ("a", spring, spring + 24 * hour)))
    shifted = TimeWindowedSerde.of(StringSerde(), TimeWindows(10, 10, 0, 4))
    values = windows(shifted, ("a", 0, 4), ("a", 4, 14))
    assert shifted.deserialize(shifted.serialize(values)).equals(values)
    for serde in (days, shifted):
        assert described_serde(serde.describe(), serde.arrow_type, of="keys") == serde
        bad = serde.deserialize_lenient(pa.array([b"a" + b"\xff" * 8, b"a" + b"\x7f" + b"\xff" * 7])).bad
        assert bad.tolist() == [True, True]


def test_a_session_is_its_key_its_end_and_its_start() -> None:
    values = windows(SESSIONS, (-1, 1, 3), None)
    data = SESSIONS.serialize(values)
    assert [one and one.hex() for one in data.to_pylist()] == ["ffffffff" + "00" * 7 + "03" + "00" * 7 + "01", None]
    assert SESSIONS.deserialize(data).equals(values)


@pytest.mark.parametrize(
    ("serde", "wrong", "reason"),
    [
        (TIMES, "", "less than the 8 bytes"),
        (TIMES, "00" * 7, "less than the 8 bytes"),
        (TIMES, "61" + "ff" * 8, "not the times of a window"),
        (TIMES, "61" + "7f" + "ff" * 7, "not the times of a window"),
        (TIMES, "ff" + "00" * 8, "not UTF-8"),
        (SESSIONS, "00" * 15, "less than the 16 bytes"),
        (SESSIONS, "00" * 4 + "00" * 7 + "01" + "00" * 7 + "02", "not the times of a window"),
        (SESSIONS, "00" * 3 + "00" * 16, "3 bytes, expected 4"),
    ],
)
def test_undecodable_bytes(serde: Any, wrong: str, reason: str) -> None:
    [good] = serde.serialize(windows(serde, ((serde.key.arrow_type == pa.string() and "a") or 1, 5, 1_005))).to_pylist()
    values, bad, reasons = serde.deserialize_lenient(pa.array([good, None, bytes.fromhex(wrong), good]))
    assert bad.tolist() == [False, False, True, False]
    assert values.is_valid().to_pylist() == [True, False, False, True]
    assert reason in reasons[2].as_py()


def test_what_is_not_written() -> None:
    with pytest.raises(InputError, match="a window of 2000 ms in a serde of windows of 1000 ms"):
        TIMES.serialize(windows(TIMES, ("a", 0, 2_000)))
    with pytest.raises(InputError, match="without key"):
        TIMES.serialize(windows(TIMES, (None, 0, 1_000)))
    with pytest.raises(InputError, match="no windowed keys"):
        TIMES.serialize(pa.array(["a"]))


def test_times_of_an_archive_are_microseconds() -> None:
    archived = pa.array(
        [{"key": "a", "window_start": 1_000, "window_end": 1_001_000}],
        pa.struct(
            [("key", pa.string()), *((name, pa.timestamp("us", "UTC")) for name in ("window_start", "window_end"))]
        ),
    )
    assert TIMES.serialize(archived).to_pylist() == [b"a" + bytes(7) + b"\1"]


@pytest.mark.parametrize("serde", [TIMES, SESSIONS])
def test_it_travels_and_describes_itself(serde: Any) -> None:
    assert pickle.loads(pickle.dumps(serde)) == serde
    assert serde.describe()["key"] == serde.key.describe()


@given(st.lists(st.none() | st.binary(max_size=20), max_size=6))
def test_what_is_lenient_sees_each_value_by_itself(values: list[bytes | None]) -> None:
    data = pa.array(values, pa.binary())
    for serde in (TIMES, SESSIONS):
        together = serde.deserialize_lenient(data)
        for row in range(len(data)):
            alone = serde.deserialize_lenient(data[row : row + 1])
            assert (alone.bad[0], alone.values[0], alone.reasons[0]) == (
                together.bad[row], together.values[row], together.reasons[row],
            )  # fmt: skip
