"""The metrics of a run as a table: a row a node and metric, over all tasks and for each of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from hindstream.console.numbers import bytes_text, count_text, duration_text
from hindstream.report.documents import open_windows
from hindstream.report.flow import display_names, order
from statelib.metrics.kafka_metrics import Measure, measures
from statelib.metrics.node_metrics import NodeMetrics

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from hindstream.report.documents import RunDocuments
    from statelib.topology import Topology


@dataclass(frozen=True, slots=True)
class MeasureRow:
    """One metric of one node; ``shown`` is the node's name for people, ``first`` whether it is the node's first row."""

    node: str
    shown: str
    first: bool
    measure: Measure
    value: str
    tasks: Sequence[tuple[str, str]]


def measure_rows(topology: Topology, run: RunDocuments) -> list[MeasureRow]:
    """All metrics of a run, from the sources on."""
    totals, names = run.nodes, display_names(topology)
    tasks = run.staged.tasks if run.staged else ()
    rows = []
    for node in order(topology, totals):
        by_task = {
            (measure.name, measure.reason, task.task_id): measure
            for task in tasks
            for measure in measures(task.metrics.get(node, NodeMetrics()))
        }
        for number, measure in enumerate(measures(totals[node])):
            place = measure.name, measure.reason
            parts = [
                (task.task_id, _text(by_task[*place, task.task_id]))
                for task in tasks
                if (*place, task.task_id) in by_task
            ]
            rows.append(MeasureRow(node, names.get(node, node), number == 0, measure, _text(measure), parts))
    return rows


def windows(nodes: Mapping[str, NodeMetrics]) -> dict[str, int]:
    """How many windows and results are still open or have been sealed, over all nodes; those that are none left out."""
    figures = {
        "open windows": sum(map(open_windows, nodes.values())),
        "held results": sum(metrics.held_after for metrics in nodes.values()),
        "sealed windows": _counted(nodes, "sealed-windows"),
        "sealed results": _counted(nodes, "sealed-results"),
    }
    return {name: figure for name, figure in figures.items() if figure}


def _counted(nodes: Mapping[str, NodeMetrics], counter: str) -> int:
    return sum(metrics.counters.get(counter, 0) for metrics in nodes.values())


def _text(measure: Measure) -> str:
    if measure.unit == "ms":
        return duration_text(round(measure.value))
    return bytes_text(measure.value) if measure.unit == "By" else count_text(measure.value)
