"""Windows that wait for their final result are held by their aggregation: suppressions leave them there if they can.

In memory and in the state where nobody needs single updates, else in the state alone: see
`statelib.operators.windows.condensing`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from statelib.operators.windows.condensing import CondensingOperator, FinalResultsReader, StoringOperator

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Mapping, Sequence

    from statelib.operators.base import Operator
    from statelib.topology.nodes import Node


def hold_windows_once(
    nodes: Sequence[Node],
    operators: Mapping[str, Operator],
    *,
    clock: Callable[[str], int],
    in_turns: Container[str],
    leaves_out: Callable[[str, str], bool],
) -> None:
    """Tells suppressions and their aggregations of each other; called before the first batch.

    Args:
        nodes: Of the sub-topology.
        operators: By node.
        clock: Gives the stream time of a node, ms.
        in_turns: The nodes that take records one by one in turn with others.
        leaves_out: Whether a node gets a part of what its parent forwards.
    """
    for node in nodes:
        reader = operators.get(node.name)
        if not isinstance(reader, FinalResultsReader):
            continue
        (parent,) = node.parents
        aggregation = operators.get(parent)
        if aggregation is None or parent in in_turns or leaves_out(parent, node.name):
            continue
        if clock(parent) < clock(node.name):  # it has begun anew, and opens windows that are closed here
            continue
        is_only_reader = sum(parent in other.parents for other in nodes) == 1
        if isinstance(aggregation, CondensingOperator) and is_only_reader and reader.takes_condensed:
            windows = aggregation.condense()
            if windows is not None:
                reader.leave_in(*windows)
                continue
        if isinstance(aggregation, StoringOperator) and node.name not in in_turns and reader.may_refer:
            in_store = aggregation.in_store()
            if in_store is not None:
                reader.refer_to(in_store)
