"""How many records a reader of results would miss, each counted once.

A record that has no key is dropped by every node that needs one, and stands in the ledger of each. Nodes that were
given the same records may have lost the same ones, so of these the one that has lost most counts, not all together.
Where the records were divided among the nodes, as by ``split``, they are others, and all count.
"""

from __future__ import annotations

import operator
from collections import Counter
from functools import reduce
from typing import TYPE_CHECKING

from hindstream.report.accounts import ORDER, lost
from statelib.metrics.node_metrics import NodeMetrics
from statelib.topology import Sink, Source

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from hindstream.report.accounts import Account
    from statelib.topology import Node, Topology


def losses(topology: Topology, nodes: Mapping[str, NodeMetrics]) -> dict[Account, int]:
    """Records that were dropped or have failed, by account.

    Args:
        topology: The job's.
        nodes: Ledgers by node; of nodes that the topology does not have (any more) all count.
    """
    children: dict[str | None, list[str]] = {}
    for name, before in _befores(topology).items():
        children.setdefault(before, []).append(name)

    def below(name: str) -> Counter[Account]:
        metrics, after = nodes.get(name, NodeMetrics()), children.get(name, [])
        given = sum(nodes[child].records_in for child in after if child in nodes)
        rest = map(below, after)
        return _own(metrics) + (_sum(rest) if given <= metrics.records_out else _most(rest))

    known = {node.name for node in topology.nodes}
    found = _sum(map(below, children.get(None, []))) + _sum(_own(nodes[name]) for name in nodes.keys() - known)
    places = {name: place for place, name in enumerate(ORDER)}
    return dict(sorted(found.items(), key=lambda entry: places.get(entry[0].name, len(places))))


def _own(metrics: NodeMetrics) -> Counter[Account]:
    return Counter(dict(lost(metrics)))


def _sum(parts: Iterable[Counter[Account]]) -> Counter[Account]:
    return reduce(operator.add, parts, Counter())


def _most(parts: Iterable[Counter[Account]]) -> Counter[Account]:
    return reduce(operator.or_, parts, Counter())


def _befores(topology: Topology) -> dict[str, str | None]:
    """By node, the one whose records it takes up; None: it takes them up from an archive.

    Of several parents it is the first, so that the node's own losses count once; in a circle the first that does not
    come behind the node itself.
    """
    topics = {node.topic: node.name for node in topology.nodes if isinstance(node, Sink) and node.internal}
    parents = {node.name: _parents(node, topics) for node in topology.nodes}
    found: dict[str, str | None] = {}
    while waiting := [name for name in parents if name not in found]:
        reached = {name: of[0] if of else None for name in waiting if not (of := parents[name]) or of[0] in found}
        if not reached:  # what waits, waits for a circle
            ways = ((name, parent) for name in waiting for parent in parents[name] if parent in found)
            name, parent = next(ways, (waiting[0], None))
            reached = {name: parent}
        found |= reached
    return {name: found[name] for name in parents}


def _parents(node: Node, topics: Mapping[str, str]) -> Sequence[str]:
    if isinstance(node, Source):
        return (topics[node.topic],) if node.internal and node.topic in topics else ()
    return node.parents
