"""Which operators keep state under windowed keys: those behind windowed aggregations, until a step gives other keys."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from statelib.operators.aggregation.table_select import TableSelect
from statelib.operators.deduplication.distinct import Distinct
from statelib.operators.deduplication.operator import DeduplicateSpec
from statelib.operators.joins.foreign_key.operator import ForeignKeyJoin
from statelib.operators.joins.foreign_key.subscribe import ForeignKeySubscribe
from statelib.operators.processors.process import Process
from statelib.operators.sessions.operator import SessionAggregate
from statelib.operators.sliding.operator import SlidingAggregate
from statelib.operators.stateless.flat_map import FlatMap
from statelib.operators.stateless.operator import MapKeyValue, SelectKey
from statelib.operators.suppress.operator import Suppress
from statelib.operators.windows.operator import WindowAggregate
from statelib.topology.nodes import Processor, Sink, Source, senders

if TYPE_CHECKING:
    from collections.abc import Sequence

    from statelib.topology.nodes import Node

_GIVE_WINDOWS = (WindowAggregate, SlidingAggregate, SessionAggregate, Distinct)
_GIVE_KEYS = (SelectKey, MapKeyValue, FlatMap, TableSelect)


class _Windowed(NamedTuple):
    """How many windows a key has, and a primary key that a subscription of a foreign-key join carries."""

    keys: int
    carried: int = 0


def stateful_under_windowed_keys(nodes: Sequence[Node]) -> frozenset[str]:
    """The processors whose stores have windowed keys. Those that have windows beside the key are not among them.

    Args:
        nodes: All of a topology, parents before their children.
    """
    forwarded: dict[str, _Windowed] = {}
    in_topics: dict[str, _Windowed] = {}
    found = set()
    for node in [*nodes, *nodes]:  # a source may come before the sink of its topic
        parents = [forwarded[parent] for parent in senders(node)]
        keys, carried = (max((of[part] for of in parents), default=0) for part in (0, 1))
        got = _Windowed(keys, carried)
        if isinstance(node, Sink):
            in_topics[node.topic] = got
        forwarded[node.name] = _forwarded(node, got, in_topics)
        if isinstance(node, Processor) and node.spec.state_stores() and _stores_keys(node, got):
            found.add(node.name)
    return frozenset(found)


def _forwarded(node: Node, got: _Windowed, in_topics: dict[str, _Windowed]) -> _Windowed:
    spec = node.spec if isinstance(node, Processor) else None
    forwarded = got
    if isinstance(node, Source):
        forwarded = in_topics[node.topic] if node.internal and node.topic in in_topics else _Windowed(0)
    elif isinstance(spec, _GIVE_WINDOWS):
        forwarded = _Windowed(got.keys + 1)
    elif isinstance(spec, _GIVE_KEYS) or (isinstance(spec, Process) and spec.key_type is not None):
        forwarded = _Windowed(0)
    elif isinstance(spec, ForeignKeySubscribe):
        forwarded = _Windowed(0 if spec.windows is None else 1, got.keys)
    elif isinstance(spec, ForeignKeyJoin):
        forwarded = _Windowed(got.carried)
    return forwarded


def _stores_keys(node: Processor, got: _Windowed) -> bool:
    match node.spec:
        case Process():  # it keeps what it likes
            return False
        case DeduplicateSpec(kind="by_id"):
            return False
        case Suppress(windows=windows) if windows is not None:
            return got.keys > 1  # one of them lies beside the key
        case ForeignKeyJoin():
            return got.carried > 0 or got.keys > 0
    return got.keys > 0
