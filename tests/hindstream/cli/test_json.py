"""``--output json``: every command that prints has it, and prints JSON alone, an object a line."""

from __future__ import annotations

import json
import sys

import pyarrow as pa
import pyarrow.compute as pc
import pytest
import typer.main

from hindstream.cli.main import app, main
from statelib import Materialized, StreamsBuilder
from tests.command import hindstream
from tests.task.pipeline import Pipeline

PRINT_NOTHING = {
    ("replay",),
    ("audit",),
    ("commit",),
    ("publish",),
    ("maintain",),
    ("report",),
    ("release",),
    ("data-docs",),
}


def leaves(command, path=()):
    if hasattr(command, "commands"):
        for name, inner in command.commands.items():
            yield from leaves(inner, (*path, name))
    else:
        yield path, command


def test_every_command_that_prints_has_the_option() -> None:
    without = {
        path
        for path, command in leaves(typer.main.get_command(app))
        if not any("--output" in parameter.opts for parameter in command.params)
    }
    assert without == PRINT_NOTHING


JOB = """
import pyarrow.compute as pc
from hindstream import Job, Materialized, StreamsBuilder

def job() -> Job:
    builder = StreamsBuilder("kept")
    events = builder.stream("events").filter(pc.field("value") > 1)
    events.group_by_key().count(materialized=Materialized.as_("counts")).to_stream().to("out")
    return Job("kept", builder.build())
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("json")
    builder = StreamsBuilder("kept")
    events = builder.stream("events").filter(pc.field("value") > 1)
    events.group_by_key().count(materialized=Materialized.as_("counts")).to_stream().to("out")
    pipeline = Pipeline(folder, builder.build(), "kept", changelogs=("counts",))
    pipeline.archive("events", [(f"k{n % 5}", n % 3, n) for n in range(90)], (pa.string(), pa.int64()), partitions=2)
    pipeline.run(until_ms=30)
    pipeline.run(until_ms=60)
    (folder / "job.py").write_text(JOB)
    return folder


@pytest.fixture
def objects(folder, monkeypatch, capsys):
    """Calls a command in this process, which takes a second less than one of its own."""
    monkeypatch.chdir(folder)
    monkeypatch.setattr(sys, "path", [*sys.path])

    def call(*arguments: str, code: int = 0) -> list[dict]:
        monkeypatch.setattr(sys, "argv", ["hindstream", *arguments, "--output", "json"])
        with pytest.raises(SystemExit) as ended:
            main()
        shown = capsys.readouterr()
        assert (ended.value.code or 0) == code, shown.err
        return [json.loads(line) for line in shown.out.splitlines()]

    return call


def test_status(objects) -> None:
    (found,) = objects("status", "kept")
    assert [(run["commit"], run["status"], run["records_in"]) for run in found["runs"]] == [
        (1, "committed", 30),
        (2, "committed", 30),
    ]
    assert found["published_through"] == 2
    assert found["runs"][0]["records_by_topic"]["out"] > 0
    assert "counts" in found["stores"]


def test_describe(objects) -> None:
    (found,) = objects("describe", "job.py:job")
    assert (found["job"], found["sources"], found["sinks"]) == ("kept", ["events"], ["out"])
    (sub,) = found["sub_topologies"]
    assert [node["stores"] for node in sub["processors"] if node["stores"]] == [["counts"]]
    assert found["description"].startswith("Topologies:")


def test_plan_and_that_there_is_nothing_to_plan(objects) -> None:
    (found,) = objects("plan", "job.py:job", "--until", "1970-01-01T00:00:00.070Z")
    assert (found["run"], found["records"], found["until_ms"]) == ("00000003-1", 10, 70)
    (found,) = objects("run", "job.py:job", "--until", "1970-01-01T00:00:00.010Z")
    assert (found["nothing_to_do"], found["commit"]) == ("replayed-further", 2)


def test_state(objects) -> None:
    (found,) = objects("state", "list", "kept")
    assert [commit["commit"] for commit in found["commits"]] == [1, 2]
    (found,) = objects("state", "verify", "kept")
    assert (found["commits"], found["damages"]) == ([2], [])
    (found,) = objects("state", "rollback", "kept", "--to", "1", "--dry-run")
    assert (found["to"], found["commits"], found["records"]) == (1, [2], 30)
    (found,) = objects("state", "republish", "kept", "out", "--dry-run")
    assert (found["added"], found["removed"]) == (0, 0)
    (found,) = objects("state", "rebuild", "kept", "--dry-run")
    assert found["changelogs"] == {}
    (found,) = objects("state", "lag", "kept", "counts")
    assert found["changelog"] == "kept-counts-changelog"
    assert sum(partition["records"] for partition in found["partitions"]) == 20


def test_damage_is_in_the_result_too(objects, folder) -> None:
    (file,) = (folder / "warehouse" / "topics" / "out" / "partition=0").glob("*00000000000000000000-*")
    content = file.read_bytes()
    file.write_bytes(content[:-1])
    try:
        (found,) = objects("state", "verify", "kept", "--all", code=74)
        assert len(found["damages"]) == 1
    finally:
        file.write_bytes(content)


def test_topic(objects) -> None:
    found = objects("topic", "history", "out")
    assert [made["version"] for made in found] == [2, 1, 0]
    assert all(made["is_ours"] for made in found)


def test_doctor(objects) -> None:
    found = objects("doctor", "kept", "--no-spark")
    assert {"Java", "warehouse", "job kept"} <= {finding["about"] for finding in found}
    assert {finding["state"] for finding in found} <= {"ok", "look"}


def test_sentences_for_a_person_go_elsewhere(folder) -> None:
    result = hindstream("state", "rollback", "kept", "--to", "1", "--dry-run", "--output", "json", cwd=folder)
    assert "Commits rolled back: 2." in result.stderr
    json.loads(result.stdout)


@pytest.mark.parametrize("arguments", [("diff", "a", "b"), ("jobs",), ("fork", "a", "b")])
def test_an_error_is_text_on_standard_error(tmp_path, arguments) -> None:
    ended = hindstream(*arguments, "--output", "json", "--warehouse", "nowhere", cwd=tmp_path)
    assert (ended.returncode, ended.stdout) == (78, "")
    assert ended.stderr.startswith("hindstream: ")
    assert " Next: " in ended.stderr
