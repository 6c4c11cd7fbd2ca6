"""Repartition topics that form a circle, on real Spark and without: the same, and as Kafka's test driver has it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from hindstream.runs import open_warehouse
from hindstream.spark.phases import pipeline
from statelib import Job
from statelib.commits.archives import open_archive
from tests.hindstream.spark.orders import make_settings
from tests.hindstream.spark.phases.test_global_tables import HOUR_MS, archive
from tests.task.test_circle import PERSON, bosses

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from statelib.settings.settings import Settings

PEOPLE = [(f"p{n % 9}", {"name": f"name {n}", "boss": f"p{n * 5 % 9}"}, n * HOUR_MS) for n in range(40)]


def run(settings: Settings) -> list[Any]:
    """The result of two slices."""
    archive(settings, "people", PEOPLE, PERSON)
    job = Job("bosses", bosses())
    slices = [pipeline.run_slice(job, settings, 20 * HOUR_MS), pipeline.run_slice(job, settings)]
    assert all(isinstance(done, pipeline.SliceResult) and done.audit.success for done in slices)
    named = open_archive(open_warehouse(settings), "named")
    return [named.reader(partition).read_all().to_pylist() for partition in range(named.partitions)]


@pytest.mark.spark
def test_spark_and_this_process_make_the_same(tmp_path: Path, spark: SparkSession) -> None:
    on_spark = run(make_settings(tmp_path / "spark"))
    here = run(make_settings(tmp_path / "here").model_copy(update={"engine": "local", "data_docs": "failed"}))
    assert on_spark == here
    last = {row["key"]: row["value"] for rows in here for row in rows}
    latest = {key: value for key, value, _ in PEOPLE}
    assert last == {key: {"name": of["name"], "boss": latest[of["boss"]]["name"]} for key, of in latest.items()}
