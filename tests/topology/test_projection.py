from __future__ import annotations

from datetime import timedelta

import pyarrow.compute as pc

from statelib import Materialized, Stores, StreamsBuilder, TimeWindows, count, sum_
from statelib.topology.projection import wanted_fields

MINUTE = timedelta(minutes=1)


def fields(builder: StreamsBuilder) -> dict[str, object]:
    (sub,) = builder.build().sub_topologies
    topics = {source.name: source.topic for source in sub.all_sources}
    return {topics[name]: found for name, found in wanted_fields(sub.nodes).items() if name in topics}


def test_a_chain_reads_what_its_parts_do() -> None:
    builder = StreamsBuilder("job")
    table = builder.table("t", Materialized.as_(Stores.persistent_versioned_key_value_store("s", MINUTE)))
    (
        builder.stream("s")
        .filter("good")
        .deduplicate_by_key_value("id", MINUTE)
        .join(table, {"cost": "left.amount", "rate": "right.rate"})
        .group_by_key()
        .windowed_by(TimeWindows.of_size_with_no_grace(MINUTE))
        .aggregate({"n": count(), "sum": sum_("cost")})
        .to_stream()
        .to("out")
    )
    assert fields(builder) == {"t": None, "s": {"good", "id", "amount"}}


def test_a_join_reads_what_of_its_result_is_looked_at() -> None:
    builder = StreamsBuilder("job")
    table = builder.table("t", Materialized.as_(Stores.persistent_versioned_key_value_store("s", MINUTE)))
    joined = builder.stream("s").join(table, {"a": "left.b", "c": "left.d", "e": pc.add(pc.field("left", "f"), 1)})
    joined.group_by_key().aggregate({"sum": sum_("a")}).to_stream().to("out")
    assert fields(builder) == {"t": None, "s": {"b", "f"}}  # what is computed may fail, and stays


def test_what_is_written_is_read_whole() -> None:
    builder = StreamsBuilder("job")
    stream = builder.stream("s").filter("good")
    stream.map_values({"a": "x"}).to("mapped")
    assert fields(builder) == {"s": {"good", "x"}}
    stream.to("as-it-is")
    assert fields(builder) == {"s": None}


def test_branches_and_merged_streams() -> None:
    builder = StreamsBuilder("job")
    one, other = builder.stream("s"), builder.stream("r")
    merged = one.merge(other.map_values({"a": "b", "c": "d"}))
    merged.filter("k").map_values("a").to("out")
    assert fields(builder) == {"s": {"k", "a"}, "r": {"b", "d"}}


def test_a_function_may_look_at_anything() -> None:
    builder = StreamsBuilder("job")
    builder.stream("s").peek(print).map_values("a").to("out")
    assert fields(builder) == {"s": None}
