"""How many records each node takes up: what the sources hold, and what becomes of a record on its way."""

from __future__ import annotations

from dataclasses import dataclass
from math import isclose
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from hindstream.estimate.evidence import Evidence
    from hindstream.estimate.history import History
    from hindstream.estimate.shape import Shape, ShapedNode
    from statelib.metrics.node_metrics import NodeMetrics

_MOST_ROUNDS, _SETTLED = 1_000, 1e-6


@dataclass(frozen=True, slots=True)
class Passed:
    """Records of a node."""

    records_in: float
    records_out: float


def flow(shape: Shape, history: History, evidence: Evidence | None) -> dict[str, Passed]:
    """The records of each node, by its name.

    A node forwards that share of what it gets which it has forwarded in the runs of ``evidence``; what it held back
    counts as forwarded, since it will be. Without evidence, or of a node that saw nothing there, it forwards all.

    In a circle of repartition topics records come back until hardly any are left; without evidence, which alone tells
    how many do, no record comes twice through a topic.
    """
    known = {} if evidence is None else evidence.nodes
    passed, arrived = _once_through(shape, history, known, {})
    for _ in range(len(arrived) if evidence is None else _MOST_ROUNDS):
        before = arrived
        passed, arrived = _once_through(shape, history, known, before)
        if all(isclose(records, before[topic], rel_tol=_SETTLED) for topic, records in arrived.items()):
            break
    return passed


def _once_through(
    shape: Shape, history: History, known: Mapping[str, NodeMetrics], back: Mapping[str, float]
) -> tuple[dict[str, Passed], dict[str, float]]:
    """The records of each node, and of each repartition topic; ``back``: of those topics that are read first."""
    passed: dict[str, Passed] = {}
    arrived: dict[str, float] = {}
    for node in shape.nodes:
        metrics = known.get(node.name)
        if node.role == "source":
            records_in = _taken_up(node, shape, history, {**back, **arrived})
        else:
            sent = sum(passed[parent].records_out for parent in node.parents)
            sent_in_runs = sum(known[parent].records_out for parent in node.parents if parent in known)
            records_in = sent * metrics.records_in / sent_in_runs if metrics and sent_in_runs else sent
        share = _share_forwarded(metrics)
        passed[node.name] = Passed(records_in, 0.0 if node.role == "sink" else records_in * share)
        if node.role == "sink" and node.kind == "repartition" and node.topic:
            arrived[node.topic] = arrived.get(node.topic, 0.0) + records_in
    return passed, arrived


def _taken_up(node: ShapedNode, shape: Shape, history: History, arrived: Mapping[str, float]) -> float:
    topic = node.topic or ""
    if node.kind == "repartition":
        return arrived.get(topic, 0.0)
    records = sum(history.of_topic(topic))
    return records * shape.tasks[node.sub_topology] if node.is_global else records


def _share_forwarded(metrics: NodeMetrics | None) -> float:
    if metrics is None or not metrics.records_in:
        return 1.0
    return max(metrics.records_out + metrics.held_after - metrics.held_before, 0) / metrics.records_in
