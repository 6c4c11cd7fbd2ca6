"""What becomes of sources of several topics, and of topics that are written more than once, chosen, placed or read."""

from __future__ import annotations

import pyarrow as pa
import pytest

from statelib import Produced, Repartitioned, Stores, StreamsBuilder, per_record
from statelib.dsl.options import Materialized
from statelib.errors.kinds import ConfigurationError
from statelib.topology import Consumed, Processor, Sink, Source, Topology, UsePartitionTimeOnInvalidTimestamp
from statelib.topology.lowering import lowered

BY_LENGTH = per_record(lambda key, n: len(key) % n, pa.int32(), "key", "num_partitions")


def names(topology: Topology) -> list[list[str]]:
    """By sub-topology."""
    return [[node.name for node in sub.nodes] for sub in topology.sub_topologies]


def sinks(topology: Topology, *, internal: bool = False) -> dict[str, Sink]:
    """By topic."""
    return {node.topic: node for node in topology.nodes if isinstance(node, Sink) and node.internal is internal}


def test_several_topics_are_as_many_sources_and_one_node_of_the_sources_name() -> None:
    builder = StreamsBuilder("app")
    builder.stream(["b", "a", "b"], Consumed.as_("both")).to("out")
    topology = builder.build()
    assert topology.source_topics == ("b", "a")
    assert names(topology) == [["both-b", "both-a", "both", "KSTREAM-SINK-0000000001"]]
    assert "Source: both (topics: [a, b])" in topology.describe()
    assert topology.partitions({"a": 2, "b": 5}) == {0: 5}


def test_a_set_of_topics_comes_in_the_same_order_in_every_process() -> None:
    builder = StreamsBuilder("app")
    builder.stream({"c", "a", "b"}).to("out")
    assert builder.build().source_topics == ("a", "b", "c")


def test_the_same_topics_again_are_the_same_source() -> None:
    builder = StreamsBuilder("app")
    builder.stream(["a", "b"]).to("one")
    builder.stream(["b", "a"]).to("two")
    assert builder.build().source_topics == ("a", "b")


@pytest.mark.parametrize("again", ["b", ["b", "c"], ["a", "b", "c"]])
def test_topics_that_overlap_are_refused_as_in_kafka(again: str | list[str]) -> None:
    builder = StreamsBuilder("app")
    builder.stream(["a", "b"])
    with pytest.raises(ConfigurationError, match=r"of which one reads others with it .*merge\(\) the streams"):
        builder.stream(again)


def test_sinks_of_one_topic_are_merged_before_one_sink_of_their_sub_topology() -> None:
    builder = StreamsBuilder("app")
    stream = builder.stream("in")
    stream.to("out", Produced.as_("one"))
    stream.map_values("value").to("out", Produced.as_("other"))
    topology = builder.build()
    assert sinks(topology)["out"].parents == ("out-MERGE",)
    assert len(topology.sub_topologies) == 1
    assert topology.sink_topics == ("out",)


def test_sinks_of_two_sub_topologies_meet_behind_repartitions() -> None:
    builder = StreamsBuilder("app")
    builder.stream("a").to("out", Produced.as_("one"))
    builder.stream("b").to("out", Produced.as_("other"))
    topology = builder.build()
    assert names(topology)[-1] == ["one-REPARTITION-SOURCE", "other-REPARTITION-SOURCE", "out-MERGE", "out-SINK"]
    assert topology.partitions({"a": 2, "b": 5}) == {0: 2, 1: 5, 2: 5}


@pytest.mark.parametrize("twice", ["a", "b"])
def test_so_do_several_of_one_and_one_of_another(twice: str) -> None:
    builder = StreamsBuilder("app")
    streams = {name: builder.stream(name) for name in ("a", "b")}
    for stream in streams.values():
        stream.to("out")
    streams[twice].map_values("value").to("out")
    topology = builder.build()
    assert len(topology.sub_topologies) == 3
    assert topology.sink_topics == ("out",)


def test_two_numbers_of_partitions_for_one_topic_are_refused() -> None:
    builder = StreamsBuilder("app")
    stream = builder.stream("a")
    stream.to("out", Produced.with_partitions(2))
    stream.to("out", Produced.with_partitions(3))
    with pytest.raises(ConfigurationError, match="different numbers of partitions: 2 and 3"):
        builder.build()


@pytest.mark.parametrize("written_first", [True, False])
def test_who_reads_what_is_written_is_behind_the_same_repartition_as_the_sink(written_first: bool) -> None:
    builder = StreamsBuilder("app")
    stream = builder.stream("in")
    if written_first:
        stream.to("between")
    builder.stream("between", Consumed.as_("again")).to("out")
    if not written_first:
        stream.to("between")
    topology = builder.build()
    assert topology.source_topics == ("in",)
    assert {sink.parents for sink in sinks(topology).values()} == {("again",)}
    assert [sub.repartition_sources for sub in topology.sub_topologies] == [(), ("between-repartition",)]


@pytest.mark.parametrize(
    ("read", "message"),
    [
        (lambda b: b.global_table("between"), r"global table is written by the same topology .*use table\(\)"),
        (
            lambda b: b.stream("between", Consumed(timestamp=UsePartitionTimeOnInvalidTimestamp())),
            "with a timestamp extractor .*leave the extractor out",
        ),
    ],
)
def test_how_a_topic_cannot_be_read_that_is_written(read: object, message: str) -> None:
    builder = StreamsBuilder("app")
    builder.stream("in").to("between")
    read(builder)  # type: ignore[operator]
    with pytest.raises(ConfigurationError, match=message):
        builder.build()


def test_a_table_of_a_topic_that_is_written() -> None:
    builder = StreamsBuilder("app")
    builder.stream("in").to("between")
    history = Materialized.as_(Stores.in_memory_key_value_store("latest"))
    builder.table("between", history).to_stream().to("out")
    first, second = builder.build().sub_topologies
    assert not first.stateful
    assert [store.name for store in second.stores] == ["latest"]


def test_an_extractor_is_a_node_of_the_sinks_name_and_a_sink_of_each_topic() -> None:
    builder = StreamsBuilder("app")
    builder.stream("in").to("value.kind", Produced.as_("by-kind"), topics=["a", "b"])
    topology = builder.build()
    assert {topic: (sink.name, sink.parents) for topic, sink in sinks(topology).items()} == {
        "a": ("by-kind-a", ("by-kind",)),
        "b": ("by-kind-b", ("by-kind",)),
    }
    assert 'Sink: by-kind (extractor class: "value.kind")' in topology.describe()


def test_a_partitioner_places_before_the_sink_and_what_is_below_a_placed_repartition_is_repartitioned() -> None:
    builder = StreamsBuilder("app")
    stream = builder.stream("in")
    stream.to("placed", Produced.as_("sink").with_stream_partitioner(BY_LENGTH))
    stream.repartition(Repartitioned.as_("by-length").with_stream_partitioner(BY_LENGTH)).to("by-key")
    topology = builder.build()
    assert sinks(topology)["placed"].is_placed
    assert not sinks(topology)["by-key"].is_placed
    assert sinks(topology, internal=True)["placed-repartition"].partitioner == BY_LENGTH
    assert sinks(topology, internal=True)["by-key-repartition"].partitioner is None


def test_a_partitioner_is_part_of_the_fingerprint() -> None:
    def fingerprint(produced: Produced) -> str:
        builder = StreamsBuilder("app")
        builder.stream("in").select_key("id").to("out", produced)
        return builder.build().fingerprint

    plain = fingerprint(Produced.as_("sink"))
    assert plain != fingerprint(Produced.as_("sink").with_stream_partitioner(BY_LENGTH))


def test_lowering_again_changes_nothing() -> None:
    builder = StreamsBuilder("app")
    stream = builder.stream(["a", "b"])
    stream.select_key("id").to("out")
    stream.to("out")
    builder.stream("c").to("out", Produced.stream_partitioner(BY_LENGTH))
    builder.table("out").to_stream().to("kind", topics=["x", "y"])
    nodes = builder.build().nodes
    assert lowered(nodes) == nodes


def test_under_other_names_it_writes_reads_and_chooses_the_same() -> None:
    """As in a fork. An extractor goes on giving the names that it has always given."""
    builder = StreamsBuilder("app")
    stream = builder.stream("in")
    stream.to("between")
    builder.stream("between").to("value.kind", Produced.as_("by-kind"), topics=["a", "b"])
    topology = builder.build()
    fork = topology.with_sinks({topic: f"{topic}-new" for topic in topology.sink_topics})
    assert fork.sink_topics == ("between-new", "a-new", "b-new")
    assert fork.source_topics == ("in",)
    assert fork.read_back == ("between-new",)
    assert sinks(fork)["b-new"].name == "by-kind-b"
    assert "topics: [between-new]" in fork.describe()
    assert fork.repartition_partitions({"in": 2}) == topology.repartition_partitions({"in": 2})


def test_forwarding_to_a_sink_by_its_name_reaches_it_wherever_it_went() -> None:
    topology = Topology(
        [Source("a", "in"), Sink("one", ("a",), "out", key_kept=False), Sink("other", ("a",), "out")],
    )
    assert {node.name for node in topology.nodes if isinstance(node, Processor)} == {"one", "other", "out-MERGE"}
