from __future__ import annotations

import pytest

from statelib.commits import (
    CommitLog,
    Retention,
    attempt_name,
    check_restorable,
    maintain,
    oldest_restorable,
    plan,
    record_audit,
    stage,
)
from statelib.commits.archives import open_archive
from statelib.commits.expiry import expire_before, read_maintenance
from statelib.errors.fault_points import observed
from statelib.errors.kinds import ConfigurationError, CorruptedDataError
from statelib.storage import Storage
from tests.commits import toy
from tests.commits.toy import DAY

pytestmark = pytest.mark.thorough


@pytest.fixture
def five_commits(warehouse, run_slice):
    toy.archive_events(warehouse, 0, days=6)
    return [run_slice(until_ms=day * DAY) for day in range(1, 6)]


def state_files(warehouse):
    return {entry.path for entry in warehouse.list("jobs/counting/state")}


def files_of(commits):
    return {
        f"jobs/counting/state/{task_id}/{file.stored_name}"
        for made in commits
        for task_id, task in made.tasks.items()
        for file in task.state.files
    }


def test_state_of_old_commits_goes_and_that_of_new_ones_stays(warehouse, five_commits, scratch):
    assert state_files(warehouse) == files_of(five_commits)
    done = maintain(warehouse, "counting", Retention(2), now_ms=0)
    assert done.oldest_restorable == 4
    assert done.deleted_files == len(files_of(five_commits) - files_of(five_commits[3:])) > 0
    assert state_files(warehouse) == files_of(five_commits[3:])
    assert toy.counts_as_of(warehouse, five_commits[3], scratch)
    with pytest.raises(CorruptedDataError, match="missing"):
        toy.counts_as_of(warehouse, five_commits[0], scratch)
    assert [made.commit for made in CommitLog(warehouse, "counting").history()] == [5, 4, 3, 2, 1]


def test_the_head_s_state_counts_every_record(warehouse, five_commits, scratch):
    maintain(warehouse, "counting", Retention(1), now_ms=0)
    counts = toy.counts_as_of(warehouse, five_commits[-1], scratch)
    offsets = five_commits[-1].source_offsets()["events"]
    assert sum(counts.values()) == sum(offsets.values()) == 101  # five days and one late record of the sixth


def test_an_expired_commit_is_told_from_a_damaged_one(warehouse, five_commits):
    maintain(warehouse, "counting", Retention(2), now_ms=0)
    check_restorable(warehouse, "counting", 4)
    with pytest.raises(ConfigurationError, match=r"commit 3 has expired.*commit 4 or a later one"):
        check_restorable(warehouse, "counting", 3)


def test_a_repeat_finds_nothing(warehouse, five_commits):
    maintain(warehouse, "counting", Retention(2), now_ms=0)
    before = warehouse.list()
    assert maintain(warehouse, "counting", Retention(2), now_ms=0).deleted_files == 0
    assert warehouse.list() == before


def test_keeping_more_later_brings_nothing_back(warehouse, five_commits):
    maintain(warehouse, "counting", Retention(2), now_ms=0)
    assert maintain(warehouse, "counting", Retention(5), now_ms=0).oldest_restorable == 4


def test_keeping_less_later_takes_effect(warehouse, five_commits):
    maintain(warehouse, "counting", Retention(5), now_ms=0)
    assert maintain(warehouse, "counting", Retention(1), now_ms=0).oldest_restorable == 5
    assert state_files(warehouse) == files_of(five_commits[-1:])


def test_the_head_must_stay(warehouse, five_commits):
    with pytest.raises(ConfigurationError, match="keep at least 1"):
        maintain(warehouse, "counting", Retention(0), now_ms=0)


def test_a_job_without_commits(warehouse):
    assert maintain(warehouse, "counting", Retention(3), now_ms=0).deleted_files == 0
    assert warehouse.list() == []


def test_state_is_swept_beside_an_open_run(warehouse, five_commits, scratch, run_slice):
    planned = plan(toy.job(), warehouse, now_ms=1, until_ms=6 * DAY)
    toy.replay(warehouse, planned, scratch, "hanging")
    uploaded = state_files(warehouse) - files_of(five_commits)
    assert uploaded
    done = maintain(warehouse, "counting", Retention(1), now_ms=0)
    assert (done.oldest_restorable, done.skipped) == (5, None)
    assert state_files(warehouse) == files_of(five_commits[-1:]) | uploaded
    made = run_slice(until_ms=6 * DAY)
    assert maintain(warehouse, "counting", Retention(1), now_ms=0).oldest_restorable == 6
    assert state_files(warehouse) == files_of([made])
    assert toy.counts_as_of(warehouse, made, scratch)


def test_files_of_the_older_layout_are_left_alone_while_a_run_is_open(warehouse, five_commits, run_slice):
    """Named by content alone they might be stored again, by a run of an older Hindstream."""
    old = [f"jobs/counting/state/0_0/{letter * 64}" for letter in "ab"]
    for path in old:
        warehouse.put(path, b"state")
    plan(toy.job(), warehouse, now_ms=1, until_ms=6 * DAY)
    done = maintain(warehouse, "counting", Retention(1), now_ms=0)
    assert done.skipped == "run 00000006-1 is open: state files of an older Hindstream were left alone"
    assert state_files(warehouse) == files_of(five_commits[-1:]) | set(old)
    made = run_slice(until_ms=6 * DAY)
    assert maintain(warehouse, "counting", Retention(1), now_ms=0).skipped is None
    assert state_files(warehouse) == files_of([made])


def test_a_maintenance_that_slept_before_its_deletes_takes_nothing_that_is_needed(
    warehouse, five_commits, scratch, run_slice
):
    """It was stopped for two runs and a maintenance. What it deletes then nobody has used since."""
    toy.archive_events(warehouse, 6)
    made = []

    def sleep(name):
        if name == "maintain.before-delete" and not made:
            made.append(None)  # not again, in what follows
            made[:] = [run_slice(until_ms=6 * DAY), run_slice()]
            maintain(warehouse, "counting", Retention(2), now_ms=0)

    with observed(sleep):
        maintain(warehouse, "counting", Retention(1), now_ms=0)
    assert len(made) == 2
    assert oldest_restorable(warehouse, "counting") == 6
    assert state_files(warehouse) == files_of(made)
    for commit in made:
        assert toy.counts_as_of(warehouse, commit, scratch)


def test_a_slower_maintenance_does_not_bring_expired_states_back(warehouse, five_commits):
    """Two at once: the one that keeps more ends last."""

    overtaken = []

    def overtake(name):
        if name == "maintain.before-expire" and not overtaken:
            overtaken.append(name)
            expire_before(warehouse, "counting", 5)

    with observed(overtake):
        maintain(warehouse, "counting", Retention(3), now_ms=0)
    assert oldest_restorable(warehouse, "counting") == 5
    with pytest.raises(ConfigurationError, match="commit 4 has expired"):
        check_restorable(warehouse, "counting", 4)


def test_states_stay_by_age_as_well(warehouse, five_commits):
    """``two`` was the newest until commit 3 was made, at 3 s."""
    log = CommitLog(warehouse, "counting")
    for commit in five_commits:
        path = log.layout.commit(commit.commit)
        warehouse.put(path, commit.model_copy(update={"created_at_ms": 1000 * commit.commit}).encode())
    for now_ms, for_ms, oldest in [(9000, 9000, 1), (9000, 6001, 2), (9000, 6000, 3), (9000, 4500, 4), (9000, 0, 4)]:
        done = maintain(warehouse, "counting", Retention(2, for_ms), now_ms=now_ms)
        assert done.oldest_restorable == oldest_restorable(warehouse, "counting") == oldest
        assert state_files(warehouse) == files_of(five_commits[oldest - 1 :])


def test_what_would_be_done(warehouse, five_commits):
    before = warehouse.list()
    would = maintain(warehouse, "counting", Retention(2), now_ms=0, dry_run=True)
    assert warehouse.list() == before
    assert maintain(warehouse, "counting", Retention(2), now_ms=0) == would
    assert would.deleted_files > 0


def test_state_of_a_quarantined_run_goes_once_another_has_its_number(warehouse, five_commits, scratch, run_slice):
    planned = plan(toy.job(), warehouse, now_ms=1, until_ms=6 * DAY)
    stage(warehouse, planned, toy.replay(warehouse, planned, scratch))
    record_audit(warehouse, planned, toy.passed(planned, success=False))
    made = run_slice(until_ms=6 * DAY)
    assert maintain(warehouse, "counting", Retention(6), now_ms=0).skipped is None
    assert state_files(warehouse) == files_of([*five_commits, made])


def sink_files(warehouse):
    return {
        e.path.removeprefix("topics/counts/") for e in warehouse.list("topics/counts") if e.path.endswith(".parquet")
    }


def published(warehouse):
    archive = open_archive(warehouse, "counts")
    return {file.path for p in range(archive.partitions) for file in archive.files(p)}


def test_files_of_lost_attempts_and_superseded_runs_go(warehouse, scratch, run_slice):
    toy.archive_events(warehouse, 0, days=2)
    superseded = plan(toy.job(), warehouse, now_ms=1, until_ms=2 * DAY)
    toy.replay(warehouse, superseded, scratch, "dead")
    planned = plan(toy.job(), warehouse, now_ms=1, until_ms=DAY)
    toy.replay(warehouse, planned, scratch, "lost")
    warehouse.put(f"jobs/counting/staging/{planned.run_id}/by-id/x.arrow", b"rows")
    warehouse.put(f"jobs/counting/staging/{superseded.run_id}/by-id/x.arrow", b"rows")
    assert run_slice(until_ms=DAY).run_id == "00000001-2" == planned.run_id
    assert len(sink_files(warehouse)) == 6
    maintain(warehouse, "counting", Retention(3), now_ms=0)
    assert sink_files(warehouse) == published(warehouse)
    assert warehouse.list("jobs/counting/staging") == []


def test_files_of_an_overtaken_driver_go_even_if_it_wrote_them_late(warehouse, five_commits):
    maintain(warehouse, "counting", Retention(2), now_ms=0)
    assert read_maintenance(warehouse, "counting").cleaned_through == 3
    for n in (3, 4):
        name = attempt_name("counting", five_commits[n - 1].run_id, "0_0", "late")
        offset = five_commits[n - 2].tasks["0_0"].position.sink_offsets["counts/0"]
        warehouse.put(f"topics/counts/partition=0/{offset:020d}-{name}.parquet", b"x")
    assert maintain(warehouse, "counting", Retention(2), now_ms=0).deleted_files == 1
    assert len(sink_files(warehouse) - published(warehouse)) == 1


def test_files_that_may_yet_be_committed_stay(warehouse, five_commits, scratch):
    planned = plan(toy.job(), warehouse, now_ms=1, until_ms=6 * DAY)
    toy.replay(warehouse, planned, scratch)
    before = sink_files(warehouse)
    maintain(warehouse, "counting", Retention(1), now_ms=0)
    assert sink_files(warehouse) == before > published(warehouse)


def test_files_of_other_jobs_and_strangers_stay(warehouse, five_commits):
    names = [
        attempt_name("other", "00000001-1", "0_0", "a"),
        attempt_name("my.counting", "00000001-1", "0_0", "a"),
        "counting",
        "00000001-1.0_0.a",
    ]
    paths = {f"partition=0/{0:020d}-{name}.parquet" for name in names}
    for path in paths:
        warehouse.put(f"topics/counts/{path}", b"x")
    maintain(warehouse, "counting", Retention(1), now_ms=0)
    assert sink_files(warehouse) == published(warehouse) | paths


def test_quarantined_files_stay_for_inspection_until_their_neighbours_expire(warehouse, scratch, run_slice):
    toy.archive_events(warehouse, 0, days=4)
    failed = plan(toy.job(), warehouse, now_ms=1, until_ms=DAY)
    stage(warehouse, failed, toy.replay(warehouse, failed, scratch, "bad"))
    record_audit(warehouse, failed, toy.passed(failed, success=False))
    assert run_slice(until_ms=DAY).run_id == "00000001-2"
    run_slice(until_ms=2 * DAY)
    maintain(warehouse, "counting", Retention(2), now_ms=0)
    assert len(sink_files(warehouse) - published(warehouse)) == 2
    run_slice(until_ms=3 * DAY)
    maintain(warehouse, "counting", Retention(2), now_ms=0)
    assert sink_files(warehouse) == published(warehouse)


def test_files_of_former_commits_are_not_looked_at(warehouse, five_commits, monkeypatch):
    maintain(warehouse, "counting", Retention(1), now_ms=0)
    listed = []
    original = Storage.list

    def spied(self, prefix="", **options):
        found = original(self, prefix, **options)
        listed.extend(entry.path for entry in found)
        return found

    monkeypatch.setattr(Storage, "list", spied)
    maintain(warehouse, "counting", Retention(1), now_ms=0)
    former = {f"topics/counts/{sink.file.path}" for made in five_commits[:4] for sink in made.sinks}
    assert former.isdisjoint(listed)
    assert {f"topics/counts/{sink.file.path}" for sink in five_commits[4].sinks} <= set(listed)
