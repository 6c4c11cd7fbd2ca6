from __future__ import annotations

from datetime import timedelta
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from statelib import (
    BufferConfig,
    Consumed,
    Deduplicated,
    JoinWindows,
    Materialized,
    Stores,
    StreamsBuilder,
    Suppressed,
    TimeWindows,
    count,
    per_record,
    sum_,
)
from statelib.operators.processors.process import Process
from statelib.topology import column_lineage as module
from statelib.topology.column_lineage import SinkLineage, column_lineage
from statelib.topology.topology import Topology
from tests.surface.topology import surface

MINUTE = timedelta(minutes=1)


STRING = pa.string()


def archive(key: Any = STRING, /, **value: pa.DataType) -> pa.Schema:
    """The columns of an archive; values are structs."""
    return pa.schema(
        [("key", key), ("value", pa.struct(list(value.items()))), ("timestamp", pa.timestamp("ms", "UTC"))]
    )


def of(fields: str) -> pa.Schema:
    return archive(**dict.fromkeys(fields.split(), pa.int64()))


def lineage(builder: StreamsBuilder, sink: pa.Schema, **sources: pa.Schema) -> SinkLineage:
    return column_lineage(builder.build(), sources, {"out": sink})["out"]


def texts(found: SinkLineage) -> dict[str, str]:
    """By field, ``topic.column use``, a question mark behind what is assumed."""
    return {
        name: ", ".join(f"{o.topic}.{'.'.join(o.path)} {o.use}{'?' * o.is_assumed}" for o in origins)
        for name, origins in [*found.fields.items(), ("decided by", found.decided_by)]
    }


def test_a_slice_of_everything() -> None:
    builder = StreamsBuilder("job")
    table = builder.table("t", Materialized.as_(Stores.persistent_versioned_key_value_store("s", MINUTE)))
    (
        builder.stream("s")
        .filter("good")
        .deduplicate_by_key_value("id", MINUTE, Deduplicated.as_("once"))
        .join(table, {"cost": "left.amount", "rate": pc.multiply(pc.field("right", "rate"), 2)})
        .group_by_key()
        .windowed_by(TimeWindows.of_size_with_no_grace(MINUTE))
        .aggregate({"n": count(), "sum": sum_("cost"), "rates": sum_("rate")})
        .suppress(Suppressed.until_window_closes(BufferConfig.unbounded()))
        .to_stream()
        .to("out")
    )
    key = pa.struct([("key", pa.string()), ("window_start", pa.int64())])
    sink = archive(key, n=pa.int64(), sum=pa.int64(), rates=pa.int64())
    assert texts(lineage(builder, sink, s=of("good id amount unused"), t=of("rate other"))) == {
        "key.key": "s.key identity",
        "key.window_start": "s.timestamp transformation, t.timestamp transformation",
        "value.sum": "s.value.amount aggregation",
        "value.rates": "t.value.rate aggregation",
        "timestamp": "s.timestamp aggregation, t.timestamp aggregation",
        "decided by": "s.key group_by, s.key join, s.value.good filter, s.value.id filter, t.key join",
    }


def test_a_function_may_read_everything() -> None:
    builder = StreamsBuilder("job")
    stream = builder.stream("s")
    stream.map_values({"told": per_record(len, pa.int64(), "a"), "untold": lambda columns: columns["value"]}).to("out")
    assert texts(lineage(builder, of("told untold"), s=of("a b"))) == {
        "key": "s.key identity",
        "value.told": "s.value.a transformation",
        "value.untold": "s.key transformation?, s.timestamp transformation?, "
        "s.value.a transformation?, s.value.b transformation?",
        "timestamp": "s.timestamp identity",
        "decided by": "",
    }


def test_fields_that_pass_and_what_is_in_bytes() -> None:
    builder = StreamsBuilder("job")
    builder.stream("s", Consumed(timestamp="sent")).select_key("a.b").merge(builder.stream("raw")).to("out")
    raw = pa.schema([("key", pa.string()), ("value", pa.binary())])
    nested = archive(a=pa.struct([("b", pa.string())]), sent=pa.int64())
    found = texts(lineage(builder, of("x sent"), s=nested, raw=raw))
    assert found["key"] == "raw.key identity, s.value.a.b identity"
    assert found["value.sent"] == "raw.value identity, s.value.sent identity"
    assert found["value.x"] == "raw.value identity"
    assert found["timestamp"] == "s.value.sent identity"


def test_joins_of_streams_and_of_tables() -> None:
    builder = StreamsBuilder("job")
    windows = JoinWindows.of_time_difference_with_no_grace(MINUTE)
    joined = builder.stream("s").join(builder.stream("u"), {"x": "left.a", "y": "right.a"}, windows)
    table = joined.to_table(Materialized.as_("joined")).filter(pc.field("value", "x") > 0)
    people = builder.table("p")
    table.join(people, {"z": "left.y", "name": "right.name"}, foreign_key="x").to_stream().to("out")
    found = texts(lineage(builder, of("z name"), s=of("a b"), u=of("a b"), p=of("name age")))
    assert found["value.z"] == "u.value.a identity"
    assert found["value.name"] == "p.value.name identity"
    assert found["key"] == "s.key identity"
    assert found["decided by"] == "p.key join, s.key join, s.value.a filter, s.value.a join, u.key join"


def test_streams_that_are_aggregated_together() -> None:
    builder = StreamsBuilder("job")
    both = builder.stream("s").group_by_key().cogroup({"n": count(), "a": sum_("a")})
    both.cogroup(builder.stream("u").group_by_key(), {"b": sum_("b")})
    both.windowed_by(TimeWindows.of_size_with_no_grace(MINUTE)).aggregate().to_stream().to("out")
    key = pa.struct([("key", pa.string()), ("window_start", pa.int64())])
    found = texts(lineage(builder, archive(key, n=pa.int64(), a=pa.int64(), b=pa.int64()), s=of("a b"), u=of("a b")))
    assert found == {
        "key.key": "s.key identity, u.key identity",
        "key.window_start": "s.timestamp transformation, u.timestamp transformation",
        "value.a": "s.value.a aggregation",
        "value.b": "u.value.b aggregation",
        "timestamp": "s.timestamp aggregation, u.timestamp aggregation",
        "decided by": "s.key group_by, u.key group_by",
    }


def test_the_key_that_is_looked_up_in_a_global_table() -> None:
    builder = StreamsBuilder("job")
    joiner = {"place": "mapped_key", "name": "right.name"}
    builder.stream("s").join(builder.global_table("places"), "value.a", joiner).to("out")
    found = texts(lineage(builder, of("place name"), s=of("a b"), places=of("name")))
    assert found["value.place"] == "s.value.a identity"
    assert found["decided by"] == "places.key join, s.value.a join"


def test_every_operator_is_known(monkeypatch) -> None:
    """But for custom processors; and no sink's field is made of nothing."""
    unknown = []
    before = module._unknown
    monkeypatch.setattr(module, "_unknown", lambda parents: unknown.append(parents) or before(parents))
    topology = surface()
    flows = module._flows(topology)
    assert len(unknown) == sum(isinstance(p.spec, Process) for sub in topology.sub_topologies for p in sub.processors)
    assert {*flows} >= {*topology.sink_topics}
    assert [topic for topic, flow in flows.items() if not flow.key.origins()] == []


def test_topics_are_those_of_the_sinks_that_are_there() -> None:
    builder = StreamsBuilder("job")
    builder.stream("s").to("out")
    topology: Topology = builder.build()
    assert column_lineage(topology, {"s": of("a")}, {}) == {}
