"""Files that others wrote, for others: odd column names, gaps, old times, and times written in several ways.

Where they are from: tests/data/lake/README.md. What is expected of each is read by another library, or by hand.
"""

from __future__ import annotations

import csv
import datetime as dt
import gzip
import io
import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from statelib.job.lake_topic import LakeTopic
from tests.ingest.lake import load, records_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

LAKE = Path(__file__).parents[1] / "data" / "lake"
_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)


def _content(name: str) -> bytes:
    content = (LAKE / name).read_bytes()
    if name.endswith(".gz"):
        return gzip.decompress(content)
    if name.endswith(".zst"):
        return pa.CompressedInputStream(pa.BufferReader(content), "zstd").read()
    return content


def _rows(name: str) -> list[dict[str, Any]]:
    """A file's rows, by the standard library, fastavro and pyarrow; cells of CSV are strings."""
    if ".csv" in name:
        return list(csv.DictReader(io.StringIO(_content(name).decode())))
    if ".jsonl" in name:
        return [json.loads(line) for line in _content(name).splitlines()]
    if ".json" in name:
        found: list[dict[str, Any]] = json.loads(_content(name))
        return found
    if name.endswith(".avro"):
        return [dict(row) for row in fastavro.reader(io.BytesIO(_content(name)))]  # type: ignore[call-overload]
    rows: list[dict[str, Any]] = pq.read_table(LAKE / name).to_pylist()
    return rows


def _ms(time: dt.datetime) -> int:
    return (time.replace(tzinfo=time.tzinfo or dt.UTC) - _EPOCH) // dt.timedelta(milliseconds=1)


def _iso(text: str) -> int:
    return _ms(dt.datetime.fromisoformat(text))


def _as(pattern: str) -> Callable[[str], int]:
    return lambda text: _ms(dt.datetime.strptime(text, pattern).replace(tzinfo=dt.UTC))


def _fraction(text: str) -> int:
    """Such as 1900-05-05 12:34:56.1001, with one to four digits."""
    whole, _, fraction = text.partition(".")
    return _iso(whole) + int(fraction.ljust(3, "0")[:3])


FILES = {
    "la-riots.csv": (LakeTopic("t", "", key="neighborhood", timestamp="death_date"), _iso),
    "stocks.csv": (LakeTopic("t", "", key="symbol", timestamp="date", timestamp_format="%b %d %Y"), _as("%b %d %Y")),
    "us-employment.csv": (LakeTopic("t", "", key="nonfarm", timestamp="month"), _iso),
    "seattle-weather.csv.gz": (
        LakeTopic("t", "", key="weather", timestamp="date", timestamp_format="%Y/%m/%d"),
        _as("%Y/%m/%d"),
    ),
    "penguins-raw.csv.gz": (LakeTopic("t", "", key="Individual ID", timestamp="Date Egg"), _iso),
    "iowa-electricity.csv.zst": (LakeTopic("t", "", key="source", timestamp="year"), _iso),
    "ohlc.json": (LakeTopic("t", "", key="signal", timestamp="date"), _iso),
    "crimea.json": (LakeTopic("t", "", key="wounds", timestamp="date"), _iso),
    "cars.json.gz": (LakeTopic("t", "", key="Origin", timestamp="Year"), _iso),
    "testDate1900.jsonl.gz": (LakeTopic("t", "", key="date", timestamp="time"), _fraction),
    "weather.avro": (LakeTopic("t", "", key="station", timestamp="time", timestamp_unit="ms"), lambda ms: ms),
    "v0.7.1.column-metadata-handling.parquet": (LakeTopic("t", "", key="index", timestamp="c"), _ms),
}


def test_every_file_is_loaded() -> None:
    assert {path.name for path in LAKE.iterdir()} - {"README.md"} == set(FILES)


@pytest.mark.parametrize("name", sorted(FILES))
def test_each_row_becomes_a_record(name: str, tmp_path: Path) -> None:
    """But for those of before 1970, which Kafka has no timestamps for: they go to the quarantine, and are counted."""
    topic, time_of = FILES[name]
    assert topic.key is not None
    assert topic.timestamp is not None
    loaded = load(replace(topic, source=str(LAKE / name)), tmp_path / "w", "quarantine")
    rows, found = _rows(name), records_of(tmp_path / "w", "t") if loaded.records else []
    timed = [(time_of(row[topic.timestamp]), row) for row in rows]
    kept = [row for time, row in timed if time >= 0]
    assert (loaded.records, loaded.bad_rows) == (len(kept), len(rows) - len(kept))
    wanted = sorted((_text(row[topic.key]), time) for time, row in timed if time >= 0)
    assert sorted((_text(record["key"]), record["timestamp"]) for record in found) == wanted
    fields = {field for row in kept for field in row} - {topic.key, topic.timestamp}
    assert {field for record in found for field in record["value"]} == fields
    for field in fields:
        held = sorted(_text(record["value"][field]) for record in found)
        assert held == sorted(_texts([row[field] for row in kept])), field


def _texts(cells: Sequence[object]) -> list[str]:
    """Cells of a column; where all others are numbers, ``NA`` is the number that is not there."""
    texts = ["" if cell == "NA" else _text(cell) for cell in cells]
    return texts if all(_is_number(text) for text in texts if text) else [_text(cell) for cell in cells]


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _text(value: object) -> str:
    """A cell as text that numbers of all formats have in common; what is not there is empty."""
    if value is None or value == "":
        return ""
    if isinstance(value, dt.datetime):
        return str(_ms(value))
    if isinstance(value, dt.date):
        return value.isoformat()
    return repr(float(str(value))) if _is_number(str(value)) else str(value)
