"""``spark.read.format("hindstream_state")``: the rows of `open_state` on a real Spark, filters pushed or not."""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import functions as f

from hindstream.spark.frames.spark_types import spark_array, spark_type
from hindstream.spark.frames.state_source import register_state_source
from statelib import ConfigurationError, StateSnapshot, open_state
from tests.surface.records import PARTITIONS, TYPES, surface_records
from tests.surface.topology import surface
from tests.task.pipeline import Pipeline

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession


KINDS = {"versioned", "window", "suppression-buffer", "deduplication", "held-records"}
"""A few: each frame starts processes of Python to plan it and to read it."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("state-source")
    pipeline = Pipeline(folder, surface(), "surface")
    for topic, rows in surface_records(3, 80).items():
        pipeline.archive(topic, rows, TYPES, PARTITIONS)
    pipeline.run(300)
    pipeline.run()
    return folder


@pytest.fixture
def read(folder: Path, spark: SparkSession) -> Any:
    register_state_source(spark)

    def load(**options: str) -> DataFrame:
        reader = spark.read.format("hindstream_state").option("warehouse", str(folder / "warehouse"))
        given = {"job": "surface", "state_dir": str(folder / "spark-local"), **options}
        return reader.options(**given).load()

    return load


def state_of(folder: Path, commit: int | None = None) -> StateSnapshot:
    return open_state(folder / "warehouse", "surface", commit=commit, state_dir=folder / "local")


def rows_of(frame: DataFrame) -> list[str]:
    return sorted(repr(row.asDict(recursive=True)) for row in frame.collect())


def expected(rows: list[dict[str, Any]]) -> list[str]:
    def naive(value: Any) -> Any:
        return value.astimezone().replace(tzinfo=None) if isinstance(value, datetime) else value

    return sorted(repr({name: naive(value) for name, value in row.items()}) for row in rows)


@pytest.mark.long
def test_a_store_is_what_a_snapshot_says(read: Any, folder: Path) -> None:
    seen = set()
    with state_of(folder) as state:
        listed = {(row["store"], row["kind"], row["view"]) for row in read().collect()}
        assert listed == {(store.name, store.kind, view) for store in state.stores for view in store.views}
        for store in state.stores:
            if store.kind in KINDS - seen and store.read().num_rows:
                seen.add(store.kind)
                frame = read(store=store.name)
                assert frame.columns == store.schema().names
                rows = store.read().to_pylist()
                assert rows_of(frame) == expected(rows), store
    assert seen == KINDS


def test_commits_views_and_times(read: Any, folder: Path) -> None:
    with state_of(folder, 1) as state:
        prices = state.store("prices")
        assert rows_of(read(store="prices", commit="1")) == expected(prices.read().to_pylist())
        history = prices.read("history").to_pylist()
        assert rows_of(read(store="prices", commit="1", view="history")) == expected(history)
        assert len(history) > prices.read().num_rows
        for time_ms, text in ((250, "1970-01-01T00:00:00.250Z"),):
            found = read(store="prices", commit="1", as_of=text)
            assert rows_of(found) == expected(prices.read(as_of=time_ms).to_pylist())
        found = read(store="prices", commit="1", view="history", columns="valid_from, key")
        assert found.columns == ["valid_from", "key"]
        assert rows_of(found) == expected(prices.read("history", columns=["valid_from", "key"]).to_pylist())


def test_filters_give_the_rows_of_spark_and_read_less(read: Any, folder: Path) -> None:
    with state_of(folder) as state:
        tumbling = next(s for s in state.stores if s.kind == "window" and "sum" in str(s.schema()))
        rows = tumbling.read().to_pylist()
        starts = sorted({row["window_start"] for row in rows})
        for condition, keep, tasks in (
            (f.col("key") == "hot", lambda row: row["key"] == "hot", 1),
            (f.col("partition").isin(1, 7), lambda row: row["partition"] == 1, 1),
            (f.col("window_start") > starts[0], lambda row: row["window_start"] > starts[0], 2),
            (f.col("window_start") <= starts[0], lambda row: row["window_start"] <= starts[0], 2),
            (f.col("value.n") == 1, lambda row: row["value"]["n"] == 1, 2),
            ((f.col("key") == "hot") & (f.col("key") == "a"), lambda _: False, None),
        ):
            frame = read(store=tumbling.name).filter(condition)
            assert rows_of(frame) == expected([row for row in rows if keep(row)]), condition
            assert tasks is None or frame.rdd.getNumPartitions() == tasks, condition
        assert len(starts) > 1


def test_a_frame_stays_at_the_commit_of_which_it_was_made(spark: SparkSession, tmp_path: Path) -> None:
    from statelib import Materialized, StreamsBuilder  # noqa: PLC0415

    register_state_source(spark)
    builder = StreamsBuilder("t")
    builder.table("t", Materialized.as_("kept"))
    pipeline = Pipeline(tmp_path, builder.build(), "job")
    pipeline.archive("t", [("a", 1, 10), ("a", 2, 20)], (pa.string(), pa.int64()))
    pipeline.run(15)
    options = {"warehouse": str(tmp_path / "warehouse"), "job": "job", "store": "kept",
               "state_dir": str(tmp_path / "local")}  # fmt: skip
    before = spark.read.format("hindstream_state").options(**options).load()
    pipeline.run()
    after = spark.read.format("hindstream_state").options(**options).load()
    assert [row["value"] for row in before.collect()] == [1]
    assert [row["value"] for row in after.collect()] == [2]


def test_mistakes_are_told(read: Any) -> None:
    for options, match in (
        ({"store": "nothing"}, "no such store"),
        ({"store": "names", "view": "history"}, "no view 'history'"),
        ({"store": "names", "colums": "key"}, "no such option.*colums"),
        ({"store": "names", "as_of": "yesterday"}, "is no time"),
    ):
        with pytest.raises(PySparkException, match=f"(?s){match}"):
            read(**options)


VALUES = [
    (pa.uint8(), [255, None]),
    (pa.uint16(), [65535, None]),
    (pa.uint32(), [2**32 - 1, None]),
    (pa.uint64(), [2**64 - 1, None]),
    (pa.decimal128(9, 2), [Decimal("1.25"), None]),
    (pa.timestamp("ns", "UTC"), [datetime(2020, 1, 1, tzinfo=UTC), None]),
    (pa.timestamp("s"), [datetime(2020, 1, 1), None]),  # noqa: DTZ001
    (pa.duration("ms"), [timedelta(milliseconds=5), None]),
    (pa.date32(), [date(2020, 1, 1), None]),
    (pa.time32("s"), [time(1, 2, 3), None]),
    (pa.dictionary(pa.int32(), pa.string()), ["a", None]),
    (pa.large_string(), ["a", None]),
    (pa.binary(2), [b"ab", None]),
    (pa.list_(pa.uint8()), [[1, None], None]),
    (pa.map_(pa.string(), pa.uint8()), [[("a", 1)], None]),
    (pa.struct([("a", pa.uint64()), ("b", pa.struct([("c", pa.uint8())]))]), [{"a": 1, "b": {"c": 2}}, None]),
]


@pytest.mark.parametrize(("arrow_type", "values"), VALUES, ids=[str(kind) for kind, _ in VALUES])
def test_types_become_those_of_spark(arrow_type: pa.DataType, values: list[Any]) -> None:
    made = spark_array(pa.array(values, arrow_type), spark_type(arrow_type))
    assert made.type == spark_type(arrow_type)
    if pa.types.is_time(arrow_type):
        assert made.to_pylist() == [3723, None]
    else:
        assert made.to_pylist() == values


def test_a_type_that_spark_has_not_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="Spark has no type for decimal256"):
        spark_type(pa.decimal256(60, 2))
