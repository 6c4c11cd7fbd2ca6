"""What somebody writes who knows Kafka Streams' DSL, and is told how it goes here."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from statelib import ConfigurationError, Grouped, Materialized, Named, StreamsBuilder

if TYPE_CHECKING:
    from collections.abc import Callable


def streams() -> StreamsBuilder:
    return StreamsBuilder("job")


@pytest.mark.parametrize(
    ("written", "message", "step"),
    [
        (lambda b: b.stream(["a", "b"]), "StreamsBuilder.stream() takes a str as topic, not a list", "merge() them"),
        (lambda b: b.stream(("a", "b")), "takes a str as topic, not a tuple", "merge() them"),
        (lambda b: b.stream(re.compile("a.*")), "takes a str as topic, not a Pattern", "merge() them"),
        (lambda b: b.stream("a").group_by_key().cogroup(len), "KGroupedStream has no cogroup()", "join the tables"),
        (lambda b: b.stream("a").to_table(Materialized.as_("s")), "takes a Named as named, not a Materialized",
         "give it by name: materialized="),
        (lambda b: b.stream("a").to(lambda key, value, record: "b"), "takes a str as topic, not a function", "split()"),
        (lambda b: b.table("a", "store"), "not a str", "give a Consumed or Materialized"),
        (lambda b: b.stream("a").transform(len), "KStream has no transform()", "use process()"),
        (lambda b: b.stream("a").through("b"), "KStream has no through()", "use repartition()"),
        (lambda b: b.stream("a").branch(len), "KStream has no branch()", "split().branch("),
        (lambda b: b.stream("a").mapValues(len), "KStream has no mapValues()", "call it map_values()"),
        (lambda b: b.stream("a").groupByKey(), "KStream has no groupByKey()", "call it group_by_key()"),
        (lambda b: b.stream("a").map_valeus("x"), "KStream has no map_valeus()", "did you mean map_values"),
        (lambda b: b.table("a").toStream(), "has no toStream()", "call it to_stream()"),
        (lambda b: b.global_table("a").to_stream(), "GlobalKTable has no to_stream()", "it has"),
        (lambda b: b.add_global_store(), "StreamsBuilder has no add_global_store()", "use global_table()"),
        (lambda b: b.stream("a").group_by("k", Named.as_("n")), "takes a Grouped as grouped, not a Named", "give"),
        (lambda b: b.stream("a").join("b", "left"), "a stream cannot be joined with str", "table()"),
        (lambda b: b.stream("a").filter("x", name="n"), "unexpected keyword argument 'name'", "predicate, named"),
        (lambda b: b.stream("a").filter(), "missing a required argument: 'predicate'", "predicate, named"),
        (lambda b: b.stream(), "missing a required argument: 'topic'", "topic, consumed"),
        (lambda b: b.stream("a").split().brunch(len), "BranchedKStream has no brunch()", "did you mean branch"),
    ],
)  # fmt: skip
def test_the_way_round_is_named(written: Callable[[StreamsBuilder], object], message: str, step: str) -> None:
    with pytest.raises(ConfigurationError) as raised:
        written(streams())
    assert message in raised.value.what
    assert step in (raised.value.next_step or "")


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
