"""Leeway: some windows are kept, and take records, for longer than the topology says.

A repair that lets late records in replays with it. The topology and its stores stay what they are, so that the job goes
on from the state that comes of it. Final results wait as long as windows are open. When leeway ends, those are given
that the topology itself would not wait for any more: readers have them already.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from statelib.operators.deduplication.distinct import Distinct
from statelib.operators.sessions.operator import SessionAggregate
from statelib.operators.sliding.operator import SlidingAggregate
from statelib.operators.suppress.operator import Suppress
from statelib.operators.windows.definition import SessionWindows, UnlimitedWindows
from statelib.operators.windows.operator import WindowAggregate

if TYPE_CHECKING:
    from statelib.documents.plans import Leeway
    from statelib.operators.base import OperatorSpec
    from statelib.topology import Topology
    from statelib.topology.nodes import Processor

_Windowed = WindowAggregate | SessionAggregate | SlidingAggregate | Distinct


def with_leeway(processor: Processor, leeway: Leeway | None) -> OperatorSpec:
    """A node's parameters, with the leeway that it has, if any."""
    spec = processor.spec
    if leeway is None or processor.name not in leeway.nodes or not isinstance(spec, _Windowed | Suppress):
        return spec
    windows, more_ms = spec.windows, leeway.accepted_ms
    if windows is None or isinstance(windows, UnlimitedWindows):
        return spec
    longer = replace(windows, grace_period_ms=windows.grace_period_ms + more_ms)
    if isinstance(spec, Suppress):
        return replace(spec, windows=longer, held_ms=spec.held_ms + more_ms if spec.held_ms else 0)
    return replace(spec, windows=longer, retention_ms=_kept_ms(spec) + leeway.kept_ms)  # type: ignore[arg-type]


def may_have_leeway(topology: Topology) -> dict[str, int]:
    """The nodes that may have leeway, by name, and how long each keeps its windows, ms; 0: it keeps none.

    Sessions have none whose final results are wanted: a late record may make one of two that have been given.
    """
    processors = [processor for sub in topology.sub_topologies for processor in sub.processors]
    finals = [p for p in processors if isinstance(p.spec, Suppress) and p.spec.suppressed.final_results]
    of_sessions = [
        p.name for p in finals if isinstance(p.spec, Suppress) and isinstance(p.spec.windows, SessionWindows)
    ]
    kept_ms = {p.name: 0 for p in finals if p.name not in of_sessions}
    for processor in processors:
        spec = processor.spec
        if not isinstance(spec, _Windowed) or isinstance(spec.windows, UnlimitedWindows):
            continue
        if not (of_sessions and isinstance(spec, SessionAggregate)):
            kept_ms[processor.name] = _kept_ms(spec)
    return kept_ms


def _kept_ms(spec: _Windowed) -> int:
    """How long windows stay in the store."""
    return spec.counted.kept_ms if isinstance(spec, Distinct) else spec.kept_ms
