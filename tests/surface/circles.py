"""Topologies whose repartition topics are read before they are written, most of them in circles."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from statelib import KStream, Materialized, Named, Produced, StreamsBuilder, Topology, per_record
from tests.surface.records import VALUE

AMOUNT = pc.field("value", "amount")
IS_LEFT = per_record(lambda value: bool(value and value["amount"] > 1), pa.bool_(), "value")
LESS = per_record(lambda value: {**value, "amount": value["amount"] // 2}, VALUE, "value")
NAMES = per_record(lambda left, right: f"{left and left['id']}|{right and right['id']}", pa.string(), "left", "right")
SEEN = per_record(lambda left, right: f"{left and left['id']} after {right}", pa.string(), "left", "right")


def comes_back(builder: StreamsBuilder, topic: str) -> None:
    """A stream that comes back to itself under another key, its amounts halved, until nothing is left of them.

    What comes back is declared before what it is made of.
    """
    back = builder.stream("halved")
    every = back.merge(builder.stream(topic))
    every.filter(IS_LEFT).map("value.id", LESS).to("halved", Produced.as_("back-again"))
    every.to("all-halves")
    every.group_by_key().count(Materialized.as_("halves")).to_stream().to("counts-of-halves")


def refers_to_itself(builder: StreamsBuilder, topic: str) -> None:
    """A table that refers to rows of itself by a foreign key."""
    table = builder.table(topic, Materialized.as_(topic))
    table.left_join(table, NAMES, Named.as_("of-itself"), foreign_key="other").to_stream().to("rows-of-itself")


def meets_its_aggregate(builder: StreamsBuilder, topic: str) -> None:
    """A stream that is joined with its own aggregate under another key."""
    stream = builder.stream(topic)
    stream.left_join(stream.group_by("value.other").count(Materialized.as_("sizes")), SEEN).to("after-so-many")


def read_first(builder: StreamsBuilder, topic: str) -> None:
    """No circle: only what reads the topic is declared before what writes it."""
    builder.stream("again").group_by_key().count(Materialized.as_("counts")).to_stream().to("counted")
    _some(builder.stream(topic)).to("again", Produced.as_("once-more"))


def _some(stream: KStream) -> KStream:
    return stream.filter(IS_LEFT).map("value.id", "value")


CIRCLES = (comes_back, refers_to_itself, meets_its_aggregate)


def circle(of: object, topic: str = "events") -> Topology:
    """A topology of one of these alone."""
    builder = StreamsBuilder("app")
    of(builder, topic)  # type: ignore[operator]
    return builder.build()
