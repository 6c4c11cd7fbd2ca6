"""Batches that Spark hands to Python: their limits hold inside, and those from before outside."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from hindstream.spark.frames.arrow_batches import arrow_batches, records_for
from statelib.settings.settings import load_settings

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import pyarrow as pa


@pytest.mark.parametrize(
    ("longest_bytes", "records"), [(1, 1_000), (2**18, 1_000), (2**20, 256), (100 * 2**20, 2), (2**31, 1), (0, 1_000)]
)
def test_the_longer_a_record_may_be_the_fewer_make_a_batch(longest_bytes: int, records: int) -> None:
    assert records_for(longest_bytes) == records


def sizes(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    import pyarrow as pa  # noqa: PLC0415 - a worker's own

    for batch in batches:
        yield pa.RecordBatch.from_pydict({"rows": [batch.num_rows]})


@pytest.mark.spark
def test_limits_hold_inside_and_are_as_before_outside() -> None:
    from hindstream.spark.session.session import spark_session  # noqa: PLC0415 - a second, which the others need not wait for

    spark = spark_session(load_settings({"spark_master": "local[1]"}))
    records, size = "spark.sql.execution.arrow.maxRecordsPerBatch", "spark.sql.execution.arrow.maxBytesPerBatch"
    spark.conf.set(records, "77")
    before = spark.conf.get(size)
    try:
        with arrow_batches(spark, 30):
            rows = spark.range(0, 70, 1, 1).mapInArrow(sizes, "rows long").collect()
        assert [row.rows for row in rows] == [30, 30, 10]
        assert (spark.conf.get(records), spark.conf.get(size)) == ("77", before)
    finally:
        spark.conf.unset(records)
