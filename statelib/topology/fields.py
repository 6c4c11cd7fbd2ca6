"""Which fields of its values each source has to read, from what its sub-topology does with them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from statelib.operators.fields import ALL, FieldsSpec, both
from statelib.topology.nodes import Processor, Source

if TYPE_CHECKING:
    from collections.abc import Sequence

    from statelib.operators.fields import Fields
    from statelib.topology.nodes import Node


def fields_of_sources(nodes: Sequence[Node]) -> dict[str, Fields]:
    """By source node, the fields that matter.

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
    return {node.name: both(wanted[node.name]) for node in nodes if isinstance(node, Source)}
