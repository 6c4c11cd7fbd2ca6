"""A job's history, taken up run by run, against all runs at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from hindstream.demo import NAME
from hindstream.report import history as history_module
from hindstream.report.documents import job_ledger, load_runs
from hindstream.report.history import History, RunSummary, follow
from hindstream.report.write import write_job_report
from statelib.commits import CommitLog, JobLayout, Runs
from statelib.job.job import Job
from statelib.metrics.node_metrics import NodeMetrics
from statelib.storage import Storage
from tests.hindstream.report.documents import TOPOLOGY, make_run

if TYPE_CHECKING:
    from pathlib import Path

JOB = Job(NAME, TOPOLOGY)
KEPT = f"jobs/{NAME}/reports/history.json"


@pytest.fixture
def storage(tmp_path: Path) -> Storage:
    return Storage(str(tmp_path))


def kept(storage: Storage) -> History:
    return History.decode(storage.get(KEPT))


def page(storage: Storage) -> str:
    return storage.get(f"jobs/{NAME}/reports/index.html").decode()


def test_report_by_report_it_says_what_all_runs_say_together(storage: Storage) -> None:
    for number in (1, 2, 3, 4):
        if number == 3:
            make_run(storage, 3, passes=False)
        make_run(storage, number, attempt=2 if number == 3 else 1)
        write_job_report(storage, JOB)
    runs = load_runs(storage, NAME)
    committed = [run for run in runs if run.commit]
    found = kept(storage)
    assert [run.run_id for run in found.newest] == [run.run_id for run in runs]
    assert (found.through, found.runs, found.last) == (4, 5, RunSummary.of(runs[-1]))
    assert found.nodes == job_ledger(committed)
    assert found.records_in == sum(run.plan.records for run in committed)
    assert found.records_out == sum(run.records_out for run in committed)
    assert found.checks == 16
    assert found.seconds == pytest.approx(sum(sum(run.seconds.values()) for run in committed))
    by_report, at_once = page(storage), found
    storage.delete(KEPT)
    write_job_report(storage, JOB)
    assert kept(storage) == at_once
    assert page(storage) == by_report


def test_documents_of_former_runs_are_not_read_again(storage: Storage) -> None:
    for number in (1, 2):
        make_run(storage, number)
        write_job_report(storage, JOB)
    before = page(storage)
    for run in ("00000001-1", "00000002-1"):
        storage.delete([entry.path for entry in storage.list(JobLayout(NAME).run(run))])
    write_job_report(storage, JOB)
    assert page(storage) == before
    make_run(storage, 3)
    write_job_report(storage, JOB)
    assert (kept(storage).through, kept(storage).runs) == (3, 3)


def test_a_run_under_way_is_shown_and_not_kept(storage: Storage) -> None:
    make_run(storage, 1)
    make_run(storage, 2, passes=False)
    write_job_report(storage, JOB)
    assert "quarantined" in page(storage)
    assert kept(storage).runs == 1
    make_run(storage, 2, attempt=2)
    write_job_report(storage, JOB)
    assert [run.status for run in kept(storage).newest] == ["committed", "quarantined", "committed"]


@pytest.mark.parametrize(
    "damage", [b"", b"{}x", b'{"format_version": 2}', b'{"through": "x"}', b'{"format_version": 1, "through": 9}']
)
def test_what_cannot_be_used_is_made_again(storage: Storage, damage: bytes) -> None:
    make_run(storage, 1)
    write_job_report(storage, JOB)
    before = page(storage)
    storage.put(KEPT, damage)
    write_job_report(storage, JOB)
    assert page(storage) == before
    assert kept(storage).runs == 1


def test_only_the_newest_runs_have_a_line(storage: Storage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(history_module, "RUNS_SHOWN", 2)
    for number in (1, 2, 3):
        make_run(storage, number)
    write_job_report(storage, JOB)
    html = page(storage)
    assert "The newest 2 of 3" in html
    assert "00000001-1.html" not in html
    assert storage.exists(f"jobs/{NAME}/reports/00000001-1.html")
    assert "3 commits" in html


def test_a_job_without_runs_has_an_empty_one(storage: Storage) -> None:
    assert CommitLog(storage, NAME).head_number() == 0
    assert follow(storage, NAME, KEPT) == (History(), [])


SUMMARY = RunSummary(
    run_id="00000001-1", commit=1, status="committed", is_committed=True, sealed=False, until_ms=None,
    records_in=3, records_out=2, state_bytes=10, checks=(1, 1), seconds={"replay": 0.5},
    stores={"s": 10}, windows={"open windows": 1},
)  # fmt: skip
GOLDEN = (
    b'{"format_version":3,"through":1,"runs":1,"newest":[{"run_id":"00000001-1","commit":1,"status":"committ'
    b'ed","is_committed":true,"sealed":false,"until_ms":null,"records_in":3,"records_out":2,"state_bytes":10'
    b',"checks":[1,1],"seconds":{"replay":0.5},"stores":{"s":10},"windows":{"open windows":1}}],"last":null,'
    b'"records_in":3,"records_out":2,"seconds":0.5,"checks":1,"nodes":{"n":{"records_in":3,"records_out":2,"'
    b'held_before":0,"held_after":0,"accounts":{"forwarded":2,"late":1},"dropped":{},"counters":{},"gauges":'
    b'{},"means":{},"lateness":{"counts":[0,0,0,0,0,0,0,0,0,0,0,0,0,0,0],"total_ms":0,"max_ms":0}}},"checksu'
    b'm":"15df800b83d7e2643039040d0afaaf9e9539f936095d4bb1b7c957c0659341d6"}'
)


def test_golden_bytes() -> None:
    one = History(through=1, runs=1, newest=[SUMMARY], last=None, records_in=3, records_out=2, seconds=0.5, checks=1)
    one.nodes["n"] = NodeMetrics(3, 2, accounts={"forwarded": 2, "late": 1})
    assert one.encode() == GOLDEN
    assert History.decode(GOLDEN) == one


def test_what_is_rolled_back_no_longer_counts(storage: Storage) -> None:
    for number in (1, 2, 3):
        make_run(storage, number)
        write_job_report(storage, JOB)
    first = CommitLog(storage, NAME).read(1)
    plan = Runs(storage, NAME).plan(first.run_id)
    assert plan is not None
    again = {"commit": 4, "run_id": "00000004-1", "rolled_back_to": 1, "tasks": ()}
    storage.put(JobLayout(NAME).plan("00000004-1"), plan.model_copy(update=again).encode())
    CommitLog(storage, NAME).create(first.model_copy(update={**again, "tasks": first.tasks, "sinks": ()}))
    write_job_report(storage, JOB)
    runs = load_runs(storage, NAME)
    found = kept(storage)
    assert [run.status for run in found.newest] == [
        "committed", "rolled back by 4", "rolled back by 4", "rollback to 1",
    ]  # fmt: skip
    assert (found.through, found.runs, found.last) == (4, 4, RunSummary.of(runs[0]))
    assert found.nodes == job_ledger(runs[:1])
    assert found.records_in == runs[0].plan.records
    assert "rolled back by 4" in storage.get(f"jobs/{NAME}/reports/00000003-1.html").decode()
    make_run(storage, 5)
    write_job_report(storage, JOB)
    assert kept(storage).records_in == 2 * runs[0].plan.records


def test_damage_anywhere_and_other_versions_are_an_empty_history() -> None:
    """It is made anew then."""
    for bit in range(8 * len(GOLDEN)):
        damaged = bytearray(GOLDEN)
        damaged[bit // 8] ^= 1 << bit % 8
        assert History.decode(bytes(damaged)) == History()
    assert History.decode(GOLDEN.replace(b'"format_version":3', b'"format_version":4')) == History()
    assert History.decode(b'{"format_version":2,"through":1}') == History()
