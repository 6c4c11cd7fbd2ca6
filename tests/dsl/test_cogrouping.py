"""Streams that are aggregated together, as they are described: what goes together, and what is refused."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from statelib import ConfigurationError, Grouped, KGroupedStream, Named, StreamsBuilder, count, sum_
from statelib.topology.projection import wanted_fields


def grouped(builder: StreamsBuilder, topic: str, *, by: str | None = None, name: str | None = None) -> KGroupedStream:
    stream = builder.stream(topic)
    options = None if name is None else Grouped.as_(name)
    return stream.group_by_key(options) if by is None else stream.group_by(by, options)


def added(key: Any, value: Any, aggregate: Any) -> Any:
    del key, value
    return aggregate


@pytest.mark.parametrize(
    ("described", "message", "step"),
    [
        (lambda a, b: a.cogroup(added).cogroup(b, {"n": count()}).aggregate(), "for some of its streams", "the same"),
        (
            lambda a, b: a.cogroup(added).cogroup(b, {"n": count()}).aggregate_with(int, pa.int64()),
            "for some of its streams",
            "give all streams the same",
        ),
        (lambda a, b: a.cogroup(added).cogroup(b, added).aggregate(), "needs an initializer", "aggregate_with("),
        (lambda a, _: a.cogroup({"n": count()}).aggregate_with(int, pa.int64()), "no initializer", "call aggregate()"),
        (
            lambda a, b: a.cogroup({"n": count()}).cogroup(b, {"n": count()}).aggregate(),
            "two streams of a cogroup have a result called n",
            "its own name",
        ),
        (lambda a, _: a.cogroup({}).aggregate(), "nothing to aggregate", "count()"),
        (lambda a, _: a.cogroup({"n": 1}).aggregate(), "n is not an aggregation", "count()"),
        (lambda a, _: a.cogroup(lambda key: key), "calls its aggregator with 3 arguments", "write one of 3 arguments"),
        (lambda a, _: a.cogroup("n"), "takes a dict or a function as aggregator, not a str", ""),
        (
            lambda a, _: a.cogroup({"n": count()}).cogroup(grouped(StreamsBuilder("other"), "c"), {"m": count()}),
            "two StreamsBuilders",
            "one StreamsBuilder",
        ),
    ],
)  # fmt: skip
def test_what_does_not_go_together(described: Any, message: str, step: str) -> None:
    builder = StreamsBuilder("job")
    with pytest.raises(ConfigurationError) as raised:
        described(grouped(builder, "a"), grouped(builder, "b"))
    assert message in raised.value.what
    assert step in (raised.value.next_step or "")


def test_two_repartition_topics_need_names() -> None:
    builder = StreamsBuilder("job")
    both = grouped(builder, "a", by="x").cogroup({"n": count()}).cogroup(grouped(builder, "b", by="y"), {"m": count()})
    both.aggregate().to_stream().to("out")
    with pytest.raises(ConfigurationError, match=r"one name.*STATE-STORE-0000000004-repartition.*group_by_key"):
        builder.build()
    builder = StreamsBuilder("job")
    named = [grouped(builder, topic, by="x", name=f"by-{topic}") for topic in "ab"]
    both = named[0].cogroup({"n": count()}).cogroup(named[1], {"m": count()})
    both.aggregate().to_stream().to("out")
    both.aggregate().to_stream().to("again")  # through the same topics
    text = builder.build().describe()
    assert text.count("Sink: by-a-repartition-sink") == text.count("Sink: by-b-repartition-sink") == 1


def test_a_stream_that_is_named_twice_gets_the_new_aggregator() -> None:
    builder = StreamsBuilder("job")
    one = grouped(builder, "a")
    one.cogroup({"n": count()}).cogroup(one, {"m": count()}).aggregate(named=Named.as_("c")).to_stream().to("out")
    (aggregator,) = (
        node.spec.aggregator  # type: ignore[attr-defined]
        for sub in builder.build().sub_topologies
        for node in sub.processors
        if node.name == "c-cogroup-merge"
    )
    assert [name for name, _ in aggregator.functions] == ["m"]


def test_each_stream_is_asked_for_its_own_fields() -> None:
    builder = StreamsBuilder("job")
    both = grouped(builder, "a").cogroup({"n": sum_("x")}).cogroup(grouped(builder, "b"), {"m": sum_("y")})
    both.aggregate().to_stream().to("out")
    (sub,) = builder.build().sub_topologies
    wanted = wanted_fields(sub.nodes)
    assert [wanted[source.name] for source in sub.all_sources] == [{"x"}, {"y"}]
