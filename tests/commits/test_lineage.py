"""What a commit rests on: its job's runs that count, behind those of the jobs that it was forked from."""

from __future__ import annotations

import pyarrow as pa
import pytest

from statelib import StreamsBuilder
from statelib.commits import rollback
from statelib.commits.lineage import lineage
from statelib.commits.versions.fork import fork, fork_from_beginning
from statelib.errors.kinds import ConfigurationError
from tests.commits import toy
from tests.commits.toy import DAY
from tests.task.pipeline import Pipeline


@pytest.fixture
def replayed(warehouse, run_slice):
    toy.archive_events(warehouse, 0, days=4)
    for day in (1, 2, 3):
        run_slice(until_ms=day * DAY)
    return warehouse


def found(warehouse, job, commit=None):
    return [(one.job, one.commit) for one in lineage(warehouse, job, commit)]


def test_of_a_job(replayed):
    assert found(replayed, "counting") == [("counting", n) for n in (1, 2, 3)]
    assert found(replayed, "counting", 2) == [("counting", n) for n in (1, 2)]


def test_what_was_rolled_back_does_not_count(replayed, run_slice):
    rollback(replayed, "counting", 1, now_ms=9)
    run_slice(until_ms=4 * DAY)
    assert found(replayed, "counting") == [("counting", n) for n in (1, 5)]
    with pytest.raises(ConfigurationError, match="has been rolled back by commit 4"):
        lineage(replayed, "counting", 2)


def test_of_forks(tmp_path):
    builder = StreamsBuilder("counting")
    builder.stream("events").to("copies")
    pipeline = Pipeline(tmp_path, builder.build(), "counting")
    pipeline.archive("events", [("k", n, n) for n in range(9)], (pa.string(), pa.int64()))
    for end in (3, 6, 9):
        pipeline.run(end)
    fork(pipeline.warehouse, "counting", "first", 2, now_ms=0)
    fork(pipeline.warehouse, "first", "second", 1, now_ms=0)
    assert found(pipeline.warehouse, "second") == [("counting", n) for n in (1, 2)]


def test_a_fork_from_the_beginning_rests_on_nothing(replayed):
    fork_from_beginning(replayed, "counting", "new")
    with pytest.raises(ConfigurationError, match="the job has no commits"):
        lineage(replayed, "new")
