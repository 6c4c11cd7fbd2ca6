"""``hindstream promote`` as a user meets it: what is said, what readers get, what is refused."""

from __future__ import annotations

import json

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from typer.testing import CliRunner

import hindstream as library
from hindstream.cli.main import app
from statelib import StreamsBuilder, load_job
from statelib.commits.versions.fork import fork
from statelib.errors.kinds import ConfigurationError
from tests.hindstream.cli.versions.test_fork import FILE
from tests.task.pipeline import Pipeline


@pytest.fixture
def pipeline(tmp_path, monkeypatch) -> Pipeline:
    """A job, and a fork of it that has come as far, and counts otherwise."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "jobs.py").write_text(FILE)
    made = Pipeline(tmp_path, load_job(f"{tmp_path}/jobs.py:job").topology, "counting")
    made.archive("views", [(f"k{n % 3}", n, n) for n in range(30)], (pa.string(), pa.int64()))
    made.run(10)
    made.run()
    fork(made.warehouse, "counting", "newer", 1, now_ms=0)
    of_fork = made.topology.with_sinks({"counts": "counts.newer"})
    Pipeline(tmp_path, of_fork, "newer", warehouse=made.warehouse.uri("")).run()
    return made


def called(pipeline: Pipeline, *arguments: str) -> str:
    command = [*arguments, "--warehouse", pipeline.warehouse.uri("")]
    return CliRunner().invoke(app, command, catch_exceptions=False, obj={}).output


def who_is_read(pipeline: Pipeline) -> str:
    return library.read("counts", job="counting", warehouse=pipeline.warehouse.uri("")).job


def test_there_and_back(pipeline):
    assert called(pipeline, "promote", "newer", "--over", "counting") == (
        "Readers of counting read newer@2 from now on (promotion 1).\n"
        "The way back: hindstream promote --back --over counting\n"
        "If they read views of SQL, make these again: hindstream views counting --dialect ENGINE\n"
    )
    assert who_is_read(pipeline) == "newer"
    assert "serves the readers of counting" in " ".join(called(pipeline, "jobs").split())
    told = called(pipeline, "promote", "--back", "--over", "counting")
    assert told.splitlines()[0] == "Readers of counting read the job itself from now on (promotion 2)."
    assert who_is_read(pipeline) == "counting"
    assert "serves" not in called(pipeline, "jobs")


def test_a_promotion_that_changes_nothing_says_so(pipeline):
    assert called(pipeline, "promote", "counting", "--over", "counting") == (
        "Readers of counting read the job itself, as before.\n"
    )
    called(pipeline, "promote", "newer", "--over", "counting")
    assert called(pipeline, "promote", "newer", "--over", "counting") == (
        "Readers of counting read newer@2, as before (promotion 1).\n"
        "The way back: hindstream promote --back --over counting\n"
    )


def test_for_a_program(pipeline):
    made = json.loads(called(pipeline, "promote", "newer", "--over", "counting", "--output", "json").splitlines()[-1])
    assert (made["serving"], made["commit"], made["number"]) == ("newer", 2, 1)
    jobs = [json.loads(line) for line in called(pipeline, "jobs", "--output", "json").splitlines()]
    assert {one["job"]: one["serves"] for one in jobs} == {"counting": [], "newer": ["counting"]}


@pytest.mark.parametrize("arguments", [("--over", "counting"), ("newer", "--over", "counting", "--back")])
def test_one_way_is_given(pipeline, arguments):
    with pytest.raises(ConfigurationError, match="give either the fork to promote, or --back"):
        called(pipeline, "promote", *arguments)


def test_a_file_to_publish_that_is_not_there_moves_nobody(pipeline):
    for arguments in (("newer", "--over", "counting"), ("--back", "--over", "counting")):
        before = who_is_read(pipeline)
        with pytest.raises(ConfigurationError, match="there is no such file"):
            called(pipeline, "promote", *arguments, "--publish", "elsewhere.py:job")
        assert who_is_read(pipeline) == before
        told = called(pipeline, "promote", *arguments, "--publish", "jobs.py:job")
        assert "jobs.py:job declares no topics of Kafka and no Iceberg tables" in told
    assert who_is_read(pipeline) == "counting"


@pytest.mark.parametrize("arguments", [("newer", "--over", "countin"), ("--back", "--over", "countin")])
def test_a_job_whose_name_is_misspelt_is_asked_about(pipeline, arguments):
    with pytest.raises(
        ConfigurationError, match=r"the job has no commits \(job countin\). Next: did you mean counting"
    ):
        called(pipeline, "promote", *arguments)


def test_views_for_duckdb_change_at_once(pipeline):
    called(pipeline, "promote", "newer", "--over", "counting")
    told = called(pipeline, "views", "counting", "--dialect", "duckdb").splitlines()
    assert told[:3] == ["-- What the readers of counting read: newer.", "", "BEGIN TRANSACTION;"]
    assert told[-1] == "COMMIT;"
    assert f"FROM delta_scan('{pipeline.warehouse.uri('topics/counts.newer')}');" in told


def test_views_for_a_program(pipeline):
    told = json.loads(
        called(pipeline, "views", "counting", "--dialect", "spark", "--schema", "gold", "--output", "json")
    )
    assert (told["job"], told["serving"]) == ("counting", "counting")
    (view,) = told["views"]
    assert (view["sink"], view["name"], view["is_complete"]) == ("counts", "`gold`.`counts_current`", True)
    assert view["sql"].startswith("CREATE OR REPLACE VIEW `gold`.`counts_current` AS\nSELECT ")


def test_a_sink_that_the_fork_has_written_nothing_to_is_said(tmp_path):
    builder = StreamsBuilder("counting")
    views = builder.stream("views")
    views.filter(pc.field("value") < 10).to("small")
    views.to("all")
    job = Pipeline(tmp_path, builder.build(), "counting")
    job.archive("views", [(f"k{n % 3}", n, n) for n in range(30)], (pa.string(), pa.int64()))
    job.run(15)
    job.run()
    fork(job.warehouse, "counting", "newer", 1, now_ms=0)
    of_fork = job.topology.with_sinks({name: f"{name}.newer" for name in ("small", "all")})
    Pipeline(tmp_path, of_fork, "newer", warehouse=job.warehouse.uri("")).run()
    called(job, "promote", "newer", "--over", "counting")
    result = CliRunner().invoke(
        app, ["views", "counting", "--dialect", "spark", "--warehouse", job.warehouse.uri("")], obj={}
    )
    assert result.stderr == "newer has written nothing to small yet. Make its view again when it has.\n"
    assert "topics/all.newer" in result.stdout
    assert "topics/small.newer" not in result.stdout


SERVED = "Readers of counting read newer."


def test_commands_say_who_is_read(pipeline):
    looks = [
        ("status", "counting"),
        ("status", "newer"),
        ("show", "counts", "--limit", "1"),
        ("show", "counts.newer", "--limit", "1"),
        ("diff", "counting", "newer", "--limit", "0"),
    ]
    assert [look for look in looks if SERVED in called(pipeline, *look)] == []
    called(pipeline, "promote", "newer", "--over", "counting")
    assert [look for look in looks if SERVED not in called(pipeline, *look)] == []
    assert SERVED not in called(pipeline, "show", "views", "--limit", "1")
    for job, serves in (("counting", []), ("newer", ["counting"])):
        told = json.loads(called(pipeline, "status", job, "--output", "json"))
        assert (told["serves"], told["served_by"]) == (serves, "newer")


def test_a_rollback_says_whose_readers_go_back(pipeline):
    called(pipeline, "promote", "newer", "--over", "counting")
    told = called(pipeline, "state", "rollback", "newer", "--to", "1", "--dry-run")
    assert "The readers of counting read this job, and go back with it.\n" in told
    told = called(pipeline, "state", "rollback", "newer", "--to", "1", "--dry-run", "--output", "json")
    assert json.loads(told.splitlines()[-2])["serves"] == ["counting"]


def test_two_sinks_never_share_a_view(tmp_path):
    builder = StreamsBuilder("counting")
    views = builder.stream("views")
    views.to("by-day")
    views.to("by.day")
    job = Pipeline(tmp_path, builder.build(), "counting")
    job.archive("views", [("k", 1, 1)], (pa.string(), pa.int64()))
    job.run()
    with pytest.raises(ConfigurationError, match='the view "by_day_current" would be that of by-day too'):
        called(job, "views", "counting", "--dialect", "duckdb")
