"""What runs of a job have counted and taken: where records go, how large state is, what a record costs."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from hindstream.report.documents import add_ledgers, load_runs
from statelib.commits import CommitLog

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from hindstream.report.documents import RunDocuments
    from statelib.job.job import Job
    from statelib.metrics.node_metrics import NodeMetrics
    from statelib.storage import Storage

_RUNS = 10
"""The newest that are looked at."""

LEAST_RECORDS = 20_000
"""Of fewer, what they took says little of what a record takes."""


@dataclass(frozen=True, slots=True)
class Written:
    """Records and bytes of a topic, as they are at rest."""

    records: int
    size_bytes: int

    @property
    def record_bytes(self) -> float:
        """Of a record."""
        return self.size_bytes / self.records if self.records else 0.0


@dataclass(frozen=True, slots=True)
class StateAt:
    """State at rest.

    Attributes:
        records: Since the job's beginning.
        span_ms: From the first of them to the last one, in event time.
        size_bytes: Of all its files.
        families: Bytes of each family of each store.
    """

    records: int
    span_ms: int
    size_bytes: int
    families: Mapping[str, int]


@dataclass(frozen=True)
class Evidence:
    """Of some runs.

    Attributes:
        origin: ``runs``: the job's own; ``sample``: a part of its input, replayed for the estimate.
        runs: How many.
        hosts: Where they ran.
        records: That they replayed.
        nodes: The ledgers of all tasks, by node.
        written: By topic, repartition topics too.
        task_records: By task, records that its nodes took up, each node's counted: how much of the work was its.
        tasks_run: How many tasks were run, in all runs.
        seconds: Of all tasks, by phase.
        node_seconds: By node; empty: not known.
        states: After the first and the last of the runs; the same one twice, if that is all there is.
        task_bytes: Of memory that a task took beyond what its process had before; 0: not known. A run knows only the
            peak of the process, which may have done much else before.
    """

    origin: Literal["runs", "sample"]
    runs: int
    hosts: tuple[str, ...]
    records: int
    nodes: Mapping[str, NodeMetrics]
    written: Mapping[str, Written]
    task_records: Mapping[str, int]
    tasks_run: int
    seconds: Mapping[str, float]
    states: tuple[StateAt, StateAt]
    node_seconds: Mapping[str, float] = field(default_factory=dict)
    task_bytes: int = 0

    @property
    def records_of_a_task(self) -> float:
        """In one run, on average."""
        return self.records / max(self.tasks_run, 1)

    @property
    def tells_costs(self) -> bool:
        """Whether there were enough records to tell what one takes."""
        return self.records >= LEAST_RECORDS


def evidence_of_runs(warehouse: Storage, job: Job, begin_ms: int) -> Evidence | None:
    """What the newest committed runs of a job tell; None: none has replayed anything with its topology.

    ``begin_ms``: the least timestamp of its sources.

    Raises:
        HindstreamError: A document of theirs cannot be read.
    """
    after = max(0, CommitLog(warehouse, job.name).head_number() - _RUNS)
    runs = [
        run
        for run in load_runs(warehouse, job.name, after)
        if run.counts and run.staged and run.plan.records and run.plan.fingerprint == job.topology.fingerprint
    ]
    return evidence_of(runs, "runs", begin_ms=begin_ms) if runs else None


def evidence_of(
    runs: Sequence[RunDocuments],
    origin: Literal["runs", "sample"],
    *,
    begin_ms: int,
) -> Evidence:
    """What runs tell, in the order of their commits.

    Args:
        runs: At least one, each committed.
        origin: See `Evidence`.
        begin_ms: The least timestamp of the sources.
    """
    nodes: dict[str, NodeMetrics] = {}
    written: dict[str, list[int]] = {}
    task_records: Counter[str] = Counter()
    seconds: Counter[str] = Counter()
    tasks = [task for run in runs for task in (run.staged.tasks if run.staged else ())]
    for task in tasks:
        add_ledgers(nodes, task.metrics)
        seconds.update(task.seconds)
        of_sinks = [(sink.topic, sink.file.rows, sink.file.size_bytes) for sink in task.sinks]
        of_repartitions = [(file.topic, file.rows, file.size_bytes) for file in task.repartitions]
        for topic, rows, size_bytes in of_sinks + of_repartitions:
            total = written.setdefault(topic, [0, 0])
            total[0] += rows
            total[1] += size_bytes
        task_records[task.task_id] += sum(metrics.records_in for metrics in task.metrics.values())
    return Evidence(
        origin=origin,
        runs=len(runs),
        hosts=tuple(sorted({task.host for task in tasks})),
        records=sum(run.plan.records for run in runs),
        nodes=nodes,
        written={topic: Written(*total) for topic, total in written.items()},
        task_records=dict(task_records),
        tasks_run=len(tasks),
        seconds=dict(seconds),
        states=(_state_at(runs[0], begin_ms), _state_at(runs[-1], begin_ms)),
    )


def _state_at(run: RunDocuments, begin_ms: int) -> StateAt:
    """By the offsets and times that its tasks have come to."""
    tasks = run.commit.tasks.values() if run.commit else ()
    offsets = run.commit.source_offsets() if run.commit else {}
    records = sum(sum(of_topic.values()) for of_topic in offsets.values()) or run.plan.records
    last_ms = max((task.position.stream_time for task in tasks), default=begin_ms)
    families = {family: size_bytes for family, (size_bytes, _) in run.families.items()}
    return StateAt(records, max(last_ms - begin_ms, 0), run.state_bytes, families)
