"""Which fields of its values each node has to forward or, a source, to read: what its sub-topology does with them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from statelib.operators.mappers.fields import ALL, FieldsSpec, both
from statelib.topology.nodes import Processor

if TYPE_CHECKING:
    from collections.abc import Sequence

    from statelib.operators.mappers.fields import Fields
    from statelib.topology.nodes import Node


def wanted_fields(nodes: Sequence[Node]) -> dict[str, Fields]:
    """By node, the fields of what it forwards that others look at; of a source: what has to be read.

    Args:
        nodes: Of a sub-topology, parents before their children.
    """
    wanted: dict[str, list[Fields]] = {node.name: [] for node in nodes}
    for node in reversed(nodes):
        own = both(wanted[node.name])
        for number, parent in enumerate(node.parents):
            reads = ALL  # a sink writes all of it
            if isinstance(node, Processor) and isinstance(node.spec, FieldsSpec):
                reads = node.spec.reads(number, own)
            wanted[parent].append(reads)
    return {name: both(fields) for name, fields in wanted.items()}
