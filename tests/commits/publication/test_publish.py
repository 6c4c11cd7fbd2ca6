from __future__ import annotations

import shutil

import pytest

from statelib.commits import CommitLog, Published, commit, plan, publish, published_through, record_audit, stage
from statelib.commits.archives import open_archive
from statelib.errors.kinds import ConfigurationError, CorruptedDataError
from statelib.topics.append import append_records
from tests.commits import toy
from tests.commits.toy import DAY


@pytest.fixture
def commit_slice(warehouse, scratch):
    """Commits one slice and does not publish it."""

    def run(until_ms):
        planned = plan(toy.job(), warehouse, now_ms=1, until_ms=until_ms)
        stage(warehouse, planned, toy.replay(warehouse, planned, scratch))
        record_audit(warehouse, planned, toy.passed(planned))
        return commit(warehouse, planned, now_ms=1234)

    return run


@pytest.fixture
def events(warehouse):
    toy.archive_events(warehouse, 0, days=3)


def rows_of(warehouse, topic="counts"):
    archive = open_archive(warehouse, topic)
    return [archive.reader(p).read_all().to_pylist() for p in range(archive.partitions)]


def test_creates_the_archive_as_planned(warehouse, events, commit_slice):
    made = commit_slice(DAY)
    rows = sum(sink.file.rows for sink in made.sinks)
    assert publish(warehouse, "counting") == (Published("counts", 1, len(made.sinks), rows),)
    archive = open_archive(warehouse, "counts")
    assert (archive.topic, archive.partitions, archive.schema) == ("counts", 2, toy.SCHEMA)
    assert archive.last_transaction("counting") == 1
    assert [len(rows) for rows in rows_of(warehouse)] == [sum_rows(made, 0), sum_rows(made, 1)]


def sum_rows(made, partition):
    return sum(sink.file.rows for sink in made.sinks if sink.file.partition == partition)


def test_nothing_is_visible_before(warehouse, events, commit_slice):
    commit_slice(DAY)
    with pytest.raises(ConfigurationError, match="no topic archive"):
        open_archive(warehouse, "counts")
    assert published_through(warehouse, "counting") == 0


def test_a_repeat_changes_nothing(warehouse, events, commit_slice):
    commit_slice(DAY)
    publish(warehouse, "counting")
    before = warehouse.list()
    assert publish(warehouse, "counting") == ()
    assert warehouse.list() == before
    assert published_through(warehouse, "counting") == 1


def test_a_job_without_commits_has_nothing_to_publish(warehouse):
    assert publish(warehouse, "counting") == ()
    assert published_through(warehouse, "counting") == 0


def test_what_was_missed_comes_first(warehouse, events, commit_slice):
    for day in (1, 2, 3):
        commit_slice(day * DAY)
    assert [published.commit for published in publish(warehouse, "counting", through=1)] == [1]
    assert [published.commit for published in publish(warehouse, "counting")] == [2, 3]
    events_there = [row["value"] for rows in rows_of(warehouse, "events") for row in rows]
    assert [row["value"] for rows in rows_of(warehouse) for row in rows] == events_there


def test_a_commit_without_files_moves_the_topic_on(warehouse, events, commit_slice):
    commit_slice(DAY)
    log = CommitLog(warehouse, "counting")
    quiet = log.read(1).model_copy(update={"commit": 2, "run_id": "00000002-1", "sinks": ()})
    assert log.create(quiet)
    assert [(p.commit, p.files) for p in publish(warehouse, "counting")] == [(1, 2), (2, 0)]
    assert published_through(warehouse, "counting") == 2


def test_files_of_another_writer_are_not_published_over(warehouse, events, commit_slice):
    commit_slice(DAY)
    publish(warehouse, "counting")
    strange = open_archive(warehouse, "events").reader(0).read_all().drop(["offset"])
    append_records(open_archive(warehouse, "counts"), strange, attempt="x", app_id="x", app_version=1)
    commit_slice(2 * DAY)
    with pytest.raises(ConfigurationError, match="somebody else writes to it"):
        publish(warehouse, "counting")


def test_a_missing_file_is_named(warehouse, events, commit_slice):
    made = commit_slice(DAY)
    warehouse.delete(f"topics/counts/{made.sinks[-1].file.path}")
    with pytest.raises(CorruptedDataError, match=made.sinks[-1].file.path):
        publish(warehouse, "counting")


def test_an_archive_that_lost_its_records_is_not_appended_to(warehouse, events, commit_slice, tmp_path):
    commit_slice(DAY)
    publish(warehouse, "counting")
    log = tmp_path / "warehouse/topics/counts/_delta_log"
    (log / "00000000000000000001.json").unlink()  # back to the empty table
    commit_slice(2 * DAY)
    made = CommitLog(warehouse, "counting").read(2)
    archive = open_archive(warehouse, "counts")
    archive.commit((), app_id="counting", app_version=1)
    with pytest.raises(CorruptedDataError, match=f"commit 2 goes on at {made.sinks[0].file.first_offset}"):
        publish(warehouse, "counting")


def test_a_dropped_archive_is_made_again(warehouse, events, commit_slice, tmp_path):
    for day in (1, 2):
        commit_slice(day * DAY)
    publish(warehouse, "counting")
    before = rows_of(warehouse)
    shutil.rmtree(tmp_path / "warehouse/topics/counts/_delta_log")
    assert [published.commit for published in publish(warehouse, "counting")] == [1, 2]
    assert rows_of(warehouse) == before
