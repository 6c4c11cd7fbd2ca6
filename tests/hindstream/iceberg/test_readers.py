"""What Spark's, DuckDB's and polars' own readers have of a table, and what Spark's maintenance does to it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from subprocess import PIPE
from typing import TYPE_CHECKING, Any

import polars as pl
import pyarrow as pa
import pytest

from hindstream.iceberg.publish import publish_to_iceberg
from statelib import IcebergTable, Job, StreamsBuilder
from statelib.commits import rollback
from tests.conftest import ROOT
from tests.kafka.maven import build
from tests.repair.histories import HOUR
from tests.task.pipeline import Pipeline

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.hindstream.iceberg.world import World

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

VALUE = pa.struct([
    ("n", pa.int64()), ("tiny", pa.int8()), ("price", pa.decimal128(10, 2)), ("at", pa.timestamp("us", "UTC")),
    ("local", pa.timestamp("us")), ("day", pa.date32()), ("tags", pa.list_(pa.string())),
    ("counts", pa.map_(pa.string(), pa.int32())), ("in", pa.struct([("x", pa.float32()), ("bytes", pa.binary())])),
])  # fmt: skip


@contextmanager
def iceberg_spark(lake: Path) -> Iterator[Callable[[str], list[dict[str, Any]]]]:
    """Asks a session of Spark with Iceberg's package."""
    jars = build(Path(__file__).with_name("iceberg-spark")) / "jars"
    command = [sys.executable, "-m", "tests.hindstream.iceberg.iceberg_spark", str(jars), str(lake)]
    errors = lake / "stderr"
    with (
        errors.open("w") as stderr,
        subprocess.Popen(command, stdin=PIPE, stdout=PIPE, stderr=stderr, text=True, cwd=ROOT) as process,
    ):

        def ask(statement: str) -> list[dict[str, Any]]:
            assert process.stdin is not None
            assert process.stdout is not None
            process.stdin.write(json.dumps(statement) + "\n")
            process.stdin.flush()
            answer = process.stdout.readline()
            assert answer, errors.read_text()[-4000:]
            found: list[dict[str, Any]] = json.loads(answer)
            return found

        yield ask
        assert process.stdin is not None
        process.stdin.close()


@pytest.mark.long
@pytest.mark.slow
def test_spark_reads_and_maintains(world: World) -> None:
    world.publish()
    want = world.has()["large"]
    late = [row for row in want if row["timestamp"] > EPOCH + timedelta(hours=20)]
    assert 0 < len(late) < len(want)
    columns = (
        "`partition`, `offset`, unix_millis(timestamp) AS at, key, value.amount AS amount, headers IS NULL AS bare"
    )
    asked = f"SELECT {columns} FROM lake.shop.large %s ORDER BY `partition`, `offset`"

    def told(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
        return [
            {
                "partition": row["partition"],
                "offset": row["offset"],
                "at": round(row["timestamp"].timestamp() * 1000),
                "key": row["key"],
                "amount": row["value"]["amount"],
                "bare": row["headers"] is None,
            }
            for row in rows
        ]

    with iceberg_spark(world.directory / "lake") as ask:
        assert ask(asked % "") == told(want)
        assert ask(asked % "WHERE timestamp > timestamp'1970-01-01 20:00:00'") == told(late)
        ask("CALL lake.system.rewrite_data_files(table => 'shop.large', options => map('rewrite-all', 'true'))")
        ask(
            "CALL lake.system.expire_snapshots(table => 'shop.large', retain_last => 1,"
            " older_than => timestamp'2100-01-01 00:00:00')"
        )
        ask("DELETE FROM lake.shop.large WHERE key = 'a'")
        world.job.run(40 * HOUR)
        world.publish()
        fresh = world.has()["large"]
        after = [row for row in fresh if row not in want or row["key"] != "a"]
        ask("REFRESH TABLE lake.shop.large")
        assert ask(asked % "") == told(after)
        rollback(world.warehouse, "job", 1, now_ms=9)
        world.publish()
        ask("REFRESH TABLE lake.shop.large")
        assert ask(asked % "") == told([row for row in world.has()["large"] if row["key"] != "a"])


DUCKDB = "HINDSTREAM_DUCKDB"
"""The variable that names a Python with the packages of `OF_DUCKDB`: there is no extension for the newest DuckDB."""

OF_DUCKDB = (
    "duckdb==1.5.5",
    "duckdb-extensions==1.5.5",
    "duckdb-extension-iceberg==1.5.5",
    "duckdb-extension-avro==1.5.5",
)
ASKED_DUCKDB = """
import json, sys
import duckdb
from duckdb_extensions import import_extension

for name in ("avro", "iceberg"):
    import_extension(name)
duckdb.sql("set timezone = 'UTC'")
asked = "select partition, \\"offset\\", key, epoch_ms(timestamp) from iceberg_scan(?) {} order by 1, 2"
print(json.dumps([duckdb.execute(asked.format(where), [sys.argv[1]]).fetchall() for where in sys.argv[2:]]))
"""


@pytest.mark.long
@pytest.mark.skipif(DUCKDB not in os.environ, reason=f"{DUCKDB} names no Python with {' '.join(OF_DUCKDB)}")
def test_duckdb_reads(world: World) -> None:
    """After a rollback too, whose files DuckDB has to leave out; times are compared as times."""
    world.publish()
    rollback(world.warehouse, "job", 1, now_ms=9)
    world.publish()
    metadata = world.catalog.load_table("shop.large").metadata_location
    late = EPOCH + timedelta(hours=5)
    command = [
        os.environ[DUCKDB],
        "-c",
        ASKED_DUCKDB,
        metadata.removeprefix("file://"),
        "",
        f"where timestamp > '{late}'",
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    rows = [(row["partition"], row["offset"], row["key"], row["timestamp"]) for row in world.has()["large"]]
    wanted = [
        [[*row, round(time.timestamp() * 1000)] for *row, time in part]
        for part in (rows, [row for row in rows if row[-1] > late])
    ]
    assert json.loads(done.stdout) == wanted
    assert 0 < len(wanted[1]) < len(wanted[0])


def test_polars_reads_all_types(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POLARS_ICEBERG_PLANNER", "pyiceberg")  # it warns of a faster one
    builder = StreamsBuilder("job")
    builder.stream("in").to("out")
    pipeline = Pipeline(world.directory / "passing", builder.build(), "passing")
    row = {
        "n": 1 << 40,
        "tiny": -7,
        "price": Decimal("12.50"),
        "at": EPOCH + timedelta(microseconds=5),
        "local": (EPOCH + timedelta(days=9)).replace(tzinfo=None),
        "day": (EPOCH + timedelta(days=9)).date(),
        "tags": ["a", None],
        "counts": [("k", 3)],
        "in": {"x": 1.5, "bytes": b"z"},
    }
    pipeline.archive("in", [("a", row, 1), ("b", None, 2 * HOUR), ("c", row, 3 * HOUR)], (pa.string(), VALUE), 1)
    pipeline.run()
    job = Job("passing", builder.build(), iceberg_sinks=(IcebergTable("lake.shop.out"),))
    publish_to_iceberg(job, pipeline.warehouse)
    table = world.catalog.load_table("shop.out")
    frame = pl.scan_iceberg(table)
    found = frame.filter(pl.col("timestamp") > EPOCH + timedelta(hours=1)).collect().sort("offset")
    assert found["key"].to_list() == ["b", "c"]
    whole = table.scan().to_arrow().sort_by("offset")["value"].to_pylist()
    assert whole == [row, None, row]
    assert frame.select(pl.col("value").struct.field("n").sum()).collect().item() == 2 << 40
