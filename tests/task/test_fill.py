"""Stores that are filled hold what they would hold if the job had always had them, and so do those that follow."""

from __future__ import annotations

import shutil
from collections import Counter
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, Phase, given
from hypothesis import strategies as st

from statelib import Materialized, StreamsBuilder, TimeWindows, per_record
from statelib.commits.archives import open_archive
from statelib.commits.layout import CommitLog, fork_topic
from statelib.commits.publication.publish import publish
from statelib.commits.topologies.filled_stores import filled_with
from statelib.commits.topologies.past_plans import past_plans
from statelib.commits.topologies.store_differences import StoreDifferences
from statelib.commits.versions.drop_fork import drop_fork
from statelib.commits.versions.fork import fork
from statelib.commits.versions.rollback import rollback
from statelib.comparison.matches import Resources
from statelib.documents.plans import Plan
from statelib.errors.fault_points import observed
from statelib.errors.kinds import ConfigurationError
from statelib.repair.repair import repair
from statelib.task import describe_topology
from tests.commits.versions.test_fork import Killed
from tests.effort import every_other, examples
from tests.surface.records import PARTITIONS, surface_records
from tests.surface.records import TYPES as SURFACE_TYPES
from tests.surface.topology import surface
from tests.task.fill_versions import (
    END,
    SALE,
    SALES,
    SINKS,
    Version,
    assert_same,
    changed,
    in_two_versions,
    pipeline,
    positions,
    written,
)
from tests.task.pipeline import Pipeline
from tests.task.test_fork import fork_of, records

if TYPE_CHECKING:
    from collections.abc import Sequence

    from statelib.documents.topologies import TopologyDescription
    from statelib.topology import Topology

SURFACE_INPUT = surface_records(3, 24)
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
    regions=st.sampled_from([None, 60, 900]),
)
CUTS = st.lists(st.integers(20, END // 10_000), min_size=0, max_size=4, unique=True).map(
    lambda tens: sorted(ten * 10_000 for ten in tens)
)


def described(job: Pipeline, version: Version) -> TopologyDescription:
    """What a version's topology is made of."""
    readers = {topic: open_archive(job.warehouse, topic).reader(0, 0, 0) for topic in ("sales", "shops", "regions")}
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


def final(directory: Path, version: Version) -> Any:
    """What such a job has in the end that was always of one version."""
    job = in_two_versions(directory, version)
    begun = job.output("out")
    job.run()
    return job.state(), positions(job), written(job, "out", begun)


@examples(5, 60, phases=[Phase.generate], suppress_health_check=[HealthCheck.function_scoped_fixture])
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
    if before.regions is None or after.regions is None:  # a global table that becomes versioned is read otherwise
        after = replace(after, regions=before.regions)
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
@pytest.mark.parametrize("n", every_other([3, 1]))
def test_every_store_of_every_operator(tmp_path: Path, n: int) -> None:
    times = sorted({time for rows in SURFACE_INPUT.values() for _, _, time in rows})
    cuts = [times[number * len(times) // 4] for number in range(1, 4)]
    always = Pipeline(tmp_path, surface(), "surface")
    for topic, rows in SURFACE_INPUT.items():
        always.archive(topic, rows, SURFACE_TYPES, PARTITIONS)
    for cut in [*cuts, None]:
        always.run(cut)
    small = {"memory_budget_bytes": 1, "batch_records": 3} if n == 3 else {}
    forked = fork_of(always, tmp_path / f"f{n}", f"f{n}", n, **small)
    stores = {store.name for sub in forked.topology.sub_topologies for store in sub.stores}
    planned = forked.plan(cuts[2] if n == 1 else None, fill_stores=sorted(stores))
    assert isinstance(planned, Plan)
    assert planned.evolution is not None
    assert (set(planned.evolution.filled), planned.evolution.nodes) == (stores, {})
    forked.run(cuts[2] if n == 1 else None, fill_stores=sorted(stores))
    forked.run()
    assert records(forked) == records(always)
    assert_same(forked.state(), always.state())


@pytest.mark.long
@pytest.mark.slow
def test_killed_at_any_step(tmp_path: Path) -> None:
    before, after = Version(), Version(grace_s=240)
    expected = final(tmp_path / "always", after)
    fill = ["totals", "final-store"]
    in_two_versions(tmp_path / "before", before)

    def of_before(name: str) -> Pipeline:
        return Pipeline(Path(shutil.copytree(tmp_path / "before", tmp_path / name)), after.topology())

    steps: list[str] = []
    with observed(steps.append):
        of_before("undisturbed").run(fill_stores=fill)
    assert {"task.history-replayed", "task.stores-filled", "commit.created"} <= set(steps)
    for step in dict.fromkeys(steps):
        job = of_before(step)
        begun = job.output("out")

        def kill(name: str, at: str = step) -> None:
            if name == at:
                raise Killed

        with pytest.raises(Killed), observed(kill):
            job.run(fill_stores=fill)
        publish(job.warehouse, "job")
        job.run(fill_stores=fill)
        assert (job.state(), positions(job), written(job, "out", begun)) == expected, step


def test_over_history_only_what_leads_to_the_store_is_run(tmp_path: Path) -> None:
    calls: Counter[str] = Counter()

    def counting(name: str, value: str) -> Any:
        def called(of: Any) -> Any:
            calls[name] += 1
            return of

        return per_record(called, pa.int64(), value)

    def topology(grace_s: int) -> Topology:
        builder = StreamsBuilder("job")
        sales = builder.stream("sales")
        windows = TimeWindows.of_size_and_grace(timedelta(minutes=1), timedelta(seconds=grace_s))
        counted = sales.map_values(counting("leads", "value.amount")).group_by_key().windowed_by(windows)
        counted.count(Materialized.as_("totals")).to_stream().map_values(counting("behind", "value")).to("out")
        sales.map_values(counting("beside", "value.amount")).group_by_key().count(Materialized.as_("ever"))
        return builder.build()

    job = Pipeline(tmp_path, topology(30))
    job.archive("sales", SALES, (pa.string(), SALE))
    job.run(600_000)
    history = calls["leads"]
    assert 0 < history == calls["beside"] < len(SALES)
    assert 0 < calls["behind"] <= history
    calls.clear()
    job.topology = topology(240)
    job.run(fill_stores=["totals"])
    assert calls["leads"] == len(SALES)
    assert calls["beside"] == len(SALES) - history
    assert 0 < calls["behind"] <= len(SALES) - history


def test_with_nothing_new_to_replay(tmp_path: Path) -> None:
    job = in_two_versions(tmp_path / "job", Version())
    job.run()
    job.topology = Version(minutes=2).topology()
    job.run(fill_stores=["totals", "final-store"])
    always = in_two_versions(tmp_path / "always", Version(minutes=2))
    always.run()
    assert job.state() == always.state()
    assert CommitLog(job.warehouse, "job").head_number() == 4


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


def repaired_and_dropped(directory: Path, ends: Sequence[int | None]) -> Pipeline:
    """A job that a fork has repaired which is gone."""
    job = pipeline(directory, Version())
    for end in ends:
        job.run(end)
    fork(job.warehouse, "job", "new", 1, now_ms=0)
    topology = Version().topology()
    names = {sink: fork_topic(sink, "new") for sink in topology.sink_topics}
    other = Pipeline(directory / "new", topology.with_sinks(names), "new", warehouse=job.warehouse.uri(""))
    other.run(ends[-1])
    repair(job.warehouse, "job", "new", Resources(directory / "scratch"), attempt="a", now_ms=0)
    drop_fork(job.warehouse, "new", now_ms=0)
    return job


def test_after_a_repair_whose_fork_is_gone(tmp_path: Path) -> None:
    job = repaired_and_dropped(tmp_path / "job", [400_000, 500_000, 600_000])
    job.topology = Version(grace_s=240).topology()
    job.run(fill_stores=["totals", "final-store"])
    always = pipeline(tmp_path / "always", Version(grace_s=240))
    for end in (400_000, 600_000, None):
        always.run(end)
    assert_same(job.state(), always.state())


def test_refused_where_nobody_knows_the_slices_of_a_repair(tmp_path: Path) -> None:
    job = repaired_and_dropped(tmp_path, [400_000, None])
    job.topology = Version(grace_s=240).topology()
    with pytest.raises(ConfigurationError, match="repaired by new@2, and that fork is gone"):
        job.plan(fill_stores=["totals", "final-store"])
