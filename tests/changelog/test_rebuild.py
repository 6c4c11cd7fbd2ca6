"""Stores rebuilt from their changelogs hold, byte for byte, what their checkpoints hold."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from statelib import (
    BufferConfig,
    DayWindows,
    Deduplicated,
    EmitStrategy,
    Joined,
    JoinWindows,
    Materialized,
    Processor,
    Record,
    SessionWindows,
    SlidingWindows,
    Stores,
    StreamsBuilder,
    Suppressed,
    TimeWindows,
    ValueAndTimestamp,
    approx_count_distinct,
    arg_max,
    collect_list,
    collect_set,
    count,
    count_distinct,
    first,
    last,
    mean_,
    per_record,
    quantiles,
    sum_,
    top_n,
    variance,
)
from statelib.changelog import rebuild
from statelib.commits import rollback
from statelib.commits.layout import CommitLog, changelog_topic
from statelib.documents.manifests import Commit
from statelib.errors.kinds import ConfigurationError, CorruptedDataError
from statelib.stores.memory import MemoryBackend
from statelib.stores.spec import families_of
from tests.effort import one_in
from tests.operators.processors.examples import relays
from tests.task.pipeline import Pipeline

if TYPE_CHECKING:
    from pathlib import Path

    from statelib import ProcessorContext
    from statelib.topology import Topology

pytestmark = pytest.mark.thorough

MINUTE = 60_000
TYPES = (pa.string(), pa.struct([("amount", pa.int64()), ("note", pa.string())]))
SALES = [
    (
        f"k{i * i % 7}",
        None if i % 11 == 5 else {"amount": i, "note": "x" * (i % 4)},
        max(0, i * 4_000 - (i % 9) * 9_000),
    )
    for i in range(400)
]


def minutes(n: int) -> timedelta:
    return timedelta(minutes=n)


def plain_table(builder: StreamsBuilder) -> None:
    builder.table("sales", Materialized.as_("s")).to_stream().to("out")


def versioned_table(builder: StreamsBuilder) -> None:
    supplier = Stores.persistent_versioned_key_value_store("s", minutes(4))
    builder.table("sales", Materialized.as_(supplier)).to_stream().to("out")


def derived_table(builder: StreamsBuilder) -> None:
    builder.table("sales", Materialized.as_("t")).map_values(
        "amount", materialized=Materialized.as_("s")
    ).to_stream().to("out")


def totals(builder: StreamsBuilder) -> None:
    sales = builder.stream("sales").group_by_key()
    sales.aggregate({"n": count(), "mean": mean_("amount")}, Materialized.as_("s")).to_stream().to("out")


def picks(builder: StreamsBuilder) -> None:
    functions = {
        "first": first("note"), "latest": last("amount", by_time=True), "note": arg_max("note", by="amount"),
        "variance": variance("amount"), "distinct": count_distinct("note"), "top": top_n("note", "amount", 2),
        "many": count(where=pc.field("value", "amount") > 5), "about": approx_count_distinct("note"),
        "spread": quantiles("amount", [0.5, 0.9]), "notes": collect_list("note", limit=3),
        "amounts": collect_set("amount"),
    }  # fmt: skip
    builder.stream("sales").group_by_key().aggregate(functions, Materialized.as_("s")).to_stream().to("out")


def counts(builder: StreamsBuilder) -> None:
    builder.stream("sales").group_by_key().count(Materialized.as_("s")).to_stream().to("out")


def smallest_or_nothing(builder: StreamsBuilder) -> None:
    def step(total: Any, value: Any) -> Any:
        return None if value["amount"] % 5 == 0 else {**value, "amount": total["amount"] + value["amount"]}

    builder.stream("sales").group_by_key().reduce(step, Materialized.as_("s")).to_stream().to("out")


def versioned_totals(builder: StreamsBuilder) -> None:
    supplier = Stores.persistent_versioned_key_value_store("s", minutes(4))
    builder.stream("sales").group_by_key().aggregate({"n": count()}, Materialized.as_(supplier)).to_stream().to("out")


def windows(builder: StreamsBuilder) -> None:
    windowed = builder.stream("sales").group_by_key().windowed_by(TimeWindows.of_size_and_grace(minutes(2), minutes(1)))
    windowed.aggregate({"n": count(), "sum": sum_("amount")}, Materialized.as_("s")).to_stream().to("out")


def counted_windows(builder: StreamsBuilder) -> None:
    hopping = TimeWindows.of_size_and_grace(minutes(3), minutes(1)).advance_by(minutes(1))
    builder.stream("sales").group_by_key().windowed_by(hopping).count(Materialized.as_("s")).to_stream().to("out")


def sliding(builder: StreamsBuilder) -> None:
    windows = SlidingWindows.of_time_difference_and_grace(timedelta(seconds=20), minutes(1))
    builder.stream("sales").group_by_key().windowed_by(windows).count(Materialized.as_("s")).to_stream().to("out")


def sessions(builder: StreamsBuilder) -> None:
    windows = SessionWindows.of_inactivity_gap_and_grace(timedelta(seconds=30), minutes(1))
    grouped = builder.stream("sales").group_by_key().windowed_by(windows)
    grouped.aggregate({"n": count(), "sum": sum_("amount")}, Materialized.as_("s")).to_stream().to("out")


def first_of_each_key(builder: StreamsBuilder) -> None:
    by_key = builder.stream("sales").deduplicate_by_key(timedelta(seconds=45), Deduplicated.with_(store_name="s"))
    by_key.to("out")


def first_of_each_note(builder: StreamsBuilder) -> None:
    deduplicated = Deduplicated.with_(store_name="s")
    builder.stream("sales").deduplicate_by_key_value("note", timedelta(seconds=45), deduplicated).to("out")


def final_windows(builder: StreamsBuilder) -> None:
    windowed = builder.stream("sales").group_by_key().windowed_by(TimeWindows.of_size_and_grace(minutes(2), minutes(1)))
    suppressed = windowed.count(Materialized.as_("s")).suppress(
        Suppressed.until_window_closes(BufferConfig.unbounded())
    )
    suppressed.to_stream().to("out")


def days_that_wait(builder: StreamsBuilder) -> None:
    days = DayWindows.of_zone_and_grace("Africa/Algiers", minutes(1))
    counted = builder.stream("sales").group_by_key().windowed_by(days).count(Materialized.as_("s"))
    counted.to_stream().to("out")
    counted.suppress(Suppressed.until_window_closes(BufferConfig.unbounded())).to_stream().to("final")


def final_windows_with_an_offset(builder: StreamsBuilder) -> None:
    shifted = TimeWindows.of_size_and_grace(minutes(2), minutes(1)).offset(timedelta(seconds=25))
    windowed = builder.stream("sales").group_by_key().windowed_by(shifted)
    windowed.count(Materialized.as_("s")).suppress(
        Suppressed.until_window_closes(BufferConfig.unbounded())
    ).to_stream().to("out")


def final_sliding(builder: StreamsBuilder) -> None:
    windows = SlidingWindows.of_time_difference_and_grace(timedelta(seconds=20), minutes(1))
    counted = builder.stream("sales").group_by_key().windowed_by(windows).count(Materialized.as_("s"))
    counted.suppress(Suppressed.until_window_closes(BufferConfig.unbounded())).to_stream().to("out")


def final_sessions(builder: StreamsBuilder) -> None:
    windows = SessionWindows.of_inactivity_gap_and_grace(timedelta(seconds=30), minutes(1))
    counted = builder.stream("sales").group_by_key().windowed_by(windows).count(Materialized.as_("s"))
    limited = BufferConfig.max_bytes(1 << 20).shut_down_when_full()  # prior values count, so they are kept
    counted.suppress(Suppressed.until_window_closes(limited)).to_stream().to("out")


def suppressed_table(builder: StreamsBuilder) -> None:
    table = builder.table("sales", Materialized.as_("s"))
    table.suppress(Suppressed.until_time_limit(minutes(1), BufferConfig.unbounded())).to_stream().to("out")


def suppressed_by_the_record(builder: StreamsBuilder) -> None:
    table = builder.table("sales", Materialized.as_("s"))
    until = Suppressed.until_time_limit(minutes(1), BufferConfig.max_records(3).emit_early_when_full(), clock="record")
    table.suppress(until).to_stream().to("out")


def joined_after_a_grace_period(builder: StreamsBuilder) -> None:
    sales = builder.stream("sales")
    supplier = Stores.persistent_versioned_key_value_store("s", minutes(4))
    table = sales.to_table(materialized=Materialized.as_(supplier))
    joined = Joined.as_("join").with_grace_period(timedelta(seconds=20))
    sales.left_join(table, {"left": "left.amount", "right": "right.amount"}, joined).to("out")


def distinct_windows(builder: StreamsBuilder) -> None:
    windows = TimeWindows.of_size_and_grace(minutes(2), minutes(1))
    builder.stream("sales").group_by_key().windowed_by(windows).distinct().to("out")


def distinct_sessions(builder: StreamsBuilder) -> None:
    windows = SessionWindows.of_inactivity_gap_and_grace(timedelta(seconds=30), minutes(1))
    builder.stream("sales").group_by_key().windowed_by(windows).distinct().to("out")


def streams_joined(builder: StreamsBuilder) -> None:
    sales = builder.stream("sales")
    windows = JoinWindows.of_time_difference_with_no_grace(timedelta(seconds=15))
    sales.filter(pc.field("value", "note") == "x").join(sales, "left.amount", windows).to("out")


def streams_outer_joined(builder: StreamsBuilder) -> None:
    sales = builder.stream("sales")
    windows = JoinWindows.of_time_difference_and_grace(timedelta(seconds=15), timedelta(seconds=20))
    some, others = sales.filter(pc.field("value", "note") == "x"), sales.filter(pc.field("value", "note") != "x")
    some.outer_join(others, {"left": "left.amount", "right": "right.amount"}, windows).to("out")


def referred(value: Any) -> str | None:
    return None if value["amount"] % 5 == 0 else f"k{value['amount'] % 8}"


def joined_by_a_foreign_key(builder: StreamsBuilder) -> None:
    sales = builder.stream("sales")
    left = sales.to_table(materialized=Materialized.as_("l"))
    right = sales.repartition().to_table(materialized=Materialized.as_("r"))
    foreign_key = per_record(referred, pa.string(), "value")
    left.left_join(right, {"l": "left.amount", "r": "right.amount"}, foreign_key=foreign_key).to_stream().to("out")


def tables_behind_windows(builder: StreamsBuilder) -> None:
    """Keys of time windows in tables, aggregates, deduplications, and in what is joined by a foreign key."""
    windows = TimeWindows.of_size_and_grace(minutes(2), minutes(1))
    results = builder.stream("sales").group_by_key().windowed_by(windows).aggregate({"amount": count()}).to_stream()
    supplier = Stores.persistent_versioned_key_value_store("history", minutes(4))
    history = results.to_table(materialized=Materialized.as_(supplier))
    table = results.to_table(materialized=Materialized.as_("table"))
    table.suppress(Suppressed.until_time_limit(minutes(1), BufferConfig.unbounded())).to_stream().to("calm")
    results.deduplicate_by_key(timedelta(seconds=45)).to("once")
    results.group_by_key().windowed_by(windows).count().to_stream().to("again")
    waiting = Joined.as_("join").with_grace_period(timedelta(seconds=20))
    results.left_join(history, {"left": "left.amount", "right": "right.amount"}, waiting).to("out")
    foreign_key = per_record(referred, pa.string(), "value")
    right = builder.stream("sales").repartition().to_table(materialized=Materialized.as_("r"))
    table.left_join(right, {"l": "left.amount", "r": "right.amount"}, foreign_key=foreign_key).to_stream().to("found")


def streams_behind_sessions(builder: StreamsBuilder) -> None:
    """Keys of sessions in joins of streams, and in sessions of sessions."""
    windows = SessionWindows.of_inactivity_gap_and_grace(timedelta(seconds=30), minutes(1))
    results = builder.stream("sales").group_by_key().windowed_by(windows).aggregate({"amount": count()}).to_stream()
    near = JoinWindows.of_time_difference_and_grace(timedelta(seconds=15), timedelta(seconds=20))
    some = results.filter(pc.field("value", "amount") > 1)
    some.outer_join(results, {"left": "left.amount", "right": "right.amount"}, near).to("out")
    results.group_by_key().windowed_by(windows).count(Materialized.as_("s")).to_stream().to("again")


def cogrouped(builder: StreamsBuilder) -> None:
    """Streams in one store, by key, in versions, and by windows of which each kind has its own bytes."""
    sales = builder.stream("sales")
    few = sales.filter(pc.field("value", "note") == "x").group_by_key()
    both = sales.group_by_key().cogroup({"n": count(), "sum": sum_("amount")}).cogroup(few, {"few": sum_("amount")})
    supplier = Stores.persistent_versioned_key_value_store("versions", minutes(4))
    sessions_ = SessionWindows.of_inactivity_gap_and_grace(timedelta(seconds=30), minutes(1))
    both.aggregate(Materialized.as_("s")).to_stream().to("out")
    both.aggregate(Materialized.as_(supplier)).to_stream().to("versions")
    for name, windows_ in (("times", TimeWindows.of_size_and_grace(minutes(2), minutes(1))), ("sessions", sessions_)):
        both.windowed_by(windows_).aggregate(Materialized.as_(name)).to_stream().to(f"{name}-of-both")


def closed_windows(builder: StreamsBuilder) -> None:
    windows_ = TimeWindows.of_size_and_grace(minutes(2), minutes(1)).advance_by(minutes(1))
    closed = builder.stream("sales").group_by_key().windowed_by(windows_).emit_strategy(EmitStrategy.on_window_close())
    closed.aggregate({"n": count(), "sum": sum_("amount")}, Materialized.as_("s")).to_stream().to("out")


def closed_sliding(builder: StreamsBuilder) -> None:
    windows_ = SlidingWindows.of_time_difference_and_grace(timedelta(seconds=20), minutes(1))
    closed = builder.stream("sales").group_by_key().windowed_by(windows_).emit_strategy(EmitStrategy.on_window_close())
    closed.count(Materialized.as_("s")).to_stream().to("out")


def closed_sessions(builder: StreamsBuilder) -> None:
    windows_ = SessionWindows.of_inactivity_gap_and_grace(timedelta(seconds=30), minutes(1))
    closed = builder.stream("sales").group_by_key().windowed_by(windows_).emit_strategy(EmitStrategy.on_window_close())
    closed.count(Materialized.as_("s")).to_stream().to("out")


class Correcting(Processor):
    """Puts another amount into a table's store, every third time it finds one."""

    def init(self, context: ProcessorContext) -> None:
        self.table = context.get_state_store("s")

    def process(self, record: Record) -> None:
        found = self.table.get(record.key)
        if found is not None and found.value["amount"] % 3 == 0:
            corrected = {**found.value, "amount": -found.value["amount"]}
            self.table.put(record.key, ValueAndTimestamp.make(corrected, record.timestamp))


def processors_that_share(builder: StreamsBuilder) -> None:
    """A store of several processors, and one of a table and a processor."""
    table, sales = builder.table("sales", Materialized.as_("s")), builder.stream("sales")
    relays(sales, sales.filter(pc.is_valid(pc.field("value"))))
    sales.process(Correcting, "s")
    table.to_stream().to("out")


TOPOLOGIES = [
    processors_that_share,
    plain_table,
    versioned_table,
    derived_table,
    totals,
    picks,
    counts,
    smallest_or_nothing,
    versioned_totals,
    windows,
    counted_windows,
    sliding,
    sessions,
    first_of_each_key,
    first_of_each_note,
    final_windows,
    days_that_wait,
    final_windows_with_an_offset,
    final_sliding,
    final_sessions,
    suppressed_table,
    suppressed_by_the_record,
    joined_after_a_grace_period,
    distinct_windows,
    distinct_sessions,
    streams_joined,
    streams_outer_joined,
    joined_by_a_foreign_key,
    tables_behind_windows,
    streams_behind_sessions,
    cogrouped,
    closed_windows,
    closed_sliding,
    closed_sessions,
]


OF_EACH_SORT = [
    versioned_table,
    totals,
    windows,
    sessions,
    first_of_each_note,
    final_sessions,
    streams_outer_joined,
    joined_by_a_foreign_key,
]

NOT_OF_RESULTS = (picks,)
"""Whose states are more than an application keeps: they come back from changelogs of ours alone."""

IN_EACH_MODE = [
    *((build, "kip") for build in TOPOLOGIES),
    *((build, "kafka-4.3") for build in (sliding, sessions, final_sessions, suppressed_table, streams_outer_joined)),
    *((build, "kafka-4.3") for build in (closed_windows, closed_sliding, closed_sessions)),
]
"""Those whose rows depend on the mode in both."""


def made(build: Callable[[StreamsBuilder], None]) -> Topology:
    builder = StreamsBuilder("job")
    build(builder)
    return builder.build()


def stores_of(topology: Topology) -> list[str]:
    return [store.name for sub in topology.sub_topologies for store in sub.stores]


def replayed(directory: Path, topology: Topology, ends: list[int | None], **settings: Any) -> Pipeline:
    pipeline = Pipeline(directory, topology, changelogs=stores_of(topology), **settings)
    pipeline.archive("sales", SALES, TYPES, partitions=2)
    for end in ends:
        pipeline.run(end)
    return pipeline


def head_of(pipeline: Pipeline) -> Commit:
    head = CommitLog(pipeline.warehouse, "job").head()
    assert head is not None
    return head


def rebuilt(pipeline: Pipeline, commit: Commit) -> dict[str, dict[str, list[tuple[bytes, bytes]]]]:
    content = {}
    for sub in pipeline.topology.sub_topologies:
        for task_id in commit.tasks:
            if sub.stores and task_id.startswith(f"{sub.index}_"):
                backend = MemoryBackend()
                rebuild(pipeline.warehouse, commit, task_id, backend)
                content[task_id] = {family: list(backend.scan(family)) for family in families_of(sub.stores)}
    return content


@pytest.mark.thorough
@pytest.mark.parametrize(("build", "semantics"), one_in(4, IN_EACH_MODE, first=1))
def test_the_rebuilt_state_is_that_of_the_checkpoint(
    tmp_path: Path, build: Callable[[StreamsBuilder], None], semantics: str
) -> None:
    pipeline = replayed(tmp_path, made(build), [5 * MINUTE, 6 * MINUTE, None], semantics=semantics)
    state = pipeline.state()
    assert any(rows for task in state.values() for rows in task.values())
    assert rebuilt(pipeline, head_of(pipeline)) == state


@pytest.mark.thorough
@pytest.mark.parametrize("build", one_in(4, TOPOLOGIES, first=1), ids=lambda build: build.__name__)
def test_a_changelog_does_not_depend_on_slices_batches_and_budgets(
    tmp_path: Path, build: Callable[[StreamsBuilder], None]
) -> None:
    topology = made(build)
    one = replayed(tmp_path / "one", topology, [None])
    many = replayed(
        tmp_path / "many",
        topology,
        [MINUTE, 5 * MINUTE, 9 * MINUTE, None],
        batch_records=17,
        memory_budget_bytes=1 << 10,
    )
    for store in stores_of(topology):
        topic = changelog_topic("job", store)
        assert one.output(topic) == many.output(topic)
        assert one.output(topic)
    assert one.output("out") == many.output("out")


def test_an_earlier_commit_is_rebuilt_as_it_was(tmp_path: Path) -> None:
    pipeline = replayed(tmp_path, made(versioned_table), [5 * MINUTE])
    state, then = pipeline.state(), head_of(pipeline)
    pipeline.run(None)
    assert pipeline.state() != state
    assert rebuilt(pipeline, then) == state


def test_a_changelog_keeps_windows_from_being_condensed(tmp_path: Path) -> None:
    def build(builder: StreamsBuilder) -> None:
        windows = TimeWindows.of_size_and_grace(minutes(2), minutes(1))
        counted = builder.stream("sales").group_by_key().windowed_by(windows).count(Materialized.as_("s"))
        counted.suppress(Suppressed.until_window_closes(BufferConfig.unbounded())).to_stream().to("out")

    topology = made(build)
    with_changelog = Pipeline(tmp_path / "with", topology, changelogs=["s"])
    without = Pipeline(tmp_path / "without", topology)
    for pipeline in (with_changelog, without):
        pipeline.archive("sales", SALES, TYPES, partitions=2)
        pipeline.run(None)
    assert with_changelog.output("out") == without.output("out")
    assert with_changelog.state() == without.state()
    logged = with_changelog.output(changelog_topic("job", "s"))
    assert len(logged) > sum(len(rows) for task in without.state().values() for rows in task.values())


def test_a_changelog_of_a_store_that_is_not_there_is_refused(tmp_path: Path) -> None:
    def passed_on(builder: StreamsBuilder) -> None:
        builder.stream("sales").to("out")

    for build, step in ((passed_on, "leave it out"), (counts, "name one of: s")):
        pipeline = Pipeline(tmp_path / build.__name__, made(build), changelogs=["nobody"])
        pipeline.archive("sales", SALES, TYPES)
        with pytest.raises(ConfigurationError, match=f"no such store to keep a changelog of.*{step}"):
            pipeline.run(None)


def test_a_changelog_begins_with_the_job_and_goes_on_by_itself(tmp_path: Path) -> None:
    pipeline = replayed(tmp_path / "a", made(counts), [5 * MINUTE])
    silent = Pipeline(tmp_path / "a", made(counts))  # a run whose settings do not name it
    silent.run(None)
    assert rebuilt(silent, head_of(silent)) == silent.state()
    del pipeline

    plain = Pipeline(tmp_path / "b", made(counts))
    plain.archive("sales", SALES, TYPES, partitions=2)
    plain.run(5 * MINUTE)
    with pytest.raises(ConfigurationError, match="no changelog: s"):
        rebuilt(plain, head_of(plain))
    late = Pipeline(tmp_path / "b", made(counts), changelogs=["s"])
    with pytest.raises(ConfigurationError, match="a changelog begins with its store"):
        late.run(None)


def test_a_store_that_a_changed_topology_brings_can_have_a_changelog(tmp_path: Path) -> None:
    def two(builder: StreamsBuilder) -> None:
        sales = builder.stream("sales").group_by_key()
        sales.count(Materialized.as_("s")).to_stream().to("out")
        windows = TimeWindows.of_size_and_grace(minutes(2), minutes(1))
        sales.windowed_by(windows).count(Materialized.as_("w")).to_stream().to("windows")

    replayed(tmp_path, made(counts), [5 * MINUTE])
    late = Pipeline(tmp_path, made(two), changelogs=["s", "w"], attempt="two")
    late.run(9 * MINUTE)
    late.run(None)
    assert rebuilt(late, head_of(late)) == late.state()
    assert late.output(changelog_topic("job", "w"))


def test_a_store_that_was_reset_can_have_a_changelog(tmp_path: Path) -> None:
    plain = Pipeline(tmp_path, made(counts))
    plain.archive("sales", SALES, TYPES, partitions=2)
    plain.run(5 * MINUTE)
    late = Pipeline(tmp_path, made(totals), changelogs=["s"], attempt="two")
    late.run(None, reset_stores=["s"])
    assert rebuilt(late, head_of(late)) == late.state()


def test_nothing_is_rebuilt_from_a_changelog_that_is_too_short(tmp_path: Path) -> None:
    pipeline = replayed(tmp_path, made(counts), [None])
    shutil.rmtree(tmp_path / "warehouse" / "topics" / changelog_topic("job", "s"))
    with pytest.raises(Exception, match="the changelog ends before offset"):
        rebuilt(pipeline, head_of(pipeline))


@pytest.mark.parametrize("build", [windows, sessions, streams_joined])
def test_a_record_that_is_none_of_its_store_is_told_with_the_archive(
    tmp_path: Path, build: Callable[[StreamsBuilder], None]
) -> None:
    pipeline = replayed(tmp_path, made(build), [None])
    topic = changelog_topic("job", stores_of(made(build))[0])
    shutil.rmtree(tmp_path / "warehouse" / "topics" / topic)
    pipeline.archive(topic, [(f"k{n}", 1, n) for n in range(1000)], (pa.string(), pa.int64()), partitions=2)
    told = (
        rf"an entry has \d bytes.*topic {topic}, partition \d.*Next: restore the archive of the changelog from a copy"
    )
    with pytest.raises(CorruptedDataError, match=told):
        rebuilt(pipeline, head_of(pipeline))


@pytest.mark.thorough
@pytest.mark.parametrize("build", one_in(3, OF_EACH_SORT), ids=lambda build: build.__name__)
def test_changelogs_go_back_with_the_job_and_on_again(tmp_path: Path, build: Callable[[StreamsBuilder], None]) -> None:
    """The whole engine: after a rollback and another replay everything is as if there had been none."""
    undisturbed = replayed(tmp_path / "a", made(build), [5 * MINUTE, None])
    pipeline = replayed(tmp_path / "b", made(build), [5 * MINUTE])
    first = rebuilt(pipeline, head_of(pipeline))
    pipeline.run(9 * MINUTE)
    pipeline.run(None)
    third = head_of(pipeline)
    rollback(pipeline.warehouse, "job", 1, now_ms=1)
    assert rebuilt(pipeline, head_of(pipeline)) == first
    pipeline.run(None)
    for topic in ("out", *(changelog_topic("job", store) for store in stores_of(made(build)))):
        assert pipeline.output(topic) == undisturbed.output(topic)
    assert rebuilt(pipeline, head_of(pipeline)) == pipeline.state() == undisturbed.state()
    with pytest.raises(ConfigurationError, match="commit 4 has rolled back commit 3"):
        rebuilt(pipeline, third)


def test_a_batch_may_log_nothing(tmp_path: Path) -> None:
    """Of records without a key nothing waits, and nothing is forwarded of a null."""
    pipeline = Pipeline(tmp_path, made(final_windows), changelogs=stores_of(made(final_windows)), batch_records=2)
    pipeline.archive("sales", [(None, {"amount": 1, "note": ""}, i) for i in range(4)], TYPES)
    pipeline.run(None)
    assert rebuilt(pipeline, head_of(pipeline)) == pipeline.state()
