"""A damaged state is made anew of its changelogs, and what follows is as if nothing had been damaged."""

from __future__ import annotations

import multiprocessing
import shutil
import signal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from statelib import Materialized, StreamsBuilder, TimeWindows, count, sum_
from statelib.commits import Retention, maintain, preview_rollback, rollback, take_hold
from statelib.commits.layout import CommitLog, JobLayout, Runs, changelog_topic
from statelib.errors.fault_points import observed
from statelib.errors.kinds import ConfigurationError, CorruptedDataError, FencedError, RetryableError
from statelib.task import TaskSettings
from statelib.task.rebuilt_head import preview_rebuild, rebuild_head
from tests.changelog.test_rebuild import MINUTE, SALES, TYPES, head_of, made, minutes
from tests.faults.killer import killer
from tests.task.pipeline import Pipeline

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from statelib.documents.manifests import Commit, CommittedTask
    from statelib.task.rebuilt_head import TaskRebuild

pytestmark = pytest.mark.thorough

STORES = ("totals", "windows")
STEPS = [
    "rollback.planned",
    "checkpoint.before-upload",
    "checkpoint.uploaded",
    "rollback.before-create",
    "rollback.created",
]
"""Those of the publication that follows are in `tests.faults.test_kills`, of a rollback."""


def two_stores(builder: StreamsBuilder) -> None:
    sales = builder.stream("sales").group_by_key()
    sales.aggregate({"n": count()}, Materialized.as_("totals")).to_stream().to("out")
    windowed = sales.windowed_by(TimeWindows.of_size_and_grace(minutes(2), minutes(1)))
    windowed.aggregate({"sum": sum_("amount")}, Materialized.as_("windows")).to_stream().to("sums")


def pipeline_at(directory: Path, logged: tuple[str, ...] = STORES) -> Pipeline:
    return Pipeline(directory, made(two_stores), changelogs=logged, attempt=directory.name)


def replayed(directory: Path, ends: list[int | None], logged: tuple[str, ...] = STORES) -> Pipeline:
    pipeline = pipeline_at(directory, logged)
    pipeline.archive("sales", SALES, TYPES, partitions=2)
    for end in ends:
        pipeline.run(end)
    return pipeline


@pytest.fixture(scope="module")
def two_slices(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("two-slices")
    replayed(directory, [5 * MINUTE, 9 * MINUTE])
    shutil.rmtree(directory / "state")
    return directory


def flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def damage(pipeline: Pipeline, task_id: str, how: Callable[[Path], Any] = flip) -> None:
    """Damages a file of the newest state that the commits before it have too: no other one is good."""
    warehouse = Path(pipeline.warehouse.uri("").removeprefix("file://"))
    largest = max(head_of(pipeline).tasks[task_id].state.files, key=lambda file: file.size_bytes)
    how(warehouse / JobLayout("job").state(task_id) / largest.stored_name)


def rebuilt(pipeline: Pipeline, **options: Any) -> Commit:
    settings = TaskSettings(pipeline.warehouse.uri(""), str(Path(pipeline._settings.state_dir)))
    return rebuild_head(pipeline.warehouse, "job", settings, carry_out=one_by_one, now_ms=7, **options)


def one_by_one(works: Sequence[TaskRebuild]) -> list[CommittedTask]:
    return [work.run("r") for work in works]


def published(pipeline: Pipeline) -> dict[str, Any]:
    topics = ("out", "sums", *(changelog_topic("job", store) for store in STORES))
    return {topic: pipeline.output(topic) for topic in topics}


@pytest.fixture(scope="module")
def undisturbed(two_slices: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, Any, Any]:
    """The state of two slices, that of three, and what has been published then."""
    pipeline = pipeline_at(Path(shutil.copytree(two_slices, tmp_path_factory.mktemp("undisturbed") / "root")))
    before = pipeline.state()
    pipeline.run(None)
    return before, pipeline.state(), published(pipeline)


@pytest.fixture
def pipeline(two_slices: Path, tmp_path: Path) -> Pipeline:
    return pipeline_at(Path(shutil.copytree(two_slices, tmp_path / "root")))


def test_a_damaged_state_is_rebuilt_and_goes_on(pipeline: Pipeline, undisturbed: Any) -> None:
    before, after, topics = undisturbed
    damage(pipeline, "0_0")
    damage(pipeline, "0_1", Path.unlink)
    with pytest.raises((CorruptedDataError, RetryableError), match="hindstream state rebuild job"):
        pipeline.run(None)
    preview = preview_rebuild(pipeline.warehouse, "job")
    assert (preview.head, preview.damages.keys(), preview.open_run) == (2, {"0_0", "0_1"}, "00000003-1")
    assert {task: tuple(ends) for task, ends in preview.changelogs.items()} == {"0_0": STORES, "0_1": STORES}
    with pytest.raises(ConfigurationError, match="a run is open"):
        rebuilt(pipeline)
    commit = rebuilt(pipeline, supersede=True)
    assert (commit.commit, commit.rebuilds, commit.sinks) == (3, True, ())
    assert {task: found.position for task, found in commit.tasks.items()} == {
        task: found.position for task, found in CommitLog(pipeline.warehouse, "job").read(2).tasks.items()
    }
    assert pipeline.state() == before
    maintain(pipeline.warehouse, "job", Retention(1), now_ms=0)
    assert pipeline.state() == before
    pipeline.run(None)
    assert (pipeline.state(), published(pipeline)) == (after, topics)


def test_only_what_is_damaged_is_rebuilt_once(pipeline: Pipeline, undisturbed: Any) -> None:
    assert rebuilt(pipeline) == head_of(pipeline)
    whole = head_of(pipeline)
    damage(pipeline, "0_1")
    commit = rebuilt(pipeline)
    assert commit.tasks["0_0"] == whole.tasks["0_0"]
    assert {file.run_id for file in commit.tasks["0_1"].state.files} == {commit.run_id}
    assert rebuilt(pipeline) == commit
    everything = rebuilt(pipeline, everything=True)
    assert (everything.commit, everything.tasks["0_1"]) == (4, commit.tasks["0_1"])
    damage(pipeline, "0_1")
    assert rebuilt(pipeline, everything=True).commit == 5
    assert pipeline.state() == undisturbed[0]
    assert [preview_rollback(pipeline.warehouse, "job", n).topics.get("out") for n in (2, 3)] == [None, None]
    rollback(pipeline.warehouse, "job", 1, now_ms=9)
    pipeline.run(9 * MINUTE)
    pipeline.run(None)
    assert (pipeline.state(), published(pipeline)) == undisturbed[1:]


def rebuild_in_another_process(directory: Path, kill_at: tuple[str, int] | None) -> None:
    with observed(killer(kill_at)):
        rebuilt(pipeline_at(directory))


def test_killed_at_every_step_and_given_again(pipeline: Pipeline, tmp_path: Path, undisturbed: Any) -> None:
    damage(pipeline, "0_0")
    damage(pipeline, "0_1")
    processes = multiprocessing.get_context("forkserver")
    processes.set_forkserver_preload([__name__])
    for step in (*STEPS, None):
        arguments = (tmp_path / "root", None if step is None else (step, 1))
        process = processes.Process(target=rebuild_in_another_process, args=arguments)
        process.start()
        process.join()
        assert process.exitcode == (0 if step is None else -signal.SIGKILL), step
    assert CommitLog(pipeline.warehouse, "job").head_number() == 3
    assert pipeline.state() == undisturbed[0]
    pipeline.run(None)
    assert (pipeline.state(), published(pipeline)) == undisturbed[1:]


def test_somebody_else_was_quicker(pipeline: Pipeline, undisturbed: Any) -> None:
    """A run can begin and end while the state is rebuilt, where that is damaged in part or not at all."""
    overtaken = []

    def overtake(name: str) -> None:
        if name == "rollback.before-create" and not overtaken:
            overtaken.append(name)
            pipeline.run(None)

    with observed(overtake), pytest.raises(FencedError, match=r"has made commit 3 of job .* before this run"):
        rebuilt(pipeline, everything=True)
    assert (pipeline.state(), published(pipeline)) == undisturbed[1:]


class TestRefusals:
    """Each says what else can be done."""

    def test_a_store_without_a_changelog(self, tmp_path: Path) -> None:
        pipeline = replayed(tmp_path, [None], logged=("totals",))
        damage(pipeline, "0_0")
        told = r"no changelog: windows.*task 0_0.*copy of the warehouse.*roll back to an undamaged commit.*a new name"
        with pytest.raises(ConfigurationError, match=told):
            preview_rebuild(pipeline.warehouse, "job")
        with pytest.raises(ConfigurationError, match=told):
            rebuilt(pipeline)
        assert list(Runs(pipeline.warehouse, "job").attempts(2)) == []

    def test_a_job_that_is_held(self, pipeline: Pipeline) -> None:
        take_hold(pipeline.warehouse, "job", "somebody", reason="a migration", now_ms=1)
        damage(pipeline, "0_0")
        for refused in (preview_rebuild, lambda *_: rebuilt(pipeline)):
            with pytest.raises(ConfigurationError, match="held by somebody: a migration"):
                refused(pipeline.warehouse, "job")

    def test_a_changelog_that_is_too_short(self, pipeline: Pipeline) -> None:
        damage(pipeline, "0_0")
        topics = Path(pipeline.warehouse.uri("").removeprefix("file://")) / "topics"
        shutil.rmtree(topics / changelog_topic("job", "windows"))
        with pytest.raises(CorruptedDataError, match="the changelog ends before offset"):
            preview_rebuild(pipeline.warehouse, "job")

    def test_no_commits(self, tmp_path: Path) -> None:
        with pytest.raises(ConfigurationError, match="the job has no commits"):
            rebuilt(pipeline_at(tmp_path))
