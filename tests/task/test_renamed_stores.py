"""A job whose stores have other names than in its warehouse: refused with both, and gone on with when asked to."""

from __future__ import annotations

import multiprocessing
import signal
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from statelib import (
    BufferConfig,
    Deduplicated,
    Grouped,
    JoinWindows,
    Materialized,
    Named,
    SessionWindows,
    StreamJoined,
    StreamsBuilder,
    Suppressed,
    TimeWindows,
    count,
)
from statelib.commits.layout import CommitLog
from statelib.commits.topologies.renamed_changelogs import copy_changelogs
from statelib.documents.plans import Plan
from statelib.errors.fault_points import observed
from statelib.errors.kinds import ConfigurationError
from statelib.migration import compare_latest
from tests.changelog.test_rebuild import head_of, rebuilt
from tests.effort import every_other, one_in
from tests.faults.killer import killer
from tests.task.pipeline import Pipeline
from tests.task.test_migration import content

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from statelib.documents.topologies import Migration
    from statelib.topology import Topology

pytestmark = pytest.mark.thorough

RENAME = ["plan.changelog-object-copied", "plan.changelog-copied"]
"""The steps that `copy_changelogs` has and no slice without a renamed store."""
MINUTE = 60_000
TYPES = (pa.string(), pa.int64())
CUT = 20 * MINUTE
ROWS = [(f"k{i * i % 13}", None if i % 17 == 3 else i, max(0, i * 6_000 - (i % 4) * 9_000)) for i in range(400)]
WINDOWS = TimeWindows.of_size_and_grace(timedelta(minutes=2), timedelta(minutes=1))
SESSIONS = SessionWindows.of_inactivity_gap_and_grace(timedelta(seconds=20), timedelta(minutes=1))
NEAR = JoinWindows.of_time_difference_and_grace(timedelta(seconds=30), timedelta(seconds=30))
FINAL = Suppressed.until_window_closes(BufferConfig.unbounded())


def table(builder: StreamsBuilder, name: str) -> None:
    builder.table("in", Materialized.as_(name)).to_stream().to("out")


def counted(builder: StreamsBuilder, name: str) -> None:
    builder.stream("in").group_by("value").count(Materialized.as_(name)).to_stream().to("out")


def windowed(builder: StreamsBuilder, name: str) -> None:
    grouped = builder.stream("in").group_by_key().windowed_by(WINDOWS)
    grouped.aggregate({"n": count()}, Materialized.as_(name)).suppress(FINAL.with_name(name)).to_stream().to("out")


def sessions(builder: StreamsBuilder, name: str) -> None:
    grouped = builder.stream("in").group_by_key().windowed_by(SESSIONS)
    grouped.count(Materialized.as_(name)).to_stream().to("out")


def deduplicated(builder: StreamsBuilder, name: str) -> None:
    builder.stream("in").deduplicate_by_key(timedelta(minutes=3), Deduplicated.as_(name)).to("out")


def joined(builder: StreamsBuilder, name: str) -> None:
    stream = builder.stream("in")
    streams = StreamJoined.as_(name)
    stream.left_join(stream.filter_not("key"), {"l": "left", "r": "right"}, NEAR, streams).to("out")


def itself(builder: StreamsBuilder, name: str) -> None:
    stream = builder.stream("in")
    stream.left_join(stream, {"l": "left", "r": "right"}, NEAR, StreamJoined.as_(name)).to("out")


def by_foreign_key(builder: StreamsBuilder, name: str) -> None:
    left = builder.table("in", Materialized.as_("left"))
    right = builder.table("other", Materialized.as_("right"))
    left.join(
        right, {"l": "left", "r": "right"}, Named.as_(name), Materialized.as_("result"), foreign_key="key"
    ).to_stream().to("out")


KINDS: list[Callable[[StreamsBuilder, str], None]] = [
    table, counted, windowed, sessions, deduplicated, itself, by_foreign_key,
]  # fmt: skip


def made(kind: Callable[[StreamsBuilder, str], None], name: str) -> Topology:
    builder = StreamsBuilder("job")
    kind(builder, name)
    return builder.build()


def replayed(directory: Path, topology: Topology, changelogs: list[str] | None = None) -> Pipeline:
    pipeline = Pipeline(directory, topology, changelogs=changelogs or [])
    pipeline.archive("in", ROWS, TYPES, partitions=2)
    if "other" in topology.source_topics:
        pipeline.archive("other", ROWS[::3], TYPES, partitions=2)
    pipeline.run(CUT)
    return pipeline


def new_names(pipeline: Pipeline) -> list[str]:
    """What the refusal says that is to be asked for."""
    with pytest.raises(ConfigurationError) as refused:
        pipeline.plan()
    message = str(refused.value)
    assert "it is called" in message
    assert "hindstream migrate plan JOB --store " in message
    return message.partition("migrate_stores=")[2].partition(")")[0].split(",")


@pytest.mark.parametrize("kind", every_other(KINDS))
def test_a_store_goes_on_under_its_new_name(tmp_path: Path, kind: Callable[[StreamsBuilder, str], None]) -> None:
    changed, always = (replayed(tmp_path / name, made(kind, name)) for name in ("former", "new"))
    before = {task: content(changed, task) for task in changed.state()}
    changed.topology = made(kind, "new")
    asked = new_names(changed)
    assert all(entry.startswith("former") and "=new" in entry for entry in asked)
    planned = changed.plan(CUT + 1, migrate_stores=asked)
    assert isinstance(planned, Plan)
    changed.run(CUT + 1, migrate_stores=asked)
    always.run(CUT + 1)
    assert changed.state() == always.state()
    migrations = migrations_of(changed)
    assert sorted(migration.asked_for for migration in migrations) == sorted(asked)
    for migration in migrations:
        for task, backend in before.items():
            found = compare_latest(migration, backend, content(changed, task))
            assert found.differences <= 60  # the slice itself has records
    changed.run()
    always.run()
    assert changed.state() == always.state()
    assert changed.output("out") == always.output("out")


def test_the_numbers_of_answers_go_on_with_another_topology(tmp_path: Path) -> None:
    """Answers to changes that were numbered anew would be taken for old ones, and dropped."""

    def more(builder: StreamsBuilder, name: str) -> None:
        by_foreign_key(builder, name)
        builder.stream("in").filter(pc.field("value") > 0).to("copy")

    changed, always = (replayed(tmp_path / name, made(by_foreign_key, "join")) for name in ("changed", "always"))
    changed.topology = made(more, "join")
    changed.run()
    always.run()
    assert changed.output("out") == always.output("out")


def migrations_of(pipeline: Pipeline) -> tuple[Migration, ...]:
    head = CommitLog(pipeline.warehouse, "job").head()
    assert head is not None
    assert head.evolution is not None
    return head.evolution.migrations


def test_a_changelog_goes_on_under_its_new_name(tmp_path: Path) -> None:
    changed = replayed(tmp_path / "changed", made(table, "former"), ["former"])
    changed.topology = made(table, "new")
    changed._changelogs = ["new"]
    changed.run(CUT + 1, migrate_stores=["former=new"])
    always = replayed(tmp_path / "always", made(table, "new"), ["new"])
    always.run(CUT + 1)
    assert changed.output("job-new-changelog") == always.output("job-new-changelog")
    assert changed.output("job-former-changelog")
    changed.run()
    always.run()
    assert changed.output("job-new-changelog") == always.output("job-new-changelog")
    assert rebuilt(changed, head_of(changed)) == changed.state()


def renamed(directory: Path) -> Pipeline:
    """A job that is to go on with another name of its store, after two slices."""
    pipeline = replayed(directory, made(table, "former"), ["former"])
    pipeline.run(CUT + 1)
    return under_its_new_name(pipeline)


def under_its_new_name(pipeline: Pipeline) -> Pipeline:
    pipeline.topology = made(table, "new")
    pipeline._changelogs = ["new"]
    return pipeline


def driven(directory: Path, kill_at: tuple[str, int] | None) -> None:
    pipeline = Pipeline(directory, made(table, "new"), changelogs=["new"])
    with observed(killer(kill_at)):
        pipeline.run(2 * CUT, migrate_stores=["former=new"])


KILLED_AT = [(RENAME[1], 1), *((RENAME[0], n) for n in (1, 2, 3, 4, 5))]


@pytest.mark.parametrize("kill_at", one_in(3, ((at,) for at in KILLED_AT)), ids=str)
def test_killed_while_its_changelog_is_copied_it_goes_on(tmp_path: Path, kill_at: tuple[str, int]) -> None:
    changed, always = renamed(tmp_path / "changed"), renamed(tmp_path / "always")
    always.run(2 * CUT, migrate_stores=["former=new"])
    processes = multiprocessing.get_context("forkserver")
    processes.set_forkserver_preload([__name__])
    process = processes.Process(target=driven, args=(tmp_path / "changed", kill_at))
    process.start()
    process.join()
    assert process.exitcode == -signal.SIGKILL
    changed.run(2 * CUT, migrate_stores=["former=new"])
    for pipeline in (changed, always):
        pipeline.run()
    assert changed.output("job-new-changelog") == always.output("job-new-changelog")
    assert rebuilt(changed, head_of(changed)) == changed.state() == always.state()


def test_who_copies_a_changelog_too_late_takes_nothing_away(tmp_path: Path) -> None:
    """Another driver has committed and published while this one was about to copy."""
    changed = renamed(tmp_path)
    head = head_of(changed)
    planned = changed.plan(2 * CUT, migrate_stores=["former=new"])
    assert isinstance(planned, Plan)
    assert planned.evolution is not None
    changed.run(2 * CUT, migrate_stores=["former=new"])
    before = changed.output("job-new-changelog")
    copy_changelogs(changed.warehouse, head, planned.evolution)
    assert changed.output("job-new-changelog") == before
    changed.run()
    assert rebuilt(changed, head_of(changed)) == changed.state()


def test_a_copy_that_nobody_has_gone_on_with_is_in_nobodys_way(tmp_path: Path) -> None:
    """The job goes on as it was, and takes the new name later."""
    changed, always = renamed(tmp_path / "changed"), renamed(tmp_path / "always")
    changed.plan(2 * CUT, migrate_stores=["former=new"])
    for pipeline in (changed, always):
        pipeline.topology, pipeline._changelogs = made(table, "former"), ["former"]
        pipeline.run(2 * CUT)
        under_its_new_name(pipeline).run(migrate_stores=["former=new"])
    assert changed.output("job-new-changelog") == always.output("job-new-changelog")
    assert rebuilt(changed, head_of(changed)) == changed.state() == always.state()


def test_a_changelog_that_another_store_of_that_name_has_left_gives_way(tmp_path: Path) -> None:
    changed = renamed(tmp_path)
    changed.archive("job-new-changelog", ROWS[:5], TYPES, partitions=2)
    changed.run(migrate_stores=["former=new"])
    assert rebuilt(changed, head_of(changed)) == changed.state()


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        (["former=other"], r"cannot be renamed to other.*gone: former; new: new"),
        (["another=new"], r"store another cannot be renamed to new"),
        (["former=new", "former2=new"], "cannot be renamed to new"),
    ],
)
def test_names_that_are_not_there_are_refused(tmp_path: Path, asked: list[str], says: str) -> None:
    changed = replayed(tmp_path, made(table, "former"))
    changed.topology = made(table, "new")
    with pytest.raises(ConfigurationError, match=says):
        changed.plan(migrate_stores=asked)


def test_a_store_of_another_kind_has_no_new_name(tmp_path: Path) -> None:
    changed = replayed(tmp_path, made(sessions, "former"))
    changed.topology = made(windowed, "new")
    with pytest.raises(ConfigurationError, match="store former: it is gone"):
        changed.plan()


def test_two_stores_that_are_alike_are_told_apart_by_their_order(tmp_path: Path) -> None:
    def two(builder: StreamsBuilder, name: str) -> Any:
        grouped = builder.stream("in").group_by_key()
        grouped.count(Materialized.as_(f"{name}-b")).to_stream().to("out")
        grouped.count(Materialized.as_(f"{name}-a")).to_stream().to("again")

    changed = replayed(tmp_path, made(two, "former"))
    changed.topology = made(two, "new")
    assert new_names(changed) == ["former-b=new-b", "former-a=new-a"]


def test_aggregations_that_had_a_topic_together_have_one_when_their_grouping_has_a_name(tmp_path: Path) -> None:
    def two(builder: StreamsBuilder, name: str) -> None:
        grouped = builder.stream("in").group_by("value", Grouped(name or None))
        grouped.count(Materialized.as_("counts")).to_stream().to("out")
        grouped.sum("value", Materialized.as_("sums")).to_stream().to("sums-out")

    changed, always = (replayed(tmp_path / name, made(two, "together")) for name in ("changed", "always"))
    changed.topology = made(two, "")
    with pytest.raises(ConfigurationError, match=r"2, 2 and .*2, 2, 2.*name groupings.*Grouped\.as_"):
        changed.plan()
    changed.topology = made(two, "as-before")
    changed.run()
    always.run()
    assert changed.output("sums-out") == always.output("sums-out")


def test_offsets_behind_a_repartition_topic_go_on_under_its_new_name(tmp_path: Path) -> None:
    """Else a deduplication would take another record, at the offset of one that it knows, for that one."""

    def once(builder: StreamsBuilder, name: str) -> None:
        stream = (
            builder.stream("in")
            .filter(pc.is_valid(pc.field("value")))
            .select_key(pc.bit_wise_and(pc.field("value"), 3))
        )
        stream.deduplicate_by_key(timedelta(minutes=3), Deduplicated.as_(name)).to("out")

    changed, always = (replayed(tmp_path / name, made(once, name)) for name in ("former", "new"))
    changed.topology = made(once, "new")
    for pipeline in (changed, always):
        pipeline.run(CUT + 1, migrate_stores=["former-STORE=new-STORE"])
        pipeline.run()
    assert changed.state() == always.state()
    heads = [CommitLog(pipeline.warehouse, "job").head() for pipeline in (changed, always)]
    offsets, expected = (
        {task: made.position.source_offsets for task, made in head.tasks.items()} for head in heads if head
    )
    assert {
        task: {place: places.get(place) for place in expected[task]} for task, places in offsets.items()
    } == expected
    assert any(place.startswith("job-new-repartition/") for places in expected.values() for place in places)
    assert changed.output("out") == always.output("out")


def test_numbers_that_were_counted_otherwise_say_nothing(tmp_path: Path) -> None:
    """The number of one store was that of another, which is like it."""

    def numbered(first: int, second: int, repartitioned: str) -> Topology:
        builder = StreamsBuilder("job")
        stream = builder.stream("in")
        for number, predicate in ((first, pc.field("value") > 150), (second, pc.field("value") <= 150)):
            options = Deduplicated.as_(f"KSTREAM-DEDUPLICATE-{number:010d}")
            stream.filter(predicate).deduplicate_by_key(timedelta(minutes=3), options).to(f"out-{number}")
        stream.group_by("value").count(Materialized.as_(repartitioned)).to_stream().to("counts")
        return builder.build()

    changed = replayed(tmp_path / "changed", numbered(5, 7, "KSTREAM-AGGREGATE-0000000009-STORE"))
    changed.topology = numbered(7, 9, "KSTREAM-AGGREGATE-STATE-STORE-0000000010")
    asked = new_names(changed)
    assert asked == [
        "KSTREAM-DEDUPLICATE-0000000005-STORE=KSTREAM-DEDUPLICATE-0000000007-STORE",
        "KSTREAM-DEDUPLICATE-0000000007-STORE=KSTREAM-DEDUPLICATE-0000000009-STORE",
        "KSTREAM-AGGREGATE-0000000009-STORE=KSTREAM-AGGREGATE-STATE-STORE-0000000010",
    ]
    always = replayed(tmp_path / "always", changed.topology)
    changed.run(CUT + 1, migrate_stores=asked)
    always.run(CUT + 1)
    assert changed.state() == always.state()
