"""Sources that say by a pattern which topics they read."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from statelib import StreamsBuilder, Topology
from statelib.errors.kinds import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Callable

ORDERS = re.compile("orders-.*")
LISTED = ["orders-us", "orders-eu"]


def test_a_pattern_reads_what_is_listed_with_it_and_is_printed_as_kafka_prints_it() -> None:
    builder = StreamsBuilder("app")
    builder.stream(ORDERS, topics=LISTED).to("out")
    topology = builder.build()
    assert topology.source_topics == ("orders-us", "orders-eu"), "in the order of the list"
    assert "Source: KSTREAM-SOURCE-0000000000 (topics: orders-.*)\n" in topology.describe()
    assert topology.matched_by_pattern(["orders-", "orders", "orders-eu", "my-orders-x"]) == {
        "orders-": "KSTREAM-SOURCE-0000000000"
    }
    fork = topology.with_sinks({"out": "out.try"})
    assert fork.describe() == topology.describe().replace("topic: out", "topic: out.try")


def test_a_topic_more_changes_no_other_node() -> None:
    """So what stands below the source goes on, also from one topic to two."""
    names = []
    for listed in (["orders-eu"], ["orders-eu", "orders-us"]):
        builder = StreamsBuilder("app")
        builder.stream(ORDERS, topics=listed).to("out")
        names.append({node.name: node.describe() for node in builder.build().nodes})
    assert names[0].items() <= names[1].items()
    assert names[1].keys() - names[0].keys() == {"KSTREAM-SOURCE-0000000000-orders-us"}


def test_the_order_of_a_set_is_the_same_in_every_process() -> None:
    builder = StreamsBuilder("app")
    builder.stream(ORDERS, topics=set(LISTED)).to("out")
    assert builder.build().source_topics == ("orders-eu", "orders-us")


def test_the_same_pattern_again_is_the_same_source() -> None:
    builder = StreamsBuilder("app")
    builder.stream(ORDERS, topics=LISTED).to("one")
    builder.stream(re.compile(ORDERS.pattern), topics=LISTED).to("two")
    assert builder.build().describe().count("Source:") == 1


def test_the_processor_api_has_them_too() -> None:
    topology = Topology("app").add_source("orders", ORDERS, topics=LISTED).add_sink("out", "out", "orders")
    assert topology.source_topics == ("orders-us", "orders-eu")
    assert "Source: orders (topics: orders-.*)\n" in topology.describe()
    with pytest.raises(ConfigurationError, match="a pattern, and more beside it.*node more"):
        topology.add_source("more", ORDERS, "other", topics=LISTED)


def _twice(builder: StreamsBuilder) -> object:
    builder.stream(ORDERS, topics=LISTED)
    return builder.stream(re.compile("orders-[a-z]+"), topics=["orders-eu"])


def _named_behind(builder: StreamsBuilder) -> object:
    builder.stream(ORDERS, topics=LISTED)
    builder.stream("orders-jp")
    return builder.build()


def _listed_and_named(builder: StreamsBuilder) -> object:
    builder.stream("orders-eu")
    return builder.stream(ORDERS, topics=LISTED)


def _global(builder: StreamsBuilder) -> object:
    builder.global_table("orders-all")
    builder.stream(ORDERS, topics=LISTED)
    return builder.build()


def _written(builder: StreamsBuilder) -> object:
    builder.stream(ORDERS, topics=LISTED).to("orders-out")
    return builder.build()


@pytest.mark.parametrize(
    ("describe", "message"),
    [
        (lambda b: b.stream(ORDERS), r"'orders-\.\*' matches are not listed.*topics=\[\.\.\.\]"),
        (lambda b: b.stream(ORDERS, topics=["orders-eu", "order"]), "does not match a topic .*topic order[,)]"),
        (lambda b: b.stream("orders", topics=["orders"]), "no pattern that matches them.*topic orders"),
        (_twice, "matches a topic of another source.*topic orders-eu"),
        (_named_behind, "matches a topic of another source.*topic orders-jp"),
        (_listed_and_named, "matches a topic of another source.*topic orders-eu"),
        (_global, "matches a topic of another source.*topic orders-all"),
        (_written, "matches a topic that the topology writes.*topic orders-out"),
    ],
)
def test_what_is_refused(describe: Callable[[StreamsBuilder], object], message: str) -> None:
    """A topic has one source, as in Kafka Streams."""
    with pytest.raises(ConfigurationError, match=message):
        describe(StreamsBuilder("app"))
