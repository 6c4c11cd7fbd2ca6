"""The rows of a query become a topic once; they are those of one run of it, whatever happens on the way."""

from __future__ import annotations

import json
import os
import re
import shlex
import time
import uuid
from typing import TYPE_CHECKING, Any

import pytest

from hindstream.doctor.lake import check_lake
from hindstream.spark import ingest
from hindstream.spark.lake import queries, stages
from statelib.commits.archives import open_archive
from statelib.errors.fault_points import observed
from statelib.errors.kinds import ConfigurationError, InputError
from statelib.job.lake_topic import LakeTopic
from statelib.settings.settings import load_settings
from statelib.storage import Storage
from tests.command import hindstream
from tests.ingest.lake import records_of, write_file

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from statelib.ingest.load import Loaded
    from tests.storage.s3 import S3Server

AT = 1_356_998_400_000
NUMBERS = f"sql:SELECT id AS n, id % 7 AS user, {AT} + id AS at FROM range(0, 100, 1, 3)"


def loaded(folder: Path, *sources: str, topic: dict[str, Any] | None = None, **settings: Any) -> Loaded:
    asked = LakeTopic("t", sources, **{"key": "user", "timestamp": "at", "partitions": 2, **(topic or {})})
    return ingest(asked, load_settings({"warehouse": str(folder / "w"), **settings}, environ={}))


def numbers_in(folder: Path) -> list[int]:
    return sorted(record["value"]["n"] for record in records_of(folder / "w", "t"))


def left(folder: Path) -> list[Path]:
    return [path for path in (folder / "w/topics/t/_queries").rglob("*") if path.is_file()]


def test_a_query_is_loaded_once(tmp_path: Path, spark: SparkSession) -> None:
    """White space makes no other query of it, and other words do; nothing of its result is left."""
    del spark
    done = loaded(tmp_path, NUMBERS)
    assert (done.records, len(done.files), numbers_in(tmp_path)) == (100, 3, list(range(100)))
    assert loaded(tmp_path, NUMBERS.replace(" FROM", "\n  FROM") + " ;\n").number is None
    assert loaded(tmp_path, NUMBERS + " WHERE id < 2 -- again").records == 2
    assert loaded(tmp_path, NUMBERS.replace("7", "'7'")).records == 100
    assert not left(tmp_path)


def test_a_query_beside_files(tmp_path: Path, spark: SparkSession) -> None:
    del spark
    file = write_file(tmp_path / "a.csv", [{"n": 7, "user": 1, "at": AT}])
    done = loaded(tmp_path, str(file), NUMBERS + " LIMIT 3", topic={"format": "csv"})
    assert (done.records, numbers_in(tmp_path)) == (4, [0, 1, 2, 7])


@pytest.mark.long
def test_a_warehouse_in_an_object_store(tmp_path: Path, s3: S3Server) -> None:
    """Spark needs no connector: workers write the result as they write all else. Other sources are elsewhere."""
    warehouse = f"s3://warehouse/{uuid.uuid4().hex}"
    write_file(tmp_path / "a.parquet", [{"n": 700, "user": 1, "at": AT}])
    options = "\n".join(f'{name} = "{value}"' for name, value in s3.settings.items())
    settings = f'warehouse = "{warehouse}"\n[storage_options]\n{options}\n[source_options]\naws_region = "elsewhere"\n'
    (tmp_path / "hindstream.toml").write_text(settings)
    command = ("ingest", "t", NUMBERS, "a.parquet", "--key", "user", "--timestamp", "at", "--output", "json")
    done = hindstream(*command, cwd=tmp_path, **s3.credentials)
    assert json.loads(done.stdout)["records"] == 101, done.stderr
    storage = Storage(warehouse, s3.options)
    assert not list(storage.list("topics/t/_queries"))
    archive = open_archive(storage, "t")
    assert sum(batch.num_rows for partition in range(4) for batch in archive.reader(partition)) == 101


def test_files_are_tables_of_a_query(tmp_path: Path, spark: SparkSession) -> None:
    """And the order of its rows is that of the topic where it is asked for."""
    del spark
    for n in range(3):
        write_file(tmp_path / f"lake/{n}.parquet", [{"n": n, "user": "u", "at": AT}])
    write_file(tmp_path / "names.jsonl", [{"user": "u", "called": "Uwe"}])
    text = (
        f"SELECT n, called, at FROM parquet.`{tmp_path}/lake/*.parquet` JOIN json.`{tmp_path}/names.jsonl` USING (user)"
    )
    loaded(tmp_path, f"sql:{text} ORDER BY n DESC", topic={"key": "called", "partitions": 1, "order": "arrival"})
    values = [(record["key"], record["value"]["n"]) for record in records_of(tmp_path / "w", "t")]
    assert values == [("Uwe", 2), ("Uwe", 1), ("Uwe", 0)]


def test_both_engines_read_one_result(tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    del spark
    monkeypatch.setattr(stages, "_TASK_BYTES", 1)
    for engine in ("local", "spark"):
        loaded(tmp_path / engine, NUMBERS, ingest_engine=engine)
    files = [sorted((tmp_path / engine / "w/topics/t").glob("partition=*/*")) for engine in ("local", "spark")]
    assert [path.read_bytes() for path in files[0]] == [path.read_bytes() for path in files[1]]


class Killed(BaseException):
    """Ends a load at a step."""


@pytest.mark.parametrize("kill_at", ["ingest.before-account", "ingest.accounted", "ingest.committed"])
def test_a_load_that_is_killed_goes_on_with_the_same_call(tmp_path: Path, spark: SparkSession, kill_at: str) -> None:
    """Of a query that gives other rows each time, a topic has those of one run."""
    del spark
    ran = "SELECT explode(sequence(1, 9)) AS n, run FROM (SELECT uuid() AS run)"
    query = f"sql:SELECT n, 1 AS user, {AT} + n AS at, run FROM ({ran})"

    def kill(name: str) -> None:
        if name == kill_at:
            raise Killed

    with observed(kill), pytest.raises(Killed):
        loaded(tmp_path, query)
    loaded(tmp_path, query)
    assert numbers_in(tmp_path) == list(range(1, 10))
    assert len({record["value"]["run"] for record in records_of(tmp_path / "w", "t")}) == 1
    assert not left(tmp_path)


def test_what_a_killed_process_has_left_goes_after_some_days(tmp_path: Path, spark: SparkSession) -> None:
    del spark
    old, new = (tmp_path / f"w/topics/t/_queries/{name}/001/0.parquet" for name in ("old", "new"))
    for path in (old, new):
        path.parent.mkdir(parents=True)
        path.write_bytes(b"rows")
    os.utime(old, times=(time.time() - 8 * 86_400,) * 2)
    loaded(tmp_path, NUMBERS)
    assert left(tmp_path) == [new]


def test_a_query_without_rows_is_not_loaded(tmp_path: Path, spark: SparkSession) -> None:
    """So it is, as soon as it has some."""
    table = "empty_so_far"
    spark.createDataFrame([], "n long, user string, at long").createOrReplaceTempView(table)
    assert loaded(tmp_path, f"sql:TABLE {table}").number is None
    spark.createDataFrame([(1, "u", AT)], "n long, user string, at long").createOrReplaceTempView(table)
    assert loaded(tmp_path, f"sql:TABLE {table}").records == 1


@pytest.mark.parametrize(
    ("query", "kind", "what"),
    [
        ("SELECT 1 FORM x", ConfigurationError, "Syntax error at or near 'x': extra input 'x'. (line 1, pos 14)"),
        ("SELECT 1\nFRM x", ConfigurationError, "(line 2, pos 4)"),
        ("DROP TABLE x", ConfigurationError, "Syntax error at or near 'DROP'"),
        ("INSERT INTO x SELECT 1", ConfigurationError, "Syntax error at or near 'INSERT'"),
        ("", ConfigurationError, "unexpected empty statement"),
        ("SELECT * FROM nowhere", ConfigurationError, "The table or view `nowhere` cannot be found"),
        ("SELECT * FROM parquet.`/no/where`", ConfigurationError, "Path does not exist: file:/no/where"),
        ("SELECT m FROM range(3)", ConfigurationError, "with name `m` cannot be resolved. Did you mean"),
        ("SELECT id, 2 AS ID FROM range(3)", ConfigurationError, "two columns of the query have one name"),
        ("SELECT array() AS a", ConfigurationError, "a topic cannot hold what the query gives"),
        ("SELECT make_interval(1) AS a", ConfigurationError, "a topic cannot hold what the query gives"),
        ("SELECT CAST(x AS INT) FROM VALUES ('1'), ('x') t(x)", InputError, "The value 'x' of the type"),
        ("SELECT raise_error('not today') AS a FROM range(2)", InputError, "not today"),
    ],
)
def test_what_is_wrong_with_a_query_is_said_in_sparks_own_words(
    tmp_path: Path, spark: SparkSession, capfd: pytest.CaptureFixture[str], query: str, kind: type[Exception], what: str
) -> None:
    del spark
    with pytest.raises(kind) as caught:
        loaded(tmp_path, f"sql:{query}")
    assert what in str(caught.value)
    assert "\n" not in str(caught.value)
    assert "SQLQueryContextLogger" not in capfd.readouterr().err
    assert not left(tmp_path)


def test_a_column_of_nulls_is_left_out(tmp_path: Path, spark: SparkSession) -> None:
    del spark
    loaded(tmp_path, f"sql:SELECT NULL AS nothing, 1 AS n, 'u' AS user, {AT} AS at")
    assert [record["value"] for record in records_of(tmp_path / "w", "t")] == [{"n": 1}]


def test_columns_of_a_broker_do_not_make_a_layout(tmp_path: Path, spark: SparkSession) -> None:
    """Those of Aiven's connectors are what a topic's table has as well."""
    del spark
    columns = "'u' AS key, named_struct('n', 1) AS value, 9L AS offset, array('h') AS headers"
    done = loaded(tmp_path, f"sql:SELECT {columns}, {AT} AS timestamp", topic={"key": "key", "timestamp": "timestamp"})
    assert done.records == 1


def test_the_next_step_for_a_field_of_two_types_is_a_query_that_works(tmp_path: Path, spark: SparkSession) -> None:
    del spark
    first = write_file(tmp_path / "a b/2013.parquet", [{"n": 1, "user": "u", "at": AT, "a`b.c": 1.5}])
    second = write_file(tmp_path / "a b/2014.parquet", [{"n": "2", "user": "u", "at": AT + 1, "a`b.c": 2.5}])
    with pytest.raises(ConfigurationError, match="n is string there, and was int64") as caught:
        loaded(tmp_path, str(first), str(second))
    told = re.search("in its place: (.*); or ", str(caught.value.next_step))
    assert told is not None
    (source,) = shlex.split(told[1])
    assert loaded(tmp_path, str(first), source).records == 2
    values = [record["value"] for record in records_of(tmp_path / "w", "t")]
    assert values == [{"n": 1, "a`b.c": 1.5}, {"n": 2, "a`b.c": 2.5}]


def test_a_look_counts_all_rows_and_samples_some(
    tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = load_settings({"warehouse": str(tmp_path / "w")}, environ={})
    monkeypatch.setattr(queries, "_SAMPLED_ROWS", 10)
    del spark
    (file,) = queries.query_sample(NUMBERS.removeprefix("sql:"), settings, tmp_path)
    assert file.rows == 100
    (finding,) = check_lake(LakeTopic("t", NUMBERS, timestamp="at"), settings)
    assert finding.what == "1 new file, 0 files loaded before"
