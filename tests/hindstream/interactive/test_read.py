"""A sink as of a commit: all of it and nothing later, of forks too."""

from __future__ import annotations

import duckdb
import pyarrow as pa
import pytest
from deltalake import DeltaTable

import hindstream
from statelib import Materialized, StreamsBuilder
from statelib.commits import CommitLog, Retention, maintain, publish, rollback
from statelib.commits.archives import open_archive
from statelib.commits.rewriting.rewrite import FilePolicy
from statelib.errors.fault_points import observed
from statelib.errors.kinds import ConfigurationError
from tests.task.pipeline import Pipeline
from tests.task.test_fork import fork_of


@pytest.fixture
def pipeline(tmp_path) -> Pipeline:
    builder = StreamsBuilder("job")
    views = builder.stream("views")
    views.group_by_key().count(Materialized.as_("kept")).to_stream().to("counts")
    views.to("copies")
    made = Pipeline(tmp_path, builder.build())
    made.archive("views", [(f"k{n % 3}", n, n) for n in range(30)], (pa.string(), pa.int64()), partitions=2)
    for end in (10, 20, None):
        made.run(end)
    return made


def read(pipeline, sink="counts", job="job", commit="latest"):
    return hindstream.read(sink, job=job, commit=commit, warehouse=pipeline.warehouse.uri(""))


def test_at_each_commit_what_had_been_written(pipeline) -> None:
    assert [len(read(pipeline, sink, commit=n)) for n in (1, 2, 3) for sink in ("counts", "copies")] == [
        10, 10, 20, 20, 30, 30,
    ]  # fmt: skip
    newest = read(pipeline)
    assert newest.commit == 3
    assert read(pipeline, job="job@2").to_arrow() == read(pipeline, commit=2).to_arrow()
    rows = newest.to_arrow().to_pylist()
    assert [(r["partition"], r["offset"], r["key"], r["value"]) for r in rows] == [
        record[:4] for record in pipeline.output("counts")
    ]
    assert len(newest.to_pandas()) == 30


def test_later_changes_do_not_reach_what_was_read(pipeline) -> None:
    newest, first = read(pipeline), read(pipeline, commit=1)
    before = newest.to_arrow(), first.to_arrow()
    rollback(pipeline.warehouse, "job", 1, now_ms=1)
    assert newest.to_arrow() == before[0]
    with pytest.raises(ConfigurationError, match="has been rolled back by commit 4"):
        read(pipeline, commit=3)
    assert read(pipeline).to_arrow() == before[1]
    pipeline.run()
    maintain(pipeline.warehouse, "job", Retention(1), now_ms=2, files=FilePolicy(2**20, 0))
    assert first.to_arrow() == read(pipeline, commit=1).to_arrow() == before[1]


def test_only_what_all_sinks_show(pipeline, monkeypatch) -> None:
    monkeypatch.setattr("tests.task.pipeline.publish", lambda *_: ())
    pipeline.archive("views", [("new", 1, 31)], (pa.string(), pa.int64()), partitions=2)
    pipeline.run()
    assert CommitLog(pipeline.warehouse, "job").head_number() == 4
    assert read(pipeline).commit == 3
    with pytest.raises(ConfigurationError, match="does not show commit 4 yet"):
        read(pipeline, commit=4)
    publish(pipeline.warehouse, "job")
    assert (read(pipeline).commit, len(read(pipeline))) == (4, 31)


def test_of_a_commit_that_one_sink_shows_and_another_does_not_nothing_is_read(pipeline, monkeypatch) -> None:
    with monkeypatch.context() as patched:
        patched.setattr("tests.task.pipeline.publish", lambda *_: ())
        pipeline.archive("views", [("new", 1, 31)], (pa.string(), pa.int64()), partitions=2)
        pipeline.run()
    before = {sink: open_archive(pipeline.warehouse, sink).rows for sink in ("counts", "copies")}
    shown = []

    def dies(name: str) -> None:
        rows = {sink: open_archive(pipeline.warehouse, sink).rows for sink in before}
        if rows != before and rows.keys() != {sink for sink in rows if rows[sink] != before[sink]}:
            shown.append(rows)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), observed(dies):
        publish(pipeline.warehouse, "job")
    assert len(shown) == 1
    assert {(read(pipeline, sink).commit, len(read(pipeline, sink))) for sink in before} == {(3, 30)}
    publish(pipeline.warehouse, "job")
    assert {(read(pipeline, sink).commit, len(read(pipeline, sink))) for sink in before} == {(4, 31)}


def test_a_fork_s_records_begin_with_the_job_s(pipeline, tmp_path) -> None:
    forked = fork_of(pipeline, tmp_path / "fork", "new", 1)
    assert read(pipeline, job="new").to_arrow() == read(pipeline, commit=1).to_arrow()
    forked.run()
    assert {part.topic for part in read(pipeline, job="new").segments} == {"counts", "counts.new"}
    assert read(pipeline, job="new").to_arrow() == read(pipeline).to_arrow()  # offsets, too
    assert open_archive(pipeline.warehouse, "counts.new").rows == 20


@pytest.mark.parametrize(("sink", "job", "commit", "what"), [
    ("countz", "job", "latest", "the job does not write this topic"),
    ("counts", "jub", "latest", "the job has no commits"),
    ("counts", "job", 9, "there is no such commit"),
    ("counts", "job@x", "latest", "a commit is a number"),
    ("counts", "job@1", 2, "two commits are given"),
    ("counts", "job", "newest", "a commit is a number .*latest"),
    ("counts", "job", True, "a commit is a number"),
])  # fmt: skip
def test_what_cannot_be_read(pipeline, sink, job, commit, what) -> None:
    with pytest.raises(ConfigurationError, match=what):
        read(pipeline, sink, job, commit)


def test_as_a_stream_of_batches(pipeline, tmp_path) -> None:
    for found in (read(pipeline), read(pipeline, commit=2), read(pipeline, "job-late")):
        records = found.to_reader()
        assert records.schema.names == ["partition", "offset", "timestamp", "key", "value", "headers"]
        assert records.read_all().to_pylist() == found.to_arrow(flat=False).to_pylist()
    records = read(pipeline).to_reader()
    assert duckdb.sql("select count(*), max(value) from records").fetchall() == [(30, 10)]


def test_a_version_for_time_travel(pipeline) -> None:
    found = read(pipeline, commit=2)
    (version,) = found.versions.values()
    rollback(pipeline.warehouse, "job", 1, now_ms=1)
    table = pa.table(DeltaTable(open_archive(pipeline.warehouse, "counts").uri, version).to_pyarrow_table())
    ends = {part.partition: part.end_offset for part in found.segments}
    rows = [row for row in table.to_pylist() if row["offset"] < ends.get(row["partition"], 0)]
    assert sorted((r["partition"], r["offset"], r["value"]) for r in rows) == [
        (r["partition"], r["offset"], r["value"]) for r in found.to_arrow().to_pylist()
    ]


@pytest.mark.spark
def test_with_spark(pipeline, tmp_path, spark) -> None:
    fork_of(pipeline, tmp_path, "fork", 1).run()
    maintain(pipeline.warehouse, "job", Retention(1), now_ms=2, files=FilePolicy("x", 2**20, 0, fully=True))
    for found in (read(pipeline), read(pipeline, commit=2), read(pipeline, job="fork"), read(pipeline, "job-late")):
        frame = found.to_spark(spark)
        assert frame.columns == ["partition", "offset", "timestamp", "key", "value", "headers"]
        rows = [
            (r["partition"], r["offset"], r["key"], r["value"]) for r in frame.orderBy("partition", "offset").collect()
        ]
        expected = found.to_arrow(flat=False).to_pylist()
        assert rows == [(r["partition"], r["offset"], r["key"], r["value"]) for r in expected]
        assert frame.count() == len(found)
