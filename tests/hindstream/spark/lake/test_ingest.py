"""A load on Spark gives the bytes that one in this process gives, and leaves nothing beside them."""

from __future__ import annotations

import time
from contextlib import suppress
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from hindstream.spark import ingest
from hindstream.spark.lake import stages
from hindstream.spark.lake.leftovers import FilesOfLoad
from statelib.errors.kinds import InputError
from statelib.job.lake_topic import LakeTopic
from statelib.settings.settings import load_settings
from statelib.storage import Storage
from tests.ingest.iceberg import catalog_in, data_files, delete_rows
from tests.ingest.lake import records_of, write_file

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from statelib.ingest.load import Loaded

AT = 1_356_998_400_000


def loaded(folder: Path, engine: str, **more: object) -> Loaded:
    settings = load_settings({"warehouse": str(folder / engine), "ingest_engine": engine, **more}, environ={})
    return ingest(LakeTopic("t", f"{folder}/lake", key="user", timestamp="at", partitions=3), settings)


def written(warehouse: Path) -> list[tuple[str, bytes]]:
    """The topic's files, without the part of their names that is an attempt's."""
    files = sorted((warehouse / "topics/t").glob("partition=*/*.parquet"))
    return [(path.name.partition("-")[0], path.read_bytes()) for path in files]


def files_in(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


def assert_empties(folder: Path) -> None:
    """Tasks that Spark has cancelled may still be writing; each of them clears up behind itself."""
    deadline = time.monotonic() + 60
    while files_in(folder) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not files_in(folder)


@pytest.mark.parametrize("error", [None, InputError("no record")])
def test_a_task_that_outlives_its_load_leaves_nothing(tmp_path: Path, error: Exception | None) -> None:
    """Spark cancels tasks and does not wait for them."""
    files = FilesOfLoad(Storage(str(tmp_path)))
    with suppress(InputError), files.written():
        with files.kept():
            files.storage.put("early", b"")
            with files.written():
                files.storage.put("in-time", b"")
            assert {path.name for path in files_in(tmp_path)} >= {"early", "in-time"}
        assert not files_in(tmp_path)
        files.storage.put("late", b"")
        if error is not None:
            raise error
    assert not files_in(tmp_path)


def test_both_engines_write_the_same(tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    del spark
    monkeypatch.setattr(stages, "_TASK_BYTES", 3000)
    for n in range(4):
        rows = [{"user": f"u{m % 7}", "at": AT + (m * 37) % 500 + n, "n": m} for m in range(200)]
        write_file(tmp_path / f"lake/{n}.{'csv' if n % 2 else 'jsonl'}", rows)
    (tmp_path / "lake/4.jsonl").write_text('{"user": "x", "at": "never", "n": 1}\n')
    for engine in ("local", "spark"):
        with pytest.raises(InputError, match="4.jsonl, row 1"):
            loaded(tmp_path, engine)
        done = loaded(tmp_path, engine, on_bad_record="quarantine")
        assert (done.records, done.bad_rows, len(done.files)) == (800, 1, 5)
    assert written(tmp_path / "local") == written(tmp_path / "spark")
    assert (
        records_of(tmp_path / "local", "t-quarantine")[0]["headers"]
        == (records_of(tmp_path / "spark", "t-quarantine")[0]["headers"])
    )
    assert_empties(tmp_path / "spark/topics/t/_loads")


def test_both_engines_read_an_iceberg_table(
    tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With rows that have been deleted, and a column that has been renamed."""
    del spark
    monkeypatch.setattr(stages, "_TASK_BYTES", 1)
    catalog = catalog_in(tmp_path / "lake", monkeypatch)
    parts = [pa.table({"n": range(n, 99, 3), "at": range(AT + n, AT + 99, 3), "user": ["u"] * 33}) for n in range(3)]
    table = catalog.create_table("shop.orders", parts[0].schema)
    for part in parts:
        table.append(part)
    delete_rows(table, {data_files(table)[1].file_path: [0, 5, 32]})
    with table.update_schema() as update:
        update.rename_column("n", "number")
    topic = LakeTopic("t", "iceberg:lake.shop.orders", key="user", timestamp="at", partitions=3)
    for engine in ("local", "spark"):
        settings = load_settings({"warehouse": str(tmp_path / engine), "ingest_engine": engine}, environ={})
        assert ingest(topic, settings).records == 96
    assert written(tmp_path / "local") == written(tmp_path / "spark")
    assert all("number" in record["value"] for record in records_of(tmp_path / "spark", "t"))
