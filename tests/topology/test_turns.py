"""Which nodes take a turn together."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from statelib import Grouped, Named, Stores, StreamsBuilder
from statelib.topology.column_lineage import column_lineage
from statelib.topology.leading import leading_to
from statelib.topology.paths import paths_through
from statelib.topology.sampled import sampled_inputs
from statelib.topology.turns import turns, visited_in_turns
from tests.operators.processors.examples import RelaySupplier, relays

if TYPE_CHECKING:
    from statelib.topology import Node, SubTopology


def first_of(builder: StreamsBuilder) -> SubTopology:
    """The sub-topology of the processors: sinks are behind repartitions of theirs."""
    return builder.build().sub_topologies[0]


def names(turn: tuple[Node, ...]) -> list[str]:
    return [node.name for node in turn]


def relayed() -> SubTopology:
    builder = StreamsBuilder("app")
    relays(builder.stream("one"), builder.stream("other"))
    return first_of(builder)


def test_a_processor_that_has_its_store_alone_takes_its_turn_alone() -> None:
    alone = StreamsBuilder("app")
    alone.stream("one").process(RelaySupplier("first")).to("out")
    nodes = first_of(alone).nodes
    assert turns(nodes) == tuple((node,) for node in nodes)


def test_those_that_share_a_store_take_it_together_with_what_is_between() -> None:
    nodes = relayed().nodes
    (together,) = (turn for turn in turns(nodes) if len(turn) > 1)
    between = [node.name for node in nodes if node.name.startswith("KSTREAM-MAPVALUES")]
    assert len(between) == 2
    assert {*names(together)} == {"first", *between, "second", "third"}


def test_a_turn_comes_behind_all_that_leads_to_it() -> None:
    """The third's source was declared last, the second's children before it."""
    seen: set[str] = set()
    for turn in turns(relayed().nodes):
        inside = {*names(turn)}
        assert all(seen.issuperset({*node.parents} - inside) for node in turn)
        seen |= inside
    assert seen == {node.name for node in relayed().nodes}


def test_two_that_lead_to_each_other_are_one() -> None:
    """One store is used above and below the other's processors, on two ways that do not meet."""
    stores = [
        Stores.key_value_store_builder(Stores.persistent_key_value_store(name), pa.string(), pa.string())
        for name in ("x", "y")
    ]
    builder = StreamsBuilder("app").add_state_store(stores[0]).add_state_store(stores[1])

    def process(stream: object, store: str, name: str) -> object:
        return stream.process(RelaySupplier(name).get, store, named=Named.as_(name))  # type: ignore[attr-defined]

    process(process(builder.stream("one"), "x", "x1"), "y", "y1")
    process(process(builder.stream("other"), "y", "y2"), "x", "x2")
    sub = builder._builder.declared
    (together,) = (turn for turn in turns(sub) if len(turn) > 1)
    assert names(together) == ["x1", "y1", "y2", "x2"]


def test_ways_meet_where_stores_are_shared() -> None:
    builder = StreamsBuilder("app")
    stream = builder.stream("one")
    stream.process(RelaySupplier("first"), named=Named.as_("first"))
    stream.map_values("value").process(RelaySupplier("second"), named=Named.as_("second"))
    nodes = first_of(builder).nodes
    found = paths_through(nodes)
    assert found.partings == {stream.node}
    by_name = {node.name: node for node in nodes}
    assert found.place(stream.node, by_name["first"], 0) == 0


def test_what_leads_to_one_leads_to_all() -> None:
    sub = relayed()
    kept = {node.name for node in leading_to(sub, ["third"]).nodes}
    assert {"first", "second", "third"} <= kept
    assert not any(name.startswith("KSTREAM-SINK") for name in kept)


def test_none_of_them_takes_a_sample() -> None:
    builder = StreamsBuilder("app")
    relays(builder.stream("one"), builder.stream("other"))
    builder.stream("one").group_by_key(Grouped.as_("g")).count().to_stream().to("counts")
    assert visited_in_turns(first_of(builder).nodes).isdisjoint(sampled_inputs(first_of(builder).nodes))


def test_a_field_may_be_made_of_what_another_one_got() -> None:
    builder = StreamsBuilder("app")
    relays(builder.stream("one"), builder.stream("other"))
    topic = pa.schema([("key", pa.string()), ("value", pa.string()), ("timestamp", pa.timestamp("ms"))])
    found = column_lineage(builder.build(), {"one": topic, "other": topic}, {"relayed-once": topic})
    assert {origin.topic for origin in found["relayed-once"].fields["value"]} == {"one", "other"}
