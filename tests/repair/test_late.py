"""Late records that a repair lets in: as if they had not been late, and nothing else."""

from __future__ import annotations

import random
import shutil
from collections import Counter
from datetime import timedelta
from typing import TYPE_CHECKING, Any, get_args

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from statelib import (
    BufferConfig,
    EmitStrategy,
    Materialized,
    Named,
    SessionWindows,
    SlidingWindows,
    StreamsBuilder,
    Suppressed,
    TimeWindows,
    count,
)
from statelib.columns.times import LAST_TIME_MS
from statelib.commits import CommitLog
from statelib.commits.archives import open_archive_if_present
from statelib.commits.layout import fork_topic
from statelib.commits.versions.fork import fork, fork_from_beginning
from statelib.commits.versions.trials import plan_interval
from statelib.comparison.matches import Resources
from statelib.documents.manifests import Staged
from statelib.documents.plans import Leeway
from statelib.errors.kinds import ConfigurationError
from statelib.repair.lateness import check_let_in, late_interval
from statelib.repair.repair import repair
from statelib.settings.semantics import Semantics
from statelib.topology.leeway import may_have_leeway
from tests.effort import examples
from tests.repair.histories import HOUR, as_fork
from tests.task.pipeline import Pipeline

if TYPE_CHECKING:
    from pathlib import Path

    from statelib.commits.versions.trials import Trial
    from statelib.topology import Topology

VALUE = pa.struct([("n", pa.int64())])
SHORT, LONG = timedelta(hours=1), timedelta(days=30)
ALL, FINAL, HOPS = "all", "final", "hops"
REFUSED = "no record of this interval came too late", "nothing lies between"
UNBOUND = Suppressed.until_window_closes(BufferConfig.unbounded())

pytestmark = pytest.mark.thorough


def topology(grace: timedelta = SHORT) -> Topology:
    """Windows of all kinds, and what is made of final results."""
    builder = StreamsBuilder("job")
    grouped = builder.stream("events").group_by_key()
    hours = grouped.windowed_by(TimeWindows.of_size_and_grace(timedelta(hours=1), grace))
    by_hour = hours.count(Materialized.as_("by-hour"))
    by_hour.to_stream().to(ALL)
    by_hour.suppress(UNBOUND).to_stream().to(FINAL)
    limited = by_hour.suppress(Suppressed.until_time_limit(timedelta(minutes=30), BufferConfig.unbounded()))
    limited.suppress(UNBOUND).to_stream().to("limited")
    hops = TimeWindows.of_size_and_grace(timedelta(hours=2), grace).advance_by(timedelta(hours=1))
    grouped.windowed_by(hops).count(Materialized.as_("by-hop")).to_stream().to(HOPS)
    sliding = SlidingWindows.of_time_difference_and_grace(timedelta(minutes=30), grace)
    grouped.windowed_by(sliding).aggregate({"events": count()}, Materialized.as_("by-slide")).to_stream().to("slides")
    sessions = SessionWindows.of_inactivity_gap_and_grace(timedelta(minutes=20), grace)
    grouped.windowed_by(sessions).count(Materialized.as_("by-session")).to_stream().to("sessions")
    grouped.windowed_by(TimeWindows.of_size_and_grace(timedelta(hours=3), grace)).distinct().to("firsts")
    return builder.build()


def events(seed: int, n: int = 160) -> list[tuple[str, dict[str, Any], int]]:
    """Two days of events, of which some come late, by up to nine hours."""
    chance = random.Random(seed)
    times = [max(number * HOUR // 4 - chance.choice([0, 0, 0, 1, 2, 5, 9]) * HOUR, 0) for number in range(n)]
    return [(chance.choice("abcd"), {"n": number}, time) for number, time in enumerate(times)]


def begun(directory: Path, seed: int, cuts: list[int], of: Topology, name: str = "job", **settings: Any) -> Pipeline:
    job = Pipeline(directory / name, of, **settings)
    job.archive("events", events(seed), (pa.string(), VALUE), 2)
    for cut in cuts:
        job.run(cut * HOUR)
    return job


def newest(job: Pipeline, topic: str) -> dict[Any, Any]:
    """What readers have who keep the newest value of each key."""
    found: dict[Any, Any] = {}
    archive = open_archive_if_present(job.warehouse, topic)
    for partition in range(archive.partitions if archive else 0):
        for row in archive.reader(partition).read_all().to_pylist():
            found[partition, repr(row["key"])] = row["value"], row["timestamp"]
    return {key: value for key, value in found.items() if value[0] is not None}


def let_in(job: Pipeline, directory: Path, start_ms: int, end_ms: int = LAST_TIME_MS, *, spills: bool = False) -> Trial:
    """Lets the late records of an interval in; gives what was replayed for it."""
    late = late_interval(job.warehouse, "job", job.topology, start_ms, end_ms)
    trial = plan_interval(
        job.warehouse,
        "job",
        job.topology,
        job.topology,
        "fix",
        start_ms=start_ms,
        end_ms=end_ms,
        leeway=late.leeway,
        oldest_ms=late.oldest_ms,
    )
    if trial.new.commit:
        fork(job.warehouse, "job", "fix", trial.new.commit, now_ms=0)
    else:
        fork_from_beginning(job.warehouse, "job", "fix")
    fixing = as_fork(job, directory / "fix", "fix", job.topology).with_settings(semantics=job._settings.semantics)
    if spills:
        fixing = fixing.with_settings(memory_budget_bytes=1, batch_records=16)
    for side in (trial.before, trial.new, trial.then):
        for number, ends in enumerate(side.ends if side is not None else (), start=1):
            staged = fixing.run(end_offsets=ends, leeway=side.leeway_of(number))
            if isinstance(staged, Staged):
                check_once(fixing, staged)
    check_let_in(job.warehouse, "fix")
    directory.mkdir(exist_ok=True)
    repair(job.warehouse, "job", "fix", Resources(directory), attempt="a", now_ms=7)
    return trial


def check_once(job: Pipeline, staged: Staged) -> None:
    """A run gives each final result once."""
    archive = open_archive_if_present(job.warehouse, fork_topic(FINAL, job.name))
    for task in staged.tasks:
        for sink in task.sinks:
            if archive is not None and sink.topic == fork_topic(FINAL, job.name):
                file = sink.file
                rows = archive.reader(file.partition, file.first_offset, file.last_offset + 1).read_all()
                keys = [repr(key) for key in rows.column("key").to_pylist()]
                assert len(set(keys)) == len(keys)


def windows_of(job: Pipeline, trial: Trial | None) -> tuple[dict[Any, int], dict[int, int]]:
    """The plain model: events by key and hour that a window takes, or the interval of a trial; and the last clocks."""
    begins, ends = {0: 0, 1: 0}, {0: 0, 1: 0}
    if trial is not None:
        ends = trial.new.ends[-1]["events"]
        if trial.before is not None:
            begins = trial.before.ends[-1]["events"]
        elif trial.new.commit:
            begins = CommitLog(job.warehouse, "job").read(trial.new.commit).source_offsets()["events"]
    head = CommitLog(job.warehouse, "job").head().source_offsets()["events"]
    found: Counter[Any] = Counter()
    clocks = {}
    for partition, offset, key, _, time in job.output("events"):
        if offset >= head[partition]:
            continue
        clock = clocks[partition] = max(clocks.get(partition, 0), time)
        hour = time // HOUR
        is_let_in = begins.get(partition, 0) <= offset < ends.get(partition, 0)
        if is_let_in or (hour + 1) * HOUR + HOUR > clock:
            found[partition, key, hour * HOUR] += 1
    return dict(found), clocks


def counted(job: Pipeline, topic: str) -> dict[Any, int]:
    """The counts of a sink of hours: by partition, key and start."""
    archive = open_archive_if_present(job.warehouse, topic)
    found: dict[Any, int] = {}
    for partition in range(archive.partitions if archive else 0):
        for row in archive.reader(partition).read_all().to_pylist():
            key = row["key"]
            found[partition, key["key"], round(key["window_start"].timestamp() * 1000)] = row["value"]
    return {key: value for key, value in found.items() if value is not None}


CUTS = st.lists(st.integers(2, 38), min_size=1, max_size=5, unique=True).map(sorted)


@examples(4, 300)
@given(
    seed=st.integers(0, 1000),
    cuts=CUTS,
    start=st.integers(0, 37),
    hours=st.integers(1, 40),
    ends=st.booleans(),
    spills=st.booleans(),
    semantics=st.sampled_from(get_args(Semantics)),
)
def test_the_windows_of_an_interval_take_what_came_late_then(
    tmp_path_factory, seed, cuts, start, hours, ends, spills, semantics
):
    directory = tmp_path_factory.mktemp("late")
    job = begun(directory, seed, cuts, topology(), semantics=semantics)
    end_ms = (start + hours) * HOUR if ends else LAST_TIME_MS
    refused, trial = "", None
    try:
        trial = let_in(job, directory / "repair", start * HOUR, end_ms, spills=spills)
    except ConfigurationError as error:
        refused = error.what
    assert refused == "" or refused.startswith(REFUSED)
    for _ in range(2):
        wanted, clocks = windows_of(job, trial)
        assert counted(job, ALL) == wanted
        closed = {of: n for of, n in wanted.items() if of[2] + 2 * HOUR <= clocks[of[0]]}
        assert counted(job, FINAL) == closed
        job.run()
    shutil.rmtree(directory)


@examples(3, 200)
@given(seed=st.integers(0, 1000), cuts=CUTS)
def test_with_all_of_them_it_is_as_if_windows_had_waited(tmp_path_factory, seed, cuts):
    directory = tmp_path_factory.mktemp("late")
    job, waits = begun(directory, seed, cuts, topology()), begun(directory, seed, cuts, topology(LONG), "waits")
    refused = ""
    try:
        let_in(job, directory / "repair", 0)
    except ConfigurationError as error:
        refused = error.what
    assert refused == "" or refused.startswith(REFUSED)
    for topic in (ALL, HOPS, "slides", "sessions", "firsts"):
        assert newest(job, topic) == newest(waits, topic), topic
    shutil.rmtree(directory)


def test_the_job_goes_on_as_what_it_is(tmp_path):
    """Its topology and its stores are what they were: the windows that were kept longer are dropped by its next run."""
    job = begun(tmp_path, 5, [10, 20, 30], topology())
    let_in(job, tmp_path / "repair", 0)
    repaired = CommitLog(job.warehouse, "job").head()
    before = {family for of in job.state().values() for family in of}
    planned = job.plan()
    assert planned.evolution is None or planned.evolution.changes == ()
    job.run()
    assert {family for of in job.state().values() for family in of} == before
    never = begun(tmp_path, 5, [10, 20, 30], topology(), "never")
    never.run()
    windows = [len(rows) for pipeline in (job, never) for rows in (pipeline.state()["0_0"]["by-hour.by-start"],)]
    assert windows[0] == windows[1]
    assert repaired.repaired_by.job == "fix"


def test_sessions_that_are_final_stay_as_they_are():
    builder = StreamsBuilder("job")
    grouped = builder.stream("events").group_by_key()
    sessions = grouped.windowed_by(SessionWindows.of_inactivity_gap_and_grace(timedelta(minutes=20), SHORT))
    sessions.count().suppress(UNBOUND).to_stream().to("sessions")
    hours = grouped.windowed_by(TimeWindows.of_size_and_grace(timedelta(hours=1), SHORT))
    hours.count(Materialized.as_("by-hour"), named=Named.as_("hours")).to_stream().to("hours")
    assert may_have_leeway(builder.build()) == {"hours": 2 * HOUR}
    assert sorted(may_have_leeway(topology()).values()) == [
        0,
        0,
        80 * HOUR // 60,
        2 * HOUR,
        2 * HOUR,
        3 * HOUR,
        4 * HOUR,
    ]


def test_final_results_that_meet_others_do_not_wait():
    """Else windows that nothing was late for would meet what has come meanwhile."""
    builder = StreamsBuilder("job")
    grouped = builder.stream("events").group_by_key()
    hours = grouped.windowed_by(TimeWindows.of_size_and_grace(timedelta(hours=1), SHORT))
    finals = hours.count(named=Named.as_("met")).suppress(UNBOUND).to_stream().map("key", {"n": "value"})
    finals.group_by("value.n").windowed_by(TimeWindows.of_size_and_grace(timedelta(hours=2), SHORT)).count(
        named=Named.as_("met-below")
    ).suppress(UNBOUND).to_stream().to("not-met")
    finals.join(builder.table("names"), {"n": "left.n"}).to("named")
    grouped.windowed_by(TimeWindows.of_size_and_grace(timedelta(hours=3), SHORT)).distinct().to("firsts")
    closed = grouped.windowed_by(TimeWindows.of_size_and_grace(timedelta(hours=5), SHORT))
    closed.emit_strategy(EmitStrategy.on_window_close()).count().to_stream().to("closed")  # gives them by itself
    finals_again = (
        hours.count(named=Named.as_("met-in-a-cogroup")).suppress(UNBOUND).to_stream().map("key", {"n": "value"})
    )
    others = builder.stream("others").group_by_key()
    both = finals_again.group_by_key().cogroup({"n": count()}).cogroup(others, {"m": count()})
    both.aggregate().to_stream().to("both")
    kept = may_have_leeway(builder.build())
    assert {"met", "met-in-a-cogroup"}.isdisjoint(kept)
    assert sorted(kept.values()) == [0, 3 * HOUR, 4 * HOUR]


def test_what_leads_to_a_circle_is_followed_around_it():
    """Final results that come back to a window by way of a topic that is read before it is written."""
    builder = StreamsBuilder("job")
    every = builder.stream("again").merge(builder.stream("events"))
    hours = every.group_by_key().windowed_by(TimeWindows.of_size_and_grace(timedelta(hours=1), SHORT))
    finals = hours.count(named=Named.as_("hours")).suppress(UNBOUND).to_stream().map("key", {"n": "value"})
    finals.filter(pc.field("value", "n") > 1).to("again")
    beside = builder.stream("others").group_by_key()
    beside.windowed_by(TimeWindows.of_size_and_grace(timedelta(hours=2), SHORT)).count().to_stream().to("beside")
    assert list(may_have_leeway(builder.build()).values()) == [3 * HOUR]


ITEM = pa.struct([("item", pa.string())])
BUSY, QUIET = "busy", "quiet"


def test_a_task_that_stood_still_has_let_go_of_windows_long_before(tmp_path):
    """A record is as late as its own task has it: its windows may be gone although others have come much further."""
    builder = StreamsBuilder("job")
    hours = TimeWindows.of_size_and_grace(timedelta(hours=1), SHORT)
    by_item = builder.stream("events").group_by(pc.field("value", "item"))
    by_item.windowed_by(hours).count(Materialized.as_("by-hour")).to_stream().to(ALL)
    job = Pipeline(tmp_path / "job", builder.build())
    times = [(QUIET, 4), (QUIET, 4), (QUIET, 9), (BUSY, 50), (BUSY, 100), (BUSY, 101), (QUIET, 4), (BUSY, 102)]
    job.archive("events", [("a", {"item": item}, hour * HOUR) for item, hour in times], (pa.string(), ITEM), 4)
    for cut in (20, 60):
        job.run(cut * HOUR)
    job.run()
    of = next(key for key in counted(job, ALL) if key[1:] == (QUIET, 4 * HOUR))
    assert counted(job, ALL)[of] == 2
    let_in(job, tmp_path / "repair", 100 * HOUR)
    assert counted(job, ALL)[of] == 3


def test_what_windows_behind_windows_turn_away_is_no_repair(tmp_path):
    builder = StreamsBuilder("job")
    hours = (
        builder.stream("events").group_by_key().windowed_by(TimeWindows.of_size_and_grace(timedelta(hours=1), SHORT))
    )
    by_item = hours.count().to_stream().map("key", {"item": pc.scalar("all")}).group_by(pc.field("value", "item"))
    by_item.windowed_by(TimeWindows.of_size_and_grace(timedelta(hours=3), SHORT)).count().to_stream().to(ALL)
    job = Pipeline(tmp_path / "job", builder.build())
    for events in ([("a", 20)], [("c", 90)], [("a", 15)]):  # the task of a stands at 20 hours
        job.archive("events", [(key, {"item": key}, hour * HOUR) for key, hour in events], (pa.string(), ITEM), 4)
        job.run()
    with pytest.raises(ConfigurationError, match="windows were still closed for records that came late: of"):
        let_in(job, tmp_path / "repair", 25 * HOUR)


def test_what_is_let_go_comes_after_all_that_windows_gave_before(tmp_path):
    """One task's results go on when leeway ends, and another's at its last record: windows behind both take all."""
    builder = StreamsBuilder("job")
    hours = TimeWindows.of_size_and_grace(timedelta(hours=1), SHORT)
    finals = builder.stream("events").group_by_key().windowed_by(hours).count().suppress(UNBOUND).to_stream()
    by_item = finals.map("key", {"item": pc.scalar("all")}).group_by(pc.field("value", "item"))
    by_item.windowed_by(hours).count().to_stream().to(ALL)
    job = Pipeline(tmp_path / "job", builder.build())
    events = [("a", 20), ("a", 11), ("a", 22), ("a", 30), ("a", 41), *[("c", hour) for hour in range(20, 41)]]
    job.archive("events", [(key, {"item": key}, hour * HOUR) for key, hour in events], (pa.string(), ITEM), 4)
    job.run()
    before = counted(job, ALL)
    let_in(job, tmp_path / "repair", 0)
    of = next(key for key in before if key[2] == 20 * HOUR)
    assert before[of] == 2
    were_late = {11: 1, 22: 2, 30: 2}
    assert counted(job, ALL) == before | {(*of[:2], hour * HOUR): n for hour, n in were_late.items()}


def test_an_interval_without_late_records_is_refused(tmp_path):
    job = Pipeline(tmp_path, topology())
    job.archive("events", [("a", {"n": n}, n * HOUR) for n in range(9)], (pa.string(), VALUE), 2)
    job.run(5 * HOUR)
    with pytest.raises(ConfigurationError, match="no record of this interval came too late for a window"):
        late_interval(job.warehouse, "job", job.topology, 0, LAST_TIME_MS)


def test_it_is_let_in_where_it_lies_whatever_it_is_called(tmp_path):
    """What decides is in the plan: whoever goes on with the run does what it was told to."""
    job = begun(tmp_path, 3, [20], topology())
    nodes = tuple(sorted(may_have_leeway(job.topology)))
    planned = job.plan(30 * HOUR, leeway=Leeway(nodes=nodes, kept_ms=12 * HOUR, accepted_ms=12 * HOUR))
    assert type(planned).decode(planned.encode(), file="plan") == planned
    staged = job.replay(planned)
    late = sum(metrics.accounts.get("late", 0) for task in staged.tasks for metrics in task.metrics.values())
    own = sum(
        metrics.accounts.get("late", 0)
        for task in job.replay(planned.model_copy(update={"leeway": None})).tasks
        for metrics in task.metrics.values()
    )
    assert late == 0 < own
