"""Where paths part and meet again."""

from __future__ import annotations

import pytest

from statelib import StreamsBuilder
from statelib.topology.nodes import Node, Processor
from statelib.topology.paths import LOOKED_INTO, paths_through
from tests.operators.processors.examples import CountAndTellSupplier


def nodes_of(builder: StreamsBuilder) -> list[Node]:
    (sub,) = builder.build().sub_topologies
    return list(sub.nodes)


def test_nothing_parts_where_nothing_meets() -> None:
    builder = StreamsBuilder("app")
    stream, table = builder.stream("a"), builder.table("b")
    joined = stream.map_values("value").join(table, {"l": "left"})
    joined.to("one")
    joined.filter("value").to("two")
    joined.merge(builder.stream("c")).to("three")
    found = paths_through(nodes_of(builder))
    assert (found.partings, found.calls) == (set(), set())


def test_paths_part_at_the_last_node_that_both_go_through() -> None:
    builder = StreamsBuilder("app")
    stream = builder.stream("a").map_values("value").map_values("value")
    above = stream.node
    one = stream.filter("value").filter("value")
    one.merge(stream).to("out")
    one.to("other")
    nodes = nodes_of(builder)
    found = paths_through(nodes)
    assert found.partings == {above}
    merge = next(node for node in nodes if node.name.startswith("KSTREAM-MERGE"))
    assert [found.place(above, child, 0) for child in nodes if above in child.parents] == [0, 1]
    assert found.place(above, merge, 1) == 1


def test_a_branch_that_meets_another_one_parts_at_the_split() -> None:
    builder = StreamsBuilder("app")
    one, other = builder.stream("a").split().branch("value").default_branch().values()
    one.merge(other).to("out")
    assert paths_through(nodes_of(builder)).partings == {"KSTREAM-BRANCH-0000000001"}


def test_who_looks_into_a_table_comes_to_it_on_a_way_of_its_own() -> None:
    builder = StreamsBuilder("app")
    table = builder.table("a")
    table.to_stream().join(table, {"l": "left"}).to("out")
    nodes = nodes_of(builder)
    found = paths_through(nodes)
    assert found.partings == {table.node}
    join = next(node for node in nodes if isinstance(node, Processor) and node.looks_into)
    assert found.place(table.node, join, 1) == LOOKED_INTO
    (child,) = found.children[table.node]
    assert child.startswith("KTABLE-TOSTREAM")


def test_two_that_look_into_a_table_do_not_meet() -> None:
    builder = StreamsBuilder("app")
    table = builder.table("a")
    for topic in ("b", "c"):
        builder.stream(topic).join(table, {"l": "left"}).to(f"{topic}-out")
    assert not paths_through(nodes_of(builder)).partings


@pytest.mark.parametrize("merged", [True, False])
def test_who_is_called_by_stream_time_is_known_where_others_come_together_with_it(merged: bool) -> None:
    builder = StreamsBuilder("app")
    called = builder.stream("a").process(CountAndTellSupplier())
    other = builder.stream("b")
    (called.merge(other) if merged else called).to("out")
    (other if not merged else called.filter("value")).to("rest")
    found = [paths_through(list(sub.nodes)).calls for sub in builder.build().sub_topologies]
    assert frozenset[str]().union(*found) == ({called.node} if merged else set())
