"""Small jobs to explain, and random histories of theirs."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from statelib import (
    BufferConfig,
    Deduplicated,
    JoinWindows,
    Materialized,
    Stores,
    StreamsBuilder,
    Suppressed,
    TimeWindows,
    count,
    max_,
    per_record,
    sum_,
)
from statelib.explanation import explain, result_at
from statelib.job.job import Job
from tests.task.pipeline import Pipeline

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from statelib import Topology
    from statelib.explanation import Explanation

VALUE = pa.struct([("id", pa.string()), ("amount", pa.int64()), ("other", pa.string())])
TYPES = (pa.string(), VALUE)
OUT = "out"
INTERVAL_MS, SIZE_MS, GRACE_MS = 60, 40, 30

Row = tuple[Any, Any, int]
Rows = dict[str, list[Row]]

_BOTH = per_record(
    lambda left, right: {"amount": (left or {"amount": 0})["amount"] + 100 * (right or {"amount": 0})["amount"]},
    pa.struct([("amount", pa.int64())]),
    "left",
    "right",
)


def ms(number: int) -> timedelta:
    """So many milliseconds."""
    return timedelta(milliseconds=number)


def windows() -> Topology:
    """Each id once, counted by window, which is published when it is final."""
    builder = StreamsBuilder("explained")
    once = builder.stream("events").deduplicate_by_key_value("id", ms(INTERVAL_MS), Deduplicated.as_("once"))
    windowed = once.group_by_key().windowed_by(TimeWindows.of_size_and_grace(ms(SIZE_MS), ms(GRACE_MS)))
    counted = windowed.aggregate({"n": count(), "most": max_("amount")}, Materialized.as_("counted"))
    counted.suppress(Suppressed.until_window_closes(BufferConfig.unbounded())).to_stream().to(OUT)
    return builder.build()


def elsewhere() -> Topology:
    """A sum by another key, of each id once."""
    builder = StreamsBuilder("explained")
    once = builder.stream("events").deduplicate("id", ms(INTERVAL_MS))
    once.select_key("other").group_by_key().aggregate({"sum": sum_("amount")}, Materialized.as_("s")).to_stream().to(
        OUT
    )
    return builder.build()


def regrouped() -> Topology:
    """A table, summed up by one of its columns."""
    builder = StreamsBuilder("explained")
    table = builder.table("events", Materialized.as_("rows"))
    table.group_by("value.other", "value").aggregate({"sum": sum_("amount")}).to_stream().to(OUT)
    return builder.build()


def valid_version() -> Topology:
    """A stream with the version that was valid, summed up."""
    builder = StreamsBuilder("explained")
    prices = builder.table("prices", Materialized.as_(Stores.persistent_versioned_key_value_store("prices", ms(200))))
    joined = builder.stream("events").join(prices, _BOTH)
    joined.group_by_key().aggregate({"sum": sum_("amount")}).to_stream().to(OUT)
    return builder.build()


def latest() -> Topology:
    """A stream with the latest value of a table."""
    builder = StreamsBuilder("explained")
    builder.stream("events").left_join(builder.table("prices", Materialized.as_("prices")), _BOTH).to(OUT)
    return builder.build()


def near() -> Topology:
    """Two streams."""
    builder = StreamsBuilder("explained")
    window = JoinWindows.of_time_difference_and_grace(ms(20), ms(GRACE_MS))
    builder.stream("events").join(builder.stream("prices"), _BOTH, window).to(OUT)
    return builder.build()


def referring() -> Topology:
    """A table that refers to another one, by a column."""
    builder = StreamsBuilder("explained")
    prices = builder.table("prices", Materialized.as_("prices"))
    builder.table("events", Materialized.as_("events")).join(prices, _BOTH, foreign_key="other").to_stream().to(OUT)
    return builder.build()


JOBS: Mapping[str, Callable[[], Topology]] = {
    of.__name__: of for of in (windows, elsewhere, regrouped, valid_version, latest, near, referring)
}


def history(seed: int, records: int, *, in_order: bool) -> Rows:
    """Random records of both topics."""
    rng = np.random.default_rng(seed)
    rows: Rows = {"events": [], "prices": []}
    now = 0
    for number in range(records):
        now += int(rng.choice([1, 5, 10, 25]))
        late = 0 if in_order else int(rng.choice([0, 0, 0, 15, 60, 90]))
        value = {
            "id": f"i{number - int(rng.integers(0, 4))}",
            "amount": int(rng.integers(1, 90)),
            "other": str(rng.choice(["a", "b"])),
        }
        topic = str(rng.choice(["events", "prices"], p=[0.7, 0.3]))
        rows[topic].append((str(rng.choice(["a", "b"])), value, max(0, now - late)))
    return rows


def run(directory: Path, topology: Topology, rows: Rows, cuts: Sequence[int | None] = (None,)) -> Pipeline:
    """The job, replayed."""
    pipeline = Pipeline(directory, topology, "explained")
    for topic in topology.source_topics:
        pipeline.archive(topic, rows[topic], TYPES, 2)
    for cut in cuts:
        pipeline.run(cut)
    return pipeline


def explained(pipeline: Pipeline, partition: int, offset: int, commit: int | None = None) -> Explanation:
    """A record of the sink."""
    found = result_at(pipeline.warehouse, OUT, partition, offset)
    job = Job("explained", pipeline.topology)
    return explain(job, pipeline.warehouse, pipeline._settings, found, commit=commit)
