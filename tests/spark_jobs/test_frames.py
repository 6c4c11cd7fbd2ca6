"""Flat frames: the same rows and names on pandas and on Spark."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from spark_jobs.frames import flat_columns, flat_row_group, pandas_frame, read_flat, spark_frame, spark_uri
from spark_jobs.runs import open_warehouse
from spark_jobs.validation import plain
from statelib.errors import ConfigurationError
from statelib.topics.append import append
from statelib.topics.archive import TopicArchive
from statelib.topics.schema import topic_schema
from tests.spark_jobs.orders import make_settings

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

KEY = pa.struct([("id", pa.string()), ("raw", pa.binary())])
VALUE = pa.struct([("n", pa.int64()), ("tags", pa.list_(pa.string())), ("in", pa.struct([("x", pa.float64())]))])
SCHEMA = topic_schema(KEY, VALUE)
NAMES = ["offset", "timestamp", "key__id", "key__raw", "value__n", "value__in__x", "partition"]


def test_lists_are_left_out_and_the_partition_comes_last() -> None:
    assert [column.name for column in flat_columns(SCHEMA)] == NAMES
    assert flat_columns(SCHEMA)[5].dotted == "value.in.x"


def test_fields_that_would_get_one_name_are_refused() -> None:
    value = pa.struct([("a__b", pa.int64()), ("a", pa.struct([("b", pa.int64())]))])
    with pytest.raises(ConfigurationError, match=r"value\.a\.b and value\.a__b cannot be told apart"):
        flat_columns(topic_schema(pa.string(), value))


def test_hadoop_spells_s3_otherwise() -> None:
    assert spark_uri("s3://bucket/topic") == "s3a://bucket/topic"
    assert spark_uri("/data/topic") == "/data/topic"


def test_only_the_columns_that_are_named_are_read() -> None:
    value = pa.array([{"n": 1, "tags": ["good"], "in": {"x": 0.5}}, {"n": None, "tags": None, "in": None}, None], VALUE)
    output = io.BytesIO()
    table = pa.table({"offset": pa.array([1, 2, 3]), "value": value})
    pq.write_table(table, output, compression="none", write_page_checksum=True)
    damaged = pa.BufferReader(output.getvalue().replace(b"good", b"evil"))
    with pq.ParquetFile(damaged, page_checksum_verification=True) as parquet:
        with pytest.raises(OSError, match="CRC"):
            parquet.read_row_group(0)
        columns = [column for column in flat_columns(SCHEMA) if column.name in {"value__n", "key__id", "partition"}]
        flat = flat_row_group(parquet, 0, SCHEMA, columns, 7)
        assert flat.to_pydict() == {"key__id": [None] * 3, "value__n": [1, None, None], "partition": [7] * 3}
        assert flat_row_group(parquet, 0, SCHEMA, columns[-1:], 7).to_pydict() == {"partition": [7] * 3}


def _rows(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """Rows as JSON data in order of offset; times without their zone, which Spark's pandas has not."""
    frame = frame.assign(timestamp=frame["timestamp"].map(lambda time: time.replace(tzinfo=None)))
    rows: list[dict[str, Any]] = [plain(row) for row in frame.to_dict("records")]
    return sorted(rows, key=lambda row: (row["partition"], row["offset"]))


@pytest.mark.spark
@pytest.mark.parametrize("rows", [0, 4])
def test_both_engines_have_the_same_rows(tmp_path: Path, spark: SparkSession, rows: int) -> None:
    warehouse = open_warehouse(make_settings(tmp_path))
    archive = TopicArchive.create(warehouse.uri("topics/things"), SCHEMA, 2)
    records: list[dict[str, Any]] = [
        {
            "key": {"id": f"k{n}", "raw": bytes([n, 255])},
            "value": None if n == 2 else {"n": n, "tags": ["a"], "in": None if n == 1 else {"x": n / 2}},
            "timestamp": n * 1000,
        }
        for n in range(rows)
    ]
    schema = pa.schema([("key", KEY), ("value", VALUE), ("timestamp", pa.timestamp("ms", "UTC"))])
    append(archive, pa.Table.from_pylist(records, schema), attempt="t", app_id="t", app_version=1)
    archive = archive.refresh()
    files = [file for partition in range(2) for file in archive.files(partition)]
    in_process = pandas_frame((t for file in files for t in read_flat(warehouse, "things", SCHEMA, file)), SCHEMA)
    on_spark = spark_frame(spark, warehouse, "things", SCHEMA, files)
    assert list(in_process.data.columns) == on_spark.data.columns == NAMES
    found, other = (_rows(frame) for frame in (in_process.data, on_spark.data.toPandas()))
    assert found == other
    assert len(found) == rows
    if rows:
        place = {"partition": found[0]["partition"], "offset": found[0]["offset"]}
        (one,) = in_process.rows([place])
        (same,) = on_spark.rows([place])
        assert one["key__id"] == same["key__id"] == found[0]["key__id"]
        assert one["key__raw"] == same["key__raw"]
