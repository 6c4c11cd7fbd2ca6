"""Stores that are filled hold what they would hold if the job had always had them, and so do those that follow."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from deltalake import DeltaTable
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from statelib import (
    BufferConfig,
    Deduplicated,
    Grouped,
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
from statelib.commits.archives import open_archive
from statelib.commits.drop_fork import drop_fork
from statelib.commits.filled_stores import filled_with
from statelib.commits.fork import fork
from statelib.commits.layout import CommitLog, fork_topic
from statelib.commits.past_plans import past_plans
from statelib.commits.plan import NothingToDo
from statelib.commits.publish import publish
from statelib.commits.rollback import rollback
from statelib.commits.store_differences import StoreDifferences
from statelib.comparison.matches import Resources
from statelib.documents.manifests import Plan, Staged
from statelib.errors.fault_points import observed
from statelib.errors.kinds import ConfigurationError
from statelib.repair.repair import repair
from statelib.task import describe_topology
from tests.commits.test_fork import Killed
from tests.surface.records import PARTITIONS, surface_records
from tests.surface.records import TYPES as SURFACE_TYPES
from tests.surface.topology import surface
from tests.task.pipeline import Pipeline
from tests.task.test_fork import fork_of, records

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from statelib.documents.topologies import TopologyDescription
    from statelib.topology import Topology

SURFACE_INPUT = surface_records(3, 24)
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


def described(job: Pipeline, version: Version) -> TopologyDescription:
    """What a version's topology is made of."""
    readers = {topic: open_archive(job.warehouse, topic).reader(0, 0, 0) for topic in ("sales", "shops")}
    return describe_topology(version.topology(), readers)


def to_fill(job: Pipeline, before: Version, after: Version) -> tuple[list[str], list[str]]:
    """The fewest stores to fill, with which nothing that is kept rests on what has changed; and those to give up."""
    was, now = described(job, before), described(job, after)
    compared = StoreDifferences(was, now)
    old, new = ({store.name: store for store in topology.stores} for topology in (was, now))
    fitting = {name for name in old.keys() & new.keys() if compared.fits(old[name], new[name])}
    filled = set(new) - fitting
    if before.least != after.least or (before.once_s is None) != (after.once_s is None):
        filled |= set(new) - {"shops"}  # nobody can tell that what comes to them is different
    return filled_with(now, filled, {store.node for store in now.stores}), sorted(set(old) - set(new))


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


def final(directory: Path, version: Version) -> Any:
    """What such a job has in the end that was always of one version."""
    job = in_two_versions(directory, version)
    begun = job.output("out")
    job.run()
    return job.state(), positions(job), written(job, "out", begun)


@settings(
    max_examples=8, deadline=None, phases=[Phase.generate], suppress_health_check=[HealthCheck.function_scoped_fixture]
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
    ends = [*(cut for cut in later if cut > changes_at), None]
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
    job, name = changed(job, after, directory / "new", **options) if as_fork else changed(job, after)
    was = {sink: job.output_if_present(name[sink]) for sink in SINKS}
    always_was = {sink: always.output_if_present(sink) for sink in SINKS}
    for end in ends:
        always.run(end)
        job.run(end, fill_stores=fill, reset_stores=gone)
        assert job.state() == always.state()
        assert positions(job) == positions(always)
    for sink in SINKS:
        assert written(job, name[sink], was[sink]) == written(always, sink, always_was[sink])


@pytest.mark.slow
def test_every_store_of_every_operator(tmp_path: Path) -> None:
    times = sorted({time for rows in SURFACE_INPUT.values() for _, _, time in rows})
    cuts = [times[number * len(times) // 4] for number in range(1, 4)]
    always = Pipeline(tmp_path, surface(), "surface")
    for topic, rows in SURFACE_INPUT.items():
        always.archive(topic, rows, SURFACE_TYPES, PARTITIONS)
    for cut in [*cuts, None]:
        always.run(cut)
    for n in (1, 3):
        forked = fork_of(always, tmp_path / f"f{n}", f"f{n}", n)
        stores = {store.name for sub in forked.topology.sub_topologies for store in sub.stores}
        planned = forked.plan(cuts[2] if n == 1 else None, fill_stores=sorted(stores))
        assert isinstance(planned, Plan)
        assert planned.evolution is not None
        assert (set(planned.evolution.filled), planned.evolution.nodes) == (stores, {})
        forked.run(cuts[2] if n == 1 else None, fill_stores=sorted(stores))
        forked.run()
        assert records(forked) == records(always)
        assert_same(forked.state(), always.state())


def assert_same(state: State, expected: State) -> None:
    """Names the families that differ: all of it is too much to read."""
    assert state.keys() == expected.keys()
    assert [(t, f) for t in state for f in state[t] if state[t][f] != expected[t].get(f)] == []


@pytest.mark.slow
def test_killed_at_any_step(tmp_path: Path) -> None:
    before, after = Version(), Version(grace_s=240)
    expected = final(tmp_path / "always", after)
    fill = ["totals", "final-store"]
    steps: list[str] = []
    with observed(steps.append):
        undisturbed = in_two_versions(tmp_path / "undisturbed", before)
        steps.clear()
        undisturbed.topology = after.topology()
        undisturbed.run(fill_stores=fill)
    assert {"task.history-replayed", "task.stores-filled", "commit.created"} <= set(steps)
    for step in dict.fromkeys(steps):
        job = in_two_versions(tmp_path / step, before)
        begun = job.output("out")
        job.topology = after.topology()

        def kill(name: str, at: str = step) -> None:
            if name == at:
                raise Killed

        with pytest.raises(Killed), observed(kill):
            job.run(fill_stores=fill)
        publish(job.warehouse, "job")
        job.run(fill_stores=fill)
        assert (job.state(), positions(job), written(job, "out", begun)) == expected, step


def test_it_says_what_it_does_and_what_it_cost(tmp_path: Path) -> None:
    job = in_two_versions(tmp_path, Version())
    job.topology = Version(grace_s=240).topology()
    planned = job.plan(fill_stores=["totals", "final-store"])
    assert isinstance(planned, Plan)
    assert planned.evolution is not None
    assert planned.evolution.filled == ("totals", "final-store")
    says = [change for change in planned.evolution.changes if "is filled from history" in change]
    assert says == [
        "store totals is filled from history: its grace_period_ms was 30000 and is 240000",
        "store final-store is filled from history: its windows grace_period_ms was 30000 and is 240000",
    ]
    staged = job.run(fill_stores=["totals", "final-store"])
    assert isinstance(staged, Staged)
    assert staged.fill is not None
    replayed = sum(past.records for past in past_plans(job.warehouse, "job", 2))
    assert staged.fill.records == replayed + sum(
        file.rows for task in staged.tasks if task.history for files in task.history.repartitions for file in files
    )
    assert staged.fill.seconds > 0
    assert isinstance(job.run(fill_stores=["totals"]), NothingToDo)  # the setting may stay


def test_with_nothing_new_to_replay(tmp_path: Path) -> None:
    job = in_two_versions(tmp_path / "job", Version())
    job.run()
    job.topology = Version(minutes=2).topology()
    job.run(fill_stores=["totals", "final-store"])
    always = in_two_versions(tmp_path / "always", Version(minutes=2))
    always.run()
    assert job.state() == always.state()
    assert CommitLog(job.warehouse, "job").head_number() == 4


@pytest.mark.parametrize(
    ("after", "fill", "says", "next_step"),
    [
        (Version(grace_s=240), [], "store totals: its grace_period_ms was 30000", "fill_stores=totals,final-store"),
        (Version(grace_s=240), ["totals"], "store final-store: its windows", "fill_stores=totals,final-store"),
        (Version(grace_s=240), ["totels"], "there is no such store to fill", "did you mean totals"),
        (Version(once_s=600), ["seen"], "stores totals, final-store come behind seen and would keep",
         "fill all of them: fill_stores=seen,totals,final-store"),
    ],
    ids=["names them", "and all of them", "a store that is not there", "what comes behind is kept"],
)  # fmt: skip
def test_refused(tmp_path: Path, after: Version, fill: list[str], says: str, next_step: str) -> None:
    job = in_two_versions(tmp_path, Version())
    job.topology = after.topology()
    with pytest.raises(ConfigurationError, match=says) as refused:
        job.plan(fill_stores=fill)
    assert next_step in str(refused.value.next_step)


def test_refused_where_the_store_has_a_changelog(tmp_path: Path) -> None:
    job = in_two_versions(tmp_path, Version(), changelogs=["totals"])
    job.topology = Version(grace_s=240).topology()
    with pytest.raises(ConfigurationError, match="has a changelog, which would not have what it is filled with"):
        job.plan(fill_stores=["totals", "final-store"])


def test_a_filled_store_cannot_begin_a_changelog(tmp_path: Path) -> None:
    job = in_two_versions(tmp_path, Version(final=False))
    after = Pipeline(tmp_path, Version(grace_s=240).topology(), changelogs=["final-store"])
    with pytest.raises(ConfigurationError, match="a changelog begins with its store") as refused:
        after.plan(fill_stores=["totals", "final-store"])
    assert refused.value.place["store"] == "final-store"
    assert job.plan() is not None


def test_refused_where_two_ways_are_asked_for(tmp_path: Path) -> None:
    job = in_two_versions(tmp_path, Version())
    job.topology = Version(table=600).topology()
    with pytest.raises(ConfigurationError, match="cannot be both migrated and filled"):
        job.plan(fill_stores=["shops"], migrate_stores=["shops"])


def test_refused_where_the_archive_has_lost_its_beginning(tmp_path: Path) -> None:
    job = in_two_versions(tmp_path, Version())
    archive = open_archive(job.warehouse, "sales")
    table = DeltaTable(archive.uri)
    lost = sum(file.rows for file in archive.files(1) if file.first_offset == 0)
    table.delete(f"partition = 1 AND offset < {lost // 2}")
    job.topology = Version(grace_s=240).topology()
    with pytest.raises(ConfigurationError, match=rf"cannot be filled: .*lacks {lost // 2} of them") as refused:
        job.plan(fill_stores=["totals", "final-store"])
    assert refused.value.place == {"job": "job", "topic": "sales", "partition": 1}
    assert "reset_stores" in str(refused.value.next_step)


def test_after_a_repair_the_history_is_the_forks(tmp_path: Path) -> None:
    before, after = Version(), Version(least=2)
    job = in_two_versions(tmp_path, before)
    fork(job.warehouse, "job", "new", 1, now_ms=0)
    topology = before.topology()
    names = {sink: fork_topic(sink, "new") for sink in topology.sink_topics}
    other = Pipeline(tmp_path / "new", topology.with_sinks(names), "new", warehouse=job.warehouse.uri(""))
    other.run(500_000)  # in other slices than the job
    other.run(600_000)
    repair(job.warehouse, "job", "new", Resources(tmp_path / "scratch"), attempt="a", now_ms=0)
    assert [(plan.job, plan.commit) for plan in past_plans(job.warehouse, "job", 3)] == [
        ("job", 1), ("new", 2), ("new", 3),
    ]  # fmt: skip
    job.topology = after.topology()
    job.run(fill_stores=["seen", "shops", "totals", "final-store"])
    always = pipeline(tmp_path / "always", after)
    for end in (400_000, 500_000, 600_000, None):
        always.run(end)
    assert_same(job.state(), always.state())


def test_a_repair_whose_fork_is_gone(tmp_path: Path) -> None:
    job = in_two_versions(tmp_path, Version())
    fork(job.warehouse, "job", "new", 1, now_ms=0)
    topology = Version().topology()
    names = {sink: fork_topic(sink, "new") for sink in topology.sink_topics}
    other = Pipeline(tmp_path / "new", topology.with_sinks(names), "new", warehouse=job.warehouse.uri(""))
    other.run(600_000)
    repair(job.warehouse, "job", "new", Resources(tmp_path / "scratch"), attempt="a", now_ms=0)
    drop_fork(job.warehouse, "new", now_ms=0)
    with pytest.raises(ConfigurationError, match="repaired by new@2, and that fork is gone"):
        past_plans(job.warehouse, "job", 3)
