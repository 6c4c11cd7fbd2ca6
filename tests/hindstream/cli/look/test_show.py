"""``hindstream show``: records of a topic by key, offset and time."""

from __future__ import annotations

import csv
import json

import pyarrow as pa
import pytest

from hindstream.cli.look.show import print_records
from statelib.commits.archives import open_archive
from statelib.errors.kinds import ConfigurationError
from statelib.settings.settings import Settings
from statelib.storage.storage import existing_storage
from statelib.topics.append import append_records
from statelib.topics.archive import TopicArchive
from statelib.topics.parquet.schema import TIMESTAMP, topic_schema

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
    with pytest.raises(ConfigurationError, match=r"no topic archive.* did you mean events\?"):
        print_records("event", None, settings)
    with pytest.raises(ConfigurationError, match=r"no topic archive.* did you mean events\?"):
        open_archive(existing_storage(settings.warehouse), "evnts")
    with pytest.raises(ConfigurationError, match="partitions 0 to 2"):
        print_records("events", None, settings, partition=7)
