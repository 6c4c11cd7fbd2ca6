"""A job that takes over what another has exported goes on as that one does."""

from __future__ import annotations

import multiprocessing
import signal
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow.compute as pc
import pytest

from statelib import BufferConfig, Materialized, Suppressed, TimeWindows, export_changelog, open_state
from statelib.changelog import StoreFormat
from statelib.changelog.import_records import importer_of
from statelib.columns.schema_text import decode_schema
from statelib.commits import Retention, maintain, rollback
from statelib.commits.archives import open_archive
from statelib.commits.layout import CommitLog
from statelib.commits.run.plan import settle_plan
from statelib.commits.run.takeover import (
    Reached,
    commit_taken_over,
    described_topology,
    plan_taking_over,
    taken_over_by,
)
from statelib.errors.fault_points import observed
from statelib.errors.kinds import ConfigurationError, FencedError, InputError
from statelib.task.takeover import TaskTakeover
from statelib.topics.kafka_copy import CopiedRange, KafkaCopy
from tests.changelog.test_export import form_of, shares
from tests.changelog.test_rebuild import (
    MINUTE,
    NOT_OF_RESULTS,
    SALES,
    TOPOLOGIES,
    TYPES,
    final_windows,
    first_of_each_key,
    first_of_each_note,
    head_of,
    joined_by_a_foreign_key,
    made,
    minutes,
    processors_that_share,
    streams_behind_sessions,
    streams_outer_joined,
    tables_behind_windows,
)
from tests.effort import in_turn
from tests.faults.killer import killer
from tests.task.pipeline import Pipeline

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    import pyarrow as pa

    from statelib import StreamsBuilder
    from statelib.documents.manifests import Commit

pytestmark = pytest.mark.thorough

STOP = 6 * MINUTE
TAKE_OVER = ("take-over.before-create", "take-over.created")
UNTOLD = ("arrivals", "buffer_time")
"""Clocks that no changelog tells: records are counted anew, and which have waited for a table is not known."""


@dataclass(frozen=True)
class Exported:
    """What Kafka has of an application."""

    reached: Reached
    logs: dict[tuple[str, int], list[pa.RecordBatch]]
    formats: dict[str, StoreFormat]


class Live:
    """Stands for an application: another job, which has come to some time."""

    def __init__(
        self, directory: Path, build: Callable[[StreamsBuilder], None], stop: int = STOP, **settings: Any
    ) -> None:
        self.pipeline = pipeline_at(directory, build, **settings)
        self.pipeline.archive("sales", SALES, TYPES, partitions=2)
        self.pipeline.run(stop)
        logs: dict[tuple[str, int], list[pa.RecordBatch]] = {}
        formats: dict[str, StoreFormat] = {}
        with open_state(directory / "warehouse", "job", state_dir=directory / "read") as state:
            for store, partition in shares(state):
                formats[store.name] = form_of(store)
                logs[store.name, partition] = list(export_changelog(store, partition, form_of(store)))
        head = head_of(self.pipeline)
        times: dict[str, int] = {}
        for task in head.tasks.values():
            times |= {place: ms for place, ms in task.position.source_times.items() if place.startswith("sales/")}
        ends = {name: {p: 1 for n, p in logs if n == name} for name, _ in logs}
        self.exported = Exported(Reached("live", head.source_offsets(), times, ends), logs, formats)

    def goes_on(self) -> list[tuple[Any, ...]]:
        """What it makes of the rest, by partition."""
        offsets = {
            place: n for t in head_of(self.pipeline).tasks.values() for place, n in t.position.sink_offsets.items()
        }
        self.pipeline.run(None)
        rows = self.pipeline.output("out")
        return [(p, *row) for p, offset, *row in rows if offset >= offsets.get(f"out/{p}", 0)]


def pipeline_at(directory: Path, build: Callable[[StreamsBuilder], None], **settings: Any) -> Pipeline:
    return Pipeline(directory, made(build), attempt=directory.name, **settings)


def taken_over(pipeline: Pipeline, of: Exported, *, before_commit: Callable[[], None] = lambda: None) -> Commit:
    warehouse = pipeline.warehouse
    standing = taken_over_by(warehouse, "job", "live")
    if standing is not None:
        return standing
    semantics = pipeline._settings.semantics
    wanted = plan_taking_over(
        pipeline, warehouse, of.reached, now_ms=1, semantics=semantics, describe=pipeline._described
    )
    plan = settle_plan(warehouse, wanted)
    described = described_topology(warehouse, plan)
    tasks = {}
    for planned in plan.tasks:
        readers = {name: partial(read, of.logs, name) for name in of.formats}
        work = TaskTakeover(pipeline._settings, plan, planned, described, readers, of.formats)
        tasks[planned.task_id], records = work.run("a")
        assert records == {s.name: sum(map(len, of.logs[s.name, planned.partition])) for s in work.stores}
    before_commit()
    return commit_taken_over(warehouse, plan, tasks, now_ms=2)


def read(logs: dict[tuple[str, int], list[pa.RecordBatch]], name: str, partition: int, end: int) -> Iterator[Any]:
    assert end == 1
    yield from logs[name, partition]


def final_windows_of_some(builder: StreamsBuilder) -> None:
    """Of which there are none for long: the operators' clocks stand still meanwhile."""
    amount = pc.field("value", "amount")
    some = builder.stream("sales").filter((amount < 60) | (amount > 150))
    windowed = some.group_by_key().windowed_by(TimeWindows.of_size_and_grace(minutes(2), minutes(1)))
    final = windowed.count(Materialized.as_("s")).suppress(Suppressed.until_window_closes(BufferConfig.unbounded()))
    final.to_stream().to("out")


NOT_LOGGED = (
    first_of_each_key,
    first_of_each_note,
    joined_by_a_foreign_key,
    processors_that_share,
    streams_behind_sessions,
    streams_outer_joined,
    tables_behind_windows,
)
LOGGED = [*(build for build in TOPOLOGIES if build not in (*NOT_LOGGED, *NOT_OF_RESULTS)), final_windows_of_some]
"""Topologies all of whose stores can be made of what Kafka Streams logs."""


@pytest.mark.thorough
@pytest.mark.parametrize(("build", "way"), in_turn(LOGGED, [(2 * MINUTE, "kafka-4.3"), (6 * MINUTE, "kip")]))
def test_it_goes_on_as_the_other_does(
    tmp_path: Path, build: Callable[[StreamsBuilder], None], way: tuple[int, str]
) -> None:
    stop, semantics = way
    live = Live(tmp_path / "live", build, stop, semantics=semantics)
    pipeline = pipeline_at(tmp_path / "ours", build, semantics=semantics)
    pipeline.archive("sales", SALES, TYPES, partitions=2)
    commit, head = taken_over(pipeline, live.exported), head_of(live.pipeline)
    assert (commit.commit, commit.sinks) == (1, ())
    assert commit.source_offsets() == head.source_offsets()
    for task_id, task in commit.tasks.items():
        theirs = head.tasks[task_id].position
        assert task.position.stream_time == theirs.stream_time
        for node, clocks in task.position.clocks.items():
            told = {name: time for name, time in clocks.items() if name not in UNTOLD}
            assert told.items() <= theirs.clocks[node].items()
            assert clocks.get("buffer_time", 0) <= theirs.stream_time
    expected = live.goes_on()
    pipeline.run(None)
    assert [(p, *row) for p, _, *row in pipeline.output("out")] == expected
    assert expected


@pytest.fixture
def live(tmp_path: Path) -> Live:
    return Live(tmp_path / "live", final_windows)


@pytest.fixture
def pipeline(tmp_path: Path) -> Pipeline:
    pipeline = pipeline_at(tmp_path / "ours", final_windows)
    pipeline.archive("sales", SALES, TYPES, partitions=2)
    return pipeline


def taken_over_in_another_process(directory: Path, of: Exported, kill_at: tuple[str, int] | None) -> None:
    with observed(killer(kill_at)):
        taken_over(pipeline_at(directory, final_windows), of)


def test_killed_at_every_step_and_given_again(pipeline: Pipeline, live: Live, tmp_path: Path) -> None:
    processes = multiprocessing.get_context("forkserver")
    processes.set_forkserver_preload([__name__])
    steps = ["plan.topology-described", "plan.created", "checkpoint.before-upload", "checkpoint.uploaded"]
    for step in (*steps, *TAKE_OVER, None):
        arguments = (tmp_path / "ours", live.exported, None if step is None else (step, 1))
        process = processes.Process(target=taken_over_in_another_process, args=arguments)
        process.start()
        process.join()
        assert process.exitcode == (0 if step is None else -signal.SIGKILL), step
    assert CommitLog(pipeline.warehouse, "job").head_number() == 1
    maintain(pipeline.warehouse, "job", Retention(1), now_ms=0)
    pipeline.run(None)
    assert [(p, *row) for p, _, *row in pipeline.output("out")] == live.goes_on()


def test_a_rollback_goes_back_to_what_was_taken_over(pipeline: Pipeline, live: Live) -> None:
    commit, state = taken_over(pipeline, live.exported), pipeline.state()
    pipeline.run(9 * MINUTE)
    again = rollback(pipeline.warehouse, "job", 1, now_ms=9)
    assert (again.commit, again.taken_over, again.tasks) == (3, None, commit.tasks)
    assert pipeline.state() == state
    pipeline.run(None)
    assert [(p, *row) for p, _, *row in pipeline.output("out")] == live.goes_on()


def test_the_same_plan_goes_on_unless_the_application_has(pipeline: Pipeline, live: Live) -> None:
    settle = partial(plan_taking_over, pipeline, pipeline.warehouse, now_ms=1, semantics="kip")
    plans = [
        settle_plan(pipeline.warehouse, settle(live.exported.reached, describe=pipeline._described)) for _ in range(2)
    ]
    moved = replace(live.exported.reached, changelogs={name: {0: 1, 1: 2} for name in live.exported.reached.changelogs})
    plans.append(settle_plan(pipeline.warehouse, settle(moved, describe=pipeline._described)))
    assert [plan.run_id for plan in plans] == ["00000001-1", "00000001-1", "00000001-2"]


def test_somebody_else_was_quicker(pipeline: Pipeline, live: Live) -> None:
    with pytest.raises(FencedError, match="has made commit 1 of job job before this run"):
        taken_over(pipeline, live.exported, before_commit=lambda: pipeline.run(None))
    assert head_of(pipeline).taken_over is None
    with pytest.raises(ConfigurationError, match="the job has commits already"):
        taken_over(pipeline, live.exported)


def test_an_archive_that_does_not_reach_the_application(tmp_path: Path, live: Live) -> None:
    pipeline = pipeline_at(tmp_path / "short", final_windows)
    pipeline.archive("sales", SALES[:9], TYPES, partitions=2)
    with pytest.raises(ConfigurationError, match="the archive ends at offset .*archive what is missing"):
        taken_over(pipeline, live.exported)
    other = pipeline_at(tmp_path / "other", final_windows)
    other.archive("sales", SALES, TYPES, partitions=3)
    with pytest.raises(ConfigurationError, match="2 partitions in Kafka, and 3 in its archive"):
        taken_over(other, live.exported)


def test_changelogs_of_other_partitions(pipeline: Pipeline, live: Live) -> None:
    """A task would find nothing, or not all of it."""
    for ends in ({0: 1}, {0: 1, 1: 1, 2: 1}):
        other = replace(live.exported.reached, changelogs=dict.fromkeys(live.exported.reached.changelogs, ends))
        with pytest.raises(ConfigurationError, match=f"the changelog has {len(ends)} partitions?, and the job 2 tasks"):
            taken_over(pipeline, replace(live.exported, reached=other))


def test_an_archive_that_begins_later(tmp_path: Path, pipeline: Pipeline, live: Live) -> None:
    archive = open_archive(pipeline.warehouse, "sales")
    ranges = {p: CopiedRange(end + 9, end + 10) for p, end in archive.end_offsets().items()}
    KafkaCopy(archive).advance([], ranges, origin="cluster/topic")
    with pytest.raises(InputError, match="has come to offset .*, and the archive begins at"):
        taken_over(pipeline, live.exported)


@pytest.mark.parametrize("build", [first_of_each_key, streams_outer_joined], ids=lambda build: build.__name__)
def test_a_store_that_no_changelog_makes(tmp_path: Path, build: Callable[[StreamsBuilder], None]) -> None:
    pipeline = pipeline_at(tmp_path, build)
    pipeline.archive("sales", SALES[:1], TYPES, partitions=2)
    (store,) = (
        store
        for store in described_topology(pipeline.warehouse, pipeline.plan()).stores
        if store.kind in ("deduplication", "held-records")
    )
    with pytest.raises(ConfigurationError, match="cannot be restored from Kafka Streams.*let it begin empty"):
        importer_of(store, decode_schema(store.arrow_schema))
