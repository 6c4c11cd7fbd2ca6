"""In which turns a task runs its nodes: mostly each by itself, over a whole batch.

Kafka Streams takes one record at a time through all nodes. That makes a difference where a custom processor shares a
store: what one puts for a record, the others find when the next one comes. So these nodes take their turn together, and
visit each other record by record (`statelib.task.in_turns`); and with them all nodes on the ways between them. So do
all processors of a low-level topology.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from statelib.operators.processors.process import Process
from statelib.topology.connected import connected
from statelib.topology.node_groups import global_nodes
from statelib.topology.nodes import Processor, senders

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from statelib.topology.nodes import Node

Turn: TypeAlias = "tuple[Node, ...]"
"""A node, or processors that visit each other, in the order of declaration."""


def is_shared(turn: Turn) -> bool:
    """Whether its nodes visit each other, or one gets the records of several as they come."""
    first, *others = turn
    is_custom = isinstance(first, Processor) and isinstance(first.spec, Process)
    return bool(others) or (is_custom and len(senders(first)) > 1)


def turns(nodes: Sequence[Node]) -> tuple[Turn, ...]:
    """The turns of a sub-topology, each behind those that lead to it.

    Args:
        nodes: Parents before their children.
    """
    together = _together(nodes)
    if not together:
        return tuple((node,) for node in nodes)
    turn_of = {node.name: node.name for node in nodes}
    for names in together:
        turn_of |= dict.fromkeys(names, names[0])
    turn_of = _without_circles(nodes, turn_of)
    while into := _looking_into(nodes, turn_of):
        turn_of = {name: into.get(turn, turn) for name, turn in turn_of.items()}
        turn_of = _without_circles(nodes, turn_of)
    members: dict[str, list[Node]] = {}
    for node in nodes:
        members.setdefault(turn_of[node.name], []).append(node)
    return tuple(tuple(members[turn]) for turn in _in_order(_above(nodes, turn_of)))


def visited_in_turns(nodes: Sequence[Node]) -> frozenset[str]:
    """The nodes that have a turn with others."""
    return frozenset(node.name for turn in turns(nodes) if is_shared(turn) for node in turn)


def _together(nodes: Sequence[Node]) -> list[list[str]]:
    """The names of processors that take their turn together.

    Those that share a store with a custom one, and those of a low-level topology.
    """
    of_globals = global_nodes(nodes)
    processors = [node for node in nodes if isinstance(node, Processor) and node.name not in of_globals]
    connected_with = {store for node in processors if isinstance(node.spec, Process) for store in node.stores}
    ties = {node.name: [f"store {s}" for s in node.stores if s in connected_with] for node in processors}
    for node in processors:
        if isinstance(node.spec, Process) and node.spec.low_level:
            ties[node.name].append("low-level")
        elif ties[node.name]:  # it is flushed with each record, and so is what it looks into
            ties[node.name] += [name for name in node.parents[len(senders(node)) :] if name in ties]
    return [names for names in connected(ties) if len(names) > 1]


def _looking_into(nodes: Sequence[Node], turn_of: Mapping[str, str]) -> dict[str, str]:
    """Turns that belong to another one, by which: a node looks from one into a table of the other.

    Where a custom processor uses the store of a table, all of its turn is written with each record
    (`statelib.task.in_turns`), so who looks into it has to do so between records; and so is what it looks into, but for
    global tables, which are there before.
    """
    written = {turn_of[node.name] for node in nodes if _uses_tables(node)}
    of_globals = global_nodes(nodes)
    found: dict[str, str] = {}
    for node in nodes:
        for other in node.parents[len(senders(node)) :] if isinstance(node, Processor) else ():
            one, looked_into = turn_of[node.name], turn_of[other]
            if one != looked_into and other not in of_globals and not written.isdisjoint((one, looked_into)):
                found |= {one: looked_into} if looked_into in written else {looked_into: one}
    return found


def _uses_tables(node: Node) -> bool:
    return isinstance(node, Processor) and isinstance(node.spec, Process) and bool(node.spec.tables)


def _above(nodes: Sequence[Node], turn_of: Mapping[str, str]) -> dict[str, set[str]]:
    """By turn, those that lead to it at once."""
    above: dict[str, set[str]] = {}
    for node in nodes:
        turn = turn_of[node.name]
        above.setdefault(turn, set()).update(turn_of[parent] for parent in node.parents)
        above[turn].discard(turn)
    return above


def _without_circles(nodes: Sequence[Node], turn_of: Mapping[str, str]) -> dict[str, str]:
    """Turns of which none leads to itself by way of others: those that would are one."""
    above = _above(nodes, turn_of)
    leads = {turn: _all_above(turn, above) for turn in above}
    first_of = {
        turn: next(other for other in above if other == turn or (other in leads[turn] and turn in leads[other]))
        for turn in above
    }
    return {name: first_of[turn] for name, turn in turn_of.items()}


def _all_above(turn: str, above: Mapping[str, set[str]]) -> set[str]:
    found: set[str] = set()
    waiting = [turn]
    while waiting:
        new = above[waiting.pop()] - found
        found |= new
        waiting += new
    return found


def _in_order(above: Mapping[str, set[str]]) -> list[str]:
    """Each turn behind those that lead to it, else by their first nodes."""
    ordered: list[str] = []
    waiting = list(above)
    done: set[str] = set()
    while waiting:
        turn = next(turn for turn in waiting if done.issuperset(above[turn]))
        waiting.remove(turn)
        done.add(turn)
        ordered.append(turn)
    return ordered
