"""A replay that ends in the middle goes on behind the tasks that it has done, and gives the same bytes."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest

from statelib.commits import CommitLog, Retention, maintain
from statelib.commits.layout import JobLayout, Runs
from statelib.commits.run.kept import KeptOutcomes
from statelib.documents.manifests import KeptOutcome, StateManifest, TaskOutcome, TaskPosition
from statelib.documents.plans import Plan
from statelib.errors.fault_points import observed
from statelib.errors.kinds import CorruptedDataError
from tests.faults.killer import at_step
from tests.task.pipeline import Pipeline
from tests.task.test_run import TYPES, outputs, sales, topology

if TYPE_CHECKING:
    from pathlib import Path

KEEP = ["keep.before-create", "keep.created"]
"""Steps at which `tests.faults.test_task_kills` kills."""

JOB = "job"
TASKS = 8


class Stopped(BaseException):
    """As a kill is, but in this process."""


def stop() -> None:
    raise Stopped


def pipeline(folder: Path, **given: Any) -> Pipeline:
    return Pipeline(folder, topology(over_all_partitions=True), JOB, **{"code": "of today", **given})


@pytest.fixture
def made(tmp_path: Path) -> Pipeline:
    """A job of `TASKS` tasks in stages."""
    made = pipeline(tmp_path / "made")
    made.archive("sales", sales(5, 200), TYPES, partitions=2)
    return made


@pytest.fixture
def expected(tmp_path: Path) -> list[Any]:
    undisturbed = pipeline(tmp_path / "undisturbed", code=None)
    undisturbed.archive("sales", sales(5, 200), TYPES, partitions=2)
    undisturbed.run()
    return bytes_of(undisturbed)


def bytes_of(made: Pipeline) -> list[Any]:
    """Records, and all that a commit says, but for the names of attempts."""
    commit = CommitLog(made.warehouse, JOB).read(1)
    files = sorted((sink.topic, sink.file.partition, sink.file.sha256) for sink in commit.sinks)
    return [outputs(made), files, {task_id: task.position for task_id, task in commit.tasks.items()}]


def tasks_until(made: Pipeline, stop_at: tuple[str, int] | None = None) -> int:
    """Replays, and maybe stops at the n-th step of a name; the number of tasks that were begun."""
    seen: Counter[str] = Counter()
    with observed(at_step(stop_at, stop, lambda name: seen.update([name]))):
        if stop_at is None:
            made.run()
        else:
            with pytest.raises(Stopped):
                made.run()
    return seen["task.restored"]


@pytest.mark.parametrize("done", [1, 5, TASKS])
def test_only_the_rest_is_done_again(made: Pipeline, expected: list[Any], done: int) -> None:
    tasks_until(made, ("keep.created", done))
    left = tasks_until(made)
    planned = CommitLog(made.warehouse, JOB).read(1).run_id
    staged = Runs(made.warehouse, JOB).staged(planned)
    assert staged is not None
    assert (left, staged.done_before) == (TASKS - done, done)
    assert bytes_of(made) == expected
    assert [path for path in paths(made) if "_outcomes" in path]
    maintain(made.warehouse, JOB, Retention(), now_ms=0)
    assert made.warehouse.list(JobLayout(JOB).root + "/staging") == []
    kept = {sink.file.path for sink in CommitLog(made.warehouse, JOB).read(1).sinks}
    assert {path.partition("/once/")[2] for path in paths(made) if "/once/partition" in path} <= kept


def paths(made: Pipeline) -> list[str]:
    return [entry.path for entry in made.warehouse.list()]


@pytest.mark.parametrize("given", [{"code": "of tomorrow"}, {"on_bad_record": "quarantine"}, {"semantics": "kip"}])
def test_other_code_and_other_settings_do_all_again(made: Pipeline, tmp_path: Path, given: dict[str, Any]) -> None:
    tasks_until(made, ("keep.created", 2))
    again = pipeline(tmp_path / "made", **given)
    assert tasks_until(again) == (TASKS - 2 if given == {"semantics": "kip"} else TASKS)  # which is how it was


def test_a_run_that_was_planned_anew_does_all_again(made: Pipeline, expected: list[Any]) -> None:
    """As the docs say of a damaged run: its folder is deleted, and the next plan gets its name."""
    tasks_until(made, ("keep.created", 3))
    made.warehouse.delete([path for path in paths(made) if "/runs/" in path])
    made.now_ms = 1
    assert tasks_until(made) == TASKS
    assert bytes_of(made) == expected


@pytest.mark.parametrize("of", ["/once/partition", "/state/", "-repartition/", "_outcomes/"])
def test_what_lacks_a_file_is_done_again(made: Pipeline, expected: list[Any], of: str) -> None:
    tasks_until(made, ("keep.created", TASKS))
    lost = next(path for path in paths(made) if of in path)
    if of == "_outcomes/":
        made.warehouse.put(lost, made.warehouse.get(lost)[:-9])
    else:
        made.warehouse.delete(lost)
    assert tasks_until(made) == 1
    assert bytes_of(made) == expected


def test_nothing_is_built_on_damage_twice(made: Pipeline, expected: list[Any]) -> None:
    tasks_until(made, ("keep.created", 2))
    damaged = next(path for path in paths(made) if "-repartition/" in path)
    data = bytearray(made.warehouse.get(damaged))
    data[len(data) // 2] ^= 1
    made.warehouse.put(damaged, bytes(data))
    with pytest.raises(CorruptedDataError, match=r"repartition file is damaged.*Next: run the slice again"):
        made.run()
    assert tasks_until(made) == TASKS
    assert bytes_of(made) == expected


def test_the_first_attempt_that_is_kept_counts(made: Pipeline) -> None:
    planned = made.plan()
    assert isinstance(planned, Plan)
    kept = KeptOutcomes(made.warehouse, JOB, planned.run_id, "abc")
    first, second = an_outcome("first"), an_outcome("second")
    assert kept.keep(first) == first
    assert kept.keep(second) == first
    assert kept.read() == {"0_0": first}
    (path,) = (path for path in paths(made) if "_outcomes" in path)
    assert path == f"jobs/{JOB}/staging/{planned.run_id}/_outcomes/abc/0_0.json"
    made.warehouse.put(path, b"{")
    assert kept.keep(second) == second
    assert kept.read() == {"0_0": second}
    kept.forget()
    assert kept.read() == {}


def an_outcome(attempt: str) -> TaskOutcome:
    return TaskOutcome(
        task_id="0_0", attempt=attempt, sinks=(), repartitions=(), state=StateManifest(), metrics={}, stores={},
        position=TaskPosition(task_id="0_0", commit=1, fingerprint="f"), seconds={}, peak_memory_bytes=7, host="h",
    )  # fmt: skip


def test_bytes() -> None:
    """These never change for a version."""
    assert b"".join(KeptOutcome(outcome=an_outcome("a")).encode().split()) == (
        b'{"checksum":"bb72459a1dcf74f147f1144650f0684c03001b9eacb76333e79fb49f58aa3cfd","format_version":9,"o'
        b'utcome":{"attempt":"a","began_at_ms":0,"fetched_bytes":0,"history":null,"host":"h","metrics":{},"pea'
        b'k_memory_bytes":7,"position":{"clocks":{},"commit":1,"fingerprint":"f","format_version":9,"sink_offs'
        b'ets":{},"source_offsets":{},"source_times":{},"stream_time":-1,"task_id":"0_0"},"process_id":null,"r'
        b'epartitions":[],"seconds":{},"sinks":[],"state":{"files":[]},"stores":{},"task_id":"0_0"}}'
    )
