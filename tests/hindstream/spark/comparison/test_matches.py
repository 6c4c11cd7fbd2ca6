"""A comparison on Spark finds what one in this process finds, however the rows are spread over its tasks."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest

from hindstream.spark.comparison.matches import unmatched_on_spark
from statelib.commits.layout import topic_path
from statelib.commits.versions.sink_history import Segment
from statelib.comparison.compare import compare
from statelib.comparison.matches import Resources
from statelib.comparison.sides import Side, sides_of
from statelib.errors.kinds import InputError
from statelib.storage import Storage
from statelib.topics.append import append_records
from statelib.topics.archive import TopicArchive, topic_schema
from tests.effort import every_other

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pyspark.sql import SparkSession

    from statelib.comparison.difference import Difference
    from statelib.comparison.matches import Way

PARTITIONS = 2
VALUE = pa.struct([("n", pa.int64()), ("text", pa.string())])
Rows = list[tuple[str, dict[str, Any] | None, int]]


@pytest.fixture
def warehouse(tmp_path: Path) -> Storage:
    return Storage(str(tmp_path / "warehouse"))


@pytest.fixture
def sides(warehouse: Storage) -> Callable[..., tuple[Side, Side]]:
    """Writes topics, and gives two histories of a sink that begin with the same records."""

    def written(topic: str, rows: Rows, value: pa.DataType) -> list[Segment]:
        root = warehouse.uri(topic_path(topic))
        archive = TopicArchive.ensure(root, topic_schema(pa.string(), value), PARTITIONS, topic=topic)
        if rows:
            keys, values, times = zip(*rows, strict=True)
            columns = [pa.array(keys), pa.array(values, value), pa.array(times, pa.timestamp("ms", "UTC"))]
            table = pa.table(columns, ["key", "value", "timestamp"])
            append_records(archive, table, attempt="a", app_id="test", app_version=1)
        ends = archive.refresh().end_offsets()
        return [Segment(topic, partition, 0, end) for partition, end in sorted(ends.items()) if end]

    def made(shared: Rows, a: Rows, b: Rows, *, value_before: pa.DataType = VALUE) -> tuple[Side, Side]:
        before = written("before", shared, value_before)
        histories = [
            sorted([*before, *written(name, rows, VALUE)], key=lambda segment: segment.partition)
            for name, rows in (("a", a), ("b", b))
        ]
        return sides_of(warehouse, ("a", histories[0]), ("b", histories[1]), batch_rows=37)

    return made


def table(rng: np.random.Generator, rows: int) -> Rows:
    """Keys that come again, some without a value."""
    values = [None if n == 0 else {"n": int(n), "text": f"t{n % 3}"} for n in rng.integers(0, 9, rows)]
    keys = [f"k{key}" for key in rng.integers(0, 150, rows)]
    return [(key, value, int(time)) for key, value, time in zip(keys, values, rng.integers(0, 50, rows), strict=True)]


def found(
    spark: SparkSession, tmp_path: Path, sides: tuple[Side, Side], way: Way, **sizes: int
) -> tuple[Difference, Difference]:
    """The difference that Spark finds, and that of this process."""
    here = Resources(tmp_path, rows_a_bucket=50)
    there = replace(here, matcher=partial(unmatched_on_spark, spark.sparkContext, **sizes))
    one, other = (compare(*sides, way, resources, examples=10_000) for resources in (there, here))
    return one, other


FEW, SHARED = (0, (100, 150)), (300, (64, 100))
IN_BOTH_WAYS = [("latest", *FEW), ("set", *FEW), ("set", *SHARED), ("latest", *SHARED)]


@pytest.mark.parametrize(("way", "shared", "sizes"), every_other(IN_BOTH_WAYS))
def test_it_is_what_one_process_finds(
    spark: SparkSession,
    tmp_path: Path,
    sides: Callable[..., tuple[Side, Side]],
    way: Way,
    shared: int,
    sizes: tuple[int, int],
) -> None:
    rng = np.random.default_rng(shared + sizes[0])
    before, of_a = table(rng, shared), table(rng, 400)
    changed = [(key, {"n": -1, "text": "other"} if rng.random() < 0.1 else value, time) for key, value, time in of_a]
    of_b = [row for row in changed if rng.random() < 0.9] + table(rng, 30)
    on_spark, here = found(spark, tmp_path, sides(before, of_a, of_b), way, chunk_rows=sizes[0], part_rows=sizes[1])
    assert on_spark == here
    assert min(here.equal, here.changed, here.only_a, here.only_b) > 0
    assert not list(tmp_path.glob("rows-*"))


def test_a_side_without_records(spark: SparkSession, tmp_path: Path, sides: Callable[..., tuple[Side, Side]]) -> None:
    rows = table(np.random.default_rng(3), 50)
    on_spark, here = found(spark, tmp_path, sides(rows, [], rows[:20]), "latest")
    assert on_spark == here
    assert here.only_b or here.changed


def test_no_records(spark: SparkSession, tmp_path: Path, sides: Callable[..., tuple[Side, Side]]) -> None:
    on_spark, here = found(spark, tmp_path, sides([], [], []), "set")
    assert on_spark == here
    assert here.is_empty


def test_a_record_that_cannot_be_read_is_named_as_in_one_process(
    spark: SparkSession, tmp_path: Path, sides: Callable[..., tuple[Side, Side]]
) -> None:
    """A shared record whose value has another type than the newest ones."""
    wrong: Rows = [("k", {"n": "many"}, 1)]  # type: ignore[dict-item]
    both = sides(wrong, table(np.random.default_rng(4), 20), [], value_before=pa.struct([("n", pa.string())]))
    with pytest.raises(InputError, match="does not fit the newest type") as here:
        compare(*both, "latest", Resources(tmp_path))
    matcher = partial(unmatched_on_spark, spark.sparkContext)
    with pytest.raises(InputError, match="does not fit the newest type") as there:
        compare(*both, "latest", Resources(tmp_path, matcher=matcher))
    assert str(there.value) == str(here.value)
