"""``hindstream repair`` as a user meets it: a job that was wrong for a while, its readers, and what is left behind."""

from __future__ import annotations

import json
import re
from collections import Counter
from typing import Any

import pyarrow as pa
import pytest
from typer.testing import CliRunner

import hindstream as library
from hindstream.cli.main import app
from hindstream.lineage import emission
from hindstream.report.history import History
from hindstream.report.write import write_job_report
from statelib import load_job
from statelib.commits import CommitLog
from statelib.commits.forks import forks_of
from tests.hindstream.lineage.receiver import receiver
from tests.hindstream.test_trials import FILE as SHORT
from tests.hindstream.test_trials import LONGER
from tests.ingest.iceberg import catalog_in
from tests.task.pipeline import Pipeline

FILE = """
import pyarrow.compute as pc

from hindstream import Job, StreamsBuilder

LEAST = 20

builder = StreamsBuilder("counting")
large = builder.stream("views").filter(pc.field("value") >= LEAST)
large.to("large")
large.group_by_key().count().to_stream().to("counts")
job = Job("counting", builder.build())
"""
WRONG = FILE.replace("LEAST = 20", "LEAST = 60")
CUTS = (20_000, 40_000, 60_000, 80_000)


def run_of(folder, name, wrong_from) -> Pipeline:
    """The job, wrong from a commit on."""
    right = Pipeline(folder / name, load_job(f"{folder}/right.py:job").topology, "counting")
    wrong = Pipeline(folder / name, load_job(f"{folder}/wrong.py:job").topology, "counting")
    records = [(f"k{n % 3}", n * 37 % 100, n * 1000) for n in range(100)]
    right.archive("views", records, (pa.string(), pa.int64()), partitions=2)
    for number, cut in enumerate(CUTS):
        (right if number < wrong_from else wrong).run(cut)
    return right


def late_job(folder, name: str, file: str) -> Pipeline:
    """A job of windows that was a record short, which came late."""
    (folder / f"{name}.py").write_text(file)
    made = Pipeline(folder / name, load_job(f"{folder}/{name}.py:job").topology, "counting")
    records = [(f"k{n % 3}", n, n * 1000) for n in range(100)]
    records[62:62] = [("k0", 0, 59_000)]
    made.archive("views", records, (pa.string(), pa.int64()), partitions=1)
    for cut in CUTS:
        made.run(cut)
    return made


@pytest.fixture
def folder(tmp_path, monkeypatch):
    (tmp_path / "right.py").write_text(FILE)
    (tmp_path / "wrong.py").write_text(WRONG)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HINDSTREAM_STATE_DIR", str(tmp_path / "local"))
    monkeypatch.setenv("HINDSTREAM_ENGINE", "local")
    return tmp_path


def called(pipeline: Pipeline, *arguments: str, answer: str | None = None, caught: bool = False) -> Any:
    command = [*arguments, "--warehouse", pipeline.warehouse.uri("")]
    return CliRunner().invoke(app, command, input=answer, catch_exceptions=caught, obj={})


def files(pipeline: Pipeline) -> set[tuple[str, int]]:
    """All of the warehouse but for what maintenance knows of forks."""
    listed = {(entry.path, entry.size_bytes) for entry in pipeline.warehouse.list()}
    return {file for file in listed if not file[0].endswith("maintenance.json")}


def newest(pipeline: Pipeline) -> dict[str, Any]:
    found = library.read("counts", job="counting", warehouse=pipeline.warehouse.uri(""))
    return {str(row["key"]): row["value"] for row in found.to_arrow(flat=False).to_pylist()}


@pytest.mark.parametrize(("start", "wrong_from", "begins"), [
    ("41000", 2, "goes on from commit 2"),
    ("30000", 2, "goes on from commit 1"),
    ("1000", 0, "replays from the beginning"),
])  # fmt: skip
def test_a_job_that_was_wrong_is_repaired(folder, start, wrong_from, begins):
    never, job = run_of(folder, "never", 4), run_of(folder, "job", wrong_from)
    assert newest(job) != newest(never)
    done = called(job, "repair", "right.py:job", "--from", start, answer="y\n")
    assert done.exit_code == 0, done.output
    assert begins in done.output
    assert "of counts differ" in done.output
    assert "Commit 5 repairs counting: it has written 3 to counts, " in done.output
    assert newest(job) == newest(never)
    assert forks_of(job.warehouse, "counting") == ()
    assert called(job, "run", "right.py:job").exit_code == 0
    never.run()
    assert newest(job) == newest(never)
    assert "repaired by" in called(job, "state", "list", "counting").output


def test_a_repair_reaches_tables_of_a_catalog_at_once(folder, monkeypatch):
    """Readers of these wait for no further slice."""
    catalog = catalog_in(folder / "lake", monkeypatch)
    for name in ("right", "wrong"):
        text = (folder / f"{name}.py").read_text().replace("import Job,", "import IcebergTable, Job,")
        sinks = 'iceberg_sinks=(IcebergTable("lake.shop.counts", archive="counts"),)'
        (folder / f"{name}.py").write_text(text.replace("builder.build())", f"builder.build(), {sinks})"))
    job = run_of(folder, "job", 2)
    assert called(job, "publish", "wrong.py:job").exit_code == 0
    done = called(job, "repair", "right.py:job", "--from", "41000", "--yes")
    assert done.exit_code == 0, done.output
    rows = catalog.load_table("shop.counts").scan().to_arrow().sort_by("offset").to_pylist()
    assert {row["key"]: row["value"] for row in rows} == newest(job)


def test_late_records_are_let_in_by_a_longer_grace_period(folder):
    """What was final when they came is corrected, window by window."""
    job, never = late_job(folder, "short", SHORT), late_job(folder, "longer", LONGER)
    fill = "fill_stores=KSTREAM-AGGREGATE-STATE-STORE-0000000001"
    assert newest(job) != newest(never)
    done = called(job, "repair", "longer.py:job", "--from", "50000", "--set", fill, "--yes")
    assert done.exit_code == 0, done.output
    assert "goes on from commit 2" in done.output
    assert "it has written 1 to counts." in done.output
    assert newest(job) == newest(never)


def test_late_records_are_let_in_by_the_jobs_own_file(folder):
    job, never = late_job(folder, "short", SHORT), late_job(folder, "longer", LONGER)
    assert newest(job) != newest(never)
    done = called(job, "repair", "short.py:job", "--from", "60000", "--late", answer="y\n")
    assert done.exit_code == 0, done.output
    assert "goes on from commit 2" in done.output  # for the windows that the record may meet
    assert "Then short.py:job replays what came from 1970-01-01T00:01:00.000Z on; 1 slice." in done.output
    assert "records came too late for a window 1 time, by up to 2 s." in done.output
    assert "it has written 1 to counts." in done.output
    assert newest(job) == newest(never)
    again = called(job, "repair", "short.py:job", "--from", "60000", "--late", "--yes")
    assert "its sinks were right, and get no record" in again.output, again.output
    assert called(job, "run", "short.py:job").exit_code == 0
    never.run()
    assert newest(job) == newest(never)


def test_late_records_of_another_time_stay_out(folder):
    job = late_job(folder, "short", SHORT)
    for interval in (("--from", "20000", "--to", "40000"), ("--from", "80000")):
        done = called(job, "repair", "short.py:job", *interval, "--late", "--yes", caught=True)
        assert re.search("no record of this interval came too late|nothing lies between", str(done.exception))


@pytest.mark.parametrize(("arguments", "says"), [
    (("longer.py:job",), "the file is not what the job runs, and late records are let in by the job's own file"),
    (("short.py:job", "--then", "short.py:job"), "late records are let in by the job's own file"),
])  # fmt: skip
def test_late_records_need_the_jobs_own_file(folder, arguments, says):
    job = late_job(folder, "short", SHORT)
    (folder / "longer.py").write_text(LONGER)
    done = called(job, "repair", *arguments, "--from", "60000", "--late", "--yes", caught=True)
    assert says in str(done.exception)
    assert forks_of(job.warehouse, "counting") == ()


def test_only_the_keys_that_are_named_change(folder):
    job = late_job(folder, "short", SHORT)
    before = files(job)
    refused = called(job, "repair", "short.py:job", "--from", "60000", "--late", "--keys", "k1", "--yes", caught=True)
    assert "other keys would change: in counts 1 difference of k0" in str(refused.exception)
    assert files(job) == before
    done = called(job, "repair", "short.py:job", "--from", "60000", "--late", "--keys", "k1", "--keys", "k0", "--yes")
    assert done.exit_code == 0, done.output
    assert "it has written 1 to counts." in done.output


def test_keys_are_a_bound_of_every_sink(folder):
    """Of one with windows the key without them counts, of others all of it."""
    job = run_of(folder, "job", 2)
    options = ("--from", "41000", "--yes")
    refused = called(job, "repair", "right.py:job", *options, "--keys", "k0", caught=True)
    assert re.search(r"in counts 2 differences of k\d, k\d; in large \d+ differences of k", str(refused.exception))
    done = called(job, "repair", "right.py:job", *options, "--keys", "k0", "--keys", "k1", "--keys", "k2")
    assert done.exit_code == 0, done.output


def test_no_leaves_all_as_it_was(folder):
    job = run_of(folder, "job", 2)
    before = files(job)
    done = called(job, "repair", "right.py:job", "--from", "41000", answer="n\n")
    assert done.exit_code == 1
    assert files(job) == before


def test_a_page_that_cannot_be_written_is_refused_before_anything_is_replayed(folder, monkeypatch):
    monkeypatch.setattr("hindstream.cli.mend.repair.begin", None)
    job = run_of(folder, "job", 2)
    done = called(job, "repair", "right.py:job", "--from", "41000", "--page", "nowhere/page.html", caught=True)
    assert "the page cannot be written" in str(done.exception)


def test_for_a_program(folder):
    job = run_of(folder, "job", 2)
    done = called(job, "repair", "right.py:job", "--from", "41000", "--yes", "--output", "json", "--keep", "corrected")
    difference, result = (json.loads(line) for line in done.stdout.splitlines())
    assert not difference["is_empty"]
    assert (result["job"], result["commit"]) == ("counting", 5)
    assert result["records"]["counts"] == 3
    assert forks_of(job.warehouse, "counting") == ("corrected",)
    assert CommitLog(job.warehouse, "counting").head().repaired_by.job == "corrected"


def test_a_job_that_was_right_gets_no_record(folder):
    job = run_of(folder, "job", 4)
    done = called(job, "repair", "right.py:job", "--from", "41000", "--yes")
    assert "its sinks were right, and get no record" in done.output


def test_status_and_the_report_tell_what_a_repair_has_written(folder):
    job = run_of(folder, "job", 2)
    assert called(job, "repair", "right.py:job", "--from", "41000", "--yes").exit_code == 0
    written = Counter({sink.topic: 0 for sink in CommitLog(job.warehouse, "counting").read(5).sinks})
    for sink in CommitLog(job.warehouse, "counting").read(5).sinks:
        written[sink.topic] += sink.file.rows
    told = json.loads(called(job, "status", "counting", "--output", "json").stdout)
    *before, repaired = told["runs"]
    assert (repaired["records_by_topic"], repaired["records_in"]) == (written, 0)
    assert repaired["state_bytes"] > 0
    assert told["stores"]  # those of the last run that has replayed
    write_job_report(job.warehouse, load_job(f"{folder}/right.py:job"))
    history = History.decode(job.warehouse.get("jobs/counting/reports/history.json"))
    assert (history.through, history.newest[-1].is_committed) == (5, True)
    assert history.records_out == sum(run["records_out"] for run in before) + written.total()
    assert sum(node.accounts.get("written", 0) for node in history.nodes.values()) == history.records_out
    assert all(node.unaccounted == 0 for node in history.nodes.values())
    page = job.warehouse.get("jobs/counting/reports/00000005-1.html").decode()
    assert f">{written.total()}<" in "".join(page.split())


def test_an_interval_is_repaired_with_another_file_and_the_job_goes_on_with_its_own(folder):
    job = run_of(folder, "job", 0)
    before = newest(job)
    refused = called(job, "repair", "right.py:job", "--from", "20000", "--to", "50000", "--yes", caught=True)
    assert "the file is not what the job runs, and after --to it would go on with it" in str(refused.exception)
    options = ("--from", "20000", "--to", "50000", "--then", "wrong.py:job")
    done = called(job, "repair", "right.py:job", *options, answer="y\n")
    assert done.exit_code == 0, done.output
    assert "right.py:job, as repair-" in done.output
    assert "Then wrong.py:job replays what came from 1970-01-01T00:00:50.000Z on; 1 slice." in done.output
    assert "Of counts, 3 of 3 are of 1970-01-01T00:00:50.000Z or later: state carries the interval on." in done.output
    assert re.search(r"Of large, 0 of \d+ are of 1970-01-01T00:00:50.000Z or later\.\n", done.output)
    right = [n * 37 % 100 for n in range(20, 50)]
    assert sum(newest(job).values()) == sum(before.values()) + sum(20 <= value < 60 for value in right)
    again = called(job, "repair", "wrong.py:job", "--from", "41000", "--to", "60000", "--yes")
    assert again.exit_code == 0, again.output  # the job runs what it has run before
    assert called(job, "run", "wrong.py:job").exit_code == 0


def test_an_interval_begins_where_it_is_said_and_not_at_the_commit_before(folder):
    job = run_of(folder, "job", 0)
    before = newest(job)
    options = ("--from", "30000", "--to", "50000", "--then", "wrong.py:job")
    done = called(job, "repair", "right.py:job", *options, "--yes")
    assert done.exit_code == 0, done.output
    assert re.search(
        r"wrong\.py:job, as repair-\w+, goes on from commit 1 of counting; 1 slice to replay\.", done.output
    )
    assert "Then right.py:job replays what came from 1970-01-01T00:00:30.000Z on; 1 slice." in done.output
    assert "Then wrong.py:job replays what came from 1970-01-01T00:00:50.000Z on; 1 slice." in done.output
    right = [n * 37 % 100 for n in range(30, 50)]
    assert sum(newest(job).values()) == sum(before.values()) + sum(20 <= value < 60 for value in right)


def test_a_second_interval_tells_that_the_first_is_taken_back(folder):
    job = run_of(folder, "job", 0)
    before = newest(job)
    then = ("--then", "wrong.py:job", "--yes")
    done = called(job, "repair", "right.py:job", "--from", "50000", "--to", "60000", *then)
    assert done.exit_code == 0, done.output
    assert "The job was repaired since" not in done.output
    done = called(job, "repair", "right.py:job", "--from", "1000", "--to", "15000", *then)
    assert done.exit_code == 0, done.output
    assert "The job was repaired since, by commit 5. What another file corrected there shows as a difference." in (
        " ".join(done.output.split())
    )
    right = [n * 37 % 100 for n in range(1, 15)]
    assert sum(newest(job).values()) == sum(before.values()) + sum(20 <= value < 60 for value in right)
    tried = called(job, "try", "wrong.py:job").output
    assert "The job was repaired since, by commit 5 and commit 6." in tried
    assert "The job was repaired" not in called(job, "try", "wrong.py:job", "--against", "counting@4").output


def test_another_file_for_later_needs_a_time(folder):
    job = run_of(folder, "job", 2)
    refused = called(job, "repair", "right.py:job", "--from", "41000", "--then", "wrong.py:job", caught=True)
    assert "it is not said when the job goes on with the other file" in str(refused.exception)


def test_openlineage_is_told(folder, monkeypatch):
    job = run_of(folder, "job", 2)
    for name in ("PARENT_ID", "ROOT_PARENT_ID", "CONTEXT", "NAMESPACE", "URL"):
        monkeypatch.delenv(f"OPENLINEAGE_{name}", raising=False)
    monkeypatch.setattr(emission, "_of_process", {})
    with receiver(monkeypatch) as events:
        options = ("--from", "41000", "--yes", "--set", "openlineage=true")
        assert called(job, "repair", "right.py:job", *options).exit_code == 0
    assert [(event["job"]["name"], event["eventType"]) for event in events] == [
        ("counting.repair", "START"),
        ("counting.repair", "COMPLETE"),
    ]
    written = {out["name"].rpartition("/")[2]: out["outputFacets"]["outputStatistics"] for out in events[1]["outputs"]}
    assert written["counts"]["rowCount"] == 3
    assert [source["name"].rpartition("/")[2] for source in events[1]["inputs"]] == ["views"]


def test_on_spark(folder, spark, monkeypatch):
    monkeypatch.setenv("HINDSTREAM_ENGINE", "spark")
    never, job = run_of(folder, "never", 4), run_of(folder, "job", 2)
    done = called(job, "repair", "right.py:job", "--from", "41000", "--yes")
    assert done.exit_code == 0, done.output
    assert "Commit 5 repairs counting: it has written 3 to counts, " in done.output
    assert newest(job) == newest(never)
    assert called(job, "run", "right.py:job").exit_code == 0
    never.run()
    assert newest(job) == newest(never)


def test_late_records_on_spark(folder, spark, monkeypatch):
    monkeypatch.setenv("HINDSTREAM_ENGINE", "spark")
    job, never = late_job(folder, "short", SHORT), late_job(folder, "longer", LONGER)
    done = called(job, "repair", "short.py:job", "--from", "60000", "--late", "--yes")
    assert done.exit_code == 0, done.output
    assert "it has written 1 to counts." in done.output
    assert newest(job) == newest(never)
