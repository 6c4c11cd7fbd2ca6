"""The Processor API: sources, processors, stores and sinks that are connected by their names."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from statelib import ConfigurationError, Processor, Produced, Record, Stores, StreamsBuilder, Topology, per_record
from tests.operators.flow import Fed, Flow
from tests.operators.processors.examples import RELAYED, Relay
from tests.reference.process import Relays

if TYPE_CHECKING:
    from collections.abc import Callable

    from statelib import ProcessorContext, StoreBuilder

STRING = pa.string()
TEXT = (STRING, STRING)


def store(name: str) -> StoreBuilder[Any]:
    return Stores.key_value_store_builder(Stores.persistent_key_value_store(name), STRING, STRING)


class Filling(Processor):
    """Puts what it gets into a store."""

    def __init__(self, name: str, put: Callable[[Any, Record], object]) -> None:
        self.name = name
        self.put = put

    def init(self, context: ProcessorContext) -> None:
        super().init(context)
        self.store = context.get_state_store(self.name)

    def process(self, record: Record) -> None:
        self.put(self.store, record)


class Looking(Processor):
    """Forwards what it finds in a store, in place of the value."""

    def __init__(self, name: str) -> None:
        self.name = name

    def init(self, context: ProcessorContext) -> None:
        super().init(context)
        self.store = context.get_state_store(self.name)

    def process(self, record: Record) -> None:
        self.context.forward(record.with_value(self.store.get(record.key)))


class Saying(Processor):
    """Forwards each value as Python shows it."""

    def process(self, record: Record) -> None:
        self.context.forward(record.with_value(repr(record.value)))


def fills(name: str) -> Callable[[], Processor]:
    return lambda: Filling(name, lambda store, record: store.put(record.key, record.value))


def values(topology: Topology, *fed: Fed, topic: str = "out") -> list[Any]:
    flow = Flow(topology, dict.fromkeys(topology.source_topics, TEXT))
    return [row.value for row in flow.run(fed, (2, 5), flush_every=1).get(topic, [])]


def test_processors_call_each_other_as_in_kafka_streams() -> None:
    topology = (
        Topology("app")
        .add_source("one", "one")
        .add_source("other", "other")
        .add_processor("first", lambda: Relay("first", 10), "one")
        .add_processor("second", lambda: Relay("second", 15), "first")
        .add_processor("third", lambda: Relay("third", None), "other")
        .add_state_store(RELAYED, "first", "second")
        .connect_processor_and_state_stores("third", "relayed")
        .add_sink("twice", "relayed-twice", "second")
        .add_sink("once", "relayed-once", "first")
        .add_sink("anywhere", "relayed-anywhere", "third", "first")
    )
    model = Relays((10, 15))
    fed = [Fed("one" if n % 3 else "other", "ab"[n % 2], f"v{n}", n * 4) for n in range(20)]
    for record in fed:
        model.take(other=record.topic == "other", key=record.key, value=record.value, timestamp=record.timestamp)
    for name, rows in model.out.items():
        assert values(topology, *fed, topic=f"relayed-{name}") == [value for _, value, _ in rows]


def test_a_processor_gets_the_records_of_several_parents_of_several_types() -> None:
    topology = Topology("app").add_source("texts", "texts").add_source("numbers", "numbers")
    topology.add_processor("text", Saying, "texts", "numbers", value_type=STRING).add_sink("out", "out", "text")
    flow = Flow(topology, {"texts": TEXT, "numbers": (STRING, pa.int64())})
    fed = [Fed("texts", "k", "v", 1), Fed("numbers", "k", 7, 2), Fed("texts", "k", None, 3)]
    assert [row.value for row in flow.run(fed)["out"]] == ["'v'", "7", "None"]


def test_what_a_sink_may_be_told() -> None:
    chosen = per_record(lambda value: f"to-{value}", STRING, "value")
    topology = Topology("app").add_source("in", "in").add_sink("chosen", chosen, "in", topics=["to-a", "to-b"])
    topology.add_sink("out", "out", "in", produced=Produced.with_partitions(3))
    flow = Flow(topology, {"in": TEXT})
    out = flow.run([Fed("in", "k", "a", 1), Fed("in", "k", "b", 2)])
    assert [len(out[topic]) for topic in ("to-a", "to-b", "out")] == [1, 1, 2]
    assert "Sink: chosen (extractor class" in topology.describe()


def test_a_global_store_is_filled_before_all_and_read_by_all() -> None:
    topology = (
        Topology("app")
        .add_source("in", "in")
        .add_processor("look", lambda: Looking("names"), "in")
        .add_sink("out", "out", "look")
        .add_global_store(store("names"), "names-source", "names", "names-writer", fills("names"))
    )
    assert [sub.index for sub in topology.sub_topologies] == [0, 1]
    assert "for global store (will not generate tasks)" in topology.describe()
    fed = [Fed("names", "a", "Ada", 99), Fed("names", "a", "Al", 3), Fed("in", "a", "?", 1), Fed("in", "b", "?", 2)]
    assert values(topology, *fed) == ["Al", None]
    builder = StreamsBuilder("app").add_global_store(store("names"), "names", None, fills("names"))
    builder.stream("in").process(lambda: Looking("names")).to("out")
    assert values(builder.build(), *fed) == ["Al", None]


@pytest.mark.parametrize(
    ("reader", "message"),
    [
        (lambda: Filling("names", lambda s, r: s.put(r.key, r.value)), "a global store can only be read"),
        (lambda: Filling("others", print), "the processor has no store of this name"),
    ],
)
def test_a_global_store_is_only_read(reader: Callable[[], Processor], message: str) -> None:
    topology = Topology("app").add_source("in", "in").add_processor("look", reader, "in")
    topology.add_global_store(store("names"), "names-source", "names", "names-writer", fills("names"))
    with pytest.raises(ConfigurationError, match=message):
        values(topology, Fed("names", "a", "Ada", 1), Fed("in", "a", "?", 2))


def test_a_read_only_store_is_one_that_a_topic_fills() -> None:
    topology = (
        Topology("app")
        .add_read_only_state_store(store("names"), "names-source", "names", "names-writer", fills("names"))
        .add_source("in", "in")
        .add_processor("look", lambda: Looking("names"), "in")
        .connect_processor_and_state_stores("look", "names")
        .add_sink("out", "out", "look")
    )
    fed = [Fed("in", "a", "?", 1), Fed("names", "a", "Ada", 2), Fed("in", "a", "?", 3), Fed("names", "a", "Al", 4)]
    assert values(topology, *fed, Fed("in", "a", "?", 5)) == [None, "Ada", "Al"]


def test_nodes_can_be_added_to_what_the_dsl_has_described() -> None:
    builder = StreamsBuilder("app").add_state_store(store("last"))
    stream = builder.stream("in")
    stream.process(fills("last"), "last")
    topology = builder.build()
    fingerprint = topology.fingerprint
    topology.add_processor("look", lambda: Looking("last"), stream.node)
    topology.connect_processor_and_state_stores("look", "last").add_sink("out", "out", "look")
    assert topology.fingerprint != fingerprint
    assert values(topology, Fed("in", "a", "v", 1), Fed("in", "a", "w", 2)) == ["v", "w"]


@pytest.mark.parametrize(
    ("add", "message"),
    [
        (lambda t: t.add_source("in", "other"), r"two nodes have one name .*node in\). Next: name one differently$"),
        (lambda t: t.add_processor("out", Saying, "in"), "two nodes have one name .*node out"),
        (lambda t: t.add_sink("look", "out", "in"), "two nodes have one name .*node look"),
        (lambda t: t.add_global_store(store("g"), "in", "other", "w", Saying), "two nodes have one name .*node in"),
        (lambda t: t.add_source("again", "in"), "read by two nodes .*topic in, node again.*name in as a parent"),
        (lambda t: t.add_global_store(store("g"), "r", "in", "w", Saying), "read by two nodes .*no other source reads"),
        (
            lambda t: t.add_sink("s", "none", "in", produced=Produced.with_partitions(0)),
            "a topic cannot have 0 partitions .*topic none, node s",
        ),
        (lambda t: t.add_source("source"), "a source has no topic"),
        (
            lambda t: t.add_processor("p", Saying, "nobody"),
            "there is no such node .*node nobody.*there are: in, look, out",
        ),
        (lambda t: t.add_processor("p", Saying), "a node has no parents"),
        (lambda t: t.add_sink("s", "topic", "out"), "out is a sink, and forwards nothing"),
        (
            lambda t: t.add_sink("s", per_record(str, STRING, "value"), "in"),
            "a topic is chosen by a mapper, but among none",
        ),
        (lambda t: t.connect_processor_and_state_stores("look", "x"), r"no such store .*store x.*its builder before$"),
        (lambda t: t.connect_processor_and_state_stores("in", "last"), "only processors use stores"),
        (lambda t: t.add_state_store(store("last")), "two stores have one name"),
    ],
)
def test_what_cannot_be_is_refused_where_it_is_added(add: Callable[[Topology], object], message: str) -> None:
    topology = Topology("app").add_source("in", "in").add_processor("look", lambda: Looking("last"), "in")
    topology.add_state_store(store("last"), "look").add_sink("out", "out", "look")
    with pytest.raises(ConfigurationError, match=message) as raised:
        add(topology)
    assert raised.value.place["file"] == __file__


def test_a_topology_of_nothing_is_refused_when_it_is_used() -> None:
    with pytest.raises(ConfigurationError, match="the topology has no source"):
        Topology("app").sub_topologies  # noqa: B018 - checks it
