"""A driver is killed with SIGKILL at each named step of each phase and run again: all ends as if nothing had been.

The steps of an undisturbed run are recorded, so a step that a phase gains without a test here fails one.
"""

from __future__ import annotations

import inspect
import itertools
import multiprocessing
import random
import re
import shutil
import signal
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from statelib.commits import CommitLog, plan, publish
from statelib.commits.archives import open_archive
from statelib.commits.layout import Runs
from statelib.commits.rewriting.rewrite_log import RewriteLog, standing_files
from statelib.errors.kinds import CorruptedDataError
from statelib.storage import Storage
from tests.changelog.test_compaction import STEPS as COMPACTION
from tests.commits import toy
from tests.commits.maintenance.test_changelog_lag import STEPS as LAG
from tests.commits.test_hold import STEPS as HOLD
from tests.commits.toy import DAY
from tests.commits.versions.test_fork import DROP, FORK
from tests.commits.versions.test_promotion import PROMOTE
from tests.faults.driver import JOB, drive
from tests.placement.test_copies import STEPS as COPIES
from tests.repair.test_repair import REPAIR
from tests.task.test_kept import KEEP
from tests.task.test_renamed_stores import RENAME
from tests.task.test_takeover import TAKE_OVER

pytestmark = pytest.mark.thorough

FIRST_SLICE_ONLY = ["plan.topology-described", "publish.before-create-archive"]
SECOND_SLICE = [
    "plan.before-create",
    "plan.created",
    "checkpoint.file-restored",
    "checkpoint.restored",
    "checkpoint.before-upload",
    "checkpoint.uploaded",
    "stage.before-create",
    "stage.created",
    "audit.before-create",
    "audit.created",
    "commit.before-create",
    "commit.created",
    "commit.advised",
    "publish.before-commit",
    "publish.committed",
    "maintain.before-expire",
    "maintain.expired",
    "maintain.before-delete",
    "maintain.deleted",
    "maintain.noted",
    "rewrite.written",
    "rewrite.before-create",
    "rewrite.created",
    "rewrite.before-commit",
    "rewrite.committed",
    "rewrite.before-delete",
    "rewrite.deleted",
    "rewrite.noted",
]
ROLLBACK_ONLY = [
    "rollback.before-plan",
    "rollback.planned",
    "rollback.before-create",
    "rollback.created",
    "publish.before-notice",
]
REPUBLISH = ["republish.before-commit", "republish.committed"]
ROLLBACK = [*ROLLBACK_ONLY, "publish.before-commit", "publish.committed"]

_processes = multiprocessing.get_context("forkserver")  # forks from a process that has imported, but run nothing yet
_processes.set_forkserver_preload(["tests.faults.driver"])


def start(root: Path, *arguments: Any, **options: Any) -> Any:
    process = _processes.Process(target=drive, args=(root, *arguments), kwargs=options)
    process.start()
    return process


def run(root: Path, *arguments: Any, **options: Any) -> int:
    """Drives one slice in a process of its own, and gives its exit code."""
    process = start(root, *arguments, **options)
    process.join()
    return process.exitcode


def outcome(root: Path) -> dict[str, Any]:
    """All that a reader, the next run or a person could see, but for the names of attempts and the bytes of state."""
    warehouse = Storage(str(root / "warehouse"))
    history = list(CommitLog(warehouse, JOB).history())
    sinks = open_archive(warehouse, "counts")
    visible = {f"topics/counts/{file.path}" for p in range(sinks.partitions) for file in sinks.files(p)}
    committed = standing_files(warehouse, "counts", [sink.file for made in history for sink in made.sinks])
    needed = {
        f"jobs/{JOB}/state/{task_id}/{file.stored_name}"
        for task_id, task in history[0].tasks.items()
        for file in task.state.files
    }
    return {
        "commits": [
            {
                "number": made.commit,
                "run": made.run_id,
                "sources": made.sources,
                "positions": {task_id: task.position for task_id, task in made.tasks.items()},
                "files": [(s.topic, s.file.partition, s.file.first_offset, s.file.sha256) for s in made.sinks],
            }
            for made in history
        ],
        "state": toy.counts_as_of(warehouse, history[0], root / "looked-at"),
        "published through": sinks.last_transaction(JOB),
        "published rows": [sinks.reader(p).read_all().to_pylist() for p in range(sinks.partitions)],
        "committed, not published": {f"topics/counts/{file.path}" for file in committed} - visible,
        "left in the topic": {entry.path for entry in warehouse.list("topics/counts") if "=" in entry.path} - visible,
        "left in the state": {entry.path for entry in warehouse.list(f"jobs/{JOB}/state")} - needed,
    }


class Slice(NamedTuple):
    """One slice of the job: all that is there before it, and what an undisturbed run made of that."""

    before: Path
    until_ms: int
    steps: list[str]
    outcome: dict[str, Any]


@pytest.fixture(scope="module")
def slices(tmp_path_factory) -> dict[int, Slice]:
    """Slices 1 and 2, run without a disturbance."""
    root = tmp_path_factory.mktemp("undisturbed")
    toy.archive_events(Storage(str(root / "0" / "warehouse")), 0, days=3)
    found = {}
    for n in (1, 2):
        before, after = root / str(n - 1), root / str(n)
        shutil.copytree(before, after)
        assert run(after, n * DAY, f"slice{n}") == 0
        steps = (after / "steps").read_text().split()
        (after / "steps").unlink()
        found[n] = Slice(before, n * DAY, steps, outcome(Path(shutil.copytree(after, root / f"look{n}"))))
    return found


def test_every_step_is_killed_at(slices):
    assert set(slices[2].steps) == set(SECOND_SLICE)
    assert set(slices[1].steps) - set(SECOND_SLICE) == set(FIRST_SLICE_ONLY)


def test_every_step_in_the_code_is_killed_at():
    package = Path(__file__).parents[2] / "statelib"
    code = [
        module.read_text()
        for folder in ("commits", "checkpoint", "placement", "repair")
        for module in (package / folder).rglob("*.py")
    ]
    names = {name for text in code for name in re.findall(r'\bstep\("([^"]+)"\)', text)}
    for method in (CommitLog.claim, Runs.settle):  # which name their steps after the phase that calls them
        phases = {p for text in code for p in re.findall(rf'\.{method.__name__}\([\s\S]*?, "([^"]+)"\s*\)', text)}
        steps = re.findall(r'\bstep\(f"\{phase\}\.([^"]+)"\)', inspect.getsource(method))
        names |= {f"{phase}.{name}" for phase in phases for name in steps}
    killed_at = {*FIRST_SLICE_ONLY, *SECOND_SLICE, *ROLLBACK_ONLY, *REPUBLISH, *RENAME}
    killed_at |= {*HOLD, *LAG, *COMPACTION, *TAKE_OVER, *COPIES, *FORK, *DROP, *REPAIR, *PROMOTE, *KEEP}
    assert names == killed_at


@pytest.mark.parametrize(
    ("number", "step"), [*((1, step) for step in FIRST_SLICE_ONLY), *((2, step) for step in SECOND_SLICE)]
)
def test_killed_at_a_step_and_run_again(slices, tmp_path, number, step):
    """The first run is killed when it comes to the step, the next when it comes there the second time, the fourth..."""
    before, until_ms, _, expected = slices[number]
    root = Path(shutil.copytree(before, tmp_path / "root"))
    for attempt in itertools.count():
        code = run(root, until_ms, f"attempt{attempt}", kill_at=(step, 2**attempt))
        if code == 0:
            break
        assert code == -signal.SIGKILL
    assert attempt > 0
    assert outcome(root) == expected


@pytest.mark.parametrize("number", [1, 2])
def test_killed_again_and_again_at_any_time(slices, tmp_path, number):
    before, until_ms, _, expected = slices[number]
    root = Path(shutil.copytree(before, tmp_path / "root"))
    chance = random.Random(number)
    for attempt in range(6):
        process = start(root, until_ms, f"killed{attempt}")
        process.join(chance.uniform(0, 0.4))
        process.kill()
        process.join()
    assert run(root, until_ms, "last") == 0
    assert outcome(root) == expected


def test_two_drivers_at_once(slices, tmp_path):
    """What the slower one wrote too late to be cleaned up after the first slice is gone after the second."""
    root = Path(shutil.copytree(slices[1].before, tmp_path / "root"))
    drivers = [start(root, slices[1].until_ms, f"driver-{name}") for name in "ab"]
    for driver in drivers:
        driver.join()
    assert 0 in [driver.exitcode for driver in drivers]
    assert run(root, slices[2].until_ms, "after") == 0
    assert outcome(root) == slices[2].outcome


def test_a_run_after_the_end_changes_nothing(slices, tmp_path):
    before, until_ms, _, _ = slices[2]
    root = Path(shutil.copytree(before, tmp_path / "root"))
    warehouse = Storage(str(root / "warehouse"))
    assert run(root, until_ms, "a") == 0
    stored = {entry.path: warehouse.get(entry.path) for entry in warehouse.list()}
    assert run(root, until_ms, "b") == 0
    assert plan(toy.job(JOB), warehouse, now_ms=1, until_ms=until_ms).head == 2
    assert {entry.path for entry in warehouse.list()} == stored.keys()
    assert {path for path, data in stored.items() if warehouse.get(path) != data} == set()


@pytest.fixture(scope="module")
def rolled_back(tmp_path_factory, slices) -> tuple[Path, dict[str, Any], dict[str, Any]]:
    """Three slices whose states are kept; and what there is after a rollback to the first, and after another replay."""
    root = tmp_path_factory.mktemp("rolled-back")
    before = Path(shutil.copytree(slices[1].before, root / "before"))
    for n in (1, 2, 3):
        assert run(before, n * DAY, f"slice{n}", keep=9) == 0
    (before / "steps").unlink()
    after = Path(shutil.copytree(before, root / "after"))
    assert run(after, 0, "back", back_to=1) == 0
    assert set((after / "steps").read_text().split()) == set(ROLLBACK)
    back = outcome(Path(shutil.copytree(after, root / "look")))
    assert run(after, 3 * DAY, "again", keep=9) == 0
    return before, back, outcome(after)


def test_replayed_again_after_a_rollback(rolled_back):
    _, back, again = rolled_back
    assert [len(rows) for rows in back["published rows"]] < [len(rows) for rows in again["published rows"]]
    assert [made["number"] for made in again["commits"]] == [5, 4, 3, 2, 1]


@pytest.mark.parametrize("step", ROLLBACK)
def test_a_rollback_is_killed_at_a_step_and_run_again(rolled_back, tmp_path, step):
    before, back, again = rolled_back
    root = Path(shutil.copytree(before, tmp_path / "root"))
    assert run(root, 0, "killed", kill_at=(step, 1), back_to=1) == -signal.SIGKILL
    assert run(root, 0, "once more", back_to=1) == 0
    found = outcome(Path(shutil.copytree(root, tmp_path / "look")))
    assert found == back
    assert run(root, 3 * DAY, "again", keep=9) == 0
    assert outcome(root) == again


@pytest.mark.parametrize("step", ["rollback.created", "publish.before-notice", "publish.before-commit"])
def test_a_rollback_that_is_killed_once_it_is_true_is_made_good_by_the_next_run(rolled_back, tmp_path, step):
    before, _, again = rolled_back
    root = Path(shutil.copytree(before, tmp_path / "root"))
    assert run(root, 0, "killed", kill_at=(step, 1), back_to=1) == -signal.SIGKILL
    assert run(root, 3 * DAY, "again", keep=9) == 0
    assert outcome(root) == again


@pytest.fixture(scope="module")
def replaced(tmp_path_factory, slices) -> tuple[Path, dict[str, Any], dict[str, Any]]:
    """Files that were rewritten, a rollback, another replay; what is shown then, and after a further slice."""
    root = tmp_path_factory.mktemp("replaced")
    before = Path(shutil.copytree(slices[1].before, root / "before"))
    toy.archive_events(Storage(str(before / "warehouse")), 3)
    for n, keep in ((1, 1), (2, 1), (3, 9)):
        assert run(before, n * DAY, f"slice{n}", keep=keep) == 0
    assert run(before, 0, "back", back_to=2) == 0
    assert run(before, 3 * DAY, "again", keep=9) == 0
    assert RewriteLog(Storage(str(before / "warehouse")), "counts").last() > 0
    shown = outcome(Path(shutil.copytree(before, root / "look")))
    after = Path(shutil.copytree(before, root / "after"))
    assert run(after, 4 * DAY, "slice4", keep=1) == 0
    return before, shown, outcome(after)


@pytest.mark.parametrize("step", REPUBLISH)
@pytest.mark.parametrize("then", ["republish", "run"])
def test_a_sink_that_is_published_anew_is_killed_at_a_step_and_published_again(replaced, tmp_path, step, then):
    before, shown, after = replaced
    root = Path(shutil.copytree(before, tmp_path / "root"))
    shutil.rmtree(root / "warehouse" / "topics" / "counts" / "_delta_log")
    assert run(root, 0, "killed", kill_at=(step, 1), republishes=True) == -signal.SIGKILL
    if (then, step) == ("run", "republish.before-commit"):
        with pytest.raises(CorruptedDataError, match=f"state republish {JOB} counts"):
            publish(Storage(str(root / "warehouse")), JOB)
        then = "republish"
    if then == "republish":
        assert run(root, 0, "once more", republishes=True) == 0
        assert outcome(Path(shutil.copytree(root, tmp_path / "look"))) == shown
    assert run(root, 4 * DAY, "slice4") == 0
    assert outcome(root) == after
