"""Functions that fail in joins, aggregations and scheduled calls: what was done before stays, as in Kafka Streams.

More of it, by random programs beside Kafka Streams' own driver: `tests.differential`.
"""

from __future__ import annotations

from datetime import timedelta
from random import Random
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from statelib import (
    EmitStrategy,
    JoinWindows,
    Materialized,
    Processor,
    PunctuationType,
    Record,
    SessionWindows,
    SlidingWindows,
    StreamsBuilder,
    TimeWindows,
    per_record,
    sum_,
)
from statelib.commits.layout import changelog_topic, quarantine_topic
from statelib.commits.run.plan import NothingToDo
from tests.task.pipeline import Pipeline

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from statelib import KStream, ProcessorContext

INT = pa.int64()
TYPES = (pa.string(), INT)
LIST = pa.list_(INT)


def ms(count: int) -> timedelta:
    return timedelta(milliseconds=count)


def bad(*numbers: int | None) -> None:
    """Fails if there is a multiple of seven."""
    if any(number is not None and number % 7 == 0 for number in numbers):
        raise ValueError("a multiple of seven")


def added(total: int, value: int) -> int:
    bad(total + value)
    return total + value


def adding(key: str, value: int, total: int) -> int:
    return added(total, value)


def taking(key: str, value: int, total: int) -> int:
    return added(total, -value)


def merging(key: str, one: int, other: int) -> int:
    if one + other == 13:
        raise ValueError("thirteen")
    return one + other


def joined(left: int | None, right: int | None) -> int:
    both = 100 * (left or 0) + (right or 0)
    bad(both)
    return both


JOINER = per_record(joined, INT, "left", "right")


def run(
    folder: Path,
    build: Callable[[StreamsBuilder], KStream],
    rows: Sequence[tuple[str, str, int | None, int]],
    *,
    cuts: Sequence[int] = (),
    **settings: Any,
) -> tuple[list[tuple[Any, Any, int]], list[str], Pipeline]:
    """Runs records (topic, key, value, timestamp): what comes out, and what is set aside, by topic and offset.

    The run itself looks whether every record is accounted for.
    """
    builder = StreamsBuilder("app")
    build(builder).to("out")
    topology = builder.build()
    stores = [store.name for sub in topology.sub_topologies for store in sub.stores]
    pipeline = Pipeline(folder, topology, changelogs=stores, on_processing_error="quarantine", **settings)
    for topic in pipeline.topology.source_topics:
        pipeline.archive(topic, [row[1:] for row in rows if row[0] == topic], TYPES)
    for cut in [*cuts, None]:
        staged = pipeline.run(cut)
        assert isinstance(staged, NothingToDo) or staged.tasks
    out = [(row[2], row[3], row[4]) for row in pipeline.output_if_present("out")]
    aside = pipeline.output_if_present(quarantine_topic("job"))
    return out, sorted(f"{row[3]['topic']} {row[3]['offset']}" for row in aside), pipeline


def changes(pipeline: Pipeline) -> dict[str, list[Any]]:
    """What the changelogs have, by store."""
    stores = [store.name for sub in pipeline.topology.sub_topologies for store in sub.stores]
    return {store: pipeline.output_if_present(changelog_topic("job", store)) for store in stores}


def of_in(*records: tuple[str, int | None, int]) -> list[tuple[str, str, int | None, int]]:
    return [("in", *record) for record in records]


def plain(key: Any) -> Any:
    """A windowed key as key and start, ms."""
    return (key["key"], round(key["window_start"].timestamp() * 1000)) if isinstance(key, dict) else key


def test_an_aggregate_stays_as_it_was_even_if_the_function_has_changed_it(tmp_path: Path) -> None:
    def collected(key: str, value: int, values: list[int]) -> list[int]:
        values.append(value)
        bad(value)
        return values

    def build(builder: StreamsBuilder) -> KStream:
        return builder.stream("in").group_by_key().aggregate_with(list, collected, LIST).to_stream()

    out, aside, _ = run(tmp_path, build, of_in(("a", 1, 1), ("a", 7, 2), ("b", 14, 3), ("a", 2, 4)))
    assert [row[1] for row in out] == [[1], [1, 2]]
    assert aside == ["in 1", "in 2"]


def test_a_table_is_aggregated_without_a_change_that_cannot_be_taken_back(tmp_path: Path) -> None:
    def build(builder: StreamsBuilder) -> KStream:
        grouped = builder.table("in").group_by(per_record(lambda _: "all", pa.string(), "value"))
        return grouped.aggregate_with(lambda: 1, adding, taking, INT).to_stream()

    out, aside, _ = run(tmp_path, build, of_in(("a", 1, 1), ("b", 5, 2), ("a", 2, 3), ("a", 3, 4)))
    # 1 + 1; then 2 + 5 = 7 fails; 2 - 1 + 2 = 3; 3 - 2 + 3 = 4
    assert [row[1] for row in out] == [2, 3, 4]
    assert aside == ["app-KTABLE-AGGREGATE-STATE-STORE-0000000004-repartition 1"]


def test_of_several_windows_those_stay_updated_that_come_before(tmp_path: Path) -> None:
    windows = TimeWindows.of_size_and_grace(ms(20), ms(0)).advance_by(ms(10))

    def build(builder: StreamsBuilder) -> KStream:
        grouped = builder.stream("in").group_by_key().windowed_by(windows)
        return grouped.aggregate_with(lambda: 0, adding, INT).to_stream()

    rows = of_in(("a", 1, 105), ("a", 5, 112), ("a", 2, 113), ("a", 6, 114))
    out, aside, _ = run(tmp_path, build, rows)
    # 105: [90, 110) and [100, 120). 112: 1 + 5 in [100, 120), 5 in [110, 130).
    # 113: 6 + 2, 5 + 2 = 7 fails. 114: 8 + 6 = 14 fails, so [110, 130) is not tried.
    assert [(plain(key), value) for key, value, _ in out] == [
        (("a", 90), 1), (("a", 100), 1), (("a", 100), 6), (("a", 110), 5), (("a", 100), 8)
    ]  # fmt: skip
    assert aside == ["in 2", "in 3"]


def test_what_a_failing_record_closes_closes_with_the_next_one(tmp_path: Path) -> None:
    windows = TimeWindows.of_size_and_grace(ms(10), ms(0))

    def build(builder: StreamsBuilder) -> KStream:
        grouped = builder.stream("in").group_by_key().windowed_by(windows).emit_strategy(EmitStrategy.on_window_close())
        return grouped.aggregate_with(lambda: 0, adding, INT).to_stream()

    rows = of_in(("a", 1, 100), ("a", 7, 115), ("b", 2, 105), ("a", 3, 116))
    for number, cuts in enumerate([[], [116], [105, 115, 116]]):
        out, aside, _ = run(tmp_path / str(number), build, rows, cuts=cuts)
        assert [(plain(key), value) for key, value, _ in out] == [(("a", 100), 1)]
        assert aside == ["in 1"]


def test_a_session_is_gone_if_its_record_cannot_be_added_and_stays_if_it_cannot_be_merged(tmp_path: Path) -> None:
    def build(builder: StreamsBuilder) -> KStream:
        grouped = builder.stream("in").group_by_key()
        sessions = grouped.windowed_by(SessionWindows.of_inactivity_gap_and_grace(ms(10), ms(1_000)))
        return sessions.aggregate_with(lambda: 0, adding, merging, INT).to_stream()

    rows = of_in(
        ("a", 1, 100), ("a", 6, 105), ("a", 2, 104),  # 1 + 6 fails: the session is gone, and 2 begins a new one
        ("b", 8, 100), ("b", 5, 120), ("b", 1, 110), ("b", 9, 101),  # 8 and 5 are not merged: both stay
    )  # fmt: skip
    out, aside, _ = run(tmp_path, build, rows)
    assert [(plain(key), value) for key, value, _ in out] == [
        (("a", 100), 1), (("a", 100), None), (("a", 104), 2),
        (("b", 100), 8), (("b", 120), 5), (("b", 100), None), (("b", 100), 17),
    ]  # fmt: skip
    assert aside == ["in 1", "in 5"]


def test_of_sliding_windows_those_are_updated_that_come_before(tmp_path: Path) -> None:
    def build(builder: StreamsBuilder) -> KStream:
        grouped = builder.stream("in").group_by_key()
        windows = grouped.windowed_by(SlidingWindows.of_time_difference_and_grace(ms(10), ms(1_000)))
        return windows.aggregate_with(lambda: 0, adding, INT).to_stream()

    out, aside, _ = run(tmp_path, build, of_in(("a", 1, 100), ("a", 14, 105), ("a", 2, 106)))
    # 105: 14 fails in the window right behind 100, which comes first: its own, which would hold 15, is not made.
    assert [(plain(key), value) for key, value, _ in out] == [(("a", 90), 1), (("a", 101), 2), (("a", 96), 3)]
    assert aside == ["in 1"]


def test_a_mapper_of_an_aggregate_function_is_called_before_anything_is_done(tmp_path: Path) -> None:
    def build(builder: StreamsBuilder) -> KStream:
        def mapped(value: int) -> int:
            bad(value)
            return value

        grouped = builder.stream("in").group_by_key()
        return grouped.aggregate({"sum": sum_(per_record(mapped, INT, "value"))}).to_stream()

    out, aside, _ = run(tmp_path, build, of_in(("a", 1, 1), ("a", 7, 2), ("a", 2, 3)))
    assert ([row[1] for row in out], aside) == ([{"sum": 1}, {"sum": 3}], ["in 1"])


def test_a_look_up_of_a_table_without_a_store_fails_for_the_record_that_looks(tmp_path: Path) -> None:
    def build(builder: StreamsBuilder) -> KStream:
        def doubled(value: int) -> int:
            bad(value)
            return 2 * value

        table = builder.table("table").map_values(per_record(doubled, INT, "value"))
        return builder.stream("in").left_join(table, JOINER)

    rows = [("table", "a", 7, 1), ("table", "b", 2, 1), *of_in(("a", 1, 10), ("b", 1, 11), ("b", 0, 12), ("c", 1, 13))]
    out, aside, _ = run(tmp_path, build, rows)
    assert [row[:2] for row in out] == [("b", 104), ("b", 4), ("c", 100)]
    assert aside == ["in 0", "table 0"]  # where it is mapped as well: the key is still there for those that look


def test_a_change_is_not_joined_if_what_it_replaces_cannot_be(tmp_path: Path) -> None:
    def build(builder: StreamsBuilder) -> KStream:
        table = builder.table("in").join(builder.table("table"), JOINER)
        return table.group_by(per_record(lambda _: "all", pa.string(), "value")).count().to_stream()

    rows = [("table", "a", 5, 1), *of_in(("a", 3, 10), ("a", 4, 11), ("a", 1, 12), ("a", 2, 13))]
    out, aside, _ = run(tmp_path, build, rows)
    # 305; 405; 105 is a multiple of seven, as what 205 replaces
    assert [row[1] for row in out] == [1, 1]
    assert aside == ["in 2", "in 3"]


def test_an_answer_to_a_foreign_key_is_left_out_by_itself(tmp_path: Path) -> None:
    def build(builder: StreamsBuilder) -> KStream:
        left, right = builder.table("in"), builder.table("table")
        by = per_record(lambda value: "ab"[value % 2], pa.string(), "value")
        return left.join(right, JOINER, foreign_key=by).to_stream()

    rows = [*of_in(("x", 2, 1), ("y", 4, 2), ("z", 1, 3)), ("table", "a", 10, 4), ("table", "a", 11, 5)]
    out, aside, _ = run(tmp_path, build, rows)
    assert [row[:2] for row in out] == [("y", 410), ("x", 211), ("y", 411)]  # and not 210
    assert [row.partition(" ")[2] for row in aside] == ["0"]


@pytest.mark.parametrize("holds", [False, True])
def test_a_stream_join_ends_at_the_pair_that_fails(tmp_path: Path, holds: bool) -> None:
    windows = JoinWindows.of_time_difference_and_grace(ms(10), ms(0))

    def build(builder: StreamsBuilder) -> KStream:
        left, right = builder.stream("in"), builder.stream("other")
        return (left.outer_join if holds else left.join)(right, JOINER, windows)

    rows = [
        ("other", "a", 1, 100), ("other", "a", 5, 101), ("other", "a", 6, 102), ("in", "a", 1, 103),
        ("in", "b", 8, 200), ("in", "c", 0, 201), ("in", "d", 1, 400), ("other", "e", 1, 500),
    ]  # fmt: skip
    out, aside, _ = run(tmp_path, build, rows)
    pairs = [("a", 101)]  # 105 fails, so 106 is not made: it is still held
    if not holds:
        assert [row[:2] for row in out] == pairs
        assert aside == ["in 0"]
        return
    # By the KIPs a lone result that fails is left out, and those behind it are not: 800 goes on, 0 does not.
    assert [row[:2] for row in out] == [*pairs, ("b", 800), ("a", 6)]
    assert aside == ["in 0", "in 3"]


class Ticking(Processor):
    """Is called by stream time, and fails then at times."""

    def init(self, context: ProcessorContext) -> None:
        super().init(context)
        context.schedule(ms(10), PunctuationType.STREAM_TIME, self.tick)

    def process(self, record: Record) -> None:
        self.context.forward(record)

    def tick(self, time_ms: int) -> None:
        self.context.forward(Record("tick", time_ms, time_ms))
        bad(time_ms)
        self.context.forward(Record("tock", time_ms, time_ms))


def test_a_scheduled_call_that_fails_is_counted_and_comes_again(tmp_path: Path) -> None:
    builder = StreamsBuilder("app")
    builder.stream("in").process(Ticking).to("out")
    pipeline = Pipeline(tmp_path, builder.build(), on_processing_error="quarantine")
    pipeline.archive("in", [("a", 1, 10), ("a", 2, 21), ("a", 3, 32)], TYPES)
    tasks = pipeline.run().tasks
    assert [row[2:4] for row in pipeline.output("out")] == [
        ("a", 1), ("tick", 10), ("tock", 10), ("a", 2), ("tick", 21), ("a", 3), ("tick", 32), ("tock", 32)
    ]  # fmt: skip
    nodes = [node for task in tasks for node in task.metrics.values() if node.counters]
    assert nodes[0].counters == {"punctuations": 3, "failed-punctuations": 1}
    assert pipeline.output_if_present(quarantine_topic("job")) == []


def everything(builder: StreamsBuilder) -> KStream:
    """Joins and aggregations that all fail at times, with one sink."""
    stream, other, table = builder.stream("in"), builder.stream("other"), builder.table("table")
    grouped = stream.group_by_key()
    of_sessions = grouped.windowed_by(SessionWindows.of_inactivity_gap_and_grace(ms(4), ms(10)))
    sessions = of_sessions.aggregate_with(lambda: 0, adding, merging, INT)
    sliding = grouped.windowed_by(SlidingWindows.of_time_difference_and_grace(ms(5), ms(10))).reduce(added)
    of_final = grouped.windowed_by(TimeWindows.of_size_and_grace(ms(6), ms(3)).advance_by(ms(2)))
    final = of_final.emit_strategy(EmitStrategy.on_window_close()).aggregate_with(lambda: 0, adding, INT)
    totals = grouped.aggregate_with(lambda: 0, adding, INT, Materialized.as_("totals"))
    tables = totals.outer_join(table, JOINER)
    near = JoinWindows.of_time_difference_and_grace(ms(5), ms(2))
    pairs = stream.outer_join(other, JOINER, near).left_join(tables, JOINER)
    made = pairs.merge(tables.to_stream())
    for windowed in (sessions, sliding, final):
        made = made.merge(windowed.to_stream().select_key(per_record(str, pa.string(), "key")))
    return made


@pytest.mark.parametrize("seed", range(3))
def test_nothing_depends_on_batches_or_slices(tmp_path: Path, seed: int) -> None:
    rng = Random(seed)
    now, rows = 1_000, []
    for _ in range(60):
        now += rng.choice([0, 1, 3, 9])
        topic, key = rng.choice(["in", "in", "other", "table"]), rng.choice("aab")
        rows.append((topic, key, rng.randrange(1, 30), now - rng.choice([0, 0, 2, 8])))
    out, aside, pipeline = run(tmp_path / "whole", everything, rows)
    assert len(aside) > 5
    cuts = sorted(rng.randrange(1_000, now) for _ in range(3))
    for number, batch_records in enumerate([1, 7]):
        again = run(tmp_path / str(number), everything, rows, cuts=cuts[: 3 * number], batch_records=batch_records)
        assert (again[0], again[1]) == (out, aside)
        assert again[2].state() == pipeline.state()
        assert changes(again[2]) == changes(pipeline)
