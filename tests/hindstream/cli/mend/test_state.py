"""``hindstream state`` as a user meets it."""

from __future__ import annotations

import pytest

from hindstream.report.documents import load_runs
from statelib.commits import CommitLog, commit, plan, publish, record_audit, rollback, stage
from statelib.storage import Storage
from tests.changelog.test_rebuild import SALES, TYPES, made, totals
from tests.command import hindstream
from tests.commits import toy
from tests.commits.toy import DAY
from tests.task.pipeline import Pipeline


@pytest.fixture
def warehouse(tmp_path):
    return Storage(str(tmp_path / "warehouse"))


@pytest.fixture
def three_commits(warehouse, tmp_path):
    toy.archive_events(warehouse, 0, days=4)
    return [run_slice(warehouse, tmp_path, day) for day in range(1, 4)]


def run_slice(warehouse, tmp_path, day):
    planned = plan(toy.job(), warehouse, now_ms=1, until_ms=day * DAY)
    stage(warehouse, planned, toy.replay(warehouse, planned, tmp_path / "scratch"))
    record_audit(warehouse, planned, toy.passed(planned))
    made = commit(warehouse, planned, now_ms=1_700_000_000_000 + day * 60_000)
    publish(warehouse, planned.job)
    return made


def state(tmp_path, *arguments, code=0):
    result = hindstream("state", *arguments, cwd=tmp_path)
    assert result.returncode == code, result.stderr
    return result.stdout if not code else result.stderr


def test_list(three_commits, tmp_path):
    lines = state(tmp_path, "counting", "--set", "keep_commits=2").splitlines()
    rows = [line.split() for line in lines if line.split()[:1] in (["1"], ["2"], ["3"])]
    assert [row[:3] for row in rows] == [[str(n), "2023-11-14", f"22:1{3 + n}"] for n in (1, 2, 3)]
    assert rows[2][-1] == "head"
    assert lines == state(tmp_path, "list", "counting", "--set", "keep_commits=2").splitlines()
    assert any(line.startswith("Maintenance would free ") and "keep commit 2 and later" in line for line in lines)
    assert "the job has no commits (job nobody). Next: name a job that has run" in state(tmp_path, "nobody", code=78)
    assert "Next: did you mean counting?" in state(tmp_path, "countng", code=78)


def test_shared_and_unique_bytes(three_commits, tmp_path):
    """A rollback shares everything with the commit that it goes back to."""
    rollback(Storage(str(tmp_path / "warehouse")), "counting", 2, now_ms=1_700_000_000_000)
    lines = state(tmp_path, "counting").splitlines()
    rows = {cells[0]: cells for line in lines if (cells := line.split()) and cells[0] in {"1", "2", "3", "4"}}
    assert {n: " ".join(cells[11:]) for n, cells in rows.items()} == {
        "1": "", "2": "", "3": "rolled back by 4", "4": "head, rollback to 2",
    }  # fmt: skip
    sizes = {n: " ".join(cells[5:11]) for n, cells in rows.items()}
    assert sizes["2"] == sizes["4"]
    assert sizes["2"].endswith(" 0 B")
    assert not sizes["3"].endswith(" 0 B")


def test_verify(three_commits, warehouse, tmp_path):
    assert "commit 3: " in state(tmp_path, "verify", "counting")
    assert "3 commits: " in state(tmp_path, "verify", "counting", "--all")
    assert "exclude each other" in state(tmp_path, "verify", "counting", "--all", "--commit", "2", code=78)
    before = {file.stored_name for made in three_commits[:2] for file in made.tasks["0_0"].state.files}
    file = next(file for file in three_commits[2].tasks["0_0"].state.files if file.stored_name not in before)
    path = f"jobs/counting/state/0_0/{file.stored_name}"
    warehouse.put(path, warehouse.get(path)[:-1])
    result = hindstream("state", "verify", "counting", cwd=tmp_path)
    assert result.returncode == 74
    assert warehouse.uri(path) in result.stdout
    assert "hindstream state rollback counting --to 2" in result.stderr
    assert "every byte is as it was written" in state(tmp_path, "verify", "counting", "--commit", "2")


def test_rollback(three_commits, warehouse, tmp_path):
    told = state(tmp_path, "rollback", "counting", "--to", "1", "--dry-run")
    rows = sum(sink.file.rows for made in three_commits[1:] for sink in made.sinks)
    assert f"Commits rolled back: 2, 3.\n  counts: {rows} records in 4 files go.\n" in told
    assert CommitLog(warehouse, "counting").head_number() == 3
    hindstream("state", "rollback", "counting", "--to", "1", cwd=tmp_path)  # nobody who could answer
    assert CommitLog(warehouse, "counting").head_number() == 3
    told = state(tmp_path, "rollback", "counting", "--to", "1", "--yes")
    assert "commit 4 is the head, a rollback to commit 1" in told
    again = state(tmp_path, "rollback", "counting", "--to", "1", "--yes")
    assert "commit 4 is the head" in again
    assert CommitLog(warehouse, "counting").head_number() == 4
    assert "taken back, by commit 4" in state(tmp_path, "rollback", "counting", "--to", "2", "--yes", code=78)
    run_slice(warehouse, tmp_path, 2)
    assert [run.status for run in load_runs(warehouse, "counting")] == [
        "committed", "rolled back by 4", "rolled back by 4", "rollback to 1", "committed",
    ]  # fmt: skip
    assert "rolled back by 4" in hindstream("status", "counting", cwd=tmp_path).stdout


def test_lag(tmp_path):
    pipeline = Pipeline(tmp_path, made(totals), changelogs=["s"])
    pipeline.archive("sales", SALES, TYPES)
    pipeline.run(None)
    told = state(tmp_path, "lag", "job", "s")
    assert told.startswith("job-s-changelog, the changelog of a key-value store:\n")
    assert told.endswith("min.compaction.lag.ms: the store needs 0; nothing is set.\n")
    told = state(tmp_path, "lag", "job", "s", "--to", "8d")
    assert told.endswith("the store needs 0; 691,200,000 (8 d) is set.\n")
    assert state(tmp_path, "lag", "job", "s") == told
    assert "write 7d, 36h" in state(tmp_path, "lag", "job", "s", "--to", "8", code=78)
    assert "name one of: s" in state(tmp_path, "lag", "job", "t", code=78)


def test_rebuild(tmp_path):
    pipeline = Pipeline(tmp_path, made(totals), changelogs=["s"])
    pipeline.archive("sales", SALES, TYPES)
    pipeline.run(None)
    before, head = pipeline.state(), CommitLog(pipeline.warehouse, "job").head()
    lost = next(file for file in head.tasks["0_0"].state.files if file.name.endswith(".sst"))
    pipeline.warehouse.delete(f"jobs/job/state/0_0/{lost.stored_name}")
    assert "changelogs: hindstream state rebuild job" in state(tmp_path, "verify", "job", code=74)
    told = state(tmp_path, "rebuild", "job", "--dry-run")
    assert "is missing (state of task 0_0, commit 1)" in told
    assert "Task 0_0 is rebuilt from the changelogs of s up to offset " in told
    assert told.endswith("Nothing was changed.\n")
    assert "commit 2 is the head: commit 1, its state rebuilt" in state(tmp_path, "rebuild", "job", "--yes")
    assert pipeline.state() == before
    assert [run.status for run in load_runs(pipeline.warehouse, "job")] == ["committed", "rebuilt from 1"]
    assert "there is nothing to rebuild" in state(tmp_path, "rebuild", "job", "--yes")
