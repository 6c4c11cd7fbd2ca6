"""Views have what `hindstream.read` has, whoever serves, and go on having it while nobody makes them again."""

from __future__ import annotations

import json
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from subprocess import PIPE

import duckdb
import pyarrow as pa
import pytest
from deltalake import DeltaTable

import hindstream
from hindstream.sql.dialects import DUCKDB, SPARK
from hindstream.sql.views import views_of
from statelib.commits import Retention, maintain, rollback
from statelib.commits.archives import open_archive
from statelib.commits.rewriting.rewrite import FilePolicy
from statelib.commits.versions.drop_fork import drop_fork
from statelib.commits.versions.fork import fork, fork_from_beginning
from statelib.commits.versions.promotion import go_back, promote
from statelib.errors.kinds import ConfigurationError
from tests.commits.conftest import scratch, warehouse
from tests.commits.versions.test_fork import four_commits, run
from tests.conftest import ROOT
from tests.kafka.maven import build

pytestmark = pytest.mark.thorough

__all__ = ["four_commits", "run", "scratch", "warehouse"]


class Readers:
    """Somebody with a database of DuckDB, in which views are made now and then.

    Its extension for Delta is not in the package index for this version: a macro of the same name reads the tables as
    delta-rs sees them.
    """

    def __init__(self, warehouse):
        self.warehouse = warehouse
        self.database = duckdb.connect()
        self.database.execute("set timezone = 'UTC'")
        self.database.execute("create macro delta_scan(path) as table select * from query_table(path)")

    def make_views(self, job="counting"):
        made = views_of(self.warehouse, job, DUCKDB)
        self._look()
        for view in made.views:
            self.database.execute(view.sql)
        return made

    def rows(self, sink="counts"):
        self._look()
        return (
            self.database.sql(f'select * from "{sink}_current" order by "partition", "offset"')
            .to_arrow_table()
            .to_pylist()
        )

    def _look(self):
        for folder in self.warehouse.folders("topics"):
            uri = self.warehouse.uri(folder)
            if DeltaTable.is_deltatable(uri):
                self.database.register(uri, DeltaTable(uri).to_pyarrow_dataset())


@pytest.fixture
def readers(warehouse):
    return Readers(warehouse)


@pytest.fixture
def forked(warehouse, four_commits, run):
    """The job, and a fork of it that has come as far."""
    fork(warehouse, "counting", "new", 2, now_ms=5)
    run(4, "new")
    return warehouse


def read(warehouse, job="counting", **options):
    records = hindstream.read("counts", job=job, warehouse=warehouse.uri(""), **options).to_reader().read_all()
    return records.sort_by([("partition", "ascending"), ("offset", "ascending")]).to_pylist()


def test_they_move_with_a_promotion_and_back(forked, readers):
    assert readers.make_views().serving == "counting"
    before = readers.rows()
    assert before == read(forked)
    promote(forked, "new", "counting", now_ms=7)
    assert readers.rows() == before
    assert readers.make_views().serving == "new"
    assert readers.rows() == read(forked)
    assert "counts.new" in views_of(forked, "counting", DUCKDB).views[0].sql
    go_back(forked, "counting", now_ms=8)
    readers.make_views()
    assert readers.rows() == before


def test_both_go_on_and_the_views_stay(forked, readers, run):
    promote(forked, "new", "counting", now_ms=7)
    readers.make_views()
    before = len(readers.rows())
    run(6)
    rollback(forked, "counting", 4, now_ms=8)
    assert readers.rows() == read(forked)
    run(6, "new")
    assert len(readers.rows()) > before
    assert readers.rows() == read(forked)
    rollback(forked, "new", 2, now_ms=9)
    assert len(readers.rows()) == before
    assert readers.rows() == read(forked)


def test_files_that_are_merged_stay_the_same_records(forked, readers, run):
    promote(forked, "new", "counting", now_ms=7)
    readers.make_views()
    for day in (5, 6, 7, 8):
        run(day)
        run(day, "new")
    before, files = readers.rows(), len(DeltaTable(forked.uri("topics/counts.new")).file_uris())
    policy = FilePolicy("m", every_commits=1, keep_replaced_ms=0, fully=True)
    for job in ("counting", "new"):
        maintain(forked, job, Retention(1), now_ms=10**12, files=policy)
    assert len(DeltaTable(forked.uri("topics/counts.new")).file_uris()) < files
    assert readers.rows() == before == read(forked)


def test_of_a_fork_of_a_fork(forked, readers, run):
    fork(forked, "new", "newer", now_ms=7)
    run(5, "newer")
    promote(forked, "newer", "counting", now_ms=8)
    readers.make_views()
    run(6, "newer")
    assert readers.rows() == read(forked)
    places = {(row["partition"], row["offset"]) for row in readers.rows()}
    assert len(places) == len(readers.rows()) > 100


def test_of_a_fork_from_the_beginning(forked, readers, run):
    fork_from_beginning(forked, "counting", "anew")
    run(4, "anew")
    promote(forked, "anew", "counting", now_ms=8)
    (view,) = readers.make_views().views
    assert "WHERE" not in view.sql
    assert readers.rows() == read(forked)


def test_of_a_fork_that_has_not_run(forked, readers, run):
    fork(forked, "counting", "later", now_ms=7)
    promote(forked, "later", "counting", now_ms=8)
    (view,) = readers.make_views().views
    assert not view.is_complete
    assert readers.rows() == read(forked)
    run(5, "later")
    (view,) = readers.make_views().views
    assert view.is_complete
    assert readers.rows() == read(forked)


def test_what_is_not_published_is_refused(forked):
    promote(forked, "new", "counting", now_ms=7)
    forked.delete([entry.path for entry in forked.list("topics/counts.new")])
    with pytest.raises(ConfigurationError, match="does not show all that new has of it"):
        views_of(forked, "counting", DUCKDB)


def test_names(forked):
    (view,) = views_of(forked, "counting", SPARK, schema="lake.gold").views
    assert view.name == "`lake`.`gold`.`counts_current`"
    drop_fork(forked, "new", now_ms=8)


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.spark
def test_in_spark_with_deltas_package(forked, run, tmp_path):
    promote(forked, "new", "counting", now_ms=7)
    (view,) = views_of(forked, "counting", SPARK).views
    columns = "partition, offset, unix_millis(timestamp) AS timestamp, key, value"
    with delta_spark(tmp_path) as ask:
        ask(view.sql)
        for day in (5, 6):
            run(day, "new")
            want = [
                {**row, "timestamp": round(row["timestamp"].timestamp() * 1000)}
                for row in read(forked)
                if row.pop("headers") is None
            ]
            assert ask(f"SELECT {columns} FROM {view.name} ORDER BY partition, offset") == want
        assert ask("SHOW VIEWS")[0]["viewName"] == "counts_current"
        ask("CREATE SCHEMA gold")
        ask(f"CREATE TABLE gold.counts USING delta LOCATION '{forked.uri('topics/counts.new')}'")  # docs/iceberg.md
    run(7, "new")
    with delta_spark(tmp_path) as ask:  # of another session: a Hive metastore has kept it
        (rows,) = ask("SELECT count(*) AS n FROM gold.counts")
        assert rows["n"] == open_archive(forked, "counts.new").rows
        ask("DROP TABLE gold.counts")
    assert open_archive(forked, "counts.new").rows == rows["n"]


@contextmanager
def delta_spark(folder):
    """Asks a session of Spark with Delta's package, whose catalog is a Hive metastore in the folder."""
    jars = build(Path(__file__).with_name("delta-spark")) / "jars"
    command = [sys.executable, "-m", "tests.hindstream.sql.delta_spark", str(jars), str(folder)]
    with (
        (folder / "stderr").open("w") as stderr,
        subprocess.Popen(command, stdin=PIPE, stdout=PIPE, stderr=stderr, text=True, cwd=ROOT) as process,
    ):

        def ask(statement):
            process.stdin.write(json.dumps(statement) + "\n")
            process.stdin.flush()
            answer = process.stdout.readline()
            assert answer, (folder / "stderr").read_text()[-4000:]
            return json.loads(answer)

        yield ask
        process.stdin.close()


OLD = {
    "type": "struct",
    "fields": [
        {"name": "n", "type": "integer", "nullable": True, "metadata": {}},
        {"name": "gone", "type": "string", "nullable": True, "metadata": {}},
        {"name": "items", "type": {"type": "array", "elementType": "integer", "containsNull": True}},
        {"name": "in", "type": {"type": "struct", "fields": [{"name": "a", "type": "long", "metadata": {"x": 1}}]}},
    ],
}
NEW = {
    "type": "struct",
    "fields": [
        {"name": "n", "type": "long", "nullable": False, "metadata": {}},
        {"name": "more", "type": "string", "nullable": True, "metadata": {}},
        {"name": "items", "type": {"type": "array", "elementType": "long", "containsNull": False}},
        {"name": "in", "type": {"type": "struct", "fields": [{"name": "a", "type": "long", "metadata": {}}]}},
        {"name": "map", "type": {"type": "map", "keyType": "string", "valueType": "binary"}},
    ],
}
VALUES = pa.array(
    [
        {"n": 1, "gone": "x", "items": [1, None], "in": {"a": 2}},
        None,
        {"n": None, "gone": "", "items": None, "in": None},
    ],
    pa.struct(
        [
            ("n", pa.int32()),
            ("gone", pa.string()),
            ("items", pa.list_(pa.int32())),
            ("in", pa.struct([("a", pa.int64())])),
        ]
    ),
)
AS_NEW = [
    {"n": 1, "more": None, "items": [1, None], "in": {"a": 2}, "map": None},
    None,
    {"n": None, "more": None, "items": None, "in": None, "map": None},
]


def test_values_of_before_are_read_as_those_of_now():
    rows = pa.table({"value": VALUES})
    found = duckdb.sql(f"select {DUCKDB.read_as('value', OLD, NEW)} as value from rows").to_arrow_table()
    assert found["value"].to_pylist() == AS_NEW
    assert str(found.schema.field("value").type.field("n").type) == "int64"
    assert DUCKDB.read_as("value", NEW, NEW) == "value"
    assert rows.num_rows == len(AS_NEW)


@pytest.mark.spark
def test_and_in_spark(spark):
    frame = spark.createDataFrame(pa.table({"value": VALUES}))
    found = frame.selectExpr(f"{SPARK.read_as('value', OLD, NEW)} as value")
    rows = [row.asDict(recursive=True)["value"] for row in found.collect()]
    assert rows == AS_NEW
    assert dict(found.dtypes)["value"].startswith(
        "struct<n:bigint,more:string,items:array<bigint>,in:struct<a:bigint>,map:map<string,binary>"
    )
