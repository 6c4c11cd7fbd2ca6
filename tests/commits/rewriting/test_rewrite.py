"""Small files of a topic are merged: its records stay, and so does all that others rest on."""

from __future__ import annotations

import shutil
from contextlib import contextmanager

import pytest

from statelib.commits import (
    CommitLog,
    FilePolicy,
    Retention,
    commit,
    maintain,
    plan,
    publish,
    record_audit,
    rollback,
    stage,
    verify,
)
from statelib.commits.archives import open_archive
from statelib.commits.layout import rewrite_path
from statelib.commits.rewriting.rewrite import read_rewriting
from statelib.documents.upkeep import Rewrite
from statelib.errors.fault_points import observed
from statelib.errors.kinds import ConfigurationError
from statelib.storage import Storage
from tests.commits import toy
from tests.commits.maintenance.test_verify import harm
from tests.commits.toy import DAY

pytestmark = pytest.mark.thorough

WEEK = 7 * DAY


def policy(attempt="m", *, every=1, keep_ms=WEEK, target=4_800):
    return FilePolicy(attempt, target_bytes=target, keep_replaced_ms=keep_ms, every_commits=every)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A warehouse with six commits, and what was made of them."""
    root = tmp_path_factory.mktemp("made")
    warehouse = Storage(str(root / "warehouse"))
    toy.archive_events(warehouse, 0, days=7)
    for day in range(1, 7):
        finish(warehouse, root / "scratch", plan(toy.job(), warehouse, now_ms=1, until_ms=day * DAY))
    return root, list(CommitLog(warehouse, "counting").history())[::-1]


@pytest.fixture
def six_commits(warehouse, tmp_path, made):
    root, commits = made
    shutil.copytree(root / "warehouse", tmp_path / "warehouse", dirs_exist_ok=True)
    return commits


def merge(warehouse, attempt="m", *, keep=2, now_ms=0, **options):
    return maintain(warehouse, "counting", Retention(keep), now_ms=now_ms, files=policy(attempt, **options))


def records(warehouse, topic="counts", version=None):
    archive = open_archive(warehouse, topic, version)
    return [archive.reader(p).read_all() for p in range(archive.partitions)]


def live(warehouse):
    archive = open_archive(warehouse, "counts")
    return {f"topics/counts/{file.path}" for p in range(archive.partitions) for file in archive.files(p)}


def stored(warehouse):
    return {entry.path for entry in warehouse.list("topics/counts") if "partition=" in entry.path}


def written(commits):
    return {f"topics/counts/{sink.file.path}" for made in commits for sink in made.sinks}


@contextmanager
def at(step, action):
    """Does something at the first step of a name."""
    waiting = [action]

    def observe(name):
        if name == step and waiting:
            waiting.pop()()

    with observed(observe):
        yield


def test_the_records_stay_and_the_files_become_fewer(warehouse, six_commits):
    before, version = records(warehouse), open_archive(warehouse, "counts").version
    done = merge(warehouse)
    assert (done.merged_files, done.merged_into) == (10, 2)
    assert records(warehouse) == before == records(warehouse, version=version)
    assert len(live(warehouse)) == 12 - 10 + 2
    log = open_archive(warehouse, "counts")
    assert (log.version, log.last_transaction("counting")) == (version + 1, 6)
    publish(warehouse, "counting")
    assert merge(warehouse).merged_files == 0
    assert open_archive(warehouse, "counts").version == version + 1


def test_what_a_rollback_may_take_back_stays_in_files_of_its_own(warehouse, six_commits, run_slice):
    before = records(warehouse)
    merge(warehouse, keep=3, target=3_500)
    assert written(six_commits[4:]) <= live(warehouse)
    rollback(warehouse, "counting", 4, now_ms=3)
    assert sum(map(len, records(warehouse))) == sum(
        offset for task in six_commits[3].tasks.values() for offset in task.position.sink_offsets.values()
    )
    for day in (5, 6):
        run_slice(until_ms=day * DAY)
    assert records(warehouse) == before
    assert merge(warehouse, "again", keep=1, target=1_900).merged_files > 0
    assert records(warehouse) == before


def test_a_rollback_commit_that_is_kept_bounds_what_is_merged(warehouse, six_commits, run_slice):
    """Commit 7 goes back to 2; commits 3 to 6 are kept, but what follows 7 has their offsets."""
    rollback(warehouse, "counting", 2, now_ms=3)
    run_slice(until_ms=6 * DAY)
    merge(warehouse, keep=5, target=1_900)  # 4 to 8; the least offsets are those of 7
    assert written([CommitLog(warehouse, "counting").read(8)]) <= live(warehouse)
    assert not live(warehouse) & written(six_commits[:2])


def test_a_rollback_that_comes_in_between_goes_back_to_whole_files(warehouse, six_commits):
    for step in ("rewrite.written", "rewrite.before-commit"):
        with at(step, lambda: rollback(warehouse, "counting", 5, now_ms=3)):
            merge(warehouse, f"m-{step.partition('.')[2]}")
    kept = [task.position.sink_offsets for task in six_commits[4].tasks.values()]
    assert sum(map(len, records(warehouse))) == sum(end for ends in kept for end in ends.values())
    assert verify(warehouse, "counting", everything=True).damages == ()


def test_all_files_can_be_verified_before_and_after(warehouse, six_commits):
    merge(warehouse)
    assert verify(warehouse, "counting", everything=True).damages == ()
    merge(warehouse, keep=1, now_ms=WEEK)
    assert not written(six_commits[:4]) & stored(warehouse)
    found = verify(warehouse, "counting", everything=True)
    assert found.damages == ()
    for path in sorted(live(warehouse) | {rewrite_path("counts", 1)}):
        good = warehouse.get(path)
        harm(warehouse, path, "flipped")
        assert warehouse.uri(path) in {damage.file for damage in verify(warehouse, "counting", everything=True).damages}
        warehouse.put(path, good)
    harm(warehouse, min(live(warehouse)), "missing")
    assert [damage.where for damage in verify(warehouse, "counting", 6).damages] == []
    assert [d.where for d in verify(warehouse, "counting", everything=True).damages] == [
        "topic counts, partition 0, rewrite 1"
    ]


def test_a_commit_that_is_merged_is_verified_where_its_records_are(warehouse, six_commits):
    merge(warehouse, keep=1, target=1_900)
    assert not written(six_commits) & live(warehouse)
    harm(warehouse, max(live(warehouse) - written(six_commits)), "flipped")
    (damage,) = verify(warehouse, "counting", 6).damages
    assert damage.where == "topic counts, partition 1, rewrite 1"


def downstream():
    return toy.job("downstream", source="counts", sink="counted")


def finish(warehouse, scratch, planned):
    stage(warehouse, planned, toy.replay(warehouse, planned, scratch))
    record_audit(warehouse, planned, toy.passed(planned))
    commit(warehouse, planned, now_ms=2)
    publish(warehouse, planned.job)


def test_a_plan_that_was_made_before_reads_the_files_that_it_found(warehouse, six_commits, scratch):
    planned = plan(downstream(), warehouse, now_ms=1)
    merge(warehouse)
    merge(warehouse, now_ms=WEEK, keep=1)
    assert written(six_commits) <= stored(warehouse)
    finish(warehouse, scratch, planned)
    drop = ["offset"]
    assert [t.drop_columns(drop) for t in records(warehouse, "counted")] == [
        t.drop_columns(drop) for t in records(warehouse)
    ]


def test_replaced_files_go_when_nobody_can_need_them(warehouse, six_commits, scratch):
    planned = plan(downstream(), warehouse, now_ms=1)
    merge(warehouse)
    gone = written(six_commits) - live(warehouse)
    looked = read_rewriting(warehouse, "counting")
    assert (looked.looked_through, looked.reclaimed) == (5, {"counts": 0})
    merge(warehouse, keep=1, now_ms=WEEK + 1)
    assert gone <= stored(warehouse)
    finish(warehouse, scratch, planned)
    toy.archive_events(warehouse, 7, 1)
    looking = FilePolicy("z", target_bytes=4_800, keep_replaced_ms=WEEK, every_commits=0)
    done = maintain(warehouse, "counting", Retention(1), now_ms=WEEK - 1, files=looking)
    assert gone <= stored(warehouse)
    done = maintain(warehouse, "counting", Retention(1), now_ms=WEEK, files=looking)
    assert done.deleted_files == len(gone)
    assert not gone & stored(warehouse)
    assert live(warehouse) <= stored(warehouse)
    assert read_rewriting(warehouse, "counting").reclaimed == {"counts": 1}


def test_files_are_looked_at_every_few_commits(warehouse, six_commits):
    assert merge(warehouse, every=6).merged_files == 0
    assert warehouse.list("topics/counts/_rewrites") == []
    assert merge(warehouse, every=5).merged_files == 10
    assert merge(warehouse, keep=1, every=5).merged_files == 0


def test_two_maintenances_at_once_do_not_disturb_each_other(warehouse, six_commits):
    before = records(warehouse)
    with at("rewrite.before-create", lambda: merge(warehouse, "quick")):
        merge(warehouse, "slow")
    assert records(warehouse) == before
    assert stored(warehouse) == written(six_commits) | live(warehouse)
    assert all("quick" in path for path in live(warehouse) - written(six_commits))


@pytest.mark.parametrize("step", ["rewrite.written", "rewrite.before-create", "rewrite.before-commit"])
def test_a_commit_is_published_in_between(warehouse, six_commits, run_slice, step):
    toy.archive_events(warehouse, 7, 1)
    with at(step, lambda: run_slice(until_ms=8 * DAY)):
        merge(warehouse)
    archive = open_archive(warehouse, "counts")
    assert archive.last_transaction("counting") == 7
    assert sum(map(len, records(warehouse))) == archive.rows == sum(archive.end_offsets().values())
    assert len(live(warehouse)) == 14 - 10 + 2


class Killed(Exception):
    pass


def kill():
    raise Killed


@pytest.mark.parametrize(
    "step",
    ["rewrite.written", "rewrite.before-create", "rewrite.created", "rewrite.before-commit", "rewrite.committed"],
)
def test_what_was_begun_is_finished_or_swept(warehouse, six_commits, step):
    before = records(warehouse)
    with pytest.raises(Killed), at(step, kill):
        merge(warehouse, "killed")
    assert records(warehouse) == before
    merge(warehouse, "next")
    assert records(warehouse) == before
    assert len(live(warehouse)) == 12 - 10 + 2
    assert stored(warehouse) == written(six_commits) | live(warehouse)


def test_a_topic_that_somebody_else_has_changed_is_left_alone(warehouse, six_commits):
    with pytest.raises(Killed), at("rewrite.created", kill):
        merge(warehouse)
    open_archive(warehouse, "counts").retract(
        [six_commits[0].sinks[0].file], app_id="somebody", app_version=1, marker="else", deletion_time_ms=0
    )
    with pytest.raises(ConfigurationError, match="no longer part of it"):
        merge(warehouse)


def test_a_rewrite_s_document(warehouse, six_commits):
    merge(warehouse)
    data = warehouse.get(rewrite_path("counts", 1))
    rewrite = Rewrite.decode(data, file="")
    assert rewrite.encode() == data
    assert (rewrite.topic, rewrite.job, rewrite.rewrite, rewrite.created_at_ms) == ("counts", "counting", 1, 0)
    assert {f"topics/counts/{file.path}" for file in rewrite.replaced} == written(six_commits[:5])
    assert {f"topics/counts/{file.path}" for file in rewrite.files} == live(warehouse) - written(six_commits)
    assert min(file.path for file in rewrite.files) == "partition=0/00000000000000000000-counting.rewrite.1.m.parquet"
