"""Fields that folders tell (``dt=2013-01-31``), and what a file tells of itself."""

from __future__ import annotations

import datetime as dt
import os
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.dataset as ds
import pytest
from deltalake import write_deltalake
from hypothesis import given
from hypothesis import strategies as st

from statelib.errors.kinds import ConfigurationError
from statelib.ingest.sources.folders import folder_fields
from statelib.job.lake_topic import LakeTopic
from tests.ingest.connect_trees import real_records, real_tree
from tests.ingest.lake import load, records_of, write_file

if TYPE_CHECKING:
    from pathlib import Path

DAY_MS = 86_400_000
AT = 1_356_998_400_000


@pytest.mark.parametrize("ext", ["parquet", "csv", "jsonl", "avro"])
def test_folders_are_fields_of_every_format(tmp_path: Path, ext: str) -> None:
    """Keys, timestamps and values may be folders' fields; a column of the file itself is what it says."""
    for n, (day, country, hour) in enumerate(
        [("2013-01-01", "US", "07"), ("2013-01-02", "a%2Fb", "10"), ("2013-01-03", None, "11")]
    ):
        folder = f"lake/dt={day}/country={country or '__HIVE_DEFAULT_PARTITION__'}/hour={hour}/own=9"
        write_file(tmp_path / folder / f"part.{ext}", [{"n": n, "own": n}])
    topic = LakeTopic("t", f"{tmp_path}/lake", key="country", timestamp="dt", partitions=1)
    load(topic, tmp_path / "w")
    found = [(r["key"], r["timestamp"] - AT, r["value"]) for r in records_of(tmp_path / "w", "t")]
    assert found == [
        ("US", 0, {"n": 0, "own": 0, "hour": "07"}), ("a/b", DAY_MS, {"n": 1, "own": 1, "hour": "10"}),
        (None, 2 * DAY_MS, {"n": 2, "own": 2, "hour": "11"}),
    ]  # fmt: skip
    write_file(tmp_path / f"lake/dt=2013-01-04/country=7/hour=12/part.{ext}", [{"n": 3, "own": 3}])
    load(topic, tmp_path / "w")  # the types stay
    assert records_of(tmp_path / "w", "t")[-1]["key"] == "7"
    assert records_of(tmp_path / "w", "t")[-1]["value"]["hour"] == "12"


def test_times_are_put_together_from_folders(tmp_path: Path) -> None:
    write_file(tmp_path / "lake/year=2013/month=1/day=2/hour=3/part.jsonl", [{"n": 1}])
    topic = LakeTopic("t", f"{tmp_path}/lake", timestamp="{year}-{month:02}-{day:02} {hour:02}:00", value="n")
    load(topic, tmp_path / "w")
    assert records_of(tmp_path / "w", "t")[0]["timestamp"] == AT + DAY_MS + 3 * 3_600_000


def test_types_of_folders(tmp_path: Path) -> None:
    write_file(tmp_path / "lake/a=1/b=-3/c=x/d=2013-13-01/part.jsonl", [{"at": "2013-01-01"}])
    write_file(tmp_path / "lake/a=0/b=12/c=5/d=2013-01-01/part.jsonl", [{"at": "2013-01-01"}])
    topic = LakeTopic("t", f"{tmp_path}/lake", timestamp="at", types={"b": "double"}, partitions=1)
    load(topic, tmp_path / "w")
    assert [r["value"] for r in records_of(tmp_path / "w", "t")] == [
        {"a": 0, "b": 12.0, "c": "5", "d": "2013-01-01"}, {"a": 1, "b": -3.0, "c": "x", "d": "2013-13-01"},
    ]  # fmt: skip
    path = write_file(tmp_path / "lake/a=new/b=1/c=5/d=x/part.jsonl", [{"at": "2013-01-01"}])
    with pytest.raises(ConfigurationError, match="a folder says 'new', which is no int64") as caught:
        load(topic, tmp_path / "w")
    assert (caught.value.place["file"], caught.value.place["field"]) == (str(path), "a")


@given(
    fields=st.dictionaries(
        st.text(st.characters(categories=["L", "N"]), min_size=1, max_size=4),
        st.none() | st.text(min_size=1, max_size=6),
        max_size=3,
    )
)
def test_folders_are_read_as_arrow_writes_them(fields: dict[str, str | None]) -> None:
    """Against Arrow's writer of Hive's folders."""
    if any(text is not None and ("\0" in text or not text.isprintable()) for text in fields.values()):
        return
    scheme = ds.partitioning(pa.schema([(name, pa.string()) for name in fields]), flavor="hive")
    expression = None
    for name, text in fields.items():
        one = ds.field(name).is_null() if text is None else ds.field(name) == text
        expression = one if expression is None else expression & one
    folder = "" if expression is None else scheme.format(expression)[0].strip("/") + "/"
    assert folder_fields(f"/lake/{folder}part.parquet") == fields


def test_a_record_that_was_one_keeps_its_value(tmp_path: Path) -> None:
    """Folders of a connector's partitioner are no fields of it, but can tell its timestamp or key."""
    write_file(tmp_path / "topics/t/year=2013/month=01/day=02/t+0+0000000007.jsonl", [{"n": 1}, {"n": 2}])
    topic = LakeTopic("t", f"{tmp_path}/topics", timestamp="{year}-{month}-{day}", key="month")
    load(topic, tmp_path / "w")
    found = [(r["offset"], r["key"], r["timestamp"], r["value"]) for r in records_of(tmp_path / "w", "t")]
    assert found == [(7, "01", AT + DAY_MS, {"n": 1}), (8, "01", AT + DAY_MS, {"n": 2})]


def test_when_a_file_was_written(tmp_path: Path) -> None:
    """The tree of Connect's ByteArrayFormat has no other time."""
    tree = real_tree("bytes", tmp_path)
    paths = sorted(tree.rglob("*.bin"))
    for n, path in enumerate(paths):
        os.utime(path, ns=(0, (AT + n) * 1_000_000))
    topic = LakeTopic("t", str(tree), timestamp="file.modified", key_serde="string")
    assert load(topic, tmp_path / "w").timestamps == "file.modified: timestamp[ms, tz=UTC]"
    at = {path: AT + n for n, path in enumerate(paths) if ".keys." not in path.name}
    found = [(r["partition"], r["offset"], r["key"], r["value"]["value"]) for r in records_of(tmp_path / "w", "t")]
    moved = {(1, 107): (1, 103)}  # a gap by compaction, which no name tells
    wanted = [
        (*moved.get((s.partition, s.offset), (s.partition, s.offset)), s.key, s.value) for s in real_records("bytes")
    ]
    assert found == wanted
    assert {r["timestamp"] for r in records_of(tmp_path / "w", "t")} == set(at.values())


@pytest.mark.parametrize("ext", ["parquet", "csv"])
def test_names_of_files(tmp_path: Path, ext: str) -> None:
    path = write_file(tmp_path / f"lake/x.{ext}", [{"n": 1, "at": "2013-01-01"}])
    options: dict[str, Any] = {"key": "file.name", "timestamp": "at", "value": ("n", "file.path")}
    load(LakeTopic("t", f"{tmp_path}/lake", **options), tmp_path / "w")
    (record,) = records_of(tmp_path / "w", "t")
    assert (record["key"], record["value"]) == (f"x.{ext}", {"n": 1, "file.path": str(path)})


def test_files_of_a_table_tell_nothing_of_themselves(tmp_path: Path) -> None:
    write_deltalake(str(tmp_path / "lake"), pa.table({"n": [1], "day": [dt.date(2013, 1, 1)]}), partition_by=["day"])
    load(LakeTopic("t", f"{tmp_path}/lake", timestamp="day"), tmp_path / "w")
    assert [(r["timestamp"], r["value"]) for r in records_of(tmp_path / "w", "t")] == [(AT, {"n": 1})]
    with pytest.raises(ConfigurationError, match="does not tell when its files were written"):
        load(LakeTopic("u", f"{tmp_path}/lake", timestamp="file.modified"), tmp_path / "w")
