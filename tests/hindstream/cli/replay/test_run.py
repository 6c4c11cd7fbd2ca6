"""``hindstream run --dry-run``: what a run would do, and that nothing is written; the numbers against a real run."""

from __future__ import annotations

import json
from contextlib import nullcontext
from hashlib import sha256

import pyarrow as pa
import pyarrow.compute as pc
import pytest
import typer

from hindstream.cli.replay.run import print_preview
from hindstream.spark.phases.preview import preview
from statelib import ConfigurationError, Job, Materialized, StreamsBuilder, expect, load_job
from statelib.commits import NothingToDo
from statelib.commits.layout import CommitLog
from statelib.settings.settings import Settings
from tests.command import hindstream
from tests.task.pipeline import Pipeline

BETWEEN = "expect_column_values_to_be_between"


def job(*expectations, named: str = "kept", store: str = "counts") -> Job:
    builder = StreamsBuilder(named)
    events = builder.stream("events").filter(pc.field("value") > 1)
    events.group_by_key().count(materialized=Materialized.as_(store)).to_stream().to("out")
    return Job(named, builder.build(), {"out": expectations} if expectations else {})


@pytest.fixture
def pipeline(tmp_path) -> Pipeline:
    pipeline = Pipeline(tmp_path, job().topology, "kept", changelogs=("counts",))
    pipeline.archive("events", [(f"k{n % 5}", n % 3, n) for n in range(90)], (pa.string(), pa.int64()), partitions=3)
    return pipeline


@pytest.fixture
def settings(tmp_path) -> Settings:
    return Settings(warehouse=str(tmp_path / "warehouse"), state_dir=tmp_path / "state", changelogs=("counts",))


def content(folder) -> dict[str, str]:
    return {str(p): sha256(p.read_bytes()).hexdigest() if p.is_file() else "" for p in folder.rglob("*")}


def test_it_reads_what_a_run_reads_and_writes_nothing(pipeline, settings, tmp_path) -> None:
    before = content(tmp_path)
    found = preview(job(), settings)
    assert content(tmp_path) == before
    planned = pipeline.plan()
    ranges = {(p.topic, p.partition, p.start_offset, p.end_offset, p.records) for t in planned.tasks for p in t.sources}
    shown = {(p.topic, p.partition, p.start_offset, p.end_offset, p.records) for p in found.reads}
    assert shown == {part for part in ranges if part[-1]}
    assert found.partitions == 3
    assert found.planned.run_id == planned.run_id
    assert not found.is_resumed
    assert all(part.files == 1 and part.size_bytes > 0 for part in found.reads)
    assert preview(job(), settings).is_resumed


def test_it_goes_on_from_the_newest_commit(pipeline, settings, tmp_path) -> None:
    pipeline.run(until_ms=45)
    before = content(tmp_path)
    found = preview(job(), settings.model_copy(update={"until": 60}))
    assert (found.planned.commit, sum(part.records for part in found.reads)) == (2, 15)
    assert found.estimate.runs == 1
    assert isinstance(preview(job(), settings.model_copy(update={"until": 10})).planned, NothingToDo)
    assert content(tmp_path) == before


def test_all_expectations_that_do_not_fit_are_told(pipeline, settings, capsys) -> None:
    wrong = job(
        expect(BETWEEN, column="valu", min_value=1),
        expect(BETWEEN, column="value", min_value=1),
        expect(BETWEEN, column="value", min_valu=1),
    )
    found = preview(wrong, settings)
    assert [problem.what for problem in found.problems] == [
        f"{BETWEEN} has no parameter min_valu",
        f"{BETWEEN} is about the column valu, which the topic does not have",
    ]
    with pytest.raises(typer.Exit, match="78"):
        print_preview(wrong, settings, "table")
    text = capsys.readouterr().out
    assert "did you mean value" in text
    assert "Expectations that can be asked: 1 of 3." in text
    assert text.endswith("Nothing was changed.\n")


def test_a_changed_topology_is_told_and_nothing_is_copied(pipeline, settings, tmp_path) -> None:
    pipeline.run(until_ms=45)
    before = content(tmp_path)
    with pytest.raises(ConfigurationError, match="counts=renamed"):
        preview(job(store="renamed"), settings)
    renamed = settings.model_copy(update={"migrate_stores": ("counts=renamed",), "changelogs": ("renamed",)})
    found = preview(job(store="renamed"), renamed)
    assert found.planned.evolution.migrations
    assert content(tmp_path) == before
    assert CommitLog(pipeline.warehouse, "kept").head_number() == 1


JOB = """
from hindstream import Job, StreamsBuilder, expect

def job() -> Job:
    builder = StreamsBuilder("kept")
    builder.stream("events").to("out")
    return Job("kept", builder.build(), {"out": (expect("expect_column_values_to_not_be_null", column="%s"),)})
"""


def test_the_command_says_it_all(pipeline, tmp_path) -> None:
    (tmp_path / "job.py").write_text(JOB % "key")
    shown = hindstream("run", "job.py:job", "--dry-run", "--until", "1970-01-01T00:00:00.045Z", cwd=tmp_path)
    assert shown.returncode == 0, shown.stderr
    assert shown.stdout.startswith("kept would make run 00000001-1, for commit 1: 45 records, before ")
    assert "Expectations that can be asked: 1 of 1." in shown.stdout
    assert "there is no former run to tell by" in shown.stdout
    assert not (tmp_path / "warehouse" / "jobs").exists()


@pytest.mark.parametrize("options", [(), ("--quiet",)])
def test_what_came_of_it_is_said_once(pipeline, tmp_path, options) -> None:
    del pipeline
    (tmp_path / "job.py").write_text(JOB % "key")
    run = (*options, "run", "job.py:job", "--engine", "local", "--set", "data_docs=failed")
    first, again = (hindstream(*run, cwd=tmp_path) for _ in range(2))
    planned = hindstream(*options, "plan", "job.py:job", cwd=tmp_path)
    assert (first.returncode, again.returncode, planned.returncode) == (0, 0, 0), first.stderr
    assert first.stdout.startswith("Report: ")
    assert (first.stdout + first.stderr).count("00000001-1.html") == 1
    for told in (again, planned):
        assert told.stdout.strip() == "kept: nothing new since commit 1; nothing was changed"
        assert (told.stdout + told.stderr).count("nothing new") == 1
    assert ("is commit 1" in first.stderr) == (not options)


def test_the_log_says_all_of_it_where_the_result_is_for_a_program(pipeline, tmp_path) -> None:
    del pipeline
    (tmp_path / "job.py").write_text(JOB % "key")
    run = ("run", "job.py:job", "--engine", "local", "--set", "data_docs=failed", "--output", "json")
    first, again = (hindstream(*run, cwd=tmp_path) for _ in range(2))
    assert json.loads(first.stdout)["report"] in first.stderr
    assert json.loads(again.stdout)["message"] in again.stderr


@pytest.mark.parametrize(("column", "problems"), [("key", 0), ("keys", 1)])
def test_a_program_gets_all_of_it(pipeline, settings, tmp_path, capsys, column, problems) -> None:
    (tmp_path / "job.py").write_text(JOB % column)
    loaded = load_job(f"{tmp_path}/job.py:job")
    with pytest.raises(typer.Exit, match="78") if problems else nullcontext():
        print_preview(loaded, settings.model_copy(update={"changelogs": ()}), "json")
    found = json.loads(capsys.readouterr().out)
    assert (found["run"], found["records"], len(found["problems"])) == ("00000001-1", 90, problems)
    assert {part["topic"] for part in found["reads"]} == {"events"}
    assert sum(part["records"] for part in found["reads"]) == 90
    assert all("did you mean key?" in problem for problem in found["problems"])


def test_what_a_plan_refuses_is_refused(settings, tmp_path) -> None:
    with pytest.raises(ConfigurationError, match="no such warehouse"):
        preview(job(), settings)
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "warehouse").mkdir()
    with pytest.raises(ConfigurationError, match="no topic archive"):
        preview(job(), settings)
