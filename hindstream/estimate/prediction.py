"""The estimate: counts times costs, spread over cores, with what limits the whole first."""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from hindstream.estimate.costs import NodeCost, checkpoint_seconds, node_costs
from hindstream.estimate.flow import flow
from hindstream.estimate.state import StateGrowth

if TYPE_CHECKING:
    from collections.abc import Mapping

    from hindstream.estimate.calibration import Calibration, Engine
    from hindstream.estimate.evidence import Evidence
    from hindstream.estimate.flow import Passed
    from hindstream.estimate.history import History
    from hindstream.estimate.shape import Shape

Limit = Literal["start and slices", "one process", "partitions", "hot partition", "memory", "cores"]

_NUMBER_BYTES, _TEXT_BYTES, _RECORD_BYTES = 3, 16, 8
"""Of a column and of key, time and offset in a compressed file, where no run has written the topic."""

_MEMORY_OF_STATE = 2.0
"""Bytes in memory for each byte of state at rest, which is packed; measured on Nexmark's queries and on ids."""

_BATCH_POWER = 0.6
"""How the memory of the records at hand grows with their number: part of it is buffers of a fixed size."""

_HOT = 1.3
"""How many times its share of the time the largest task takes before it is what limits."""


@dataclass(frozen=True, slots=True)
class Resources:
    """What there is to run with.

    Attributes:
        engine: Spark, or one process.
        cores: For tasks.
        memory_budget_bytes: Of the state of a task in memory; see the setting.
        batch_records: That a task has at hand at a time; see the setting.
        slices: Into which the history is cut, replayed one after the other by one command.
        checks: By sink, how many expectations are asked of it.
    """

    engine: Engine
    cores: int
    memory_budget_bytes: int
    batch_records: int
    slices: int
    checks: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Output:
    """What will be in a topic."""

    topic: str
    records: float
    size_bytes: float


@dataclass(frozen=True, slots=True)
class Stage:
    """A sub-topology's tasks, in all slices.

    Attributes:
        sub_topology: Its number.
        tasks: How many there are in each slice.
        cpu_seconds: Of all of them.
        hot_share: The largest one's share of the work.
        seconds: How long they take on the cores that there are.
    """

    sub_topology: int
    tasks: int
    cpu_seconds: float
    hot_share: float
    seconds: float


@dataclass(frozen=True)
class Prediction:
    """What a history will cost.

    Attributes:
        records: To replay.
        size_bytes: Of their files.
        seconds: From the command to its end.
        cpu_seconds: Of all processes.
        peak_memory_bytes: Of all processes together.
        state_bytes: At rest, after the last slice.
        task_state_bytes: Of the task that has most, in memory.
        outputs: Of the sinks; repartition topics, which are deleted with their run, are not among them.
        cpu_seconds_by_part: ``start``, ``slices``, ``read``, ``process``, ``write``, ``checkpoint``, ``audit``.
        nodes: What each node costs.
        stages: One a sub-topology.
        limit: What to change first for less time.
        spills: Whether state outgrows the memory budget.
    """

    records: float
    size_bytes: float
    seconds: float
    cpu_seconds: float
    peak_memory_bytes: float
    state_bytes: float
    task_state_bytes: float
    outputs: tuple[Output, ...]
    cpu_seconds_by_part: Mapping[str, float]
    nodes: tuple[NodeCost, ...]
    stages: tuple[Stage, ...]
    limit: Limit
    spills: bool


def predict(
    shape: Shape, history: History, calibration: Calibration, evidence: Evidence | None, resources: Resources
) -> Prediction:
    """What ``history`` costs with ``resources``."""
    passed = flow(shape, history, evidence)
    nodes = node_costs(shape, passed, calibration, evidence)
    outputs = _outputs(shape, passed, evidence)
    growth = StateGrowth.told_by(evidence, shape.kept_ms)
    if growth is None:
        # As if each record were a key of its own, for ever.
        entries = sum(passed[node.name].records_in for node in shape.nodes if node.keeps_state)
        state_bytes = written = entries * calibration.state_entry_bytes
    else:
        state_bytes = growth.bytes_after(history.before + history.records)
        written = growth.written_bytes(history.records, resources.slices)
    hot = {sub: _hot_share(sub, shape, history, evidence) for sub in shape.tasks}
    task_state = state_bytes * max(hot.values(), default=1.0) * _MEMORY_OF_STATE
    spilling = task_state / resources.memory_budget_bytes
    spill_factor = 1 + math.log10(spilling) if spilling > 1 else 1.0
    checkpoint = checkpoint_seconds(growth, written, calibration, evidence)
    stages = _stages(shape, nodes, hot, resources, calibration, checkpoint, spill_factor)
    records_of_a_task = history.records / resources.slices / max(sum(shape.tasks.values()), 1)
    engine = calibration.engines[resources.engine]
    audit = _audit_seconds(outputs, resources, calibration)
    parts: dict[str, float] = {
        "start": engine.start_cpu_seconds,
        "slices": resources.slices
        * (engine.slice_cpu_seconds + max(sum(shape.tasks.values()) - 1, 0) * calibration.task_seconds),
        "read": 0.0,
        "process": 0.0,
        "write": 0.0,
        "checkpoint": checkpoint,
        "audit": audit,
    }
    for node in nodes:
        parts[node.phase] += node.cpu_seconds * (spill_factor if node.phase == "process" else 1.0)
    fixed = engine.start_seconds + resources.slices * engine.slice_seconds
    seconds = fixed + audit + sum(stage.seconds for stage in stages)
    return Prediction(
        records=history.records,
        size_bytes=history.size_bytes,
        seconds=seconds,
        cpu_seconds=sum(parts.values()),
        peak_memory_bytes=_peak_memory(shape, task_state, calibration, evidence, resources, records_of_a_task),
        state_bytes=state_bytes,
        task_state_bytes=task_state,
        outputs=outputs,
        cpu_seconds_by_part=parts,
        nodes=nodes,
        stages=stages,
        limit=_limit(fixed + audit, stages, resources, spills=spilling > 1),
        spills=spilling > 1,
    )


def _outputs(shape: Shape, passed: Mapping[str, Passed], evidence: Evidence | None) -> tuple[Output, ...]:
    found = []
    for node in shape.nodes:
        if node.role != "sink" or node.kind == "repartition" or node.topic is None:
            continue
        known = evidence.written.get(node.topic) if evidence else None
        guessed = _RECORD_BYTES + node.columns.numbers * _NUMBER_BYTES + node.columns.texts * _TEXT_BYTES
        records = passed[node.name].records_in
        found.append(Output(node.topic, records, records * (known.record_bytes if known else guessed)))
    return tuple(found)


def _hot_share(sub: int, shape: Shape, history: History, evidence: Evidence | None) -> float:
    """The share of the work of a sub-topology that its largest task has; of a run before, or by its sources."""
    tasks = shape.tasks[sub]
    if evidence is not None:
        records = [n for task, n in evidence.task_records.items() if task.partition("_")[0] == str(sub)]
        if sum(records):
            return max(records) / sum(records)
    topics = {node.topic for node in shape.nodes if node.sub_topology == sub and node.kind == "source"}
    by_partition: defaultdict[int, float] = defaultdict(float)
    for part in history.parts:
        if part.topic in topics:
            by_partition[part.partition] += part.records
    whole = sum(by_partition.values())
    return max(by_partition.values()) / whole if whole else 1 / tasks


def _stages(
    shape: Shape,
    nodes: tuple[NodeCost, ...],
    hot: Mapping[int, float],
    resources: Resources,
    calibration: Calibration,
    checkpoint: float,
    spill_factor: float,
) -> tuple[Stage, ...]:
    stages = []
    stateful = [sub for sub in shape.tasks if any(n.keeps_state for n in shape.nodes if n.sub_topology == sub)]
    for sub, tasks in shape.tasks.items():
        cpu = sum(
            node.cpu_seconds * (spill_factor if node.phase == "process" else 1.0)
            for node in nodes
            if node.sub_topology == sub
        )
        cpu += checkpoint / len(stateful) if sub in stateful else 0.0
        cpu += resources.slices * tasks * calibration.task_seconds
        seconds = cpu if resources.engine == "local" else max(cpu / min(resources.cores, tasks), cpu * hot[sub])
        stages.append(Stage(sub, tasks, cpu, hot[sub], seconds))
    return tuple(stages)


def _audit_seconds(outputs: tuple[Output, ...], resources: Resources, calibration: Calibration) -> float:
    asked = sum(resources.checks.values())
    checked = sum(output.records * resources.checks.get(output.topic, 0) for output in outputs)
    return resources.slices * asked * calibration.check_seconds + checked * calibration.checked_record_seconds


def _peak_memory(
    shape: Shape,
    task_state: float,
    calibration: Calibration,
    evidence: Evidence | None,
    resources: Resources,
    records_of_a_task: float,
) -> float:
    """Idle processes, and for each task that runs at a time its state in memory and the records at hand."""
    engine = calibration.engines[resources.engine]
    state = min(task_state, resources.memory_budget_bytes)
    batch = float(calibration.batch_bytes)
    tasks_at_once = 1 if resources.engine == "local" else min(resources.cores, max(shape.tasks.values(), default=1))
    if evidence is not None and evidence.task_bytes:
        here, then = (
            max(min(records, resources.batch_records), 1) for records in (records_of_a_task, evidence.records_of_a_task)
        )
        batch = evidence.task_bytes * (here / then) ** _BATCH_POWER
        state_then = evidence.states[-1].size_bytes / max(len(evidence.task_records), 1) * _MEMORY_OF_STATE
        state = max(state - state_then, 0)
    return engine.memory_bytes + tasks_at_once * (engine.worker_bytes + batch + state)


def _limit(fixed: float, stages: tuple[Stage, ...], resources: Resources, *, spills: bool) -> Limit:
    """What to change first for less time."""
    work = sum(stage.seconds for stage in stages)
    if fixed > work:
        return "start and slices"
    if resources.engine == "local":
        return "memory" if spills else "one process"
    longest = max(stages, key=lambda stage: stage.seconds)
    if longest.hot_share * min(resources.cores, longest.tasks) > _HOT:
        return "hot partition"
    if longest.tasks < resources.cores:
        return "partitions"
    return "memory" if spills else "cores"
