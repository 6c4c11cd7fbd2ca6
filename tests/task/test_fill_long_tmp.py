"""Stores that are filled: they hold what they would hold if the job had always had them, and so does all that follows."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from statelib import (
    BufferConfig,
    Deduplicated,
    Grouped,
    JoinWindows,
    Materialized,
    Named,
    Stores,
    StreamJoined,
    StreamsBuilder,
    Suppressed,
    TimeWindows,
    count,
    max_,
    per_record,
    sum_,
)
from statelib.commits.filled_stores import filled_with
from statelib.commits.fork import fork
from statelib.commits.layout import CommitLog, Runs, fork_topic
from statelib.commits.plan import NothingToDo
from statelib.commits.rollback import rollback
from statelib.commits.publish import publish
from statelib.commits.store_differences import StoreDifferences
from statelib.errors.fault_points import observed
from statelib.errors.kinds import ConfigurationError
from tests.commits.test_fork import Killed
from tests.surface.records import PARTITIONS, surface_records
from tests.surface.records import TYPES as SURFACE_TYPES
from tests.surface.topology import surface
from tests.task.pipeline import Pipeline
from tests.task.test_fork import fork_of, records

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from statelib.documents.manifests import Plan
    from statelib.topology import Topology

MINUTE = 60_000
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
        joined = sales.left_join(shops, {"shop": "left.shop", "amount": "left.amount", "city": "right.city"})
        of_amount = {"sum": sum_, "max": max_}[self.amount]("amount")
        windows = TimeWindows.of_size_and_grace(timedelta(minutes=self.minutes), timedelta(seconds=self.grace_s))
        totals = (
            joined.group_by("shop", Grouped.as_("by-shop"))
            .windowed_by(windows)
            .aggregate({"n": count(), "amount": of_amount, "city": max_("city")}, Materialized.as_("totals"))
        )
        if self.final:
            until = Suppressed.until_window_closes(BufferConfig.unbounded()).with_name("final")
            totals = totals.suppress(until)
        totals.to_stream().to("out")
        return builder.build()


VERSIONS = st.builds(
    Version,
    minutes=st.sampled_from([1, 2]),
    grace_s=st.sampled_from([0, 30, 240]),
    amount=st.sampled_from(["sum", "max"]),
    once_s=st.sampled_from([None, 60, 600]),
    final=st.booleans(),
    table=st.sampled_from([None, 30, 600]),
    least=st.sampled_from([0, 2]),
    near_s=st.sampled_from([None, 10, 40]),
)
CUTS = st.lists(st.integers(20, END // 10_000), min_size=0, max_size=4, unique=True).map(
    lambda tens: sorted(ten * 10_000 for ten in tens)
)


def pipeline(directory: Path, version: Version, **options: Any) -> Pipeline:
    made = Pipeline(directory, version.topology(), **options)
    made.archive("sales", SALES, (pa.string(), SALE), partitions=2)
    made.archive("shops", SHOPS, (pa.string(), SHOP), partitions=2)
    return made


def described(job: Pipeline, version: Version) -> Any:
    """What a version's topology is made of."""
    other = Pipeline.__new__(Pipeline)
    other.__dict__ = {**job.__dict__, "topology": version.topology()}
    from statelib.commits.archives import open_archive

    return other._described({topic: open_archive(job.warehouse, topic) for topic in ("sales", "shops")})


def to_fill(job: Pipeline, before: Version, after: Version) -> tuple[list[str], list[str]]:
    """The fewest stores to fill, with which nothing that is kept rests on what has changed; and those to give up."""
    was, now = described(job, before), described(job, after)
    compared = StoreDifferences(was, now)
    old, new = ({store.name: store for store in topology.stores} for topology in (was, now))
    fitting = {name for name in old.keys() & new.keys() if compared.fits(old[name], new[name])}
    filled = set(new) - fitting
    if before.least != after.least or (before.once_s is None) != (after.once_s is None):
        filled |= set(new) - {"shops"}  # nobody can tell that what comes to them is different
    return sorted(filled_with(now, filled, {store.node for store in now.stores})), sorted(set(old) - set(new))


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


SINKS = ("out", "near")


@settings(
    max_examples=60, deadline=None, phases=[Phase.generate], suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    before=VERSIONS,
    after=VERSIONS,
    cuts=CUTS,
    later=CUTS,
    changes_at=st.integers(200_000, END),
    as_fork=st.booleans(),
    rolls_back=st.booleans(),
    small=st.booleans(),
)
@pytest.mark.slow
def test_as_if_the_job_had_always_had_them(
    tmp_path_factory: pytest.TempPathFactory,
    before: Version,
    after: Version,
    cuts: list[int],
    later: list[int],
    changes_at: int,
    as_fork: bool,
    rolls_back: bool,
    small: bool,
) -> None:
    cuts = [*(cut for cut in cuts if cut < changes_at), changes_at]
    later = [*(cut for cut in later if cut > changes_at), None]
    options = {"memory_budget_bytes": 1, "batch_records": 3} if small else {}
    directory = tmp_path_factory.mktemp("fill")
    always, job = pipeline(directory / "always", after), pipeline(directory / "job", before, **options)
    for cut in cuts:
        always.run(cut)
        job.run(cut)
    if rolls_back:
        n = CommitLog(job.warehouse, "job").head_number()
        job.run()
        if CommitLog(job.warehouse, "job").head_number() > n:
            rollback(job.warehouse, "job", n, now_ms=0)
            publish(job.warehouse, "job")
    fill, gone = to_fill(job, before, after)
    name = {sink: sink for sink in SINKS}
    if as_fork:
        fork(job.warehouse, "job", "new", now_ms=0)
        name = {sink: fork_topic(sink, "new") for sink in SINKS}
        job = Pipeline(directory / "new", after.topology().with_sinks({
            sink: name[sink] for sink in after.topology().sink_topics
        }), "new", warehouse=job.warehouse.uri(""), **options)  # fmt: skip
    job.topology = after.topology().with_sinks({sink: name[sink] for sink in after.topology().sink_topics})
    was = {sink: job.output_if_present(name[sink]) for sink in SINKS}
    always_was = {sink: always.output_if_present(sink) for sink in SINKS}
    for cut in later:
        always.run(cut)
        job.run(cut, fill_stores=fill, reset_stores=gone)
        assert job.state() == always.state()
        assert positions(job) == positions(always)
    for sink in SINKS:
        assert written(job, name[sink], was[sink]) == written(always, sink, always_was[sink])
