"""How many rows Spark hands to its Python workers at a time."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

_RECORDS = "spark.sql.execution.arrow.maxRecordsPerBatch"
_BYTES = "spark.sql.execution.arrow.maxBytesPerBatch"
_NO_LIMIT = 2**31 - 1
"""What Spark takes for none."""

_MOST_RECORDS = 1_000
_MOST_BYTES = 256 * 2**20


def records_for(longest_bytes: int) -> int:
    """How many records of at most ``longest_bytes`` make a batch: many, and together not too long."""
    return max(1, min(_MOST_RECORDS, _MOST_BYTES // max(longest_bytes, 1)))


@contextmanager
def arrow_batches(spark: SparkSession, records: int = _MOST_RECORDS) -> Iterator[None]:
    """Limits batches of the actions inside by their records alone.

    By bytes they are limited too else, for which Spark 4.1 adds up the lengths of all columns at every row: that took
    five times as long as all the rest of a copy from Kafka.
    """
    wanted = {_RECORDS: str(records), _BYTES: str(_NO_LIMIT)}
    before = {name: spark.conf.get(name, None) for name in wanted}
    for name, value in wanted.items():
        spark.conf.set(name, value)
    try:
        yield
    finally:
        for name, former in before.items():
            if former is None:
                spark.conf.unset(name)
            else:
                spark.conf.set(name, former)
