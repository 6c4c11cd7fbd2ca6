"""The orders job with tasks that take a while, so that there is time to lose an executor."""

from __future__ import annotations

import time
from datetime import timedelta

import pyarrow as pa

from statelib.dsl import Deduplicated, Named, StreamsBuilder
from statelib.job.job import Job
from tests.hindstream.spark.orders_job import SINK

_SECONDS_A_BATCH = 0.1


def slowly(columns: pa.RecordBatch) -> pa.Array:
    """Lets all pass."""
    time.sleep(_SECONDS_A_BATCH)
    return pa.array([True] * columns.num_rows, pa.bool_())


def job() -> Job:
    """Deduplicates, and counts nothing: one stage, a task for each partition."""
    builder = StreamsBuilder("orders")
    (
        builder.stream("orders")
        .filter(slowly, Named.as_("slowly"))
        .deduplicate_by_key_value("order_id", timedelta(days=1), Deduplicated.as_("orders-once"))
        .to(SINK)
    )
    return Job("orders", builder.build())
