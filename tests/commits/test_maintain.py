from __future__ import annotations

import pytest

from statelib.commits import CommitLog, attempt_name, check_restorable, maintain, plan, record_audit, stage
from statelib.commits.archives import open_archive
from statelib.commits.maintain import read_maintenance
from statelib.errors import ConfigurationError, CorruptedDataError
from statelib.storage import Storage
from tests.commits import toy
from tests.commits.toy import DAY


@pytest.fixture
def five_commits(warehouse, run_slice):
    toy.archive_events(warehouse, 0, days=6)
    return [run_slice(until_ms=day * DAY) for day in range(1, 6)]


def state_files(warehouse):
    return {entry.path for entry in warehouse.list("jobs/counting/state")}


def files_of(commits):
    return {
        f"jobs/counting/state/{task_id}/{file.sha256}"
        for made in commits
        for task_id, task in made.tasks.items()
        for file in task.state.files
    }


def test_state_of_old_commits_goes_and_that_of_new_ones_stays(warehouse, five_commits, scratch):
    assert state_files(warehouse) == files_of(five_commits)
    done = maintain(warehouse, "counting", keep_commits=2)
    assert done.oldest_restorable == 4
    assert done.deleted_files == len(files_of(five_commits) - files_of(five_commits[3:])) > 0
    assert state_files(warehouse) == files_of(five_commits[3:])
    assert toy.counts_as_of(warehouse, five_commits[3], scratch)
    with pytest.raises(CorruptedDataError, match="missing"):
        toy.counts_as_of(warehouse, five_commits[0], scratch)
    assert [made.commit for made in CommitLog(warehouse, "counting").history()] == [5, 4, 3, 2, 1]


def test_the_head_s_state_counts_every_record(warehouse, five_commits, scratch):
    maintain(warehouse, "counting", keep_commits=1)
    counts = toy.counts_as_of(warehouse, five_commits[-1], scratch)
    offsets = five_commits[-1].source_offsets()["events"]
    assert sum(counts.values()) == sum(offsets.values()) == 101  # five days and one late record of the sixth


def test_an_expired_commit_is_told_from_a_damaged_one(warehouse, five_commits):
    maintain(warehouse, "counting", keep_commits=2)
    check_restorable(warehouse, "counting", 4)
    with pytest.raises(ConfigurationError, match=r"commit 3 has expired.*commit 4 or a later one"):
        check_restorable(warehouse, "counting", 3)


def test_a_repeat_finds_nothing(warehouse, five_commits):
    maintain(warehouse, "counting", keep_commits=2)
    before = warehouse.list()
    assert maintain(warehouse, "counting", keep_commits=2).deleted_files == 0
    assert warehouse.list() == before


def test_keeping_more_later_brings_nothing_back(warehouse, five_commits):
    maintain(warehouse, "counting", keep_commits=2)
    assert maintain(warehouse, "counting", keep_commits=5).oldest_restorable == 4


def test_keeping_less_later_takes_effect(warehouse, five_commits):
    maintain(warehouse, "counting", keep_commits=5)
    assert maintain(warehouse, "counting", keep_commits=1).oldest_restorable == 5
    assert state_files(warehouse) == files_of(five_commits[-1:])


def test_the_head_must_stay(warehouse, five_commits):
    with pytest.raises(ConfigurationError, match="keep at least 1"):
        maintain(warehouse, "counting", keep_commits=0)


def test_a_job_without_commits(warehouse):
    assert maintain(warehouse, "counting", keep_commits=3).deleted_files == 0
    assert warehouse.list() == []


def test_state_is_left_alone_while_a_run_is_open(warehouse, five_commits, scratch, run_slice):
    planned = plan(toy.job(), warehouse, now_ms=1, until_ms=6 * DAY)
    toy.replay(warehouse, planned, scratch, "hanging")
    before = state_files(warehouse)
    done = maintain(warehouse, "counting", keep_commits=1)
    assert done.skipped == "run 00000006-1 is open: state files were left alone"
    assert state_files(warehouse) == before > files_of(five_commits)
    run_slice(until_ms=6 * DAY)
    assert maintain(warehouse, "counting", keep_commits=1).oldest_restorable == 6


def test_state_of_a_quarantined_run_goes(warehouse, five_commits, scratch):
    planned = plan(toy.job(), warehouse, now_ms=1, until_ms=6 * DAY)
    stage(warehouse, planned, toy.replay(warehouse, planned, scratch))
    record_audit(warehouse, planned, toy.passed(planned, success=False))
    assert maintain(warehouse, "counting", keep_commits=5).skipped is None
    assert state_files(warehouse) == files_of(five_commits)


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
    maintain(warehouse, "counting", keep_commits=3)
    assert sink_files(warehouse) == published(warehouse)
    assert warehouse.list("jobs/counting/staging") == []


def test_files_of_an_overtaken_driver_go_even_if_it_wrote_them_late(warehouse, five_commits):
    maintain(warehouse, "counting", keep_commits=2)
    assert read_maintenance(warehouse, "counting").cleaned_through == 3
    for n in (3, 4):
        name = attempt_name("counting", five_commits[n - 1].run_id, "0_0", "late")
        offset = five_commits[n - 2].tasks["0_0"].position.sink_offsets["counts/0"]
        warehouse.put(f"topics/counts/partition=0/{offset:020d}-{name}.parquet", b"x")
    assert maintain(warehouse, "counting", keep_commits=2).deleted_files == 1
    assert len(sink_files(warehouse) - published(warehouse)) == 1


def test_files_that_may_yet_be_committed_stay(warehouse, five_commits, scratch):
    planned = plan(toy.job(), warehouse, now_ms=1, until_ms=6 * DAY)
    toy.replay(warehouse, planned, scratch)
    before = sink_files(warehouse)
    maintain(warehouse, "counting", keep_commits=1)
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
    maintain(warehouse, "counting", keep_commits=1)
    assert sink_files(warehouse) == published(warehouse) | paths


def test_quarantined_files_stay_for_inspection_until_their_neighbours_expire(warehouse, scratch, run_slice):
    toy.archive_events(warehouse, 0, days=4)
    failed = plan(toy.job(), warehouse, now_ms=1, until_ms=DAY)
    stage(warehouse, failed, toy.replay(warehouse, failed, scratch, "bad"))
    record_audit(warehouse, failed, toy.passed(failed, success=False))
    assert run_slice(until_ms=DAY).run_id == "00000001-2"
    run_slice(until_ms=2 * DAY)
    maintain(warehouse, "counting", keep_commits=2)
    assert len(sink_files(warehouse) - published(warehouse)) == 2
    run_slice(until_ms=3 * DAY)
    maintain(warehouse, "counting", keep_commits=2)
    assert sink_files(warehouse) == published(warehouse)


def test_files_of_former_commits_are_not_looked_at(warehouse, five_commits, monkeypatch):
    maintain(warehouse, "counting", keep_commits=1)
    listed = []
    original = Storage.list

    def spied(self, prefix="", **options):
        found = original(self, prefix, **options)
        listed.extend(entry.path for entry in found)
        return found

    monkeypatch.setattr(Storage, "list", spied)
    maintain(warehouse, "counting", keep_commits=1)
    former = {f"topics/counts/{sink.file.path}" for made in five_commits[:4] for sink in made.sinks}
    assert former.isdisjoint(listed)
    assert {f"topics/counts/{sink.file.path}" for sink in five_commits[4].sinks} <= set(listed)
