"""Versions of a topology, and jobs of which the history was made by one, the state to be filled by another."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from statelib import (
    BufferConfig,
    Deduplicated,
    JoinWindows,
    Materialized,
    Stores,
    StreamJoined,
    StreamsBuilder,
    Suppressed,
    TimeWindows,
    count,
    max_,
    sum_,
)
from statelib.commits.layout import CommitLog, fork_topic
from statelib.commits.versions.fork import fork
from tests.task.pipeline import Pipeline

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from statelib.topology import Topology

State = dict[str, dict[str, list[tuple[bytes, bytes]]]]
SALE = pa.struct([("shop", pa.string()), ("amount", pa.int64()), ("id", pa.string())])
SHOP = pa.struct([("city", pa.string())])
SALES = [
    (
        f"k{i % 5}",
        {"shop": f"s{i % 3}", "amount": i % 11, "id": f"i{i % 23}"},
        200_000 + i * 9_000 - (i * i % 19) * 9_000,
    )
    for i in range(80)
]
SHOPS = [(f"k{i % 5}", {"city": f"c{i}"}, i * 50_000 - (i % 3) * 60_000 + 200_000) for i in range(14)]
END = max(time for _, _, time in SALES)
REGION = pa.struct([("region", pa.string())])
REGIONS = [(f"s{i % 3}", {"region": f"r{i}"}, i * 90_000) for i in range(9)]
SINKS = ("out", "near", "regional")


@dataclass(frozen=True)
class Version:
    """One version of a topology: what can be changed of it without other sources or another number of tasks."""

    minutes: int = 1
    grace_s: int = 30
    amount: Any = "sum"
    once_s: int | None = 60
    final: bool = True
    table: int | None = None
    least: int = 0
    near_s: int | None = None
    regions: int | None = None

    def topology(self) -> Topology:
        """Sales of a shop in windows, of which each has what a table knew of the customer."""
        builder = StreamsBuilder("job")
        sales = builder.stream("sales").filter(pc.field("value", "amount") >= self.least)
        if self.once_s is not None:
            seen = Deduplicated.with_(store_name="seen")
            sales = sales.deduplicate_by_key_value("id", timedelta(seconds=self.once_s), seen)
        kept = Materialized.as_("shops")
        if self.table is not None:
            kept = Materialized.as_(Stores.persistent_versioned_key_value_store("shops", timedelta(seconds=self.table)))
        shops = builder.table("shops", kept)
        if self.near_s is not None:
            near = JoinWindows.of_time_difference_and_grace(timedelta(seconds=self.near_s), timedelta(seconds=20))
            both = {"left": "left.id", "right": "right.id"}
            sales.left_join(sales, both, near, StreamJoined.as_("near").with_name("near")).to("near")
        region = {"id": "left.id", "region": "right.region"}
        of_each = Materialized.as_("regions")
        if self.regions is not None:
            supplier = Stores.persistent_versioned_key_value_store("regions", timedelta(seconds=self.regions))
            of_each = Materialized.as_(supplier)
        regions = builder.global_table("regions", of_each)
        sales.left_join(regions, "shop", region).to("regional")
        joined = sales.left_join(shops, {"shop": "left.shop", "amount": "left.amount", "city": "right.city"})
        of_amount = {"sum": sum_, "max": max_}[self.amount]("amount")
        windows = TimeWindows.of_size_and_grace(timedelta(minutes=self.minutes), timedelta(seconds=self.grace_s))
        totals = (
            joined.select_key("shop")
            .repartition()
            .left_join(regions, "shop", {"amount": "left.amount", "city": "left.city", "region": "right.region"})
            .group_by_key()
            .windowed_by(windows)
            .aggregate(
                {"n": count(), "amount": of_amount, "city": max_("city"), "region": max_("region")},
                Materialized.as_("totals"),
            )
        )
        if self.final:
            until = Suppressed.until_window_closes(BufferConfig.unbounded()).with_name("final")
            totals = totals.suppress(until)
        totals.to_stream().to("out")
        return builder.build()


def pipeline(directory: Path, version: Version, **options: Any) -> Pipeline:
    made = Pipeline(directory, version.topology(), **options)
    made.archive("sales", SALES, (pa.string(), SALE), partitions=2)
    made.archive("shops", SHOPS, (pa.string(), SHOP), partitions=2)
    made.archive("regions", REGIONS, (pa.string(), REGION))
    return made


def positions(job: Pipeline) -> dict[str, Any]:
    """Where the tasks stand, but for sinks."""
    head = CommitLog(job.warehouse, job.name).head()
    assert head is not None
    leave_out = {"commit", "fingerprint", "sink_offsets"}
    return {task_id: task.position.model_dump(exclude=leave_out) for task_id, task in head.tasks.items()}


def written(job: Pipeline, sink: str, after: Sequence[tuple[Any, ...]] = ()) -> list[tuple[Any, ...]]:
    """What a sink has got behind some of its records, without offsets."""
    begins = {partition: len(list(rows)) for partition, rows in itertools.groupby(after, key=lambda row: row[0])}
    return [
        (partition, key, value, timestamp)
        for partition, offset, key, value, timestamp in job.output_if_present(sink)
        if offset >= begins.get(partition, 0)
    ]


def changed(job: Pipeline, after: Version, new: Path | None = None, **options: Any) -> tuple[Pipeline, dict[str, str]]:
    """The job with another topology, or with ``new`` a fork of it; and what its sinks are called."""
    topology = after.topology()
    if new is None:
        job.topology = topology
        return job, {sink: sink for sink in SINKS}
    fork(job.warehouse, job.name, "new", now_ms=0)
    name = {sink: fork_topic(sink, "new") for sink in SINKS}
    renamed = topology.with_sinks({sink: name[sink] for sink in topology.sink_topics})
    return Pipeline(new, renamed, "new", warehouse=job.warehouse.uri(""), **options), name


def in_two_versions(directory: Path, before: Version, **options: Any) -> Pipeline:
    """A job whose history two slices of one version have made."""
    job = pipeline(directory, before, **options)
    for cut in (400_000, 600_000):
        job.run(cut)
    return job


def assert_same(state: State, expected: State) -> None:
    """Names the families that differ: all of it is too much to read."""
    assert state.keys() == expected.keys()
    assert [(t, f) for t in state for f in state[t] if state[t][f] != expected[t].get(f)] == []
