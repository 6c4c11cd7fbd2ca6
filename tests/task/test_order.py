"""Records that reach an operator on several ways come as in Kafka Streams: depth first, result by result.

The expected values are those of Kafka Streams 4.4's ``TopologyTestDriver``; random topologies are compared with it in
`tests.differential`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from statelib import Joined, Materialized, Named, Processor, StreamsBuilder, TopologyTestDriver, per_record
from tests.operators.flow import Fed, Flow

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from statelib import ProcessorContext, Record
    from statelib.operators.mappers.mapping import MapperLike

J = per_record(lambda left, right: f"{left}|{right}", pa.string(), "left", "right")
ONE_BATCH: tuple[int, ...] = ()
BY_RECORD = tuple(range(20))


def plus(suffix: str) -> MapperLike:
    return per_record(lambda value: None if value is None else value + suffix, pa.string(), "value")


def out(builder: StreamsBuilder, records: str, cuts: Sequence[int] = ONE_BATCH) -> list[str | None]:
    """The values that come out; ``records``: topic:value, of one key, one ms apart; no value: a tombstone."""
    given = [record.split(":") for record in records.split()]
    fed = [Fed(topic, "k", value or None, time) for time, (topic, value) in enumerate(given, start=1)]
    topology = builder.build()
    flow = Flow(topology, dict.fromkeys(topology.source_topics, (pa.string(), pa.string())))
    return [row.value for row in flow.run(fed, cuts).get("out", [])]


@pytest.mark.parametrize("cuts", [ONE_BATCH, BY_RECORD])
class TestTables:
    def test_a_join_joined_with_one_of_its_sides(self, cuts: Sequence[int]) -> None:
        builder = StreamsBuilder("app")
        left, right = builder.table("L"), builder.table("R")
        left.join(right, J).join(right, J).to_stream().to("out")
        assert out(builder, "L:A R:b1 R:b2", cuts) == ["A|b1|b1"] * 2 + ["A|b2|b2"] * 2

    def test_one_of_its_sides_joined_with_a_join(self, cuts: Sequence[int]) -> None:
        builder = StreamsBuilder("app")
        left, right = builder.table("L"), builder.table("R")
        right.left_join(left.join(right, J), J).to_stream().to("out")
        assert out(builder, "R:b0 L:A R:b1", cuts) == ["b0|None", "b0|A|b0", "b1|A|b1", "b1|A|b1"]

    def test_a_join_joined_with_what_is_made_of_it(self, cuts: Sequence[int]) -> None:
        builder = StreamsBuilder("app")
        a, b = builder.table("A"), builder.table("B")
        joined = b.join(a, J)
        joined.map_values(plus("'")).join(joined, J).to_stream().to("out")
        assert out(builder, "A:a B:b1 B:b2", cuts) == ["b1|a'|b1|a"] * 2 + ["b2|a'|b2|a"] * 2

    @pytest.mark.parametrize("kept", [True, False])
    def test_a_table_joined_with_itself(self, cuts: Sequence[int], kept: bool) -> None:
        builder = StreamsBuilder("app")
        table = builder.table("A")
        table.join(table, J, None, Materialized.as_("kept") if kept else None).to_stream().to("out")
        assert out(builder, "A:a1 A:a2 A: A:a3", cuts) == ["a1|a1"] * 2 + ["a2|a2"] * 2 + ["a3|a3"] * 2

    def test_joins_of_three_that_share_a_table(self, cuts: Sequence[int]) -> None:
        builder = StreamsBuilder("app")
        a, b, c = (builder.table(topic) for topic in "ABC")
        a.join(b, J).outer_join(b.join(c, J), J).to_stream().to("out")
        expected = ["a|b1|None", "a|b1|b1|c", "a|b2|b2|c", "a|b2|b2|c"]
        assert out(builder, "A:a B:b1 C:c B:b2", cuts) == expected

    def test_a_stream_of_a_table_joined_with_it_sees_the_put(self, cuts: Sequence[int]) -> None:
        builder = StreamsBuilder("app")
        table = builder.table("A")
        table.to_stream().left_join(table, J).to("out")
        assert out(builder, "A:a1 A:a2 A: A:a3", cuts) == ["a1|a1", "a2|a2", "a3|a3"]

    def test_a_stream_is_joined_before_the_table_below_it_is_told(self, cuts: Sequence[int]) -> None:
        builder = StreamsBuilder("app")
        stream = builder.stream("A")
        early = stream.map_values(plus("<"))
        early.left_join(stream.to_table(), J).to("out")
        assert out(builder, "A:a1 A:a2", cuts) == ["a1<|None", "a2<|a1"]

    def test_an_aggregate_below_results_that_come_one_by_one(self, cuts: Sequence[int]) -> None:
        builder = StreamsBuilder("app")
        letters = builder.stream("A").flat_map_values(per_record(list, pa.list_(pa.string()), "value"))
        letters.left_join(letters.group_by_key().reduce(lambda one, other: one + other), J, Joined.as_("join")).to(
            "out"
        )
        # The aggregate is declared before the join: each letter is in it when it is joined.
        assert out(builder, "A:xy A:z", cuts) == ["x|x", "y|xy", "z|xyz"]


@pytest.mark.parametrize("cuts", [ONE_BATCH, BY_RECORD])
class TestStreams:
    def test_the_order_of_ways_depends_on_the_source(self, cuts: Sequence[int]) -> None:
        builder = StreamsBuilder("app")
        one, other = builder.stream("s1"), builder.stream("s2")
        y = other.map_values(plus("y"))
        one.merge(other).map_values(plus("x")).merge(y).to("out")
        assert out(builder, "s1:a s2:b", cuts) == ["ax", "by", "bx"]

    def test_results_of_a_record_pass_one_by_one(self, cuts: Sequence[int]) -> None:
        builder = StreamsBuilder("app")
        letters = builder.stream("A").flat_map_values(per_record(list, pa.list_(pa.string()), "value"))
        letters.map_values(plus("1")).merge(letters.map_values(plus("2"))).to("out")
        assert out(builder, "A:ab A:c", cuts) == ["a1", "a2", "b1", "b2", "c1", "c2"]

    def test_results_of_a_record_pass_through_branches_in_their_own_order(self, cuts: Sequence[int]) -> None:
        builder = StreamsBuilder("app")
        letters = builder.stream("A").flat_map_values(per_record(list, pa.list_(pa.string()), "value"))
        is_late = per_record(lambda value: value > "m", pa.bool_(), "value")
        late, early = letters.split().branch(is_late).default_branch().values()
        late.map_values(plus("+")).merge(early).to("out")
        assert out(builder, "A:azbx", cuts) == ["a", "z+", "b", "x+"]

    def test_several_unfoldings_that_meet(self, cuts: Sequence[int]) -> None:
        builder = StreamsBuilder("app")
        twice = per_record(lambda value: [value + "0", value + "1"], pa.list_(pa.string()), "value")
        stream = builder.stream("A").flat_map_values(twice)
        stream.merge(stream.flat_map_values(twice)).merge(stream.map_values(plus("!"))).to("out")
        first = ["a00", "a01", "a0", "a0!"]  # the second unfolding is declared before the merge
        assert out(builder, "A:a", cuts) == [*first, *(value.replace("a0", "a1") for value in first)]

    def test_a_stream_merged_with_itself_is_the_stream(self, cuts: Sequence[int]) -> None:
        builder = StreamsBuilder("app")
        stream = builder.stream("A")
        stream.merge(stream).to("out")
        assert out(builder, "A:a A:b", cuts) == ["a", "b"]

    def test_a_processor_forwards_to_its_children_in_its_own_order(self, cuts: Sequence[int]) -> None:
        class Telling(Processor):
            def init(self, context: ProcessorContext) -> None:
                self._context = context

            def process(self, record: Record) -> None:
                for child, value in (("second", "1"), ("first", "2"), (None, "3")):
                    self._context.forward(record.with_value(record.value + value), child)

        builder = StreamsBuilder("app")
        told = builder.stream("A").process(Telling)
        first, second = (told.map_values(plus(name[0]), Named.as_(name)) for name in ("first", "second"))
        first.merge(second).to("out")
        assert out(builder, "A:a A:b", cuts) == ["a1s", "a2f", "a3f", "a3s", "b1s", "b2f", "b3f", "b3s"]


def test_a_job_gives_the_same_in_files_and_slices(tmp_path: Path) -> None:
    builder = StreamsBuilder("app")
    left, right = builder.table("L"), builder.table("R")
    letters = left.join(right, J).join(right, J).to_stream().flat_map_values(
        per_record(lambda value: value.split("|"), pa.list_(pa.string()), "value")
    )  # fmt: skip
    letters.map_values(plus("1")).merge(letters).select_key("value").repartition().to("out")
    driver = TopologyTestDriver(builder.build(), tmp_path)
    topics = {topic: driver.create_input_topic(topic) for topic in "LR"}
    expected = []
    for time, (topic, value) in enumerate([("L", "A"), ("R", "b"), ("R", "c")]):
        topics[topic].pipe_input("k", value, time)
        driver.replay()
        expected += [] if topic == "L" else ["A1", "A", f"{value}1", value, f"{value}1", value] * 2
    assert [record.value for record in driver.create_output_topic("out").read_records_to_list()] == expected
