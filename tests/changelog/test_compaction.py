"""A state that is rebuilt from compacted changelogs is that of the checkpoint, byte for byte, for every commit kept."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from statelib import Processor, StreamsBuilder, Windowed
from statelib.commits import FilePolicy, Retention, maintain, rollback
from statelib.commits.archives import open_archive
from statelib.commits.layout import CommitLog, changelog_topic
from statelib.commits.maintenance.verify import verify
from statelib.errors.fault_points import observed
from tests.changelog.test_rebuild import (
    IN_EACH_MODE,
    TYPES,
    counts,
    head_of,
    made,
    plain_table,
    rebuilt,
    stores_of,
    versioned_table,
)
from tests.effort import one_in
from tests.task.pipeline import Pipeline
from tests.task.test_process import SESSIONS, WINDOWS
from tests.task.test_process import topology as everything

if TYPE_CHECKING:
    from pathlib import Path

    from statelib import ProcessorContext, Record
    from statelib.topology import Topology

pytestmark = pytest.mark.thorough

DAY = 86_400_000
BLOCKS = 4
STEPS = ["rewrite.cleaned", "rewrite.before-create", "rewrite.created", "rewrite.before-commit", "rewrite.committed"]
SALES = [
    (
        f"k{i * i % 7}-{block if i % 10 == 0 else ''}",
        None if i % 11 == 5 else {"amount": i, "note": "x" * (i % 4)},
        2 * DAY * block + max(0, i * 4_000 - (i % 9) * 9_000),
    )
    for block in range(BLOCKS)
    for i in range(60)
]
"""Some minutes of sales every other day: some keys come again, others only once, some are deleted."""


def policy(attempt: str = "m", **options: int) -> FilePolicy:
    settings = {"target_bytes": 4_096, "keep_replaced_ms": 0, "every_commits": 0, "delete_retention_ms": 10, **options}
    return FilePolicy(attempt, **settings)


def piped(directory: Path, topology: Topology, **settings: str) -> Pipeline:
    pipeline = Pipeline(directory, topology, changelogs=stores_of(topology), **settings)
    pipeline.archive("sales", SALES, TYPES, partitions=2)
    return pipeline


def compact(pipeline: Pipeline, attempt: str, *, keep: int = 2, now_ms: int = 0, **options: int) -> None:
    maintain(pipeline.warehouse, "job", Retention(keep), now_ms=now_ms, files=policy(attempt, **options))


@pytest.mark.thorough
@pytest.mark.parametrize(("build", "semantics"), one_in(8, IN_EACH_MODE))
def test_the_rebuilt_state_is_that_of_the_checkpoint(
    tmp_path: Path, build: Callable[[StreamsBuilder], None], semantics: str
) -> None:
    topology, blocks = made(build), BLOCKS - 1
    pipeline = piped(tmp_path, topology, semantics=semantics)
    log, states = CommitLog(pipeline.warehouse, "job"), {}
    for block in range(blocks):
        pipeline.run(2 * DAY * (block + 1) - DAY)
        states[block + 1] = pipeline.state()
        compact(pipeline, f"m{block}", now_ms=100 * block)
        for commit in range(block, block + 2) if block >= blocks - 2 else ():
            assert rebuilt(pipeline, log.read(commit)) == states[commit]
    for store in (store for sub in topology.sub_topologies for store in sub.stores):
        archive = open_archive(pipeline.warehouse, changelog_topic("job", store.name))
        assert archive.cleaned_offset(0) > 0
        if store.kind != "punctuation":  # of few schedules none may have been replaced
            assert archive.rows < sum(archive.end_offsets().values())
    assert verify(pipeline.warehouse, "job", everything=True).damages == ()
    rollback(pipeline.warehouse, "job", blocks - 1, now_ms=0)
    assert rebuilt(pipeline, head_of(pipeline)) == states[blocks - 1]
    pipeline.run(2 * DAY * blocks - DAY)
    assert rebuilt(pipeline, head_of(pipeline)) == pipeline.state() == states[blocks]


class DeletesTheNewest(Processor):
    """Puts a window and a session for each record; without a value it deletes them."""

    def init(self, context: ProcessorContext) -> None:
        super().init(context)
        self.windows = context.get_state_store("windows")
        self.sessions = context.get_state_store("sessions")

    def process(self, record: Record) -> None:
        time, value = record.timestamp, None if record.value is None else 1
        self.windows.put(record.key, value, time)
        self.sessions.put(Windowed(record.key, time, time), value)


def deleting() -> Topology:
    builder = StreamsBuilder("job")
    for store in (WINDOWS, SESSIONS):
        builder.add_state_store(store)
    builder.stream("clicks").process(DeletesTheNewest, "windows", "sessions").to("out")
    return builder.build()


def clicks(block: int, *, ahead: bool) -> list[tuple[str, str | None, int]]:
    """Some clicks every other day; ``ahead``: one of the second part is later than all others, and deletes."""
    return [
        (
            f"user-{i % 5}-{block if i % 7 == 0 else ''}",
            None if i % 12 == 1 else f"v{i}",
            2 * DAY * (9 if ahead and (block, i) == (1, 37) else block) + max(0, i * 7 + (i % 5) * 11 - (i % 7) * 6),
        )
        for i in range(60)
    ]


@pytest.mark.thorough
@pytest.mark.parametrize("build", [everything, deleting])
def test_stores_of_processors_are_rebuilt_as_of_every_commit_kept(
    tmp_path: Path, build: Callable[[], Topology]
) -> None:
    topology = build()
    pipeline = Pipeline(tmp_path, topology, changelogs=stores_of(topology))
    log, states = CommitLog(pipeline.warehouse, "job"), {}
    for block in range(BLOCKS):
        pipeline.archive("clicks", clicks(block, ahead=build == deleting), (pa.string(), pa.string()))
        pipeline.run()
        states[block + 1] = pipeline.state()
        compact(pipeline, f"m{block}", now_ms=100 * block)
        for commit in range(max(block, 1), block + 2):
            found = rebuilt(pipeline, log.read(commit))
            assert {task_id: rows for task_id, rows in found.items() if rows} == states[commit]
    for store in stores_of(topology):
        archive = open_archive(pipeline.warehouse, changelog_topic("job", store))
        logged = sum(archive.end_offsets().values())
        assert archive.cleaned_offset(0) > 0
        assert archive.rows < logged or logged == 1


def records(pipeline: Pipeline) -> list[list[dict[str, object]]]:
    archive = open_archive(pipeline.warehouse, changelog_topic("job", "s"))
    return [archive.reader(p).read_all().to_pylist() for p in range(archive.partitions)]


@pytest.fixture(scope="module")
def deleted_and_kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Five commits of a plain table, of which the first has most of it."""
    root = tmp_path_factory.mktemp("deleted")
    pipeline = Pipeline(root, made(plain_table), changelogs=["s"])
    rows = [("a", 1), ("b", 2), ("a", None), ("c", 3), ("b", 4), ("d", 5)]
    for part in (rows, [("e", 6)], [("e", 7)], [("e", 8)], [("e", 9)]):
        pipeline.archive("sales", [(key, value and {"amount": value, "note": ""}, 7) for key, value in part], TYPES)
        pipeline.run()
    return root


def copied(root: Path, tmp_path: Path) -> Pipeline:
    return Pipeline(shutil.copytree(root, tmp_path / "copy"), made(plain_table), changelogs=["s"])


def test_the_last_record_of_each_key_stays_at_its_offset(deleted_and_kept: Path, tmp_path: Path) -> None:
    pipeline = copied(deleted_and_kept, tmp_path)
    (before,) = records(pipeline)
    compact(pipeline, "m", keep=5)
    (after,) = records(pipeline)
    assert [r["offset"] for r in after] == [2, 3, 4, 5, 6, 7, 8, 9]
    assert after == [r for r in before if r["offset"] not in {0, 1}]


def test_a_tombstone_goes_when_readers_have_had_the_time_to_see_it(deleted_and_kept: Path, tmp_path: Path) -> None:
    pipeline = copied(deleted_and_kept, tmp_path)
    compact(pipeline, "m", keep=5, now_ms=100)
    compact(pipeline, "n", keep=3, now_ms=109)
    assert [r["offset"] for r in records(pipeline)[0]] == [2, 3, 4, 5, 7, 8, 9]
    compact(pipeline, "o", keep=1, now_ms=110)
    assert [r["offset"] for r in records(pipeline)[0]] == [3, 4, 5, 9]


class Killed(BaseException):
    """As if the process had ended here."""


@pytest.mark.parametrize("at", STEPS)
def test_killed_at_a_step_it_is_done_by_the_next(deleted_and_kept: Path, tmp_path: Path, at: str) -> None:
    pipeline = copied(deleted_and_kept, tmp_path)

    def kill(name: str) -> None:
        if name == at:
            raise Killed

    with observed(kill), pytest.raises(Killed):
        compact(pipeline, "killed", keep=3)
    compact(pipeline, "next", keep=3)
    assert [r["offset"] for r in records(pipeline)[0]] == [2, 3, 4, 5, 7, 8, 9]
    archive = open_archive(pipeline.warehouse, changelog_topic("job", "s"))
    assert archive.cleaned_offset(0) == 8
    left = {entry.path for entry in pipeline.warehouse.list(f"topics/{archive.topic}") if "=" in entry.path}
    assert left == {f"topics/{archive.topic}/{file.path}" for file in archive.files(0)}


def test_what_was_compacted_is_compacted_again_when_half_is_new(tmp_path: Path) -> None:
    pipeline = piped(tmp_path, made(counts))
    topic, cleaned = changelog_topic("job", "s"), []
    for block in range(BLOCKS):
        pipeline.run(2 * DAY * (block + 1) - DAY)
        compact(pipeline, f"m{block}", keep=1, target_bytes=1 << 20)
        archive = open_archive(pipeline.warehouse, topic)
        cleaned.append(archive.cleaned_offset(0))
        files = archive.files(0)
        clean = [f.size_bytes for f in files if f.first_offset < cleaned[-1]]
        assert sum(f.size_bytes for f in files) < 2 * sum(clean)
    assert len(set(cleaned)) > 1
    assert cleaned == sorted(cleaned)


def test_a_lag_that_is_set_keeps_what_is_younger(tmp_path: Path) -> None:
    pipeline = piped(tmp_path, made(plain_table))
    for block in range(BLOCKS):
        pipeline.run(2 * DAY * (block + 1) - DAY)
    before = records(pipeline)
    archive = open_archive(pipeline.warehouse, changelog_topic("job", "s"))
    assert archive.min_compaction_lag_ms is None
    archive = archive.set_min_compaction_lag(5 * DAY)
    assert archive.min_compaction_lag_ms == 5 * DAY
    assert archive.set_min_compaction_lag(5 * DAY).version == archive.version
    compact(pipeline, "m", keep=1)
    for was, now in zip(before, records(pipeline), strict=True):
        newest = max(r["timestamp"] for r in was)
        young = [r for r in was if (newest - r["timestamp"]).days < 4]
        assert [r for r in now if r["offset"] >= young[0]["offset"]] == young
        assert len(now) < len(was)
    assert archive.set_min_compaction_lag(DAY).min_compaction_lag_ms == DAY


def test_memory_that_is_short_changes_nothing(tmp_path: Path) -> None:
    found = []
    for memory_bytes in (128 << 20, 20_000):
        pipeline = Pipeline(tmp_path / str(memory_bytes), made(plain_table), changelogs=["s"])
        rows = [(f"key-{i * i % 4_001}", {"amount": i, "note": ""}, i) for i in range(9_000)]
        pipeline.archive("sales", rows, TYPES)
        for end in (7_000, 8_000, None):
            pipeline.run(end)
            compact(pipeline, f"m{end}", keep=1, memory_bytes=memory_bytes)
        (after,) = records(pipeline)
        last = {key: i for i, (key, _, _) in enumerate(rows)}
        assert len(after) < 6_000
        assert {r["key"] for r in after} == {key.encode() for key in last}
        found.append(after)
    assert found[0] == found[1]


def test_changelogs_of_versioned_stores_as_shipped_are_only_merged(tmp_path: Path) -> None:
    pipeline = piped(tmp_path, made(versioned_table), semantics="kafka-4.3")
    for block in range(BLOCKS):
        pipeline.run(2 * DAY * (block + 1) - DAY)
    before = records(pipeline)
    compact(pipeline, "m", keep=1)
    archive = open_archive(pipeline.warehouse, changelog_topic("job", "s"))
    assert (archive.cleaned_offset(0), len(archive.files(0))) < (1, BLOCKS)
    assert records(pipeline) == before


def test_a_job_that_reads_a_changelog_goes_on_behind_what_was_compacted(tmp_path: Path) -> None:
    pipeline = piped(tmp_path, made(counts))
    reader = Pipeline(tmp_path, made(reading), name="reader")
    pipeline.run(DAY)
    reader.run()
    for block in range(1, BLOCKS):
        pipeline.run(2 * DAY * (block + 1) - DAY)
    compact(pipeline, "m", keep=1)
    reader.run()
    latest = {r["key"]: r["value"] for part in records(pipeline) for r in part}
    seen = {key: value for _, _, key, value, _ in sorted(reader.output("seen"), key=lambda row: row[:2])}
    assert seen == latest


def reading(builder: StreamsBuilder) -> None:
    builder.stream(changelog_topic("job", "s")).to("seen")
