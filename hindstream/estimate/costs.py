"""CPU seconds of the parts of tasks: records times what the calibration says, held against what runs have taken."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from hindstream.estimate.calibration import Calibration, ColumnCost
    from hindstream.estimate.evidence import Evidence
    from hindstream.estimate.flow import Passed
    from hindstream.estimate.shape import Columns, Shape, ShapedNode
    from hindstream.estimate.state import StateGrowth


@dataclass(frozen=True, slots=True)
class NodeCost:
    """What a node costs.

    Attributes:
        node: Its name.
        kind: See `ShapedNode`.
        sub_topology: Whose tasks run it.
        records: That it takes up.
        record_seconds: Of one record.
        phase: ``read``, ``process`` or ``write``.
    """

    node: str
    kind: str
    sub_topology: int
    records: float
    record_seconds: float
    phase: str

    @property
    def cpu_seconds(self) -> float:
        """Of all records."""
        return self.records * self.record_seconds


def node_costs(
    shape: Shape, passed: Mapping[str, Passed], calibration: Calibration, evidence: Evidence | None
) -> tuple[NodeCost, ...]:
    """What each node costs.

    Where runs tell costs, those of the calibration are scaled, phase by phase, to what the runs have taken; a node of
    which a sample has measured the time costs that.
    """
    known = evidence if evidence is not None and evidence.tells_costs else None
    factors = _factors(shape, calibration, known)
    costs = []
    for node in shape.nodes:
        phase, seconds = _by_calibration(node, calibration)
        seconds *= factors[phase]
        if known is not None and phase == "process":
            measured = _measured(node, known)
            seconds = seconds if measured is None else measured
        costs.append(NodeCost(node.name, node.kind, node.sub_topology, passed[node.name].records_in, seconds, phase))
    return tuple(costs)


def checkpoint_seconds(
    growth: StateGrowth | None, written_bytes: float, calibration: Calibration, evidence: Evidence | None
) -> float:
    """What it takes to save so many bytes of state; where runs tell costs, as they have."""
    seconds = written_bytes * calibration.state_byte_seconds
    if growth is None or evidence is None or not evidence.tells_costs:
        return seconds
    expected = growth.written_bytes(evidence.records, evidence.runs) * calibration.state_byte_seconds
    took = evidence.seconds.get("checkpoint", 0.0) - evidence.tasks_run * calibration.task_seconds
    return seconds * took / expected if took > 0 and expected > 0 else seconds


def _by_calibration(node: ShapedNode, calibration: Calibration) -> tuple[str, float]:
    """The phase that a node is in, and the seconds of a record."""
    match node.role:
        case "source":
            return "read", _transfer(calibration.read, node.columns)
        case "sink":
            return "write", _transfer(calibration.write, node.columns)
        case "operator":
            return "process", calibration.operator_seconds(node.kind) + node.calls * calibration.call_seconds


def _transfer(cost: ColumnCost, columns: Columns) -> float:
    return cost.record_seconds + columns.numbers * cost.number_seconds + columns.texts * cost.text_seconds


def _measured(node: ShapedNode, evidence: Evidence) -> float | None:
    seconds, metrics = evidence.node_seconds.get(node.name), evidence.nodes.get(node.name)
    if seconds is None or metrics is None or not metrics.records_in:
        return None
    return seconds / metrics.records_in


def _factors(shape: Shape, calibration: Calibration, evidence: Evidence | None) -> dict[str, float]:
    """By phase, how many times what the calibration says the runs have taken."""
    factors = {"read": 1.0, "process": 1.0, "write": 1.0}
    if evidence is None:
        return factors
    expected = dict.fromkeys(factors, 0.0)
    for node in shape.nodes:
        metrics = evidence.nodes.get(node.name)
        phase, seconds = _by_calibration(node, calibration)
        expected[phase] += metrics.records_in * seconds if metrics else 0.0
    for phase, seconds in expected.items():
        took = evidence.seconds.get(phase, 0.0)
        if seconds > 0 and took > 0:
            factors[phase] = took / seconds
    return factors
