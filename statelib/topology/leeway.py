"""Leeway: some windows are kept, and take records, for longer than the topology says.

A repair that lets late records in replays with it. The topology and its stores stay what they are, so that the job goes
on from the state that comes of it. Final results wait as long as windows are open. When leeway ends, those are given
that the topology itself would not wait for any more: readers have them already.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from statelib.operators.aggregation.operator import KeyAggregate
from statelib.operators.aggregation.table_select import TableSelect
from statelib.operators.deduplication.distinct import Distinct
from statelib.operators.sessions.operator import SessionAggregate
from statelib.operators.sliding.operator import SlidingAggregate
from statelib.operators.stateless.branch import Branch, Split
from statelib.operators.stateless.flat_map import FlatMap, FlatMapValues
from statelib.operators.stateless.operator import Filter, ForEach, MapKeyValue, MapValues, Peek, SelectKey
from statelib.operators.stateless.route import Route
from statelib.operators.suppress.operator import Suppress
from statelib.operators.tables.derived import ToStream
from statelib.operators.tables.writer import VersionedStore
from statelib.operators.windows.definition import SessionWindows, UnlimitedWindows
from statelib.operators.windows.operator import WindowAggregate
from statelib.operators.windows.windowed_aggregate import WindowedAggregateSpec
from statelib.topology.nodes import Processor, Source
from statelib.topology.turns import visited_in_turns

if TYPE_CHECKING:
    from statelib.documents.plans import Leeway
    from statelib.operators.base import OperatorSpec
    from statelib.topology import Topology

_Windowed = WindowAggregate | SessionAggregate | SlidingAggregate | Distinct
_STATELESS = Filter | FlatMap | FlatMapValues | ForEach | MapKeyValue | MapValues | Peek | SelectKey
_Unhurried = _STATELESS | Branch | Split | Route | TableSelect | ToStream | _Windowed | Suppress


def with_leeway(processor: Processor, leeway: Leeway | None) -> OperatorSpec:
    """A node's parameters, with the leeway that it has, if any."""
    spec = processor.spec
    if leeway is None or processor.name not in leeway.nodes:
        return spec
    if isinstance(spec, Suppress):
        return replace(spec, leeway_ms=leeway.accepted_ms)
    if not isinstance(spec, _Windowed) or isinstance(spec.windows, UnlimitedWindows):
        return spec
    windows = replace(spec.windows, grace_period_ms=spec.windows.grace_period_ms + leeway.accepted_ms)
    return replace(spec, windows=windows, retention_ms=_kept_ms(spec) + leeway.kept_ms)  # type: ignore[arg-type]


def may_have_leeway(topology: Topology) -> dict[str, int]:
    """The nodes that may have leeway, by name, and how long each keeps its windows, ms; 0: it keeps none.

    None has it that leads to final results of sessions, to final results for which it matters when they come, or to
    those that an aggregation gives by itself. Nor has one whose store custom processors use.
    """
    processors = [processor for sub in topology.sub_topologies for processor in sub.processors]
    finals = [p for p in processors if isinstance(p.spec, Suppress) and p.spec.suppressed.final_results]
    above = _above(topology)
    awaited = {name for p in processors if not _is_unhurried(p) for name in above[p.name]}
    cannot_wait = {p.name for p in finals if p.name in awaited or isinstance(p.spec.windows, SessionWindows)}  # type: ignore[attr-defined]
    cannot_wait |= {p.name for p in processors if isinstance(p.spec, WindowedAggregateSpec) and p.spec.final}
    without = cannot_wait.union(*(above[name] for name in cannot_wait))
    without |= {name for sub in topology.sub_topologies for name in visited_in_turns(sub.nodes)}  # others see the store
    kept_ms = {p.name: 0 for p in finals if p.name not in without}
    for processor in processors:
        spec = processor.spec
        if isinstance(spec, _Windowed) and not isinstance(spec.windows, UnlimitedWindows):
            kept_ms[processor.name] = _kept_ms(spec)
    return {name: kept for name, kept in kept_ms.items() if name not in without}


def _above(topology: Topology) -> dict[str, set[str]]:
    """By node, all nodes that lead to it; one in a circle of repartition topics leads to itself."""
    nodes = {node.name: node for sub in topology.sub_topologies for node in sub.nodes}
    into = {sink.topic: sink.name for sub in topology.sub_topologies for sink in sub.all_sinks if sink.internal}
    found: dict[str, set[str]] = {}
    for name in nodes:
        above = found[name] = set()
        waiting = [name]
        while waiting:
            node = nodes[waiting.pop()]
            parents = (into[node.topic],) if isinstance(node, Source) and node.topic in into else node.parents
            waiting += [parent for parent in parents if parent not in above]
            above.update(parents)
    return found


def _is_unhurried(processor: Processor) -> bool:
    """Whether a node gives the same if all that comes to it comes later: it meets nothing that has not waited."""
    spec = processor.spec
    if len(processor.parents) > 1:
        return False
    if isinstance(spec, KeyAggregate):
        return not isinstance(spec.store, VersionedStore)
    return isinstance(spec, _Unhurried)


def _kept_ms(spec: _Windowed) -> int:
    """How long windows stay in the store."""
    return spec.counted.kept_ms if isinstance(spec, Distinct) else spec.kept_ms
