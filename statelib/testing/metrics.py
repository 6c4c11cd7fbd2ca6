"""What the nodes of a topology have counted in a test (Kafka's ``TopologyTestDriver.metrics``)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from statelib.metrics.kafka_metrics import measures
from statelib.metrics.node_metrics import NodeMetrics

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


class MetricsOfNodes:
    """By node and name: totals of all slices, and gauges as the last one left them."""

    def __init__(self) -> None:
        self._figures: dict[str, dict[str, float]] = {}

    def add(self, of_tasks: Iterable[Mapping[str, NodeMetrics]]) -> None:
        """Takes those of a slice's tasks, each by node."""
        of_slice: dict[str, NodeMetrics] = {}
        for of_task in of_tasks:
            for node, metrics in of_task.items():
                of_slice.setdefault(node, NodeMetrics()).add(metrics)
        for node, metrics in of_slice.items():
            figures = self._figures.setdefault(node, {})
            for measure in measures(metrics):
                before = figures.get(measure.name, 0) if measure.kind == "total" else 0
                figures[measure.name] = before + measure.value

    def figures(self) -> dict[str, dict[str, float]]:
        """A copy, without nodes that have counted nothing."""
        return {node: dict(figures) for node, figures in self._figures.items() if figures}
