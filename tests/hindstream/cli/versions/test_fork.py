"""``hindstream fork`` and ``drop`` as a user meets them, with runs of the fork in between."""

from __future__ import annotations

import json
from dataclasses import replace

import pyarrow as pa
import pytest

import hindstream as library
from hindstream.spark.phases import publish
from statelib import KafkaTopic, load_job
from statelib.commits import CommitLog
from statelib.commits.versions.fork import fork
from statelib.commits.versions.sink_history import sink_history
from statelib.settings.settings import load_settings
from tests.command import hindstream
from tests.task.pipeline import Pipeline

FILE = """
from hindstream import Job, Materialized, StreamsBuilder, expect

builder = StreamsBuilder("counting")
builder.stream("views").group_by_key().count(Materialized.as_("kept")).to_stream().to("counts")
job = Job(
    "counting",
    builder.build(),
    expectations={"counts": (expect("expect_column_values_to_not_be_null", column="key"),)},
    figures=lambda warehouse: (),
)
never_run = Job("never", builder.build())
"""


@pytest.fixture
def pipeline(tmp_path) -> Pipeline:
    (tmp_path / "jobs.py").write_text(FILE)
    made = Pipeline(tmp_path, load_job(f"{tmp_path}/jobs.py:job").topology, "counting")
    made.archive("views", [(f"k{n % 3}", n, n) for n in range(30)], (pa.string(), pa.int64()))
    made.run(10)
    made.run(20)
    return made


def done(tmp_path, *arguments, code=0) -> str:
    result = hindstream(*arguments, cwd=tmp_path)
    assert result.returncode == code, result.stderr
    return result.stdout if not code else result.stderr


@pytest.mark.slow
def test_from_the_fork_to_its_end(pipeline, tmp_path) -> None:
    pipeline.run()
    before = sorted(entry.path for entry in pipeline.warehouse.list())
    told = done(tmp_path, "fork", "jobs.py:job@1", "longer")
    assert told.startswith("longer goes on from commit 1 of counting, and shares its ")
    assert "hindstream run FILE.py:NAME --fork longer [--until TIME]" in told
    local = ("--engine", "local", "--fork", "longer")
    done(tmp_path, "run", "jobs.py:job", *local, "--until", "1970-01-01T00:00:00.015Z")
    done(tmp_path, "run", "jobs.py:job", *local)
    rows, expected = pipeline.output("counts.longer"), pipeline.output("counts")
    assert [row[2:] for row in rows] == [row[2:] for row in expected[10:]]
    assert [part.topic for part in sink_history(pipeline.warehouse, "longer")["counts"]] == ["counts", "counts.longer"]
    listed = done(tmp_path, "state", "jobs.py:job", "--set", "fork=longer")
    assert "forked from counting@1" in listed
    assert not json.loads(done(tmp_path, "state", "verify", "longer", "--all", "--output", "json"))["damages"]
    assert "fork of counting@1" in done(tmp_path, "jobs")
    assert "the job is no fork" in done(tmp_path, "drop", "counting", "--yes", code=78)
    dropped = done(tmp_path, "drop", "longer", "--yes")
    assert dropped.startswith("longer is gone: ")
    assert dropped.endswith(", and its topics counts.longer.\n")
    after = sorted(entry.path for entry in pipeline.warehouse.list())
    assert [path for path in after if path not in before] == ["jobs/counting/maintenance.json"]
    assert "there is no such fork" in done(tmp_path, "run", "jobs.py:job", *local, code=78)


REFUSED: list[tuple[tuple[str, ...], str]] = [
    (("fork", "counting@x", "new"), "a commit is a number"),
    (("fork", "counting@1", "new", "--commit", "2"), "two commits are given"),
    (("fork", "counting", "new", "--commit", "7"), "there is no such commit"),
    (("drop", "elsewhere", "--yes"), "there is no such fork (job elsewhere). Next: name one: hindstream jobs"),
    (("drop", "countng", "--yes"), "there is no such fork (job countng). Next: did you mean counting?"),
    (("run", "jobs.py:job", "--fork", "new", "--dry-run"), "Next: make it: hindstream fork JOB new"),
    (
        ("run", "jobs.py:job", "--fork", "countng", "--dry-run"),
        "did you mean counting? If not, make it: hindstream fork JOB countng",
    ),
    (("run", "jobs.py:job", "--fork", "counting", "--dry-run"), "a job cannot be a fork of itself"),
    (("run", "jobs.py:job", "--fork", "a name", "--dry-run"), "this cannot be a job's name (job a name)"),
    (("explain", "jobs.py:never_run", "counts", "k"), "the job has no commits (job never)"),
    (("fork", "elsewhere", "new"), "hindstream jobs lists them"),
    (("state", "verify", "elsewhere"), "hindstream jobs lists them"),
    (("state", "rollback", "elsewhere", "--to", "1"), "hindstream jobs lists them"),
    (("state", "verify", "counting", "--commit", "9"), "name one of them: hindstream state counting"),
    (("explain", "jobs.py:job@1", "counts", "k", "--commit", "2"), "two commits are given"),
    (("explain", "jobs.py:job@9", "counts", "k"), "the job has the commits 1 to 2"),
    (("run", "jobs.py:job", "--set", "fork="), "fork"),
    (("fork", "../counting", "new"), "this cannot be a job's name"),
    (("drop", "../counting", "--yes"), "this cannot be a job's name"),
    (("state", "list", "../counting"), "this cannot be a job's name"),
]  # fmt: skip


def test_what_is_refused(pipeline, tmp_path) -> None:
    before = sorted(entry.path for entry in pipeline.warehouse.list())
    for arguments, told in REFUSED:
        assert told in done(tmp_path, *arguments, code=78)
    assert sorted(entry.path for entry in pipeline.warehouse.list()) == before


def test_a_fork_that_is_there_already_is_not_taken_for_a_new_one(pipeline, tmp_path) -> None:
    assert "already" not in done(tmp_path, "fork", "counting", "new", "--commit", "1")
    told = done(tmp_path, "fork", "counting", "new").splitlines()
    assert told[:1] == ["new is there already, and nothing has changed: it has come to its commit 1."]
    assert told[1].startswith("new goes on from commit 1 of counting")


def test_a_rollback_behind_forks_says_what_they_lose(pipeline, tmp_path) -> None:
    for job, new in (("counting@1", "kept"), ("counting@2", "first"), ("first", "second")):
        done(tmp_path, "fork", job, new)
    told = done(tmp_path, "state", "rollback", "counting", "--to", "1", "--dry-run")
    assert "Forks that go on from them: first, second." in told


def test_the_results_of_a_fork_are_explained(pipeline, tmp_path) -> None:
    pipeline.run()
    done(tmp_path, "fork", "counting@1", "new")
    done(tmp_path, "run", "jobs.py:job", "--engine", "local", "--fork", "new")
    found = [
        json.loads(done(tmp_path, "explain", "jobs.py:job", sink, "k1", "--output", "json", *fork))
        for sink, fork in (("counts", ["--fork", "new"]), ("counts.new", ["--set", "fork=new"]), ("counts", []))
    ]
    assert [one["result"]["topic"] for one in found] == ["counts.new", "counts.new", "counts"]
    assert [one["commit"] for one in found] == [2, 2, 3]
    assert found[0]["contributions"] == found[1]["contributions"] == found[2]["contributions"]
    assert len(found[0]["contributions"]) == 10


def test_from_python(pipeline, tmp_path) -> None:
    fork(pipeline.warehouse, "counting", "new", 1, now_ms=0)
    where = {"warehouse": pipeline.warehouse.uri(""), "state_dir": tmp_path / "state", "engine": "local"}
    result = library.run(f"{tmp_path}/jobs.py:job", fork="new", until=20, **where)
    assert len(result.sink("counts.new")) == 10
    again = library.run(library.load_job(f"{tmp_path}/jobs.py:job"), fork="new", **where)
    assert (again.job, CommitLog(pipeline.warehouse, "new").head_number()) == ("new", 3)
    assert CommitLog(pipeline.warehouse, "counting").head_number() == 2


def test_as_a_fork_a_job_reaches_none_of_its_readers(pipeline, tmp_path) -> None:
    original = load_job(f"{tmp_path}/jobs.py:job")
    job = replace(original, kafka_sinks=(KafkaTopic("in-kafka", archive="counts"),)).as_fork("new")
    assert (job.name, job.topology.sink_topics, job.figures) == ("new", ("counts.new",), None)
    assert [(topic.name, topic.archive) for topic in job.kafka_sinks] == [("in-kafka", "counts.new")]
    fork(pipeline.warehouse, "counting", "new", 1, now_ms=0)
    publish.run(job, load_settings({"warehouse": pipeline.warehouse.uri("")}, environ={}))  # there is no cluster
    assert [*job.expectations] == ["counts.new"]
    assert "counts.new" in job.topology.describe()
