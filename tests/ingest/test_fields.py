"""The fields of all files together: what may change over the years, and what is told of files that do not fit."""

from __future__ import annotations

import datetime as dt
import functools
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from statelib.errors.kinds import ConfigurationError, InputError
from tests.ingest.lake import FIRST_MS, a_topic, load, records_of, without_nulls, write_file

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.thorough


def test_fields_may_come_widen_move_and_go(tmp_path: Path) -> None:
    write_file(tmp_path / "lake/2013.parquet", [{"user": "a", "at": FIRST_MS, "n": 1, "gone": "x"}])
    write_file(tmp_path / "lake/2014.jsonl", [{"new": True, "at": FIRST_MS + 1, "n": 2, "user": "a"}])
    load(a_topic(tmp_path, timestamp_unit="ms"), tmp_path / "w")
    write_file(tmp_path / "lake/2015.jsonl", [{"user": "a", "at": FIRST_MS + 2, "in": {"deep": [1, None]}}])
    load(a_topic(tmp_path, timestamp_unit="ms"), tmp_path / "w")
    values = [without_nulls(record["value"]) for record in records_of(tmp_path / "w", "t")]
    assert values == [{"n": 1, "gone": "x"}, {"new": True, "n": 2}, {"in": {"deep": [1, None]}}]


def test_a_file_that_cannot_be_merged_is_refused_by_name(tmp_path: Path) -> None:
    write_file(tmp_path / "lake/2013.parquet", [{"user": "a", "at": FIRST_MS, "n": 1}])
    other = write_file(tmp_path / "lake/2014.parquet", [{"user": "a", "at": FIRST_MS, "n": "one"}])
    with pytest.raises(ConfigurationError, match="n is string there, and was int64") as caught:
        load(a_topic(tmp_path, timestamp_unit="ms"), tmp_path / "w")
    assert caught.value.place["file"] == str(other)
    assert not (tmp_path / "w/topics").exists()


def test_a_field_that_csv_makes_text_is_text_in_json_too(tmp_path: Path) -> None:
    (tmp_path / "lake").mkdir()
    (tmp_path / "lake/a.csv").write_text("user,at,n\na,2013-01-01,1\n")
    (tmp_path / "lake/b.csv").write_text("user,at,n\na,2013-01-02,x\n")
    (tmp_path / "lake/c.jsonl").write_text('{"user": "a", "at": "2013-01-03", "n": 1.50}\n')
    load(a_topic(tmp_path, partitions=1), tmp_path / "w")
    assert [record["value"]["n"] for record in records_of(tmp_path / "w", "t")] == ["1", "x", "1.50"]


def test_json_that_is_compressed_follows_the_same_rule(tmp_path: Path) -> None:
    write_file(tmp_path / "lake/a.jsonl.gz", [{"user": "a", "at": FIRST_MS, "n": 1}])
    write_file(tmp_path / "lake/b.jsonl.gz", [{"user": "a", "at": FIRST_MS, "n": "x"}])
    with pytest.raises(InputError, match='"x" is no integer') as caught:
        load(a_topic(tmp_path), tmp_path / "w")
    assert caught.value.place["file"] == str(tmp_path / "lake/b.jsonl.gz")


def test_json_beside_typed_files_may_have_more_fields(tmp_path: Path) -> None:
    when = dt.datetime(2013, 1, 1, tzinfo=dt.UTC)
    write_file(tmp_path / "lake/a.parquet", [{"user": "a", "at": when, "seen": when}])
    lines = ['{"user": "a", "at": "2013-01-02T00:00:00Z", "seen": "2013-01-02T00:00:00Z"}'] * 100_000
    lines.append('{"user": "a", "at": "2013-01-03T00:00:00Z", "seen": "2013-01-03T00:00:00Z", "new": 1}')
    (tmp_path / "lake/b.jsonl").write_text("\n".join(lines))
    done = load(a_topic(tmp_path, partitions=1), tmp_path / "w", "quarantine")
    assert (done.records, done.bad_rows) == (100_002, 0)
    assert records_of(tmp_path / "w", "t")[-1]["value"]["new"] == 1


def test_a_number_of_other_records_cannot_be_lost_by_rounding(tmp_path: Path) -> None:
    write_file(tmp_path / "lake/a.jsonl", [{"user": "a", "at": FIRST_MS, "n": 2**53 + 1}])
    write_file(tmp_path / "lake/b.jsonl", [{"user": "a", "at": FIRST_MS, "n": 0.5}])
    with pytest.raises(InputError, match="larger than a number can be"):
        load(a_topic(tmp_path, timestamp_unit="ms"), tmp_path / "w")


@pytest.mark.parametrize("name", ["{id}", "a.b", "a b", 'a"b', "ü,;(=)", "a\nb", "", "@x", "value", "timestamp"])
def test_a_column_may_have_any_name(tmp_path: Path, name: str) -> None:
    (tmp_path / "lake").mkdir()
    at = pa.array([FIRST_MS, FIRST_MS + 1], pa.timestamp("ms"))
    pq.write_table(pa.table({"at": at, "id": [1, 2], name: ["x", "y"]}), tmp_path / "lake/a.parquet")
    load(a_topic(tmp_path, key=None, partitions=1), tmp_path / "w")
    assert [record["value"] for record in records_of(tmp_path / "w", "t")] == [
        {"id": 1, name: "x"}, {"id": 2, name: "y"},
    ]  # fmt: skip
    if name:
        load(a_topic(tmp_path, key=name, value=name, partitions=1), tmp_path / "keyed")
        assert [(r["key"], r["value"]) for r in records_of(tmp_path / "keyed", "t")] == [("x", "x"), ("y", "y")]


def test_two_columns_of_one_name_are_told(tmp_path: Path) -> None:
    (tmp_path / "lake").mkdir()
    columns = [pa.array([FIRST_MS], pa.timestamp("ms")), pa.array([1]), pa.array([2])]
    pq.write_table(pa.Table.from_arrays(columns, ["at", "n", "n"]), tmp_path / "lake/a.parquet")
    with pytest.raises(InputError, match="two columns of a file have one name"):
        load(a_topic(tmp_path, key=None), tmp_path / "w")


@pytest.mark.parametrize(
    ("name", "content", "types", "what"),
    [
        ("a.csv", "at,n\n2013-01-01,1\n", {"m": "string"}, "the rows have"),
        ("a.jsonl", '{"at": "2013-01-01", "o": {"n": 1}}\n', {"o.n": "string"}, "the whole field"),
        ("a.jsonl", "at,n\n", {}, "no row of the new files can be read: a row is no object"),
    ],
)
def test_types_of_fields_that_are_not_there_are_told(
    tmp_path: Path, name: str, content: str, types: dict[str, str], what: str
) -> None:
    (tmp_path / "lake").mkdir()
    (tmp_path / "lake" / name).write_text(content)
    with pytest.raises((ConfigurationError, InputError), match=what):
        load(a_topic(tmp_path, key=None, types=types), tmp_path / "w")


@pytest.mark.parametrize(
    ("columns", "what"),
    [
        ({"A": [1], "a": [2]}, "two fields named a apart"),
        ({"@key": [1]}, "a name that is reserved"),
        ({"@key-bytes": [b"a"]}, "a name that is reserved"),
        ({"@file:file.path": ["a"]}, "a name that is reserved"),
        ({"a\0b": [1]}, "a zero byte"),
        ({"deep": pa.array([functools.reduce(lambda inner, _: {"a": inner}, range(40), 1)])}, "nested deeper"),
        ({"far": pa.array([2**62], pa.timestamp("ms"))}, "do not fit the type|out of bounds"),
    ],
)
def test_fields_that_no_topic_can_have_are_told(tmp_path: Path, columns: dict[str, Any], what: str) -> None:
    (tmp_path / "lake").mkdir()
    table = pa.table({"user": ["a"], "at": pa.array([FIRST_MS]).cast(pa.timestamp("ms")), **columns})
    pq.write_table(table, tmp_path / "lake/a.parquet")
    with pytest.raises((ConfigurationError, InputError), match=what) as caught:
        load(a_topic(tmp_path), tmp_path / "w", "quarantine")
    assert caught.value.next_step
