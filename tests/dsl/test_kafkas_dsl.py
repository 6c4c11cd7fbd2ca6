"""What somebody writes who knows Kafka Streams' DSL, and is told how it goes here."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from statelib import (
    BufferConfig,
    ConfigurationError,
    Consumed,
    Grouped,
    Job,
    Joined,
    JoinWindows,
    Materialized,
    Named,
    Repartitioned,
    Stores,
    StreamsBuilder,
    StringSerde,
    TableJoined,
    TimeWindows,
    TopologyTestDriver,
    per_record,
    sum_,
)
from tests.calls.samples import Doubled

if TYPE_CHECKING:
    from collections.abc import Callable


MINUTE = timedelta(minutes=1)
JOIN = JoinWindows.of_time_difference_with_no_grace(MINUTE)
OF_JOINS = Stores.persistent_window_store("s", MINUTE, MINUTE, retain_duplicates=True)


def streams() -> StreamsBuilder:
    return StreamsBuilder("job")


@pytest.mark.parametrize(
    ("written", "message", "step"),
    [
        (lambda b: b.stream(re.compile("a.*")), "'a.*' matches are not listed", "topics=[...]"),
        (lambda b: b.stream([]), "no topic is named", "name at least one"),
        (lambda b: b.stream("a").cogroup(len), "KStream has no cogroup()", "call group_by_key().cogroup()"),
        (lambda b: b.stream("a").to_table("s"), "takes a Named as named, not a str: 's'", 'write Named.as_("s")'),
        (
            lambda b: b.stream("a").to(lambda key, value, record: "b"),
            "its topic with (batch), a pyarrow.RecordBatch",
            "per_record(",
        ),
        (lambda b: b.stream("a").to(lambda batch: batch), "not among which", "to(extractor, topics=[...])"),
        (lambda b: b.table("a", "store"), "not a str", 'Materialized.as_("store") or write Consumed.with_'),
        (lambda b: b.stream("a").transform(len), "KStream has no transform()", "use process()"),
        (lambda b: b.stream("a").through("b"), "KStream has no through()", "use repartition()"),
        (lambda b: b.stream("a").branch(len), "KStream has no branch()", "split().branch("),
        (lambda b: b.stream("a").mapValues(len), "KStream has no mapValues()", "call it map_values()"),
        (lambda b: b.stream("a").groupByKey(), "KStream has no groupByKey()", "call it group_by_key()"),
        (lambda b: b.stream("a").map_valeus("x"), "KStream has no map_valeus()", "did you mean map_values"),
        (lambda b: b.table("a").toStream(), "has no toStream()", "call it to_stream()"),
        (lambda b: b.global_table("a").to_stream(), "GlobalKTable has no to_stream()", "use StreamsBuilder.table()"),
        (
            lambda b: b.stream("a").group_by("k", Named.as_("n")),
            "takes a Grouped as grouped, not a Named",
            "write Grouped.as_",
        ),
        (
            lambda b: b.stream("a").join("b", "left"),
            "takes a KTable or a GlobalKTable or a KStream as other, not a str",
            "table()",
        ),
        (lambda b: b.stream("a").filter("x", name="n"), "unexpected keyword argument 'name'", "predicate, named"),
        (lambda b: b.stream("a").filter(), "missing a required argument: 'predicate'", "predicate, named"),
        (lambda b: b.stream(), "missing a required argument: 'topic'", "topic, consumed"),
        (
            lambda b: b.stream("a").group_by_key().windowed_by(MINUTE),
            "not a timedelta",
            "TimeWindows.of_size_and_grace(",
        ),
        (
            lambda b: b.stream("a").group_by_key().windowed_by(JOIN),
            "not a JoinWindows",
            "TimeWindows.of_size_and_grace(",
        ),
        (lambda b: b.stream("a").join(b.stream("b"), "left"), "'windows'", "JoinWindows.of_time_difference_and_grace("),
        (
            lambda b: b.stream("a").join(b.stream("b"), "left", TimeWindows.of_size_with_no_grace(MINUTE)),
            "takes JoinWindows as windows, not a TimeWindows",
            "JoinWindows.of_time_difference_and_grace(",
        ),
        (
            lambda b: b.stream("a").join(b.table("b")),
            "missing a required argument: 'joiner'",
            "join(other, joiner, joined",
        ),
        (lambda b: b.stream("a").join(b.table("b"), joinr="left"), "'joiner'", "join(other, joiner, joined=None)"),
        (lambda b: b.table("a").join(b.stream("b"), "left"), "a KTable as other, not a KStream", "stream.to_table()"),
        (
            lambda b: b.table("a").join(b.table("b"), "fk", {"l": "left"}),
            "not a dict",
            "join(other, joiner, foreign_key=",
        ),
        (lambda b: b.table("a").to_stream(lambda k, v: k), "with (batch), a pyarrow.RecordBatch, but", "per_record("),
        (lambda b: b.stream("a").group_by_key().aggregate("x"), "takes a dict as functions, not a str: 'x'", "mean_("),
        (
            lambda b: b.stream("a").group_by_key().aggregate(lambda: 0, lambda k, v, a: a),
            "not a function",
            "aggregate_with(",
        ),
        (
            lambda b: b.stream("a").group_by_key().aggregate(lambda: 0, lambda k, v, a: a, Materialized.as_("s"), 1, 2),
            "takes a dict as functions, not a function",
            "aggregate_with(",
        ),
        (lambda b: b.stream("a").group_by_key().aggregate_with(int, lambda k, v, a: a), "'arrow_type'", "pa.int64()"),
        (
            lambda b: b.stream("a").group_by_key().aggregate_with(int, lambda v, a: a, pa.int64()),
            "calls its aggregator with (key, value, aggregate), but this one takes (v, a)",
            "write one of",
        ),
        (
            lambda b: b.stream("a").group_by_key().reduce(lambda k, a, v: a),
            "with (aggregate, value), but",
            "write one of",
        ),
        (
            lambda b: b.stream("a").filter(lambda k, v: v),
            "with (batch), a pyarrow.RecordBatch, but",
            "per_record(function",
        ),
        (
            lambda b: b.stream("a").map_values({"x": lambda k, v: v}),
            "with (batch), a pyarrow.RecordBatch",
            "per_record(",
        ),
        (lambda b: b.stream("a").foreach(lambda a, b, c: None), "with (key, value), or (batch), a", "write one of"),
        (lambda b: b.stream("a").process(Doubled()), "not a Doubled", "give its class"),
        (
            lambda b: b.stream("a").deduplicate_by_key(5000),
            "takes a timedelta as interval, not an int: 5000",
            "timedelta(milliseconds=5000)",
        ),
        (
            lambda b: b.stream("a").repartition(Repartitioned.number_of_partitions(True)),
            "not a bool: True",
            "whole number",
        ),
        (
            lambda b: b.stream("a", Consumed.with_timestamp_extractor("t")),  # type: ignore[call-arg]
            "is called on the class",
            "Consumed().with_timestamp_extractor(...)",
        ),
        (
            lambda b: TimeWindows.grace(MINUTE),  # type: ignore[call-arg]
            "TimeWindows.grace() is called on the class",
            "TimeWindows.of_size_and_grace(",
        ),
        (lambda b: Repartitioned.as_("r").number_of_partitions(3), "would be lost", "with_number_of_partitions()"),
        (lambda b: Consumed.with_(StringSerde()).as_("n"), "would be lost", "with_name()"),
        (lambda b: BufferConfig.max_records(3).max_bytes(4), "would be lost", "with_max_bytes()"),
        (lambda b: Materialized.as_(OF_JOINS), "would retain duplicates", "leave"),
        (
            lambda b: Stores.persistent_window_store("s", 60_000, MINUTE),
            "retention_period, not an int",
            "milliseconds=60000",
        ),
        (lambda b: Job("job", b), "takes a Topology as topology, not a StreamsBuilder", "builder.build()"),
        (lambda b: TopologyTestDriver(b.build, "f"), "as topology, not a method", "StreamsBuilder.build()"),
        (
            lambda b: sum_(),  # type: ignore[call-arg]
            "sum_() missing a required argument: 'of'",
            "it is sum_(of, *, where=None)",
        ),
        (
            lambda b: per_record(len),  # type: ignore[call-arg]
            "missing a required argument: 'arrow_type'",
            "pa.int64()",
        ),
        (lambda b: per_record(len, int), "takes a DataType as arrow_type, not the class int", "pa.int64()"),
        (lambda b: b.stream("a").split().brunch(len), "BranchedKStream has no brunch()", "did you mean branch"),
    ],
)
def test_the_way_round_is_named(written: Callable[[StreamsBuilder], object], message: str, step: str) -> None:
    with pytest.raises(ConfigurationError) as raised:
        written(streams())
    assert message in raised.value.what
    assert step in (raised.value.next_step or "")


def test_a_window_store_is_made_as_in_kafka() -> None:
    made = Stores.persistent_window_store("s", 2 * MINUTE, MINUTE, False)
    assert made == Stores.persistent_window_store("s", 2 * MINUTE, MINUTE)


def test_what_asks_whether_a_method_is_there_gets_an_answer() -> None:
    stream = streams().stream("a")
    assert not hasattr(stream, "cogroup")
    assert not hasattr(stream, "__array__")
    assert getattr(stream, "transform", None) is None


def test_none_and_names_of_parameters_are_taken_as_before() -> None:
    stream = streams().stream(topic="a", consumed=None)
    table = stream.to_table(None, Materialized.as_("s"))
    table.to_stream(named=None).group_by("k", Grouped.as_("g")).count(None, Named.as_("n")).to_stream().to("b")
    assert stream.filter.__doc__ is not None


def test_a_name_may_be_given_later() -> None:
    assert Named.as_("a").with_name("b") == Named.as_("b")
    assert Grouped.with_(StringSerde()).with_name("b") == Grouped.as_("b")
    assert Joined.with_(StringSerde()).with_name("b") == Joined.as_("b")
    assert Repartitioned.number_of_partitions(2).with_name("b") == Repartitioned("b", 2)
    assert TableJoined.with_("a").with_name("b") == TableJoined("b", "a")
    for refused in (Named.as_("a"), Grouped(), Joined(), Repartitioned(), TableJoined()):
        with pytest.raises(ConfigurationError, match="is not a valid name"):
            refused.with_name("a b")
