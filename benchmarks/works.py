"""The four works that are measured, as topologies, and what their answers look like."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from benchmarks.dataset import CLICKS, RATES, Dataset
from statelib import (
    BufferConfig,
    Deduplicated,
    Job,
    Joined,
    Materialized,
    Produced,
    Stores,
    StreamsBuilder,
    Suppressed,
    TimeWindows,
    count,
    expect,
    sum_,
)

if TYPE_CHECKING:
    from statelib.dsl import KStream

ANSWER = "answer"
"""The topic that each work writes."""

DEDUPLICATION_INTERVAL = timedelta(minutes=10)
HISTORY_RETENTION = timedelta(hours=2)
WINDOW, GRACE = timedelta(minutes=1), timedelta(minutes=10)

_ID_ROW = [("key", pa.string()), ("timestamp", pa.int64()), ("id", pa.string())]
_WINDOW_ROW = [("key", pa.string()), ("window_start", pa.int64()), ("clicks", pa.int64())]


@dataclass(frozen=True)
class Work:
    """One of the works.

    Attributes:
        name: W1 to W4.
        title: What it does.
        answer: Columns of its answer; times are int64 milliseconds.
        totals: The columns whose sums contestants must agree on, beside the number of rows.
        with_rates: Whether it reads ``rates`` too.
    """

    name: str
    title: str
    answer: pa.Schema
    totals: tuple[str, ...]
    with_rates: bool

    def records(self, dataset: Dataset) -> int:
        """How many records it reads."""
        return dataset.clicks + (dataset.rates if self.with_rates else 0)


WORKS = {
    work.name: work
    for work in (
        Work(
            "W1",
            "deduplicate by id within 10 minutes",
            pa.schema([*_ID_ROW, ("amount", pa.int64()), ("currency", pa.string())]),
            ("amount",),
            with_rates=False,
        ),
        Work(
            "W2",
            "join with the rate valid at the record's time",
            pa.schema([*_ID_ROW, ("cost", pa.int64())]),
            ("cost",),
            with_rates=True,
        ),
        Work(
            "W3",
            "count and sum in windows of a minute, final results",
            pa.schema([*_WINDOW_ROW, ("amount", pa.int64())]),
            ("clicks", "amount"),
            with_rates=False,
        ),
        Work(
            "W4",
            "deduplicate, join, windows, final results",
            pa.schema([*_WINDOW_ROW, ("cost", pa.int64())]),
            ("clicks", "cost"),
            with_rates=True,
        ),
    )
}


def job(name: str, *, deduplication_interval: timedelta = DEDUPLICATION_INTERVAL) -> Job:
    """The work ``name`` as a job of Hindstream, audited as a user would."""
    builder = StreamsBuilder(name)
    rates = Materialized.as_(Stores.persistent_versioned_key_value_store("rates-by-campaign", HISTORY_RETENTION))
    table = builder.table(RATES, rates) if WORKS[name].with_rates else None
    stream = builder.stream(CLICKS)
    if name in {"W1", "W4"}:
        stream = stream.deduplicate_by_key_value("id", deduplication_interval, Deduplicated.as_("clicks-once"))
    if table is not None:
        cost = pc.multiply(pc.field("left", "amount"), pc.field("right", "rate"))
        stream = stream.join(table, {"id": "left.id", "cost": cost}, Joined.as_("clicks-and-rates"))
    if name in {"W3", "W4"}:
        stream = _counted(stream, "cost" if name == "W4" else "amount")
    stream.to(ANSWER, Produced(name="written"))
    key = "key.key" if name in {"W3", "W4"} else "key"
    value = "value.clicks" if name in {"W3", "W4"} else "value.id"
    not_null = "expect_column_values_to_not_be_null"
    return Job(
        name, builder.build(), expectations={ANSWER: (expect(not_null, column=key), expect(not_null, column=value))}
    )


def _counted(stream: KStream, what: str) -> KStream:
    return (
        stream.group_by_key()
        .windowed_by(TimeWindows.of_size_and_grace(WINDOW, GRACE))
        .aggregate({"clicks": count(), what: sum_(what)}, Materialized.as_("clicks-by-minute"))
        .suppress(Suppressed.until_window_closes(BufferConfig.unbounded()).with_name("final-counts"))
        .to_stream()
    )
