"""The job of these tests: orders are deduplicated by customer, then counted by country and hour, final results only."""

from __future__ import annotations

from datetime import timedelta

import pyarrow as pa
import pyarrow.compute as pc

from statelib.dsl import Deduplicated, Grouped, Materialized, Named, StreamsBuilder
from statelib.job.job import Job, expect
from statelib.operators.aggregation.sql_functions import count, sum_
from statelib.operators.suppress.definition import BufferConfig, Suppressed
from statelib.operators.windows.definition import TimeWindows

SINK = "orders-by-country"


def has_amount(columns: pa.RecordBatch) -> pa.Array:
    """A function of this file: workers can only have it by value."""
    return pc.is_valid(pc.struct_field(columns.column("value"), "amount"))


def job() -> Job:
    """Made anew by each call."""
    builder = StreamsBuilder("orders")
    (
        builder.stream("orders")
        .deduplicate_by_key_value("order_id", timedelta(days=1), Deduplicated.as_("orders-once"))
        .filter(has_amount, Named.as_("with-amount"))
        .group_by("country", Grouped.as_("by-country"))
        .windowed_by(TimeWindows.of_size_and_grace(timedelta(hours=1), timedelta(hours=1)))
        .aggregate({"orders": count(), "amount": sum_("amount")}, Materialized.as_("totals"))
        .suppress(Suppressed.until_window_closes(BufferConfig.unbounded()))
        .to_stream()
        .to(SINK)
    )
    expectations = (
        expect("expect_column_values_to_not_be_null", column="key.key"),
        expect("expect_column_values_to_be_in_set", column="key.key", value_set=["de", "fr", "us"]),
        expect("expect_column_values_to_be_between", column="value.orders", min_value=1),
        expect("expect_column_values_to_be_between", column="value.amount", min_value=0, max_value=1_000_000),
        expect("expect_table_row_count_to_be_between", min_value=1),
    )
    return Job("orders", builder.build(), {SINK: expectations})
