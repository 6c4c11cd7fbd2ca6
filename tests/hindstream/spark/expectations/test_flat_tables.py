"""Flat frames: the same rows and names on pandas and on Spark."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hindstream.runs import open_warehouse
from hindstream.spark.expectations.flat_tables import (
    flat_columns,
    flat_row_group,
    open_staged,
    pandas_frame,
    read_flat,
    spark_frame,
)
from hindstream.spark.expectations.plain import plain
from statelib.commits import topic_path
from statelib.errors.kinds import ConfigurationError
from statelib.storage import Storage
from statelib.topics.append import append_records
from statelib.topics.archive import TopicArchive
from statelib.topics.parquet.schema import topic_schema
from statelib.topics.parquet.writer import PartitionWriter
from tests.hindstream.spark.orders import make_settings

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


def test_text_that_repeats_is_read_encoded_where_that_is_asked_for(tmp_path: Path) -> None:
    warehouse, schema = Storage(str(tmp_path)), topic_schema(pa.struct([("key", pa.string())]), pa.int32())
    records = pa.table({
        "offset": pa.array([0, 1, 2, 3]),
        "key": pa.array([{"key": key} for key in ("a", "b", "b", "a")]),
        "value": pa.array([1, 2, 3, 4], pa.int32()),
        "timestamp": pa.array([0] * 4, pa.timestamp("ms", "UTC")),
    })  # fmt: skip
    with PartitionWriter(warehouse.within(topic_path("t")), schema, 3, attempt="a") as writer:
        writer.write(records)
    (file,) = writer.close()
    columns = [column for column in flat_columns(schema) if column.name in {"key__key", "value"}]
    rows = {"key__key": ["a", "b", "b", "a"], "value": [1, 2, 3, 4]}
    with open_staged(warehouse, "t", file, encoded=columns) as parquet:
        flat = flat_row_group(parquet, 0, schema, columns, 3)
        assert flat.schema.field("key__key").type == pa.dictionary(pa.int32(), pa.string())
        assert flat.to_pydict() == rows
        wider = topic_schema(pa.struct([("key", pa.string()), ("more", pa.string())]), pa.int64())
        more = [column for column in flat_columns(wider) if column.name in {"key__key", "key__more", "value"}]
        assert flat_row_group(parquet, 0, wider, more, 3).to_pydict() == {**rows, "key__more": [None] * 4}
    with open_staged(warehouse, "t", file) as parquet:
        assert flat_row_group(parquet, 0, schema, columns, 3).schema.field("key__key").type == pa.string()


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
    append_records(archive, pa.Table.from_pylist(records, schema), attempt="t", app_id="t", app_version=1)
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
