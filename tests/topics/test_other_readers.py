"""A topic archive is a plain Delta table: others read from it what was written."""

from __future__ import annotations

import duckdb
import pyarrow as pa
import pytest
from deltalake import DeltaTable

from statelib.topics.archive import TopicArchive
from tests.topics.data import SCHEMA, topic_records

TIMES = [0, None, 1_357_034_400_123, -1, 5, 6, 7, 253_402_300_799_999]


@pytest.fixture(scope="module")
def archive(tmp_path_factory):
    archive = TopicArchive.create(str(tmp_path_factory.mktemp("other") / "t"), SCHEMA, 2)
    with archive.writer(1, attempt="a") as writer:
        writer.write(topic_records(range(8), TIMES))
    archive.commit(writer.close(), app_id="job", app_version=1)
    return archive.refresh()


def expected():
    return topic_records(range(8), TIMES)


def test_delta_rs(archive):
    table = pa.table(DeltaTable(archive.uri).to_pyarrow_table())
    assert table["partition"].to_pylist() == [1] * 8
    assert table.select(SCHEMA.names).cast(SCHEMA).equals(expected())
    some = DeltaTable(archive.uri).to_pyarrow_table(filters=[("offset", ">=", 5)], columns=["offset"])
    assert some["offset"].to_pylist() == [5, 6, 7]


def test_duckdb(archive):
    paths = [str(archive.storage.local_path(file.path)) for file in archive.files(1)]
    with duckdb.connect() as connection:
        connection.execute("set timezone = 'UTC'")
        query = "select * exclude (partition) from read_parquet($paths, hive_partitioning = true)"
        table = connection.sql(query, params={"paths": paths}).to_arrow_table()
    assert table.select(SCHEMA.names).cast(SCHEMA).equals(expected())


@pytest.mark.spark
def test_spark(archive, spark):
    paths = [str(archive.storage.local_path(file.path)) for file in archive.files(1)]
    frame = spark.read.option("basePath", archive.uri).parquet(*paths)
    assert dict(frame.dtypes)["timestamp"] == "timestamp"
    rows = frame.selectExpr("offset", "unix_millis(timestamp) t", "key", "value", "headers", "partition").collect()
    rows.sort(key=lambda row: row["offset"])
    assert [row["t"] for row in rows] == TIMES
    assert {row["partition"] for row in rows} == {1}
    got = [row.asDict(recursive=True) for row in rows]
    for row, want in zip(got, expected().to_pylist(), strict=True):
        headers = row["headers"] and [{**h, "value": bytes(h["value"])} for h in row["headers"]]
        assert (row["offset"], row["key"], row["value"]) == (want["offset"], want["key"], want["value"])
        assert headers == want["headers"]
