"""Global tables on real Spark: every task looks into the whole table, slice after slice, and the report shows it."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from hindstream.runs import open_warehouse
from hindstream.spark.phases import pipeline
from statelib import Job, Materialized, Stores, StreamsBuilder
from statelib.commits import topic_path
from statelib.commits.archives import open_archive
from statelib.topics.append import append_records
from statelib.topics.archive import TopicArchive, topic_schema
from tests.hindstream.spark.orders import make_settings

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from statelib.settings.settings import Settings

HOUR_MS = 3_600_000
PARTITIONS = 2
SALES = [(f"customer-{n % 7}", {"n": n, "currency": f"C{n % 5}"}, n * HOUR_MS) for n in range(48)]
NAMES = [(f"C{n}", f"currency {n}", 1_000_000 * HOUR_MS) for n in range(4)]
RATES = [(f"C{n}", f"rate of C{n} at {hour}", hour * HOUR_MS) for hour in range(0, 48, 6) for n in range(4)]


def archive(settings: Settings, topic: str, rows: list[tuple[Any, Any, int]], value_type: pa.DataType) -> None:
    uri = open_warehouse(settings).uri(topic_path(topic))
    made = TopicArchive.ensure(uri, topic_schema(pa.string(), value_type), PARTITIONS, topic=topic)
    keys, values, times = zip(*rows, strict=True)
    columns = {
        "key": pa.array(keys),
        "value": pa.array(values, value_type),
        "timestamp": pa.array(times, pa.timestamp("ms", "UTC")),
    }
    append_records(made, pa.table(columns), attempt="a1", app_id="test", app_version=1)


def job() -> Job:
    builder = StreamsBuilder("sales")
    store = Stores.persistent_versioned_key_value_store("rates", timedelta(hours=12))
    names, rates = builder.global_table("names"), builder.global_table("rates", Materialized.as_(store))
    named = builder.stream("sales").join(names, "currency", {"n": "left.n", "of": "left.currency", "name": "right"})
    named.left_join(rates, "of", {"n": "left.n", "name": "left.name", "rate": "right"}).to("rated")
    return Job("sales", builder.build())


@pytest.mark.spark
def test_every_task_looks_into_the_whole_table(tmp_path: Path, spark: SparkSession) -> None:
    settings = make_settings(tmp_path)
    archive(settings, "sales", SALES, pa.struct([("n", pa.int64()), ("currency", pa.string())]))
    archive(settings, "names", NAMES, pa.string())
    archive(settings, "rates", RATES, pa.string())
    slices = [pipeline.run_slice(job(), settings, 20 * HOUR_MS), pipeline.run_slice(job(), settings)]
    assert all(isinstance(done, pipeline.SliceResult) for done in slices)
    rated = open_archive(open_warehouse(settings), "rated")
    found = {}
    for partition in range(PARTITIONS):
        rows = rated.reader(partition).read_all().to_pylist()
        assert rows
        found |= {row["value"]["n"]: (row["value"]["name"], row["value"]["rate"]) for row in rows}
    assert found == {n: (f"currency {n % 5}", f"rate of C{n % 5} at {n // 6 * 6}") for n in range(48) if n % 5 != 4}
    assert len(list((tmp_path / "warehouse/jobs/sales/reports").glob("*.html"))) == 3
