"""Which nodes of a sub-topology may take a sample of the keys, so that what reaches its sinks is exact for these.

A node may if what it forwards of a key depends on nothing but what came to it with that key, and on time, and if all
that is below it may too. The other nodes take all keys. So a sample is exact for every topology; what it saves depends
on how much of the topology is behind the last node that looks at several keys.

Time is moved by records of all keys. A node that has a clock of its own needs, beside the keys of the sample, the
records that move it; so does a node above it, if it lets these through. Which records these are, `Movers` says:

* ``keyed``: any that has a key;
* ``valued``: any that has a key and a value.

Only the last of several such records is needed, if no record of the sample comes between them. Then what leaves a node
because time has moved on may leave later than it would, though before the next record of the sample. Nothing may see
that: such a node takes all keys if somewhere below it two inputs meet.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from statelib.operators.aggregation.operator import KeyAggregate
from statelib.operators.deduplication.distinct import Distinct
from statelib.operators.deduplication.operator import DeduplicateSpec
from statelib.operators.joins.stream_table.latest import StreamLatestJoin
from statelib.operators.joins.stream_table.operator import StreamTableJoin
from statelib.operators.sessions.operator import SessionAggregate
from statelib.operators.stateless.flat_map import FlatMapValues
from statelib.operators.stateless.merge import Merge
from statelib.operators.stateless.operator import Filter, MapValues
from statelib.operators.stateless.route import Route
from statelib.operators.suppress.definition import StrictBufferConfig
from statelib.operators.suppress.operator import Suppress
from statelib.operators.tables.derived import ToStream
from statelib.operators.tables.source import PlainTableSource, TableSource
from statelib.operators.tables.view import JoinedView, TableView
from statelib.operators.tables.writer import PlainStore, VersionedStore
from statelib.operators.windows.definition import UnlimitedWindows
from statelib.operators.windows.operator import WindowAggregate
from statelib.topology.node_groups import global_nodes
from statelib.topology.nodes import Processor, Sink
from statelib.topology.turns import visited_in_turns

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from statelib.operators.base import OperatorSpec
    from statelib.operators.suppress.definition import BufferConfig
    from statelib.operators.tables.view import AnyView
    from statelib.topology.nodes import Node

Movers = Literal["keyed", "valued"]


@dataclass(frozen=True, slots=True)
class _Rule:
    """What a node is to a sample.

    Attributes:
        needs: By input, the movers of its own clock; the last one is of all further inputs, too.
        passes: What has to reach its first input (of a merge: each) so that it forwards the movers that are needed.
        fires: Whether records leave it because time has moved on.
    """

    needs: tuple[Movers | None, ...] = (None,)
    passes: Mapping[Movers, Movers] = field(default_factory=dict)
    fires: bool = False


_BOTH: Mapping[Movers, Movers] = {"keyed": "keyed", "valued": "valued"}
_OF_ALL: dict[type, _Rule] = {
    Filter: _Rule(),
    FlatMapValues: _Rule(),
    MapValues: _Rule(passes={"keyed": "keyed"}),
    Merge: _Rule(passes=_BOTH),
    ToStream: _Rule(passes=_BOTH),
    Distinct: _Rule(),
    PlainTableSource: _Rule(),
    Route: _Rule(),
    TableSource: _Rule(("keyed",), {"keyed": "keyed"}),
}


_ALIKE = (Merge, KeyAggregate, WindowAggregate, SessionAggregate)
"""Operators that do the same with all of their inputs."""


def sampled_inputs(nodes: Sequence[Node]) -> dict[str, tuple[Movers | None, ...]]:
    """The nodes that may take a sample, and by input which records of other keys each needs; None: none.

    Args:
        nodes: Of a sub-topology, parents before their children.
    """
    of_all = global_nodes(nodes) | visited_in_turns(nodes)
    found: dict[str, tuple[Movers | None, ...]] = {}
    meets: dict[str, bool] = {}  # whether two inputs meet below
    for node in reversed(nodes):
        edges = [(child, slot) for child in nodes for slot, name in enumerate(child.parents) if name == node.name]
        meets[node.name] = any(len(child.parents) > 1 or meets[child.name] for child, _ in edges)
        if isinstance(node, Sink) and not node.internal:
            found[node.name] = (None,) * len(node.parents)
        elif isinstance(node, Processor) and node.name not in of_all:
            below = {found[child.name][slot] for child, slot in edges if child.name in found}
            all_below = edges and all(child.name in found for child, _ in edges)
            inputs = _inputs(node, below - {None}, meets=meets[node.name]) if all_below else None
            if inputs is not None:
                found[node.name] = inputs
    return found


def _inputs(node: Processor, below: set[Movers | None], *, meets: bool) -> tuple[Movers | None, ...] | None:
    """What a node needs, given what is needed below it; None: it has to take all keys."""
    rule = _rule(node.spec)
    if rule is None or (rule.fires and meets) or len(below) > 1:
        return None
    needs = [rule.needs[min(slot, len(rule.needs) - 1)] for slot in range(len(node.parents))]
    for wanted in below:
        if wanted is None or wanted not in rule.passes:
            return None
        for slot in range(len(needs) if isinstance(node.spec, _ALIKE) else 1):
            if needs[slot] not in {None, rule.passes[wanted]}:
                return None
            needs[slot] = rule.passes[wanted]
    return tuple(needs)


def _rule(spec: OperatorSpec) -> _Rule | None:
    """What is known of an operator; None: nothing, or that it looks at several keys."""
    rule = _OF_ALL.get(type(spec))
    match spec:
        case KeyAggregate() if not spec.of_table and not isinstance(spec.store, VersionedStore):
            rule = _Rule()
        case WindowAggregate() | SessionAggregate() if spec.final:
            rule = _Rule(("keyed",), fires=True)
        case WindowAggregate() | SessionAggregate() if spec.clock == "task":
            rule = _Rule()
        case WindowAggregate() | SessionAggregate():
            rule = _Rule(("keyed",), {} if isinstance(spec.windows, UnlimitedWindows) else {"keyed": "keyed"})
        case Suppress() if not _emits_early(spec.suppressed.buffer):
            rule = _Rule(("keyed",), fires=True)
        case DeduplicateSpec() if spec.kind != "by_id":
            rule = _Rule()
        case StreamTableJoin() if spec.key is None:
            rule = _Rule((None, "keyed"), {"keyed": "valued"} if spec.left else {})
        case StreamLatestJoin() if spec.key is None and _is_by_key(spec.view):
            rule = _Rule(passes={"keyed": "valued"} if spec.left else {})
    return rule


def _is_by_key(view: AnyView) -> bool:
    """Whether what is found under a key depends on nothing but that key: what windows are forgotten depends on time."""
    match view:
        case TableView(store=PlainStore() | VersionedStore()):
            return True
        case JoinedView(left=left, right=right):
            return _is_by_key(left) and _is_by_key(right)
    return False


def _emits_early(buffer: BufferConfig) -> bool:
    """Whether the buffer's bounds decide what leaves it, or whether the run fails: they count all keys."""
    return buffer.is_bounded and not (isinstance(buffer, StrictBufferConfig) and buffer.spills)
