"""``hindstream jobs``, for a person and for a program."""

from __future__ import annotations

import json

from hindstream.demo import NAME
from statelib.commits.hold import take_hold
from statelib.storage import Storage
from tests.command import hindstream
from tests.hindstream.report.documents import make_run


def test_a_job_has_a_line(tmp_path) -> None:
    storage = Storage(str(tmp_path / "w"))
    make_run(storage, 1)
    take_hold(storage, NAME, "somebody", reason="a migration", now_ms=7)
    make_run(storage, 2, passes=False)
    result = hindstream("jobs", "--warehouse", "w", cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    (line,) = [line for line in result.stdout.splitlines() if line.strip().startswith(NAME)]
    assert "2013-01-31 05:00" in line
    assert "held by somebody, run 00000002-1 quarantined" in line
    (found,) = map(
        json.loads, hindstream("jobs", "--warehouse", "w", "--output", "json", cwd=tmp_path).stdout.splitlines()
    )
    assert (found["job"], found["commits"], found["records_read"]) == (NAME, 1, 0)
    assert found["hold"]["holder"] == "somebody"
    assert found["open_run"] == {"run_id": "00000002-1", "state": "quarantined"}


def test_a_warehouse_may_be_empty_but_has_to_be_there(tmp_path) -> None:
    assert "there is no such warehouse" in hindstream("jobs", cwd=tmp_path).stderr
    (tmp_path / "warehouse").mkdir()
    assert hindstream("jobs", cwd=tmp_path).stdout.startswith("There are no jobs in ")
    assert hindstream("jobs", "--output", "json", cwd=tmp_path).stdout == ""
