"""A fork goes on from a commit of another job, shares its state, and neither ever makes the other unrestorable."""

from __future__ import annotations

import shutil
from collections import Counter

import pytest

from statelib.commits import (
    CommitLog,
    Retention,
    check_restorable,
    commit,
    maintain,
    plan,
    preview_rollback,
    publish,
    published_through,
    record_audit,
    rollback,
    stage,
    take_hold,
    verify,
)
from statelib.commits.archives import open_archive, open_archive_if_present
from statelib.commits.forks import files_held_by_forks, forked_from, forks_of
from statelib.commits.layout import JobLayout
from statelib.commits.publication.lost_plans import ensure_plan
from statelib.commits.versions.drop_fork import drop_fork
from statelib.commits.versions.fork import fork
from statelib.commits.versions.sink_history import Segment, sink_history
from statelib.documents.plans import ForkedFrom
from statelib.errors.fault_points import observed
from statelib.errors.kinds import ConfigurationError, CorruptedDataError, FencedError
from statelib.storage import Storage
from statelib.task import describe_topology
from tests.commits import toy
from tests.commits.toy import DAY
from tests.effort import every_other

FORK = ["fork.before-reference", "fork.referenced", "fork.before-plan", "fork.planned", "fork.before-create",
        "fork.created"]  # fmt: skip
DROP = ["drop.before-hold", "drop.held", "drop.before-record", "drop.recorded", "drop.before-delete", "drop.topic-gone",
        "drop.folder-gone", "drop.reference-gone", "drop.released"]  # fmt: skip

pytestmark = pytest.mark.thorough


class Killed(BaseException):
    """Stands for a kill: no handler of the code's catches it."""


def at(wanted, do):
    """An observer that does something when it comes to a step for the first time."""
    seen = []

    def observe(name):
        if name == wanted and not seen:
            seen.append(name)
            do()

    return observed(observe)


def kill():
    raise Killed


@pytest.fixture
def run(warehouse, scratch):
    """Runs one slice of the job, or of its fork."""

    def run_one(day, name=None, sink="counts"):
        job = toy.job(sink=sink) if name is None else toy.job(sink=sink).as_fork(name)
        planned = plan(
            job,
            warehouse,
            now_ms=1,
            until_ms=day * DAY,
            describe=lambda archives: describe_topology(
                job.topology, {topic: archive.reader(0, 0, 0) for topic, archive in archives.items()}
            ),
        )
        stage(warehouse, planned, toy.replay(warehouse, planned, scratch))
        record_audit(warehouse, planned, toy.passed(planned))
        made = commit(warehouse, planned, now_ms=2)
        publish(warehouse, planned.job)
        return made

    return run_one


@pytest.fixture
def four_commits(warehouse, run):
    toy.archive_events(warehouse, 0, days=8)
    return [run(day) for day in range(1, 5)]


def state_of(warehouse, made, scratch, numbers=iter(range(1000))):  # noqa: B008 - a folder for each look
    return toy.counts_as_of(warehouse, made, scratch / f"look{next(numbers)}")


def state_files(warehouse, job="counting"):
    return {entry.path for entry in warehouse.list(f"jobs/{job}/state")}


def records(warehouse, job, n=None, sink="counts"):
    """What is in a sink at a commit, by partition."""
    found = {}
    for part in sink_history(warehouse, job, n).get(sink, ()):
        reader = open_archive(warehouse, part.topic).reader(part.partition, part.first_offset, part.end_offset)
        found.setdefault(part.partition, []).extend(reader.read_all().drop_columns("offset").to_pylist())
    return found


def test_it_has_the_state_and_no_file_of_its_own(warehouse, four_commits, scratch):
    before = warehouse.list()
    made = fork(warehouse, "counting", "longer", 2, now_ms=77)
    assert (made.job, made.commit, made.forked_from) == ("longer", 1, ForkedFrom(job="counting", commit=2))
    assert (made.created_at_ms, made.instead_of_replay) == (77, "forked from counting@2")
    assert made.state_files() == four_commits[1].state_files()
    assert state_of(warehouse, made, scratch) == state_of(warehouse, four_commits[1], scratch)
    assert made.source_offsets() == four_commits[1].source_offsets()
    assert made.sink_offsets() == {}
    assert [entry for entry in warehouse.list() if entry.path.startswith(("topics/", "jobs/counting/state/"))] == [
        entry for entry in before if entry.path.startswith(("topics/", "jobs/counting/state/"))
    ]
    assert not state_files(warehouse, "longer")
    assert forks_of(warehouse, "counting") == ("longer",)
    assert forked_from(warehouse, "longer") == ForkedFrom(job="counting", commit=2)
    assert forked_from(warehouse, "counting") is None


def test_a_repeat_changes_nothing(warehouse, four_commits, run):
    made = fork(warehouse, "counting", "longer", now_ms=77)
    run(5)
    before = warehouse.list()
    assert fork(warehouse, "counting", "longer", now_ms=78) == made  # also where the job has gone on
    assert fork(warehouse, "counting", "longer", 4, now_ms=78) == made
    assert warehouse.list() == before
    assert publish(warehouse, "longer") == ()
    assert published_through(warehouse, "longer") == 1


def test_nothing_of_the_state_is_read_or_written(warehouse, four_commits, monkeypatch):
    """Only listed: what a fork takes does not grow with the state."""
    asked = Counter()
    for verb in ("get", "put", "put_if_absent", "size", "list", "delete", "copy", "upload", "download", "digest",
                 "open_input", "open_output", "get_range"):  # fmt: skip
        real = getattr(Storage, verb)

        def told(self, path, *arguments, _real=real, _verb=verb, **options):
            asked[_verb, "/state/" in str(path)] += 1
            return _real(self, path, *arguments, **options)

        monkeypatch.setattr(Storage, verb, told)
    fork(warehouse, "counting", "longer", now_ms=77)
    tasks = len(four_commits[-1].tasks)
    assert {verb for verb, of_state in asked if of_state} == {"list"}
    assert asked["list", True] == 2 * tasks  # before the reference, and after it
    assert sum(asked.values()) < 60
    first = sum(asked.values())
    asked.clear()
    for number in range(5):  # more files of state
        warehouse.put(f"jobs/counting/state/0_0/{number:064x}.00000001-1", b"state")
    written = asked["put", True]
    asked.clear()
    fork(warehouse, "counting", "another", now_ms=77)
    assert written == 5
    assert sum(asked.values()) == first


@pytest.mark.parametrize(("arguments", "what", "step"), [
    (("counting", "new", 9), "no such commit: the job has the commits 1 to 4", "hindstream state counting"),
    (("nobody", "new"), "the job has no commits", "hindstream jobs"),
    (("counting", "counting"), "there is a job of this name already", "choose another name"),
    (("counting", "a/b"), "this cannot be a job's name", "use letters"),
    (("counting", "fork", 2), "a fork of this name already, of counting at commit 3", "hindstream drop fork"),
])  # fmt: skip
def test_what_cannot_be_forked(warehouse, four_commits, arguments, what, step):
    fork(warehouse, "counting", "fork", 3, now_ms=1)
    before = warehouse.list()
    with pytest.raises(ConfigurationError, match=what) as refused:
        fork(warehouse, *arguments, now_ms=77)
    assert step in refused.value.next_step
    assert warehouse.list() == before


def test_an_expired_commit_is_refused(warehouse, four_commits):
    maintain(warehouse, "counting", Retention(2), now_ms=0)
    with pytest.raises(ConfigurationError, match="the state of commit 2 has expired"):
        fork(warehouse, "counting", "new", 2, now_ms=77)
    assert forks_of(warehouse, "counting") == ()


def test_a_commit_that_was_rolled_back_is_refused(warehouse, four_commits):
    rollback(warehouse, "counting", 2, now_ms=5)
    with pytest.raises(ConfigurationError, match="rolled back by commit 5"):
        fork(warehouse, "counting", "new", 3, now_ms=77)
    assert fork(warehouse, "counting", "new", 5, now_ms=77).tasks.keys() == four_commits[1].tasks.keys()


def test_a_lost_file_of_state_is_told(warehouse, four_commits):
    lost = min(four_commits[3].state_files())
    warehouse.delete(lost)
    with pytest.raises(CorruptedDataError, match="a file of the state of commit 4 is missing"):
        fork(warehouse, "counting", "new", now_ms=77)
    assert forks_of(warehouse, "counting") == ()


def test_a_name_that_others_use_is_refused(warehouse, four_commits, scratch):
    plan(toy.job("begun", sink="others"), warehouse, now_ms=1)
    with pytest.raises(ConfigurationError, match="a run of a job of this name is open"):
        fork(warehouse, "counting", "begun", now_ms=77)
    four = toy.job("four", sink="counts.new")
    planned = plan(four, warehouse, now_ms=1)
    stage(warehouse, planned, toy.replay(warehouse, planned, scratch))
    record_audit(warehouse, planned, toy.passed(planned))
    commit(warehouse, planned, now_ms=2)
    publish(warehouse, "four")
    with pytest.raises(ConfigurationError, match="its archive already holds records"):
        fork(warehouse, "counting", "new", now_ms=77)


def test_a_commit_whose_topology_nobody_described_is_refused(warehouse, run_slice):
    toy.archive_events(warehouse, 0)
    run_slice()
    with pytest.raises(ConfigurationError, match="nobody has written down which topology"):
        fork(warehouse, "counting", "new", now_ms=77)


def test_a_run_of_that_name_was_quicker(warehouse, four_commits, scratch):
    def run_the_other():
        other = toy.job("new", sink="others")
        planned = plan(other, warehouse, now_ms=1)
        stage(warehouse, planned, toy.replay(warehouse, planned, scratch))
        record_audit(warehouse, planned, toy.passed(planned))
        commit(warehouse, planned, now_ms=2)

    with at("fork.before-create", run_the_other), pytest.raises(FencedError):
        fork(warehouse, "counting", "new", now_ms=77)
    assert forks_of(warehouse, "counting") == ()
    with pytest.raises(ConfigurationError, match="is no fork"):
        drop_fork(warehouse, "new", now_ms=78)


def test_replayed_on_it_comes_to_what_the_job_has(warehouse, four_commits, run, scratch):
    ends = [run(day) for day in (5, 6)]
    for n in (1, 2, 3, 4):
        fork(warehouse, "counting", f"f{n}", n, now_ms=77)
        assert sink_history(warehouse, f"f{n}") == sink_history(warehouse, "counting", n)
        for day in range(n + 1, 7):
            made = run(day, f"f{n}")
            assert records(warehouse, f"f{n}") == records(warehouse, "counting", day)
        assert state_of(warehouse, made, scratch) == state_of(warehouse, ends[-1], scratch)
        assert made.source_offsets() == ends[-1].source_offsets()
        archive = open_archive(warehouse, f"counts.f{n}")
        assert all(first == 0 for first, _ in archive.spans().values())
        assert archive.last_transaction("counting") is None
        assert open_archive(warehouse, "counts").last_transaction(f"f{n}") is None


def test_segments_are_those_of_the_job_up_to_the_fork(warehouse, four_commits, run):
    fork(warehouse, "counting", "one", 2, now_ms=77)
    run(3, "one")
    fork(warehouse, "one", "two", now_ms=77)
    run(4, "two")
    history = sink_history(warehouse, "two")["counts"]
    assert [part.topic for part in history] == 2 * ["counts", "counts.one", "counts.two"]
    assert [part.partition for part in history] == [0, 0, 0, 1, 1, 1]
    before = sink_history(warehouse, "counting", 2)["counts"]
    assert {Segment(part.topic, part.partition, 0, part.end_offset) for part in history} > set(before)
    assert records(warehouse, "two") == records(warehouse, "counting", 4)
    assert set(sink_history(warehouse, "two")) == set(sink_history(warehouse, "counting"))


def test_a_rollback_behind_the_fork_takes_its_history(warehouse, four_commits, run, scratch):
    made = fork(warehouse, "counting", "new", 3, now_ms=77)
    rollback(warehouse, "counting", 2, now_ms=78)
    run(4)
    with pytest.raises(ConfigurationError, match="before the fork are not to be had: this commit has been rolled back"):
        sink_history(warehouse, "new")
    maintain(warehouse, "counting", Retention(1), now_ms=0)
    assert state_of(warehouse, made, scratch) == state_of(warehouse, four_commits[2], scratch)
    run(4, "new")
    assert not verify(warehouse, "new", everything=True).damages


def test_a_rollback_says_which_forks_lose_their_beginning(warehouse, four_commits, run):
    def told(to):
        return preview_rollback(warehouse, "counting", to).forks

    for base, new, n in (("counting", "at-2", 2), ("counting", "at-3", 3), ("at-3", "on-it", 1)):
        fork(warehouse, base, new, n, now_ms=0)
    assert (told(1), told(2), told(3)) == (("at-2", "at-3", "on-it"), ("at-3", "on-it"), ())
    rollback(warehouse, "counting", 2, now_ms=0)
    fork(warehouse, "counting", "at-5", 5, now_ms=0)
    assert told(1) == ("at-2", "at-5")  # what was lost before is not told again
    rollback(warehouse, "counting", 1, now_ms=0)
    for new in ("at-2", "at-3", "on-it", "at-5"):
        with pytest.raises(ConfigurationError, match="records before the fork"):
            sink_history(warehouse, new)


def test_a_fork_is_rolled_back_to_its_beginning(warehouse, four_commits, run, scratch):
    made = fork(warehouse, "counting", "new", 2, now_ms=77)
    run(3, "new")
    run(4, "new")
    assert preview_rollback(warehouse, "new", 1).commits == (2, 3)
    back = rollback(warehouse, "new", 1, now_ms=78)
    assert (back.forked_from, back.rolled_back_to, back.sink_offsets()) == (None, 1, {})
    assert open_archive(warehouse, "counts.new").rows == 0
    assert published_through(warehouse, "new") == 4
    assert state_of(warehouse, back, scratch) == state_of(warehouse, made, scratch)
    run(3, "new")
    assert records(warehouse, "new") == records(warehouse, "counting", 3)
    assert forked_from(warehouse, "new") == ForkedFrom(job="counting", commit=2)


def test_a_lost_plan_of_a_fork_is_made_anew(warehouse, four_commits, run):
    made = fork(warehouse, "counting", "new", 2, now_ms=77)
    warehouse.delete(JobLayout("new").plan(made.run_id))
    assert ensure_plan(warehouse, made)
    run(3, "new")
    assert records(warehouse, "new") == records(warehouse, "counting", 3)


def test_the_job_keeps_what_its_forks_need(warehouse, four_commits, run, scratch):
    made = fork(warehouse, "counting", "one", 2, now_ms=77)
    second = fork(warehouse, "one", "two", now_ms=77)
    run(5)
    maintain(warehouse, "counting", Retention(1), now_ms=0)
    head = CommitLog(warehouse, "counting").head()
    assert state_files(warehouse) == set(head.state_files()) | set(made.state_files())
    for of in (made, second):
        assert state_of(warehouse, of, scratch) == state_of(warehouse, second, scratch)
    assert not verify(warehouse, "two", everything=True).damages
    newest = run(3, "one")
    maintain(warehouse, "one", Retention(1), now_ms=0)
    maintain(warehouse, "counting", Retention(1), now_ms=0)
    check_restorable(warehouse, "one", 2)
    assert state_of(warehouse, newest, scratch)
    assert set(second.state_files()) <= state_files(warehouse)  # for the fork of the fork
    drop_fork(warehouse, "two", now_ms=79)
    assert state_files(warehouse) | state_files(warehouse, "one") == {*head.state_files(), *newest.state_files()}
    assert state_of(warehouse, newest, scratch)


def test_dropped_nothing_of_it_is_left(warehouse, four_commits, run, scratch):
    maintain(warehouse, "counting", Retention(4), now_ms=0)
    before = [(entry.path, entry.size_bytes) for entry in warehouse.list()]
    fork(warehouse, "counting", "new", 2, now_ms=77)
    run(3, "new")
    run(4, "new")
    maintain(warehouse, "counting", Retention(4), now_ms=0)
    done = drop_fork(warehouse, "new", now_ms=78)
    assert (done.forked_from, done.topics) == ("counting", ("counts.new",))
    after = [(entry.path, entry.size_bytes) for entry in warehouse.list()]
    changed = {path for path, _ in {*before} ^ {*after}}
    assert changed <= {"jobs/counting/maintenance.json"}
    assert "jobs/new" not in warehouse.folders("jobs")
    with pytest.raises(ConfigurationError, match="there is no such fork"):
        drop_fork(warehouse, "new", now_ms=79)
    assert fork(warehouse, "counting", "new", 3, now_ms=80).commit == 1  # the name is free again
    shutil.rmtree(scratch / "new")  # the toy's working copies
    run(4, "new")
    assert records(warehouse, "new") == records(warehouse, "counting", 4)


def test_what_is_not_dropped(warehouse, four_commits, run):
    with pytest.raises(ConfigurationError, match="the job is no fork"):
        drop_fork(warehouse, "counting", now_ms=78)
    fork(warehouse, "counting", "one", 2, now_ms=77)
    fork(warehouse, "one", "two", now_ms=77)
    with pytest.raises(ConfigurationError, match="other forks stand on this one: two"):
        drop_fork(warehouse, "one", now_ms=78)
    plan(toy.job().as_fork("two"), warehouse, now_ms=1, describe=_described)
    with pytest.raises(ConfigurationError, match="a run is open"):
        drop_fork(warehouse, "two", now_ms=78)
    run(3, "one")  # a refused drop leaves no hold
    drop_fork(warehouse, "two", now_ms=78, supersede=True)
    take_hold(warehouse, "one", "somebody", reason="migration", now_ms=1)
    with pytest.raises(ConfigurationError, match="the job is held by somebody: migration"):
        drop_fork(warehouse, "one", now_ms=78)


def _described(archives):
    return describe_topology(
        toy.job().as_fork("two").topology, {topic: archive.reader(0, 0, 0) for topic, archive in archives.items()}
    )


def test_a_fork_that_was_not_made_is_dropped(warehouse, four_commits):
    maintain(warehouse, "counting", Retention(4), now_ms=0)
    before = warehouse.list()
    with at("fork.planned", kill), pytest.raises(Killed):
        fork(warehouse, "counting", "new", 2, now_ms=77)
    assert files_held_by_forks(warehouse, "counting") == set(four_commits[1].state_files())
    drop_fork(warehouse, "new", now_ms=78)
    assert [entry.path for entry in warehouse.list()] == [entry.path for entry in before]
    assert fork(warehouse, "counting", "new", 3, now_ms=79).forked_from == ForkedFrom(job="counting", commit=3)


@pytest.mark.parametrize("name", every_other(FORK))
def test_killed_at_a_step_it_goes_on(warehouse, four_commits, run, name):
    with at(name, kill), pytest.raises(Killed):
        fork(warehouse, "counting", "new", 2, now_ms=77)
    run(5)
    maintain(warehouse, "counting", Retention(4), now_ms=0)
    if name != FORK[0]:  # else nobody knows that it was 2
        assert fork(warehouse, "counting", "new", now_ms=78).forked_from == ForkedFrom(job="counting", commit=2)
    made = fork(warehouse, "counting", "new", 2, now_ms=79)
    assert made.forked_from == ForkedFrom(job="counting", commit=2)
    run(3, "new")
    assert records(warehouse, "new") == records(warehouse, "counting", 3)


@pytest.mark.parametrize("name", every_other(DROP, first=1))
def test_a_drop_that_was_killed_goes_on(warehouse, four_commits, run, scratch, name):
    maintain(warehouse, "counting", Retention(1), now_ms=0)
    before = [(entry.path, entry.size_bytes) for entry in warehouse.list()]
    fork(warehouse, "counting", "new", 4, now_ms=77)
    run(5, "new")
    with at(name, kill), pytest.raises(Killed):
        drop_fork(warehouse, "new", now_ms=78)
    maintain(warehouse, "counting", Retention(1), now_ms=0)  # beside the half of it
    if name not in DROP[:3]:
        with pytest.raises(ConfigurationError, match=r"is being dropped|job is held by drop|no longer in"):
            fork(warehouse, "counting", "new", now_ms=79)
    drop_fork(warehouse, "new", now_ms=79)
    after = [(entry.path, entry.size_bytes) for entry in warehouse.list()]
    assert {path for path, _ in {*before} ^ {*after}} <= {"jobs/counting/maintenance.json"}
    maintain(warehouse, "counting", Retention(1), now_ms=0)
    assert state_files(warehouse) == set(CommitLog(warehouse, "counting").head().state_files())


MAINTAIN = ["maintain.before-expire", "maintain.expired", "maintain.before-delete", "maintain.deleted"]


def restorable_or_refused(do, warehouse, scratch):
    """What was forked has its whole state; None: it was refused."""
    try:
        made = do()
    except ConfigurationError as refused:
        told = str(refused)
    else:
        assert state_of(warehouse, made, scratch)
        return made
    assert "the state of commit" in told
    assert "has expired" in told
    return None


@pytest.mark.parametrize("name", every_other(MAINTAIN))
def test_forked_within_maintenance(warehouse, four_commits, scratch, name):
    made = []

    def fork_it():
        made.append(restorable_or_refused(lambda: fork(warehouse, "counting", "new", 2, now_ms=77), warehouse, scratch))

    with at(name, fork_it):
        maintain(warehouse, "counting", Retention(1), now_ms=0)
    assert made
    assert (made[0] is not None) == (name == "maintain.before-expire")
    if made[0] is not None:
        assert set(made[0].state_files()) <= state_files(warehouse)


@pytest.mark.parametrize("name", every_other(FORK, first=1))
def test_maintained_within_a_fork(warehouse, four_commits, scratch, name):
    with at(name, lambda: maintain(warehouse, "counting", Retention(1), now_ms=0)):
        made = restorable_or_refused(lambda: fork(warehouse, "counting", "new", 2, now_ms=77), warehouse, scratch)
    assert (made is None) == (name in FORK[:2])  # before it has looked
    if made is not None:
        maintain(warehouse, "counting", Retention(1), now_ms=0)
        assert set(made.state_files()) <= state_files(warehouse)


@pytest.mark.parametrize("name", every_other(FORK))
@pytest.mark.parametrize("first", ["counting", "one"])
def test_both_maintained_within_a_fork_of_a_fork(warehouse, four_commits, run, scratch, name, first):
    fork(warehouse, "counting", "one", 2, now_ms=77)
    run(3, "one")
    run(4, "one")

    def maintain_both():
        for job in (first, "one" if first == "counting" else "counting"):
            maintain(warehouse, job, Retention(1), now_ms=0)

    with at(name, maintain_both):
        made = restorable_or_refused(lambda: fork(warehouse, "one", "two", 1, now_ms=77), warehouse, scratch)
    assert (made is None) == (name in FORK[:2])
    maintain_both()
    for job in ("counting", "one", *(() if made is None else ("two",))):
        assert not verify(warehouse, job, everything=True).damages


@pytest.mark.parametrize("name", every_other(DROP, first=1))
def test_forked_within_a_drop(warehouse, four_commits, run, scratch, name):
    fork(warehouse, "counting", "one", 2, now_ms=77)
    run(3, "one")
    made = []

    def fork_it():
        try:
            made.append(fork(warehouse, "one", "two", 1, now_ms=78))
        except (ConfigurationError, CorruptedDataError):
            made.append(None)

    with at(name, fork_it):
        try:
            drop_fork(warehouse, "one", now_ms=79)
            told = None
        except ConfigurationError as refused:
            told = str(refused)
    assert made
    assert (told is None) == (made[0] is None)
    assert told is None or "other forks stand on this one: two" in told
    maintain(warehouse, "counting", Retention(1), now_ms=0)
    if made[0] is not None:
        assert state_of(warehouse, made[0], scratch)
        drop_fork(warehouse, "two", now_ms=80)
        drop_fork(warehouse, "one", now_ms=80)
    maintain(warehouse, "counting", Retention(1), now_ms=0)
    assert state_files(warehouse) == set(CommitLog(warehouse, "counting").head().state_files())


@pytest.mark.parametrize("name", every_other(FORK))
def test_dropped_within_a_fork_of_it(warehouse, four_commits, scratch, name):
    fork(warehouse, "counting", "one", 2, now_ms=77)
    refused = []

    def drop_it():
        try:
            drop_fork(warehouse, "one", now_ms=79)
        except ConfigurationError as error:
            refused.append(error)

    with at(name, drop_it):
        try:
            made = fork(warehouse, "one", "two", 1, now_ms=78)
        except (ConfigurationError, CorruptedDataError):
            made = None
    assert (made is None) == (not refused) == (name == "fork.before-reference")
    if made is not None:
        maintain(warehouse, "counting", Retention(1), now_ms=0)
        assert state_of(warehouse, made, scratch)
    assert open_archive_if_present(warehouse, "counts.one") is None


PUBLISH = ["publish.before-create-archive", "publish.before-commit", "publish.committed"]


@pytest.mark.parametrize("name", every_other(PUBLISH, first=1))
def test_dropped_within_its_publication(warehouse, four_commits, run, scratch, name):
    """What the publication has made of the sink's archive meanwhile goes too."""
    maintain(warehouse, "counting", Retention(1), now_ms=0)
    before = {entry.path for entry in warehouse.list()}
    fork(warehouse, "counting", "new", 4, now_ms=77)
    dropped = []
    gone = pytest.raises(ConfigurationError, match="the fork was dropped meanwhile")
    with at(name, lambda: dropped.append(drop_fork(warehouse, "new", now_ms=79))), gone:
        run(5, "new")
    assert dropped
    assert {entry.path for entry in warehouse.list()} ^ before <= {"jobs/counting/maintenance.json"}


@pytest.mark.parametrize("name", every_other([*MAINTAIN, "maintain.noted"]))
def test_dropped_within_its_maintenance(warehouse, four_commits, run, scratch, name):
    maintain(warehouse, "counting", Retention(1), now_ms=0)
    before = {entry.path for entry in warehouse.list()}
    fork(warehouse, "counting", "new", 4, now_ms=77)
    run(5, "new")
    run(6, "new")
    dropped = []
    gone = pytest.raises(ConfigurationError, match="the fork was dropped meanwhile")
    with at(name, lambda: dropped.append(drop_fork(warehouse, "new", now_ms=79))), gone:
        maintain(warehouse, "new", Retention(1), now_ms=0)
    assert dropped
    assert {entry.path for entry in warehouse.list()} ^ before <= {"jobs/counting/maintenance.json"}
