"""Nodes are cut into sub-topologies at repartition topics; what cannot work is refused with the way to mend it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pytest

from statelib.errors.kinds import ConfigurationError
from statelib.operators.base import Operator, OperatorContext
from statelib.stores.spec import StoreSpec
from statelib.topology import Processor, Sink, Source, Topology, describe


@dataclass(frozen=True)
class Spec:
    """An operator's parameters, never run here."""

    parameter: int = 0

    def build(self, context: OperatorContext) -> Operator:
        raise AssertionError(context)

    def describe(self) -> Mapping[str, object]:
        return {"operator": "spec", "parameter": self.parameter}

    def state_stores(self) -> Sequence[StoreSpec]:
        return ()


def join(name: str, *parents: str, store: str = "s") -> Processor:
    return Processor(name, parents, Spec(), stores=(store,))


def test_one_sub_topology_without_repartition() -> None:
    topology = Topology([Source("a", "in"), Processor("b", ("a",), Spec()), Sink("c", ("b",), "out")])
    (sub,) = topology.sub_topologies
    assert [node.name for node in sub.nodes] == ["a", "b", "c"]
    assert sub.sources == ("in",)
    assert sub.sinks == ("out",)
    assert topology.partitions({"in": 4}) == {0: 4}


def test_a_repartition_topic_begins_a_sub_topology_with_its_own_partitions() -> None:
    topology = Topology(
        [
            Source("a", "in"),
            Sink("b", ("a",), "app-x-repartition", 3, internal=True),
            Source("c", "app-x-repartition", internal=True),
            Sink("d", ("c",), "out"),
        ]
    )
    first, second = topology.sub_topologies
    assert (first.sources, first.repartition_sources, first.sinks) == (("in",), (), ())
    assert (second.sources, second.repartition_sources, second.sinks) == ((), ("app-x-repartition",), ("out",))
    assert topology.partitions({"in": 5}) == {0: 5, 1: 3}
    assert topology.repartition_partitions({"in": 5}) == {"app-x-repartition": 3}


def test_a_repartition_topic_gets_the_partitions_of_what_it_is_joined_with() -> None:
    topology = Topology(
        [
            Source("stream", "in"),
            Sink("b", ("stream",), "app-x-repartition", internal=True),
            Source("c", "app-x-repartition", internal=True),
            Source("table", "rates"),
            join("j", "c", "table"),
        ]
    )
    assert topology.partitions({"in": 8, "rates": 2}) == {0: 8, 1: 2}


def test_sub_topologies_come_after_those_they_read_from() -> None:
    topology = Topology(
        [
            Source("late", "app-x-repartition", internal=True),
            Sink("out", ("late",), "out"),
            Source("a", "in"),
            Sink("b", ("a",), "app-x-repartition", internal=True),
        ]
    )
    assert [sub.index for sub in topology.sub_topologies] == [0, 1]
    assert topology.sub_topologies[0].sources == ("in",)


def test_a_shared_store_keeps_nodes_in_one_sub_topology() -> None:
    topology = Topology([Source("a", "x"), join("j", "a"), Source("b", "y"), join("k", "b")])
    assert len(topology.sub_topologies) == 1


def test_records_with_a_changed_key_are_repartitioned_before_a_sink() -> None:
    topology = Topology([Source("a", "in"), Sink("c", ("a",), "out", 7, key_kept=False)])
    first, second = topology.sub_topologies
    assert first.all_sinks[0].topic == "out-repartition"
    assert second.sinks == ("out",)
    assert topology.partitions({"in": 2}) == {0: 2, 1: 7}


@pytest.mark.parametrize(
    ("nodes", "message"),
    [
        ([Source("a", "x"), Source("a", "y")], "two nodes have one name"),
        ([Source("a", "x"), Source("b", "x")], "read by two nodes"),
        ([Source("a", "x"), Processor("b", ("z",), Spec())], "parent z is not declared"),
        ([], "no source"),
    ],
)
def test_impossible_topologies_are_refused(nodes: list[Source | Processor | Sink], message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        Topology(nodes)


def test_joined_topics_must_have_equally_many_partitions() -> None:
    topology = Topology([Source("a", "left"), Source("b", "right"), join("j", "a", "b")])
    assert topology.partitions({"left": 4, "right": 4}) == {0: 4}
    with pytest.raises(ConfigurationError, match=r"left has 4, right has 3.*repartition\(\)"):
        topology.partitions({"left": 4, "right": 3})


def two_repartitions(*partitions: int | None) -> list[Source | Processor | Sink]:
    left, right = partitions
    return [
        Source("a", "x"),
        Sink("a-sink", ("a",), "left", left, internal=True),
        Source("left", "left", internal=True),
        Source("b", "y"),
        Sink("b-sink", ("b",), "right", right, internal=True),
        Source("right", "right", internal=True),
        join("j", "left", "right"),
    ]


@pytest.mark.parametrize(
    ("declared", "joined"),
    [((None, None), 5), ((2, None), 2), ((None, 9), 9), ((4, 4), 4)],
)
def test_joined_repartition_topics_have_equally_many_partitions(
    declared: tuple[int | None, int | None], joined: int
) -> None:
    topology = Topology(two_repartitions(*declared))
    assert topology.partitions({"x": 3, "y": 5}) == {0: 3, 1: 5, 2: joined}
    assert topology.repartition_partitions({"x": 3, "y": 5}) == {"left": joined, "right": joined}


def test_joined_repartition_topics_of_different_declared_numbers_are_refused_before_there_is_data() -> None:
    with pytest.raises(ConfigurationError, match=r"left has 3, right has 4.*repartition\(\)"):
        Topology(two_repartitions(3, 4))


def test_a_circle_of_repartition_topics_is_one_stage() -> None:
    """Its first sub-topology is the one of which something is known."""
    nodes = [
        Source("c", "r2", internal=True),
        Sink("d", ("c",), "r1", internal=True),
        Source("a", "r1", internal=True),
        Source("in", "in"),
        join("j", "a", "in"),
        Sink("b", ("j",), "r2", internal=True),
        Sink("on", ("j",), "r3", internal=True),
        Source("e", "r3", internal=True),
        Sink("out", ("e",), "out"),
    ]
    topology = Topology(nodes)
    assert [[sub.index for sub in stage] for stage in topology.stages] == [[0, 1], [2]]
    assert [stage[0].returning for stage in topology.stages] == [{"r1", "r2"}, set()]
    assert topology.sub_topologies[0].sources == ("in",)
    assert topology.partitions({"in": 3}) == {0: 3, 1: 3, 2: 3}


def test_the_fingerprint_changes_with_every_parameter_and_with_nothing_else() -> None:
    def fingerprint(parameter: int, topic: str = "in") -> str:
        return Topology([Source("a", topic), Processor("b", ("a",), Spec(parameter))]).fingerprint

    assert fingerprint(1) == fingerprint(1)
    assert len({fingerprint(1), fingerprint(2), fingerprint(1, "other")}) == 3


def test_description_has_the_layout_of_kafka_streams() -> None:
    topology = Topology(
        [
            Source("a", "in"),
            join("b", "a", store="counts"),
            Processor("side", ("a",), Spec()),
            Sink("c", ("b", "side"), "by-id", internal=True),
            Source("d", "by-id", internal=True),
            Sink("e", ("d",), "out"),
        ]
    )
    assert (
        topology.describe()
        == describe(topology)
        == (
            "Topologies:\n"
            "   Sub-topology: 0\n"
            "    Source: a (topics: [in])\n"
            "      --> b, side\n"
            "    Processor: b (stores: [counts])\n"
            "      --> c\n"
            "      <-- a\n"
            "    Processor: side (stores: [])\n"
            "      --> c\n"
            "      <-- a\n"
            "    Sink: c (topic: by-id)\n"
            "      <-- b, side\n"
            "\n"
            "  Sub-topology: 1\n"
            "    Source: d (topics: [by-id])\n"
            "      --> e\n"
            "    Sink: e (topic: out)\n"
            "      <-- d\n"
            "\n"
        )
    )


def test_nodes_are_described_by_how_many_they_reach_then_by_name() -> None:
    topology = Topology(
        [
            Source("z", "x"),
            Source("a", "y"),
            join("j", "z", "a"),
            Processor("only-a", ("a",), Spec()),
            Sink("s", ("j",), "out"),
        ]
    )
    lines = [line.split()[1] for line in topology.describe().splitlines() if line.startswith("    ") and line[4] != " "]
    assert lines == ["a", "z", "j", "only-a", "s"]
    assert "Source: a (topics: [y])\n      --> j, only-a\n" in topology.describe()
    assert "(stores: [s])\n      --> s\n      <-- z, a\n" in topology.describe()
    assert Topology([Source("lonely", "x")]).describe().splitlines()[-2] == "      --> none"
