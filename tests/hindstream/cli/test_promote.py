"""``hindstream promote`` as a user meets it: what is said, what readers get, what is refused."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest
from typer.testing import CliRunner

import hindstream as library
from hindstream.cli.main import app
from statelib import load_job
from statelib.commits.fork import fork
from statelib.errors.kinds import ConfigurationError
from tests.hindstream.cli.test_fork import FILE
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
    )
    assert who_is_read(pipeline) == "newer"
    assert "serves the readers of counting" in " ".join(called(pipeline, "jobs").split())
    told = called(pipeline, "promote", "--back", "--over", "counting")
    assert told == "Readers of counting read the job itself from now on (promotion 2).\n"
    assert who_is_read(pipeline) == "counting"
    assert "serves" not in called(pipeline, "jobs")


def test_for_a_program(pipeline):
    made = json.loads(called(pipeline, "promote", "newer", "--over", "counting", "--output", "json").splitlines()[-1])
    assert (made["serving"], made["commit"], made["number"]) == ("newer", 2, 1)
    jobs = [json.loads(line) for line in called(pipeline, "jobs", "--output", "json").splitlines()]
    assert {one["job"]: one["serves"] for one in jobs} == {"counting": [], "newer": ["counting"]}


@pytest.mark.parametrize("arguments", [("--over", "counting"), ("newer", "--over", "counting", "--back")])
def test_one_way_is_given(pipeline, arguments):
    with pytest.raises(ConfigurationError, match="give either the fork to promote, or --back"):
        called(pipeline, "promote", *arguments)
