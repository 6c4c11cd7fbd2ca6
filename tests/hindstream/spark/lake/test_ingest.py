"""A load on Spark gives the bytes that one in this process gives, and leaves nothing beside them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from hindstream.spark import ingest
from hindstream.spark.lake import stages
from statelib.errors.kinds import InputError
from statelib.job.lake_topic import LakeTopic
from statelib.settings.settings import load_settings
from tests.ingest.lake import records_of, write_file

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from statelib.ingest.load import Loaded

AT = 1_356_998_400_000


def loaded(folder: Path, engine: str, **more: object) -> Loaded:
    settings = load_settings({"warehouse": str(folder / engine), "ingest_engine": engine, **more}, environ={})
    return ingest(LakeTopic("t", f"{folder}/lake", key="user", timestamp="at", partitions=3), settings)


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
    written = [
        [
            (path.name.partition("-")[0], path.read_bytes())
            for path in sorted((tmp_path / engine / "topics/t").rglob("*.parquet"))
        ]
        for engine in ("local", "spark")
    ]
    assert written[0] == written[1]
    assert (
        records_of(tmp_path / "local", "t-quarantine")[0]["headers"]
        == (records_of(tmp_path / "spark", "t-quarantine")[0]["headers"])
    )
    assert not [path for path in (tmp_path / "spark/topics/t/_loads").rglob("*") if path.is_file()]
