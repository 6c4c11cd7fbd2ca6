"""The task runtime is killed at each of its steps and run again; the answer is that of an undisturbed run.

Four stages: deduplication over all partitions, windows, suppress and two sinks, over real stores, archives and commits.
"""

from __future__ import annotations

import multiprocessing
import shutil
import signal
from pathlib import Path
from typing import Any

import pytest

from statelib.errors.fault_points import observed
from tests.effort import every_other
from tests.faults.killer import killer
from tests.task.pipeline import Pipeline
from tests.task.test_kept import KEEP
from tests.task.test_run import TYPES, outputs, sales, topology

pytestmark = pytest.mark.thorough

CUTS = [3_600_000, 9_000_000]
STEPS = [
    "task.restored",
    "task.batch-processed",
    "task.files-staged",
    "checkpoint.before-upload",
    "checkpoint.uploaded",
    "task.state-saved",
    *KEEP,
    "checkpoint.restored",
    "stage.before-create",
]

_processes = multiprocessing.get_context("forkserver")
_processes.set_forkserver_preload(["tests.faults.test_task_kills"])


def pipeline(root: Path, attempt: str = "a") -> Pipeline:
    return Pipeline(root, topology(over_all_partitions=True), attempt=attempt, batch_records=20, code="same")


def drive(root: Path, cut: int, attempt: str, kill_at: tuple[str, int] | None) -> None:
    """Runs one slice, and kills this process when it comes to the n-th step of a name."""
    with observed(killer(kill_at)):
        pipeline(root, attempt).run(cut)


def run(root: Path, cut: int, attempt: str, kill_at: tuple[str, int] | None = None) -> Any:
    process = _processes.Process(target=drive, args=(root, cut, attempt, kill_at))
    process.start()
    process.join()
    return process.exitcode


@pytest.fixture(scope="module")
def first_slice(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A job with one slice committed."""
    root = tmp_path_factory.mktemp("job")
    made = pipeline(root)
    made.archive("sales", sales(5, 200), TYPES, partitions=2)
    made.run(CUTS[0])
    return root


@pytest.fixture(scope="module")
def expected(first_slice: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[Any]]:
    """What both slices publish when nothing happens."""
    undisturbed = Path(shutil.copytree(first_slice, tmp_path_factory.mktemp("undisturbed") / "job"))
    pipeline(undisturbed, "undisturbed").run(CUTS[1])
    return outputs(pipeline(undisturbed))


@pytest.mark.parametrize("step", every_other(STEPS))
def test_killed_at_a_step_and_run_again(
    first_slice: Path, expected: dict[str, list[Any]], tmp_path: Path, step: str
) -> None:
    """The first run is killed when it comes to the step, the next when it comes there the third time."""
    root = Path(shutil.copytree(first_slice, tmp_path / "job"))
    assert run(root, CUTS[1], "first", (step, 1)) == -signal.SIGKILL
    assert run(root, CUTS[1], "second", (step, 3)) in {-signal.SIGKILL, 0}
    assert run(root, CUTS[1], "third") == 0
    assert outputs(pipeline(root)) == expected
    pipeline(root, "next").run(CUTS[1] * 2)
    assert not list((root / "state" / "attempts" / "job").iterdir())
