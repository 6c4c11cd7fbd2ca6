"""Values of tables transformed with stores (Kafka's ``KTable.transformValues`` with store names)."""

from __future__ import annotations

from ast import literal_eval
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from statelib import (
    ConfigurationError,
    Materialized,
    Named,
    PunctuationType,
    Record,
    Stores,
    StreamsBuilder,
    TopologyTestDriver,
    ValueTransformerWithKey,
    ValueTransformerWithKeySupplier,
    per_record,
)
from tests.operators.flow import Fed, Flow

if TYPE_CHECKING:
    from statelib import ProcessorContext, StoreBuilder, Topology, TransformerContext

STRING = pa.string()
CHANGES = Stores.key_value_store_builder(Stores.persistent_key_value_store("changes"), STRING, pa.int64())
FED = [Fed("in", key, value, n) for n, (key, value) in enumerate([("a", "x"), ("b", "y"), ("a", None), ("a", "z")])]


class Numbering(ValueTransformerWithKey):
    """Gives each value the number of the key's change."""

    def init(self, context: ProcessorContext) -> None:
        super().init(context)
        self.changes = context.get_state_store("changes")

    def transform(self, read_only_key: Any, value: Any) -> str | None:
        number = (self.changes.get(read_only_key) or 0) + 1
        self.changes.put(read_only_key, number)
        return None if value is None else f"{value}{number}"


class Supplier(ValueTransformerWithKeySupplier):
    """Brings the store."""

    def get(self) -> ValueTransformerWithKey:
        return Numbering()

    def stores(self) -> list[StoreBuilder[Any]]:
        return [CHANGES]


def rows(topology: Topology, topic: str = "out") -> list[tuple[Any, Any]]:
    flow = Flow(topology, dict.fromkeys(topology.source_topics, (STRING, STRING)))
    return [(row.key, row.value) for row in flow.run(FED, (1, 3), flush_every=1).get(topic, [])]


def test_a_transformer_is_called_for_each_change_and_keeps_what_it_knows() -> None:
    builder = StreamsBuilder("app")
    own = Materialized.as_("own")
    made = builder.table("in").transform_values_with(Supplier(), named=Named.as_("numbered"), materialized=own)
    made.to_stream().to("out")
    made.group_by("key").count().to_stream().to("counts")
    topology = builder.build()
    assert rows(topology) == [("a", "x1"), ("b", "y1"), ("a", None), ("a", "z3")]
    assert rows(topology, "counts") == [("a", 1), ("b", 1), ("a", 0), ("a", 1)]
    assert "Processor: numbered (stores: [" in topology.describe()
    assert "TRANSFORMER" not in topology.describe()


def test_a_table_without_a_store_gets_one_where_something_looks_into_it() -> None:
    builder = StreamsBuilder("app").add_state_store(CHANGES)
    made = builder.table("in").transform_values_with(Numbering, store_names=["changes"])
    joined = per_record(lambda left, right: f"{left} {right}", STRING, "left", "right")
    builder.stream("in").left_join(made, joined).to("out")
    assert rows(builder.build()) == [("a", "x x1"), ("b", "y y1"), ("a", "z z3")]


def test_a_processor_may_share_the_store() -> None:
    class Asking(Numbering):
        def process(self, record: Record) -> None:
            raise AssertionError(record)

    builder = StreamsBuilder("app").add_state_store(CHANGES)
    table = builder.table("in")
    table.transform_values_with(Numbering, store_names=["changes"], named=Named.as_("one")).to_stream().to("one")
    table.transform_values_with(Asking, store_names=["changes"], named=Named.as_("other")).to_stream().to("out")
    assert rows(builder.build()) == [("a", "x2"), ("b", "y2"), ("a", None), ("a", "z6")]


class Telling(ValueTransformerWithKey):
    """Makes of each value what its context tells of the record."""

    def init(self, context: TransformerContext) -> None:
        super().init(context)
        context.schedule(timedelta(milliseconds=1), PunctuationType.STREAM_TIME, self.due)
        self.called_back: list[Any] = []

    def transform(self, read_only_key: Any, value: Any) -> str:
        back, self.called_back = self.called_back, []
        return repr([*self.told(), *back])

    def due(self, time_ms: int) -> None:
        self.called_back.append([time_ms, *self.told()])

    def told(self) -> list[Any]:
        context = self.context
        return [context.timestamp(), context.headers(), context.topic(), context.partition(), context.offset()]


def test_the_context_tells_of_the_record() -> None:
    builder = StreamsBuilder("app")
    builder.table("in").transform_values_with(Telling).to_stream().to("out")
    with TopologyTestDriver(builder.build()) as driver:
        fed = driver.create_input_topic("in")
        fed.pipe_input("a", "x", 5, headers=[("trace", b"1")])
        fed.pipe_input("b", None, 7)
        values = driver.create_output_topic("out").read_values_to_list()
    assert [literal_eval(value) for value in values] == [
        [5, (("trace", b"1"),), "in", 0, 0],
        [7, (), "in", 0, 1, [5, 5, (), None, -1, -1]],
    ]


def test_a_transformer_in_place_of_a_mapper_is_told_where_it_goes() -> None:
    table = StreamsBuilder("app").table("in")
    with pytest.raises(ConfigurationError, match=r"give it to transform_values_with\(\)"):
        table.transform_values(Telling)  # type: ignore[arg-type]


class Forwarding(ValueTransformerWithKey):
    def transform(self, read_only_key: Any, value: Any) -> None:
        self.context.forward(Record(read_only_key, value, 0))


def test_what_is_refused() -> None:
    builder = StreamsBuilder("app")
    builder.table("in").transform_values_with(Forwarding).to_stream().to("out")
    with pytest.raises(ConfigurationError, match="a transformer of values forwards nothing itself"):
        rows(builder.build())
    with pytest.raises(
        ConfigurationError, match="there is no such store .file .*test_transform_values.py, .*store changes"
    ):
        StreamsBuilder("app").table("in").transform_values_with(Numbering, store_names=["changes"])
    versioned = Materialized.as_(Stores.persistent_versioned_key_value_store("versions", timedelta(days=1)))
    table = StreamsBuilder("app").add_state_store(CHANGES).table("in", versioned)
    with pytest.raises(ConfigurationError, match="a versioned table is transformed with stores into one that is not"):
        table.transform_values_with(Numbering, store_names=["changes"])
    other = StreamsBuilder("app")
    other.table("in").transform_values_with(lambda: print, value_type=STRING)  # type: ignore[arg-type,return-value]
    with pytest.raises(ConfigurationError, match="gives a builtin_function_or_method, not a ValueTransformerWithKey"):
        other.build()
