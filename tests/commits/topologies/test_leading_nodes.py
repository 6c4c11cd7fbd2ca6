"""What leads to nodes of a described topology."""

from __future__ import annotations

from typing import Any

import pytest

from statelib.commits.topologies.leading_nodes import lead_to
from statelib.documents.topologies import NodeDescription, TopologyDescription


def _node(name: str, sub_topology: int, *parents: str, **settings: Any) -> NodeDescription:
    return NodeDescription(name=name, sub_topology=sub_topology, parents=parents, settings=settings)


TOPOLOGY = TopologyDescription(
    fingerprint="f",
    nodes=(
        _node("clicks", 0, node="source", topic="clicks"),
        _node("users", 0, node="source", topic="users"),
        _node("by-page", 0, "clicks", node="processor"),
        _node("to-pages", 0, "by-page", node="sink", topic="pages"),
        _node("table", 0, "users", node="processor"),
        _node("to-out", 0, "table", node="sink", topic="out"),
        _node("pages", 1, node="source", topic="pages"),
        _node("count", 1, "pages", node="processor"),
        _node("to-counts", 1, "count", node="sink", topic="counts"),
        _node("orders", 2, node="source", topic="orders"),
        _node("sum", 2, "orders", node="processor"),
    ),
    stores=(),
)


@pytest.mark.parametrize(
    ("names", "whole", "expected"),
    [
        (["count"], False, ["clicks", "by-page", "to-pages", "pages", "count"]),
        (["count"], True, ["clicks", "users", "by-page", "to-pages", "pages", "count"]),
        (["table"], False, ["users", "table"]),
        (["table"], True, ["clicks", "users", "table"]),
        (["sum", "table"], False, ["users", "table", "orders", "sum"]),
        (["sum"], True, ["orders", "sum"]),
        ([], True, []),
    ],
)
def test_nodes_lead_there_over_repartitions_and_with_all_that_moves_the_time(
    names: list[str], whole: bool, expected: list[str]
) -> None:
    found = lead_to(TOPOLOGY, names, with_whole_input=whole)
    assert [node.name for node in found] == expected
