"""``hindstream show``: records of a topic by key, offset and time, and what a text stands for as a key."""

from __future__ import annotations

import csv
import json
from datetime import UTC, date, datetime
from decimal import Decimal

import pyarrow as pa
import pytest

from hindstream.cli.look.show import keys_of, print_records
from statelib.columns.windowed_type import windowed_struct
from statelib.errors.kinds import ConfigurationError
from statelib.settings.settings import Settings
from statelib.topics.append import append_records
from statelib.topics.archive import TopicArchive
from statelib.topics.parquet.schema import TIMESTAMP, topic_schema

TIME = pa.timestamp("us", "UTC")
VALUE = pa.struct([("n", pa.int64()), ("raw", pa.binary())])


@pytest.fixture
def settings(tmp_path) -> Settings:
    archive = TopicArchive.create(str(tmp_path / "topics" / "events"), topic_schema(pa.string(), VALUE), 3)
    rows = [
        {"key": f"k{n % 4}", "value": {"n": n, "raw": b"\xff"} if n % 5 else None, "timestamp": 1000 * n}
        for n in range(40)
    ]
    columns = pa.schema([("key", pa.string()), ("value", VALUE), ("timestamp", TIMESTAMP)])
    append_records(archive, pa.Table.from_pylist(rows, columns), attempt="a", app_id="x", app_version=1)
    return Settings(warehouse=str(tmp_path))


@pytest.fixture
def shown(settings, capsys):
    def show(key=None, **how):
        print_records("events", key, settings, **how)
        return capsys.readouterr().out

    return show


def rows(text: str) -> list[dict]:
    return [json.loads(line) for line in text.splitlines()]


def test_a_key_has_all_its_records(shown) -> None:
    found = rows(shown("k1", output="json"))
    assert [row["offset"] for row in found] == sorted(row["offset"] for row in found)
    assert [row["value"] and row["value"]["n"] for row in found] == [n if n % 5 else None for n in range(1, 40, 4)]
    assert {row["key"] for row in found} == {"k1"}
    assert found[0]["timestamp"] == "1970-01-01T00:00:01.000Z"
    assert found[0]["value"]["raw"] == "/w=="


def test_bounds_are_offsets_or_times(shown) -> None:
    found = rows(shown(start="1970-01-01T00:00:10Z", end="1970-01-01T00:00:12Z", output="json"))
    assert sorted(row["timestamp"] for row in found) == ["1970-01-01T00:00:10.000Z", "1970-01-01T00:00:11.000Z"]
    found = rows(shown(start="2", end="4", output="json"))
    assert {row["offset"] for row in found} == {2, 3}
    found = rows(shown(start="2", end="1970-01-01T00:00:12Z", partition=found[0]["partition"], output="json"))
    assert len({row["partition"] for row in found}) == 1
    for wrong in ("yesterday", "1970-01-01T00:00:10"):
        with pytest.raises(ConfigurationError, match="no time"):
            shown(start=wrong)


def test_a_limit_says_that_there_are_more(shown) -> None:
    text = shown(limit=3)
    assert len([line for line in text.splitlines() if "1970" in line]) == 3
    assert "The first 3 records; --limit says how many." in text
    assert "The first" not in shown(limit=40)
    assert len(rows(shown(limit=3, output="json"))) == 3


def test_headers_are_shown_where_there_are_some(shown) -> None:
    assert "headers" not in shown(limit=3)
    assert next(csv.reader(shown(limit=3, output="csv").splitlines()))[-1] == "headers"


def test_nothing_is_said_in_words(shown) -> None:
    assert shown("nobody") == "events has no record with the key nobody there.\n"
    assert shown("nobody", output="json") == ""


def test_what_is_not_there_is_refused(settings) -> None:
    with pytest.raises(ConfigurationError, match="there is no topic archive"):
        print_records("nothing", None, settings)
    with pytest.raises(ConfigurationError, match="partitions 0 to 2"):
        print_records("events", None, settings, partition=7)


WINDOWED = pa.struct([("key", pa.string()), ("window_start", TIME), ("window_end", TIME)])
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
A_STRUCT = pa.struct([("a", pa.int64())])
DECIMAL = pa.decimal128(6, 2)


@pytest.mark.parametrize(
    ("text", "type_", "keys"),
    [
        ("JFK", pa.string(), ["JFK"]),
        ('{"a": 1}', pa.string(), ['{"a": 1}']),
        ("5", pa.int32(), [5]),
        ("true", pa.bool_(), [True]),
        ("1.5", pa.float64(), [1.5]),
        ("1.50", DECIMAL, [Decimal("1.50")]),
        ('"1.50"', DECIMAL, [Decimal("1.50")]),
        ("2013-01-01", pa.date32(), [date(2013, 1, 1)]),
        ("2013-01-01T05:00Z", TIME, [datetime(2013, 1, 1, 5, tzinfo=UTC)]),
        ("/w==", pa.binary(), [b"/w==", b"\xff"]),
        ("not base64", pa.binary(), [b"not base64"]),
        ("raw!", windowed_struct(pa.binary()), [{"key": b"raw!"}]),
        ('{"a": 1, "b": "x"}', pa.struct([("a", pa.int64()), ("b", pa.string())]), [{"a": 1, "b": "x"}]),
        ("[1, 2]", pa.list_(pa.int32()), [[1, 2]]),
        ("JFK", WINDOWED, [{"key": "JFK"}]),
        (
            '["JFK", 0, 60000]',
            WINDOWED,
            [
                {
                    "key": "JFK",
                    "window_start": datetime(1970, 1, 1, tzinfo=UTC),
                    "window_end": datetime(1970, 1, 1, 0, 1, tzinfo=UTC),
                }
            ],
        ),
        (
            '{"key": "JFK", "window_start": "1970-01-01T00:00:00Z"}',
            WINDOWED,
            [{"key": "JFK", "window_start": EPOCH}],
        ),
    ],
)
def test_a_text_stands_for_a_key_of_the_topic_s_type(text, type_, keys) -> None:
    assert keys_of(text, type_) == keys


@pytest.mark.parametrize(
    ("text", "type_"),
    [
        ("x", pa.int64()), ("1.5", pa.int64()), ("99999999999", pa.int32()), ("x", DECIMAL), ("soon", TIME),
        ("{", A_STRUCT), ("7", A_STRUCT), ('{"b": 1}', A_STRUCT),
    ],
)  # fmt: skip
def test_a_text_that_is_no_key_is_refused(text, type_) -> None:
    with pytest.raises(ConfigurationError, match="is no key of this topic"):
        keys_of(text, type_)
