"""The order in which a record passes through the nodes."""

from __future__ import annotations

from statelib.operators.derived_table import ToStream
from statelib.topology import Processor, Source
from statelib.topology.passing_order import passing_order


def test_depth_first_children_as_declared() -> None:
    nodes = [
        Source("a", "x"),
        Processor("b", ("a",), ToStream()),
        Processor("c", ("a",), ToStream()),
        Source("other", "y"),
        Processor("below-b", ("b",), ToStream()),
        Processor("both", ("c", "below-b"), ToStream()),
    ]
    order = passing_order(nodes)
    assert sorted(order, key=lambda name: order[name].begins) == ["a", "b", "below-b", "both", "c", "other"]
    assert order["both"].ends < order["below-b"].ends < order["b"].ends < order["c"].begins < order["c"].ends
    assert order["a"].ends < order["other"].begins
    assert len({count for visit in order.values() for count in visit}) == 2 * len(nodes)


def test_what_is_only_looked_into_passes_nothing_on() -> None:
    nodes = [
        Source("table", "x"),
        Source("stream", "y"),
        Processor("join", ("stream", "table"), ToStream(), looks_into=1),
    ]
    order = passing_order(nodes)
    assert order["table"].ends < order["stream"].begins < order["join"].begins
