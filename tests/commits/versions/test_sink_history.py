"""A sink's history says where its records are, at every commit that stands."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from statelib import Materialized, StreamsBuilder
from statelib.commits import CommitLog, rollback
from statelib.commits.archives import open_archive
from statelib.commits.versions.sink_history import Segment, sink_history
from statelib.errors.kinds import ConfigurationError
from tests.commits import toy
from tests.commits.toy import DAY
from tests.task.pipeline import Pipeline


def records_of(warehouse, segments):
    """What a reader of the segments finds, one after the other."""
    return [
        row
        for segment in segments
        for row in open_archive(warehouse, segment.topic)
        .reader(segment.partition, segment.first_offset, segment.end_offset)
        .read_all()
        .to_pylist()
    ]


def test_at_every_commit_it_is_what_the_sink_held_then(warehouse, run_slice):
    toy.archive_events(warehouse, 0, days=4)
    then = []
    for day in range(1, 5):
        run_slice(until_ms=day * DAY)
        archive = open_archive(warehouse, "counts")
        then.append([row for p in range(archive.partitions) for row in archive.reader(p).read_all().to_pylist()])
    assert len({len(rows) for rows in then}) == 4
    for n, rows in enumerate(then, 1):
        history = sink_history(warehouse, "counting", n)
        assert list(history) == ["counts"]
        assert records_of(warehouse, history["counts"]) == rows
        assert sum(map(len, history["counts"])) == len(rows)
    assert sink_history(warehouse, "counting") == sink_history(warehouse, "counting", 4)


def test_an_earlier_history_is_the_beginning_of_a_later_one(warehouse, run_slice):
    toy.archive_events(warehouse, 0, days=2)
    run_slice(until_ms=DAY)
    before = sink_history(warehouse, "counting")["counts"]
    run_slice()
    after = sink_history(warehouse, "counting")["counts"]
    for early, late in zip(before, after, strict=True):
        assert (early.topic, early.partition, early.first_offset) == (late.topic, late.partition, late.first_offset)
        assert early.end_offset < late.end_offset


@pytest.mark.parametrize(("job", "commit", "what", "step"), [
    ("counting", 3, "there is no such commit: the job has the commits 1 to 2", "hindstream state counting"),
    ("counting", 0, "there is no such commit: the job has the commits 1 to 2", "hindstream state counting"),
    ("nobody", None, "the job has no commits", "hindstream jobs"),
])  # fmt: skip
def test_what_is_not_there_is_refused(warehouse, run_slice, job, commit, what, step):
    toy.archive_events(warehouse, 0, days=2)
    run_slice(until_ms=DAY)
    run_slice()
    with pytest.raises(ConfigurationError, match=what) as refused:
        sink_history(warehouse, job, commit)
    assert step in refused.value.next_step


def test_a_commit_that_has_been_rolled_back_has_no_history(warehouse, run_slice):
    toy.archive_events(warehouse, 0, days=4)
    for day in (1, 2, 3):
        run_slice(until_ms=day * DAY)
    first = sink_history(warehouse, "counting", 1)
    rollback(warehouse, "counting", 1, now_ms=9)
    for gone in (2, 3):
        with pytest.raises(ConfigurationError, match="has been rolled back by commit 4"):
            sink_history(warehouse, "counting", gone)
    assert sink_history(warehouse, "counting", 1) == sink_history(warehouse, "counting", 4) == first
    run_slice(until_ms=4 * DAY)
    assert CommitLog(warehouse, "counting").head_number() == 5
    rollback(warehouse, "counting", 4, now_ms=9)
    with pytest.raises(ConfigurationError, match="has been rolled back by commit 6"):
        sink_history(warehouse, "counting", 5)
    assert sink_history(warehouse, "counting", 4) == sink_history(warehouse, "counting", 6) == first


def test_changelogs_are_no_sinks_and_empty_sinks_are(tmp_path):
    builder = StreamsBuilder("job")
    views = builder.stream("views")
    views.group_by_key().count(Materialized.as_("kept")).to_stream().to("all")
    views.filter(pc.field("value") < 0).to("none")
    pipeline = Pipeline(tmp_path, builder.build(), changelogs=["kept"])
    pipeline.archive("views", [("a", 1, 1), ("a", 2, 2)], (pa.string(), pa.int64()))
    pipeline.run()
    assert "job-kept-changelog" in CommitLog(pipeline.warehouse, "job").read(1).sink_offsets()
    history = sink_history(pipeline.warehouse, "job")
    assert history["all"] == (Segment("all", 0, 0, 2),)
    assert {name for name, segments in history.items() if not segments} == {"none", "job-late", "job-quarantine"}
