"""A repaired job is the job that was never wrong: what its readers have, its state, and all that it writes later."""

from __future__ import annotations

import itertools
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from statelib.commits import CommitLog, Retention, maintain, rollback, verify
from statelib.commits.forks import files_held_by_forks
from statelib.commits.versions.drop_fork import drop_fork
from statelib.commits.versions.fork import fork_from_beginning
from statelib.commits.versions.trials import plan_interval, plan_trial
from statelib.comparison.matches import Resources
from statelib.comparison.sinks import default_way
from statelib.errors.fault_points import observed
from statelib.errors.kinds import ConfigurationError
from statelib.repair.repair import Repaired, repair
from tests.commits.versions.test_fork import Killed, at, kill
from tests.effort import every_other, examples, one_in
from tests.repair.histories import (
    EVENT,
    HOUR,
    NAME,
    STREAMS,
    TABLES,
    archive,
    as_fork,
    events,
    forked,
    names,
    read,
    topology,
)
from tests.task.pipeline import Pipeline

if TYPE_CHECKING:
    from statelib.topology import Topology

REPAIR = ["repair.before-plan", "repair.planned", "repair.state-copied", "repair.corrected", "repair.audited",
          "repair.before-create", "repair.created"]  # fmt: skip
CUTS = [hours * HOUR for hours in (10, 20, 30, 40)]

pytestmark = pytest.mark.thorough

_attempts = itertools.count()


def new() -> str:
    """The name of an attempt."""
    return f"a{next(_attempts)}"


def run(directory: Path, seed: int, cuts: list[int], wrong_from: int, wrong: Topology, partitions: int = 2) -> Pipeline:
    """A job that is right up to a commit, and wrong in all later ones; ``events`` hold more than it has taken up."""
    right = Pipeline(directory, topology())
    archive(right, seed, partitions)
    faulty = Pipeline(directory, wrong)
    for number, cut in enumerate(cuts):
        (right if number < wrong_from else faulty).run(cut)
    return right


def repaired(
    job: Pipeline, directory: Path, base: int, name: str = "fix", cuts: tuple[int, ...] = (), now_ms: int = 7
) -> Repaired:
    """Repairs the job, whose newest commit has come to the last of its cuts."""
    fixing = forked(job, directory, name, base, job.topology)
    head = CommitLog(job.warehouse, job.name).head()
    for cut in cuts:
        fixing.run(cut)
    fixing.run(end_offsets=head.source_offsets())
    (directory / "scratch").mkdir(parents=True, exist_ok=True)
    return repair(job.warehouse, job.name, name, Resources(directory / "scratch"), attempt=new(), now_ms=now_ms)


def outcome(job: Pipeline) -> dict[str, Any]:
    """All that anybody can see of a job but names of runs."""
    head = CommitLog(job.warehouse, job.name).head()
    return {
        "read": read(job),
        "state": job.state(),
        "source offsets": head.source_offsets(),
        "clocks": {task_id: (task.position.stream_time, task.position.clocks) for task_id, task in head.tasks.items()},
    }


@pytest.mark.parametrize("least", every_other([0, 45]))
def test_it_is_as_if_it_had_never_been_wrong(tmp_path, least):
    job = run(tmp_path / "job", 1, CUTS, 2, topology(least))
    never = run(tmp_path / "never", 1, CUTS, 4, topology(least))
    assert read(job) != read(never)
    done = repaired(job, tmp_path / "fix", 2)
    assert (done.commit.commit, done.commit.instead_of_replay) == (5, "repaired by fix@2")
    assert all(done.records[topic] > 0 for topic in (*TABLES, *STREAMS))
    assert outcome(job) == outcome(never)
    planned = job.plan(50 * HOUR)
    assert planned.evolution is None or planned.evolution.changes == ()
    assert {default_way(job.warehouse, "job", done.commit.fingerprint, sink) for sink in TABLES} == {"latest"}
    for pipeline in (job, never):
        pipeline.run(50 * HOUR)
        pipeline.run()
    assert outcome(job) == outcome(never)
    assert not verify(job.warehouse, "job", everything=True).damages


HISTORY = st.lists(st.integers(1, 59), min_size=2, max_size=6, unique=True).map(sorted)


@examples(3, 300)
@given(
    seed=st.integers(0, 1000),
    cuts=HISTORY,
    of_fork=HISTORY,
    wrong_from=st.integers(1, 5),
    least=st.integers(0, 99),
    twice=st.booleans(),
    keeps=st.booleans(),
)
def test_whatever_the_history(tmp_path_factory, seed, cuts, of_fork, wrong_from, least, twice, keeps):
    """It goes wrong, is repaired by a fork with slices of its own, maybe from an earlier commit, and again later."""
    directory = tmp_path_factory.mktemp("history")
    cuts, wrong_from = [cut * HOUR for cut in cuts], min(wrong_from, len(cuts) - 1)
    slices = [cut * HOUR for cut in of_fork if cut * HOUR < cuts[-1]]
    job = run(directory / "job", seed, cuts, wrong_from, topology(least))
    never = run(directory / "never", seed, cuts, len(cuts), topology(least))
    repaired(job, directory / "fix", wrong_from if keeps else 1, cuts=slices)
    assert outcome(job) == outcome(never)
    if twice:
        faulty = Pipeline(directory / "job", topology(least))
        for pipeline in (faulty, never):
            pipeline.run(60 * HOUR)
        repaired(job, directory / "again", len(cuts) + 1, "again")
        assert outcome(job) == outcome(never)
    for pipeline in (job, never):
        pipeline.run()
    assert outcome(job) == outcome(never)
    shutil.rmtree(directory)


@examples(3, 300)
@given(
    seed=st.integers(0, 1000),
    arrivals=st.lists(st.tuples(st.integers(1, 20), st.integers(0, 20)), min_size=2, max_size=6),
    wrong_from=st.integers(0, 5),
    earlier=st.sampled_from([0, 0, 5, 1000]),
)
def test_topics_that_come_apart(tmp_path_factory, seed, arrivals, wrong_from, earlier):
    """Runs end with what the archives hold, one further than the other: the fork has to meet both as the job has."""
    directory = tmp_path_factory.mktemp("history")
    wrong_from = min(wrong_from, len(arrivals) - 1)
    come_to = [tuple(map(sum, zip((0, 0), *arrivals[:n], strict=True))) for n in range(len(arrivals) + 1)]

    def history(name: str, wrong_from: int) -> Pipeline:
        right, faulty = (Pipeline(directory / name, topology(least)) for least in (20, 50))
        for n, (since, until) in enumerate(itertools.pairwise(come_to)):
            for number, (topic, rows, of) in enumerate((("events", events(seed), EVENT), ("names", names(seed), NAME))):
                come = [row for row in rows if since[number] * HOUR <= row[2] < until[number] * HOUR]
                right.archive(topic, come, (pa.string(), of))
            (right if n < wrong_from else faulty).run()
        return right

    job, never = history("job", wrong_from), history("never", len(arrivals))
    start_ms = max(min(come_to[wrong_from]) - earlier, 0) * HOUR
    trial = plan_trial(job.warehouse, "job", topology(), "fix", start_ms=start_ms).new
    if trial.commit:
        fixing = forked(job, directory / "fix", "fix", trial.commit, topology())
    else:
        fork_from_beginning(job.warehouse, "job", "fix")
        fixing = as_fork(job, directory / "fix", "fix", topology())
    for ends in trial.ends:
        fixing.run(end_offsets=ends)
    repair(job.warehouse, "job", "fix", Resources(directory), attempt=new(), now_ms=7)
    assert outcome(job) == outcome(never)
    shutil.rmtree(directory)


@examples(3, 300)
@given(
    seed=st.integers(0, 1000),
    cuts=HISTORY,
    start=st.integers(1, 58),
    hours=st.integers(1, 30),
    least=st.integers(0, 99),
)
def test_an_interval_is_as_if_another_file_had_run_then(tmp_path_factory, seed, cuts, start, hours, least):
    """Before it and after it the job ran what it runs, and goes on with it."""
    directory = tmp_path_factory.mktemp("history")
    cuts, own = [cut * HOUR for cut in cuts], topology(least)
    start_ms = min(start * HOUR, cuts[-1] - HOUR)
    end_ms = start_ms + hours * HOUR
    job = run(directory / "job", seed, cuts, 0, own)
    never = run(directory / "never", seed, [*(cut for cut in cuts if cut < start_ms), start_ms], 0, own)
    meanwhile, later = (Pipeline(directory / "never", of) for of in (topology(), own))
    for cut in sorted({*cuts, min(end_ms, cuts[-1])}):
        (meanwhile if cut <= end_ms else later).run(cut)
    wanted = outcome(never)
    trial = plan_interval(job.warehouse, "job", topology(), own, "fix", start_ms=start_ms, end_ms=end_ms)
    assert (trial.then is None) == (end_ms >= cuts[-1])
    assert (trial.before is None) == (start_ms in cuts or least == 20)
    if trial.new.commit:
        forked(job, directory / "fix", "fix", trial.new.commit, own)
    else:
        fork_from_beginning(job.warehouse, "job", "fix")
    for part, of in ((trial.before, own), (trial.new, topology()), (trial.then, own)):
        for ends in part.ends if part is not None else ():
            as_fork(job, directory / "fix", "fix", of).run(end_offsets=ends)
    before = read(job)
    done = repair(job.warehouse, "job", "fix", Resources(directory), attempt=new(), now_ms=7, end_ms=end_ms)
    assert outcome(job) == wanted
    after, told = read(job), {check.topic: check.observed for check in done.checks}
    of_job = {**after["so-far"], **before["so-far"]}  # a changed row is of the time that it had
    differing = [key for key in of_job if before["so-far"].get(key) != after["so-far"].get(key)]
    assert told["so-far"]["behind"] == sum(of_job[key][1].timestamp() * 1000 >= end_ms for key in differing)
    assert told["large"]["behind"] == 0
    for pipeline in (Pipeline(directory / "job", own), later):
        pipeline.run()
    assert outcome(job) == outcome(never)
    shutil.rmtree(directory)


def test_an_interval_without_records_is_refused(tmp_path):
    job = run(tmp_path / "job", 2, CUTS, 4, topology())
    with pytest.raises(ConfigurationError, match="nothing lies between the start and the end"):
        plan_interval(job.warehouse, "job", topology(), topology(), "fix", start_ms=CUTS[1], end_ms=CUTS[1])


def test_it_needs_the_fork_no_more(tmp_path):
    job = run(tmp_path / "job", 2, CUTS, 2, topology(45))
    never = run(tmp_path / "never", 2, CUTS, 4, topology(45))
    repaired(job, tmp_path / "fix", 2)
    drop_fork(job.warehouse, "fix", now_ms=8)
    maintain(job.warehouse, "job", Retention(1), now_ms=0)
    assert not any("fix" in entry.path for entry in job.warehouse.list())
    assert not verify(job.warehouse, "job", everything=True).damages
    assert outcome(job) == outcome(never)
    for pipeline in (job, never):
        pipeline.run()
    assert outcome(job) == outcome(never)


def test_a_rollback_takes_the_corrections_back(tmp_path):
    job = run(tmp_path / "job", 2, CUTS, 2, topology(45))
    wrong = outcome(job)
    repaired(job, tmp_path / "fix", 2)
    assert outcome(job) != wrong
    rollback(job.warehouse, "job", 4, now_ms=9)
    assert outcome(job) == wrong


def test_a_repeat_changes_nothing(tmp_path):
    job = run(tmp_path / "job", 2, CUTS, 2, topology(45))
    done = repaired(job, tmp_path / "fix", 2)
    before = [(entry.path, entry.size_bytes) for entry in job.warehouse.list()]
    assert repair(job.warehouse, "job", "fix", Resources(tmp_path), attempt=new(), now_ms=99) == done
    assert [(entry.path, entry.size_bytes) for entry in job.warehouse.list()] == before


def test_what_was_repaired_is_not_repaired_again(tmp_path):
    """A fork of a commit before the first repair differs by records and what took them back, which is nothing."""
    job = run(tmp_path / "job", 2, CUTS, 2, topology(45))
    never = run(tmp_path / "never", 2, CUTS, 4, topology(45))
    assert any(repaired(job, tmp_path / "fix", 2).records.values())
    assert not any(repaired(job, tmp_path / "again", 1, "again").records.values())
    assert outcome(job) == outcome(never)


def test_what_a_repair_took_back_does_not_come_back(tmp_path):
    job = run(tmp_path / "job", 2, CUTS, 2, topology(0))
    mistaken = forked(job, tmp_path / "mistaken", "mistaken", 2, topology(0))
    repaired(job, tmp_path / "fix", 2)
    mistaken.run(end_offsets=CommitLog(job.warehouse, "job").head().source_offsets())
    with pytest.raises(ConfigurationError, match="is taken back, and now it would have to come back"):
        repair(job.warehouse, "job", "mistaken", Resources(tmp_path), attempt=new(), now_ms=7)


def test_what_is_right_gets_no_record(tmp_path):
    job = run(tmp_path / "job", 2, CUTS, 4, topology(45))
    done = repaired(job, tmp_path / "fix", 2)
    assert {*done.records.values()} == {0}
    assert not done.commit.sinks


def test_the_audit_tells_what_was_different(tmp_path):
    job = run(tmp_path / "job", 2, CUTS, 2, topology(45))
    before = read(job)
    done = repaired(job, tmp_path / "fix", 2)
    after = read(job)
    by_topic = {check.topic: check for check in done.checks}
    assert by_topic.keys() == {*TABLES, *STREAMS}
    for topic in TABLES:
        told, was, now = by_topic[topic].observed, before[topic], after[topic]
        assert told["added"] == len(now.keys() - was.keys())
        assert told["taken_back"] == len(was.keys() - now.keys())
        assert told["changed"] == sum(was[key] != now[key] for key in was.keys() & now.keys())
        assert done.records[topic] == sum(told[kind] for kind in ("added", "taken_back", "changed"))
        assert by_topic[topic].unexpected_rows


@pytest.fixture(scope="module")
def wrong_and_right(tmp_path_factory) -> tuple[Path, dict[str, Any]]:
    """A job that went wrong, with a fork that is about to repair it; and what there is after an undisturbed repair."""
    root = tmp_path_factory.mktemp("wrong")
    job = run(root / "job", 3, CUTS, 2, topology(45))
    forked(job, root / "fix", "fix", 2, job.topology).run(CUTS[-1])
    copied = Pipeline(Path(shutil.copytree(root, root.with_name("right"))) / "job", topology())
    steps: list[str] = []
    with observed(steps.append):
        repair(copied.warehouse, "job", "fix", Resources(root), attempt=new(), now_ms=7)
    assert {step for step in steps if step.startswith("repair.")} == {*REPAIR}
    copied.run()
    return root, outcome(copied)


@pytest.mark.parametrize(("name", "then"), one_in(10, itertools.product(REPAIR, ["repair", "run", "drop", "other"])))
def test_killed_at_a_step(wrong_and_right, tmp_path, name, then):
    """It is given again; or it is given up, and the corrected topology goes on, or another fork repairs."""
    root, right = wrong_and_right
    job = Pipeline(Path(shutil.copytree(root, tmp_path / "root")) / "job", topology())
    with at(name, kill), pytest.raises(Killed):
        repair(job.warehouse, "job", "fix", Resources(tmp_path), attempt=new(), now_ms=7)
    is_done = name == "repair.created"
    if then == "repair":
        repair(job.warehouse, "job", "fix", Resources(tmp_path), attempt=new(), now_ms=8)
    elif then != "run":
        if then == "drop":
            drop_fork(job.warehouse, "fix", now_ms=8)
        if not is_done:
            forked(job, tmp_path / "other", "other", 2, job.topology).run(CUTS[-1])
            is_open = then == "other" and name != "repair.before-plan"
            if is_open:
                with pytest.raises(ConfigurationError, match="a run is open"):
                    repair(job.warehouse, "job", "other", Resources(tmp_path), attempt=new(), now_ms=8)
            repair(job.warehouse, "job", "other", Resources(tmp_path), attempt=new(), now_ms=8, supersede=is_open)
    job.run()
    maintain(job.warehouse, "job", Retention(1), now_ms=0)
    assert not verify(job.warehouse, "job").damages
    if then != "run" or is_done:
        assert outcome(job) == right
    held = files_held_by_forks(job.warehouse, "job") | CommitLog(job.warehouse, "job").head().state_files().keys()
    assert {entry.path for entry in job.warehouse.list("jobs/job/state")} <= held


@pytest.mark.parametrize("name", one_in(8, REPAIR))
def test_another_fork_of_the_name_is_another_repair(tmp_path, name):
    """One that was wrong itself was dropped, after its repair or within it, and its name given to another."""
    job = run(tmp_path / "job", 3, CUTS, 2, topology(45))
    never = run(tmp_path / "never", 3, CUTS, 4, topology(45))
    forked(job, tmp_path / "wrong", "fix", 2, topology(40)).run(CUTS[-1])
    with at(name, kill), pytest.raises(Killed):
        repair(job.warehouse, "job", "fix", Resources(tmp_path), attempt=new(), now_ms=7)
    drop_fork(job.warehouse, "fix", now_ms=8)
    fixing = forked(job, tmp_path / "fix", "fix", 2, job.topology)
    fixing.now_ms = 9
    fixing.run(CUTS[-1])
    done = repair(job.warehouse, "job", "fix", Resources(tmp_path), attempt=new(), now_ms=10)
    for check in done.checks:
        if check.topic in TABLES:
            told = sum(check.observed[kind] for kind in ("added", "taken_back", "changed"))
            assert told == done.records[check.topic]
    assert outcome(job) == outcome(never)


def test_a_fork_that_has_not_come_as_far_is_refused(tmp_path):
    job = run(tmp_path / "job", 2, CUTS, 2, topology(45))
    fixing = forked(job, tmp_path / "fix", "fix", 2, job.topology)
    for cut in (25, 45):
        fixing.run(cut * HOUR)
        with pytest.raises(ConfigurationError, match="has not replayed what the job has: of events/0") as refused:
            repair(job.warehouse, "job", "fix", Resources(tmp_path), attempt=new(), now_ms=7)
        assert refused.value.place == {"job": "job", "fork": "fix"}


def test_what_is_no_fork_of_it_is_refused(tmp_path):
    job = run(tmp_path / "job", 2, CUTS, 2, topology(45))
    forked(job, tmp_path / "fix", "fix", 2, job.topology)
    forked(
        Pipeline(tmp_path / "fix", job.topology, "fix", warehouse=job.warehouse.uri("")),
        tmp_path / "x",
        "x",
        1,
        job.topology,
    )
    for one, other, match in (
        ("fix", "job", "is no fork"),
        ("job", "x", "is a fork of fix"),
        ("fix", "x", "is a fork itself"),
    ):
        with pytest.raises(ConfigurationError, match=match):
            repair(job.warehouse, one, other, Resources(tmp_path), attempt=new(), now_ms=7)


def test_a_job_with_changelogs_is_refused(tmp_path):
    job = Pipeline(tmp_path / "job", topology(), changelogs=["so-far-store"])
    archive(job, 2)
    job.run(CUTS[0])
    job.run(CUTS[1])
    with pytest.raises(ConfigurationError, match="keeps changelogs") as refused:
        repaired(job, tmp_path / "fix", 1)
    assert "rollback job" in refused.value.next_step
