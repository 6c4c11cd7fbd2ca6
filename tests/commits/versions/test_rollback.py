"""An earlier commit becomes the head again; readers see no more than it; what follows is as if nothing had been."""

from __future__ import annotations

import pytest

from statelib.commits import (
    CommitLog,
    Retention,
    Runs,
    commit,
    maintain,
    plan,
    preview_rollback,
    publish,
    published_through,
    record_audit,
    rollback,
    stage,
)
from statelib.commits.archives import open_archive
from statelib.commits.versions.rollback import TakenBack
from statelib.documents.upkeep import ROLLBACKS, Rollback
from statelib.errors.fault_points import observed
from statelib.errors.kinds import ConfigurationError, CorruptedDataError, FencedError, InputError
from tests.commits import toy
from tests.commits.toy import DAY

pytestmark = pytest.mark.thorough


@pytest.fixture
def four_commits(warehouse, run_slice):
    toy.archive_events(warehouse, 0, days=6)
    return [run_slice(until_ms=day * DAY) for day in range(1, 5)]


def rows_of(warehouse, topic="counts", version=None):
    archive = open_archive(warehouse, topic, version)
    return [archive.reader(p).read_all().to_pylist() for p in range(archive.partitions)]


def state_of(warehouse, made, scratch):
    return toy.counts_as_of(warehouse, made, scratch / "look"), [task.position for task in made.tasks.values()]


def sink_paths(commits):
    return {f"topics/counts/{sink.file.path}" for made in commits for sink in made.sinks}


def stored(warehouse):
    return {entry.path for entry in warehouse.list("topics/counts") if entry.path.endswith(".parquet")} - {
        entry.path for entry in warehouse.list("topics/counts/_delta_log")
    }


def files_of(warehouse, *commits):
    return {
        f"jobs/counting/state/{task_id}/{file.stored_name}"
        for made in commits
        for task_id, task in made.tasks.items()
        for file in task.state.files
    }


def state_files(warehouse):
    return {entry.path for entry in warehouse.list("jobs/counting/state")}


def test_what_would_go(warehouse, four_commits):
    before = warehouse.list()
    preview = preview_rollback(warehouse, "counting", 2)
    gone = [sink.file for made in four_commits[2:] for sink in made.sinks]
    rows = sum(file.rows for file in gone)
    assert (preview.to, preview.head, preview.commits, preview.open_run) == (2, 4, (3, 4), None)
    assert preview.topics == {"counts": TakenBack(len(gone), rows)}
    assert preview.records == rows
    assert warehouse.list() == before


def test_the_earlier_commit_is_the_head(warehouse, four_commits, scratch):
    version = open_archive(warehouse, "counts").version
    rows = rows_of(warehouse)
    made = rollback(warehouse, "counting", 2, now_ms=77)
    assert CommitLog(warehouse, "counting").head() == made
    assert (made.commit, made.run_id, made.rolled_back_to, made.sinks) == (5, "00000005-1", 2, ())
    assert state_of(warehouse, made, scratch) == state_of(warehouse, four_commits[1], scratch)
    archive = open_archive(warehouse, "counts")
    assert archive.version == version + 1  # in one step
    assert archive.last_transaction("counting") == archive.last_transaction(ROLLBACKS) == 5
    ends = {f"counts/{p}": end for p, end in archive.end_offsets().items()}
    assert ends == {k: v for task in four_commits[1].tasks.values() for k, v in task.position.sink_offsets.items()}
    assert published_through(warehouse, "counting") == 5
    assert rows_of(warehouse, version=version) == rows  # who reads the version before goes on reading it
    assert sink_paths(four_commits) <= stored(warehouse)


def test_a_repeat_changes_nothing(warehouse, four_commits):
    made = rollback(warehouse, "counting", 2, now_ms=77)
    before = warehouse.list()
    assert rollback(warehouse, "counting", 2, now_ms=78) == made
    assert warehouse.list() == before
    assert publish(warehouse, "counting") == ()


@pytest.mark.parametrize("to", [1, 3])
def test_replayed_again_all_is_as_if_nothing_had_been(warehouse, four_commits, run_slice, scratch, to):
    rows, state = rows_of(warehouse), state_of(warehouse, four_commits[-1], scratch)
    rollback(warehouse, "counting", to, now_ms=77)
    assert sum(map(len, rows_of(warehouse))) < sum(map(len, rows))
    again = [run_slice(until_ms=day * DAY) for day in range(to + 1, 5)]
    assert [made.commit for made in again] == list(range(6, 6 + len(again)))
    assert rows_of(warehouse) == rows
    counts, positions = state_of(warehouse, again[-1], scratch)
    assert (counts, [p.model_copy(update={"commit": 4}) for p in positions]) == state
    assert [sink.file.sha256 for made in again for sink in made.sinks] == [
        sink.file.sha256 for made in four_commits[to:] for sink in made.sinks
    ]


def test_other_slices_give_the_same(warehouse, four_commits, run_slice, scratch):
    rows, (counts, _) = rows_of(warehouse), state_of(warehouse, four_commits[-1], scratch)
    rollback(warehouse, "counting", 1, now_ms=77)
    made = run_slice(until_ms=4 * DAY)
    assert rows_of(warehouse) == rows
    assert state_of(warehouse, made, scratch)[0] == counts


def test_back_and_further_back(warehouse, four_commits, run_slice, scratch):
    rollback(warehouse, "counting", 3, now_ms=77)
    run_slice(until_ms=4 * DAY)
    preview = preview_rollback(warehouse, "counting", 1)
    assert preview.commits == (2, 3, 6)
    made = rollback(warehouse, "counting", 1, now_ms=78)
    assert made.commit == 7
    assert state_of(warehouse, made, scratch) == state_of(warehouse, four_commits[0], scratch)
    assert sum(map(len, rows_of(warehouse))) == sum(sink.file.rows for sink in four_commits[0].sinks)


def test_to_a_rollback(warehouse, four_commits, run_slice, scratch):
    fifth = rollback(warehouse, "counting", 2, now_ms=77)
    run_slice(until_ms=5 * DAY)
    made = rollback(warehouse, "counting", 5, now_ms=78)
    assert made.rolled_back_to == 5
    assert state_of(warehouse, made, scratch) == state_of(warehouse, fifth, scratch)
    assert run_slice(until_ms=3 * DAY).commit == 8


def test_impossible_targets(warehouse, four_commits):
    for to, why in [(0, "commits 1 to 4"), (5, "commits 1 to 4"), (4, "is the head already")]:
        with pytest.raises(ConfigurationError, match=why):
            rollback(warehouse, "counting", to, now_ms=77)
    rollback(warehouse, "counting", 2, now_ms=77)
    with pytest.raises(ConfigurationError, match=r"taken back, by commit 5.*Next: replay"):
        rollback(warehouse, "counting", 3, now_ms=77)
    with pytest.raises(ConfigurationError, match="the job has no commits"):
        preview_rollback(warehouse, "other", 1)
    assert CommitLog(warehouse, "counting").head_number() == 5


def test_an_expired_target(warehouse, four_commits):
    maintain(warehouse, "counting", Retention(2), now_ms=0)
    with pytest.raises(ConfigurationError, match=r"state of commit 2 has expired.*commit 3 or a later one"):
        rollback(warehouse, "counting", 2, now_ms=77)
    assert rollback(warehouse, "counting", 3, now_ms=77).commit == 5


def test_a_target_that_has_lost_a_file(warehouse, four_commits):
    file = four_commits[1].tasks["0_1"].state.files[0]
    warehouse.delete(f"jobs/counting/state/0_1/{file.stored_name}")
    with pytest.raises(CorruptedDataError, match=rf"state of commit 2 is missing .*{file.stored_name}"):
        rollback(warehouse, "counting", 2, now_ms=77)
    assert CommitLog(warehouse, "counting").head() == four_commits[-1]


def test_an_open_run_has_to_be_given_up_by_name(warehouse, four_commits, scratch):
    planned = plan(toy.job(), warehouse, now_ms=1, until_ms=5 * DAY)
    stage(warehouse, planned, toy.replay(warehouse, planned, scratch))
    record_audit(warehouse, planned, toy.passed(planned))
    assert preview_rollback(warehouse, "counting", 2).open_run == planned.run_id
    with pytest.raises(ConfigurationError, match=rf"a run is open.*{planned.run_id}.*--supersede"):
        rollback(warehouse, "counting", 2, now_ms=77)
    made = rollback(warehouse, "counting", 2, now_ms=77, supersede=True)
    assert made.run_id == "00000005-2"
    with pytest.raises(FencedError, match="run 00000005-2 has made commit 5"):
        commit(warehouse, planned, now_ms=2)


def test_a_run_that_is_quicker_wins(warehouse, four_commits, scratch):
    planned = plan(toy.job(), warehouse, now_ms=1, until_ms=5 * DAY)
    stage(warehouse, planned, toy.replay(warehouse, planned, scratch))
    record_audit(warehouse, planned, toy.passed(planned))

    def overtake(name):
        if name == "rollback.before-create":
            commit(warehouse, planned, now_ms=2)

    with observed(overtake), pytest.raises(FencedError, match=f"run {planned.run_id} has made commit 5"):
        rollback(warehouse, "counting", 2, now_ms=77, supersede=True)
    assert CommitLog(warehouse, "counting").head().run_id == planned.run_id


def test_an_interrupted_rollback_is_superseded_by_the_next_run(warehouse, four_commits, run_slice):
    def stop(name):
        if name == "rollback.planned":
            raise InterruptedError

    with observed(stop), pytest.raises(InterruptedError):
        rollback(warehouse, "counting", 2, now_ms=77)
    assert preview_rollback(warehouse, "counting", 2).open_run is None
    assert run_slice(until_ms=5 * DAY).run_id == "00000005-2"


def test_commits_that_were_never_published_stay_unseen(warehouse, scratch, run_slice):
    """Nor are their files looked at, which may be what is wrong with them."""
    toy.archive_events(warehouse, 0, days=3)
    run_slice(until_ms=DAY)
    rows = rows_of(warehouse)
    for day in (2, 3):
        planned = plan(toy.job(), warehouse, now_ms=1, until_ms=day * DAY)
        stage(warehouse, planned, toy.replay(warehouse, planned, scratch))
        record_audit(warehouse, planned, toy.passed(planned))
        made = commit(warehouse, planned, now_ms=2)
        warehouse.delete(f"topics/counts/{made.sinks[0].file.path}")
    with pytest.raises(CorruptedDataError, match="missing"):
        publish(warehouse, "counting")
    rollback(warehouse, "counting", 1, now_ms=77)
    assert rows_of(warehouse) == rows
    assert published_through(warehouse, "counting") == 4
    run_slice(until_ms=3 * DAY)
    assert sum(map(len, rows_of(warehouse))) == sum(map(len, rows_of(warehouse, "events"))) == 60


def test_nothing_follows_a_rollback_that_readers_have_not_seen(warehouse, four_commits):
    def stop(name):
        if name == "rollback.created":
            raise InterruptedError

    with observed(stop), pytest.raises(InterruptedError):
        rollback(warehouse, "counting", 2, now_ms=77)
    assert published_through(warehouse, "counting") == 4
    with pytest.raises(ConfigurationError, match=r"commit 5, a rollback to 2, has not been published"):
        plan(toy.job(), warehouse, now_ms=1)
    done = maintain(warehouse, "counting", Retention(1), now_ms=0)
    assert done.oldest_restorable == 5
    assert sink_paths(four_commits) <= stored(warehouse)
    (published,) = publish(warehouse, "counting")
    assert (published.topic, published.commit) == ("counts", 5)
    assert published.rows == -sum(sink.file.rows for made in four_commits[2:] for sink in made.sinks)
    assert plan(toy.job(), warehouse, now_ms=1).commit == 6


def test_files_stay_as_long_as_the_states_that_went_with_them(warehouse, four_commits, run_slice):
    made = rollback(warehouse, "counting", 2, now_ms=77)
    maintain(warehouse, "counting", Retention(4), now_ms=0)
    assert stored(warehouse) == sink_paths(four_commits)
    maintain(warehouse, "counting", Retention(2), now_ms=0)
    assert stored(warehouse) == sink_paths([*four_commits[:2], four_commits[3]])
    sixth = run_slice(until_ms=3 * DAY)
    maintain(warehouse, "counting", Retention(2), now_ms=0)
    assert stored(warehouse) == sink_paths([*four_commits[:2], sixth])
    assert state_files(warehouse) == files_of(warehouse, made, sixth)


def test_what_replays_leave_behind_after_a_rollback_goes_too(warehouse, four_commits, run_slice, scratch):
    """Their offsets lie before those of commits that have been cleaned up already."""
    rollback(warehouse, "counting", 2, now_ms=77)
    planned = plan(toy.job(), warehouse, now_ms=1, until_ms=3 * DAY)
    toy.replay(warehouse, planned, scratch, "lost")
    made = run_slice(until_ms=3 * DAY)
    maintain(warehouse, "counting", Retention(3), now_ms=0)
    assert stored(warehouse) == sink_paths([*four_commits[:2], four_commits[3], made])


def test_a_dropped_archive_is_made_again_without_what_was_taken_back(warehouse, four_commits, run_slice):
    rollback(warehouse, "counting", 2, now_ms=77)
    run_slice(until_ms=3 * DAY)
    maintain(warehouse, "counting", Retention(1), now_ms=0)
    rows = rows_of(warehouse)
    for entry in warehouse.list("topics/counts/_delta_log"):
        warehouse.delete(entry.path)
    assert [(p.commit, p.files > 0) for p in publish(warehouse, "counting")] == [
        (1, True), (2, True), (5, False), (6, True),
    ]  # fmt: skip
    assert rows_of(warehouse) == rows


class TestRaceWithMaintenance:
    """The target expires while the rollback is on its way to it."""

    def test_maintenance_first(self, warehouse, four_commits):
        def overtake(name):
            if name == "rollback.planned":
                maintain(warehouse, "counting", Retention(1), now_ms=0)

        with observed(overtake), pytest.raises(ConfigurationError, match="commit 2 has expired"):
            rollback(warehouse, "counting", 2, now_ms=77)
        assert CommitLog(warehouse, "counting").head() == four_commits[-1]

    def test_rollback_first(self, warehouse, four_commits, scratch):
        """Maintenance has decided that commit 2 expires, and sleeps until the rollback has come past the mark."""
        slept = []

        def sleep(name):
            if name == "maintain.before-expire" and not slept:
                slept.append(rollback(warehouse, "counting", 2, now_ms=77))

        with observed(sleep):
            maintain(warehouse, "counting", Retention(1), now_ms=0)
        assert state_of(warehouse, slept[0], scratch)[0]

    def test_both_at_once(self, warehouse, four_commits, scratch):
        """The rollback has looked at the mark and not committed yet when maintenance sets it."""

        def overtake(name):
            if name == "rollback.before-create":
                maintain(warehouse, "counting", Retention(1), now_ms=0)
                assert files_of(warehouse, four_commits[1]) <= state_files(warehouse)

        with observed(overtake):
            made = rollback(warehouse, "counting", 2, now_ms=77)
        maintain(warehouse, "counting", Retention(1), now_ms=0)
        assert state_of(warehouse, made, scratch)[0]


class TestReadersDownstream:
    """Another job of the warehouse that reads the topic."""

    @pytest.fixture
    def reader(self):
        return toy.job("reading", source="counts", sink="recounts")

    def test_is_told_and_how_to_go_on(self, warehouse, four_commits, run_slice, reader):
        for day in (2, 3, 4):
            run_slice(job=reader, until_ms=day * DAY)
        rollback(warehouse, "counting", 2, now_ms=77)
        told = r"commit 5 of job counting rolled the topic back.*topic counts.*hindstream state rollback reading --to 1"
        with pytest.raises(InputError, match=told):
            plan(reader, warehouse, now_ms=1)
        run_slice(until_ms=5 * DAY)  # whatever has come to the same offsets since
        with pytest.raises(InputError, match=told):
            plan(reader, warehouse, now_ms=1)
        rollback(warehouse, "reading", 1, now_ms=78)
        run_slice(job=reader)
        assert rows_of(warehouse, "recounts") == rows_of(warehouse)
        assert CommitLog(warehouse, "reading").head().sources[0].rollback == 5

    def test_one_that_was_not_so_far_goes_on(self, warehouse, four_commits, run_slice, reader):
        run_slice(job=reader, until_ms=DAY)
        rollback(warehouse, "counting", 3, now_ms=77)
        run_slice(job=reader)
        run_slice(until_ms=5 * DAY)
        run_slice(job=reader)
        assert rows_of(warehouse, "recounts") == rows_of(warehouse)

    def test_each_rollback_since_counts(self, warehouse, four_commits, run_slice, reader):
        run_slice(job=reader, until_ms=3 * DAY)
        rollback(warehouse, "counting", 2, now_ms=77)
        run_slice(until_ms=5 * DAY)
        rollback(warehouse, "counting", 5, now_ms=78)
        run_slice(until_ms=5 * DAY)
        with pytest.raises(InputError, match=r"commit 5 of job .* rolled the topic back.*give the job a new name"):
            plan(reader, warehouse, now_ms=1)

    def test_a_run_that_was_open_is_begun_anew(self, warehouse, four_commits, reader):
        first = plan(reader, warehouse, now_ms=1)
        rollback(warehouse, "counting", 2, now_ms=77)
        second = plan(reader, warehouse, now_ms=1)
        assert (second.run_id, second.records) == ("00000001-2", sum(map(len, rows_of(warehouse))))
        assert first.records > second.records

    @pytest.mark.parametrize("damage", ["missing", "damaged"])
    def test_a_notice_that_is_lost_is_no_all_clear(self, warehouse, four_commits, run_slice, reader, damage):
        run_slice(job=reader, until_ms=DAY)
        rollback(warehouse, "counting", 3, now_ms=77)
        path = f"topics/counts/_rollbacks/{5:020d}.json"
        notice = Rollback.decode(warehouse.get(path), file=path)
        assert (notice.job, notice.commit, notice.rolled_back_to) == ("counting", 5, 3)
        data = warehouse.get(path)
        warehouse.delete(path)
        if damage == "damaged":
            warehouse.put(path, data.replace(b'"commit": 5', b'"commit": 6'))
        with pytest.raises(CorruptedDataError, match=path):
            plan(reader, warehouse, now_ms=1)


def test_the_plan_says_what_it_is(warehouse, four_commits):
    made = rollback(warehouse, "counting", 2, now_ms=77)
    planned = Runs(warehouse, "counting").plan(made.run_id)
    assert (planned.rolled_back_to, planned.tasks, planned.records) == (2, (), 0)
    assert planned.sink_partitions["counts"] == 2
