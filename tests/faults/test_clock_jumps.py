"""The wall clock jumps by years between the phases of runs: nothing that is published or kept depends on it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from statelib.commits import CommitLog, FilePolicy, Retention, commit, maintain, publish, rollback, stage
from statelib.commits.expiry import oldest_restorable
from statelib.commits.run.audit import record_audit
from statelib.documents.manifests import Audit
from statelib.documents.plans import Plan
from tests.faults import subject

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

pytestmark = pytest.mark.thorough

DAY_MS = 86_400_000
YEAR_MS = 365 * DAY_MS
NOW_MS = 50 * YEAR_MS
SLICES = 6
SLICE_MS = 1_900_000


def replayed(folder: Path, clock: Iterator[int]) -> subject.Result:
    """Slices one after the other, each phase at another time of ``clock``."""
    made = subject.pipeline(folder, "a", changelogs=subject.CHANGELOGS)
    for part in range(subject.PARTS):
        subject.ingest(made, part)
    for number in range(SLICES):
        planned = made.plan((number + 1) * SLICE_MS)
        assert isinstance(planned, Plan)
        stage(made.warehouse, planned, made.replay(planned))
        passed = Audit(run_id=planned.run_id, success=True, checks=(), data_docs=None, seconds=0)
        record_audit(made.warehouse, planned, passed)
        commit(made.warehouse, planned, now_ms=next(clock))
        publish(made.warehouse, subject.JOB)
        files = FilePolicy(f"m{number}", target_bytes=4_000, keep_replaced_ms=DAY_MS, every_commits=1)
        maintain(made.warehouse, subject.JOB, Retention(2, 7 * DAY_MS), now_ms=next(clock), files=files)
    return subject.result_of(made, subject.SINKS)


def steady() -> Iterator[int]:
    now_ms = NOW_MS
    while True:
        yield now_ms
        now_ms += DAY_MS


def jumping() -> Iterator[int]:
    while True:
        for years in (0, 10, -30, 3, -1):
            yield NOW_MS + years * YEAR_MS


@pytest.fixture(scope="module")
def calm(tmp_path_factory: pytest.TempPathFactory) -> subject.Result:
    return replayed(tmp_path_factory.mktemp("calm"), steady())


@pytest.mark.parametrize("clock", [jumping, lambda: iter(lambda: 0, 1)], ids=["jumps", "stands still"])
def test_output_and_state_are_those_of_a_steady_clock(
    tmp_path: Path, calm: subject.Result, clock: Callable[[], Iterator[int]]
) -> None:
    found = replayed(tmp_path, clock())
    assert found.records == calm.records
    assert found.state == calm.state
    assert found.others["missing"] == 0
    assert found.others["published through"] == calm.others["published through"]


def test_the_newest_commits_stay_whatever_the_clock_says(tmp_path: Path, calm: subject.Result) -> None:
    replayed(tmp_path, jumping())
    made = subject.pipeline(tmp_path, "b")
    assert oldest_restorable(made.warehouse, subject.JOB) <= SLICES - 1
    rollback(made.warehouse, subject.JOB, SLICES - 1, now_ms=0)
    assert CommitLog(made.warehouse, subject.JOB).head_number() == SLICES + 1
    subject.replay_slice(made, SLICES * SLICE_MS)
    again = subject.result_of(made, subject.SINKS)
    assert again.records == calm.records
    assert again.state == calm.state
