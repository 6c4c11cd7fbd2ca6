"""Third phase: the ledger of a run, and the record of what the checks said of it.

The checks themselves (Great Expectations) run elsewhere. Here is what needs no opinion: that every record is accounted
for. A run whose audit failed is in *quarantine*: it stays as it is for inspection, can never be committed, and so
neither state nor output moves; the next plan makes a fresh try.
"""

from __future__ import annotations

import itertools
from collections import Counter
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Literal

import pyarrow as pa

from statelib.commits.layout import Runs, changelog_topic, late_topic, quarantine_topic
from statelib.errors.fault_points import step
from statelib.errors.kinds import InternalError
from statelib.metrics.node_metrics import NodeMetrics

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping

    from statelib.commits.job_definition import SubTopology, Topology
    from statelib.documents.manifests import Audit, Staged, TaskOutcome
    from statelib.documents.plans import Plan, PlannedTask
    from statelib.storage import Storage

LEDGER_SCHEMA = pa.schema(
    [
        pa.field("check", pa.string(), nullable=False),
        pa.field("task_id", pa.string()),
        pa.field("node", pa.string()),
        pa.field("topic", pa.string()),
        pa.field("partition", pa.int32()),
        pa.field("expected", pa.int64(), nullable=False),
        pa.field("actual", pa.int64(), nullable=False),
        pa.field("difference", pa.int64(), nullable=False),
    ]
)
"""Columns of `ledger_table`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerRow:
    """Two counts, taken at different places, that must agree.

    =============  ===========================================  ========================================
    check          expected                                     actual
    =============  ===========================================  ========================================
    node           records taken up + held before               records in accounts + held after
    source         records planned from the archive's files     records that the source node took up
    sink           records that the sink node wrote             rows of the files that were staged
    repartition    rows that all upstream tasks wrote           records that the downstream node took up
    quarantine     records that nodes sent to quarantine        rows of the quarantine topic's files
    late           late records that nodes kept aside           rows of the files of the topic for late records
    changelog      records that nodes logged                    rows of the files of the task's changelogs
    =============  ===========================================  ========================================
    """

    check: Literal["node", "source", "sink", "repartition", "quarantine", "late", "changelog"]
    expected: int
    actual: int
    task_id: str | None = None
    node: str | None = None
    topic: str | None = None
    partition: int | None = None

    @property
    def difference(self) -> int:
        """0, or the run is wrong."""
        return self.actual - self.expected


def reconcile(topology: Topology, plan: Plan, staged: Staged) -> tuple[LedgerRow, ...]:
    """The ledger of a run: a pure function of what was planned and what was made.

    It relies on three conventions of a task's metrics: a source node takes up (``records_in``) each record of its
    topic; a sink node has what it wrote in the account ``written``; what a node sends to the quarantine topic is in its
    account ``quarantined``, what it sends to the topic for late records in its counter ``late-record-to-topic``.
    """
    outcomes = {outcome.task_id: outcome for outcome in staged.tasks}
    changelogs = {changelog_topic(plan.job, store.name) for sub in topology.sub_topologies for store in sub.stores}
    written: Counter[tuple[str, int]] = Counter()
    rows: list[LedgerRow] = []
    for outcome in staged.tasks:
        for file in outcome.repartitions:
            written[file.topic, file.partition] += file.rows
        rows += _node_rows(outcome)
        rows += _aside_rows(plan.job, outcome)
        rows += _changelog_rows(changelogs, outcome)
    for sub in topology.sub_topologies:
        tasks = [(task, outcomes[task.task_id]) for task in plan.tasks if task.sub_topology == sub.index]
        rows += _source_rows(sub, tasks)
        rows += _sink_rows(sub, tasks)
        rows += _repartition_rows(sub, tasks, written)
    return tuple(rows)


def ledger_table(rows: Iterable[LedgerRow]) -> pa.Table:
    """The ledger with the columns of `LEDGER_SCHEMA`."""
    return pa.Table.from_pylist([{**asdict(row), "difference": row.difference} for row in rows], schema=LEDGER_SCHEMA)


def record_audit(warehouse: Storage, plan: Plan, audit: Audit) -> Audit:
    """Stores the outcome of a run's audit, unless the run has one.

    Returns:
        The outcome that stands. A failed audit is final: the run is in quarantine.

    Raises:
        InternalError: ``audit`` is of another run, or has passed one that has staged nothing. A failed one may have
            staged nothing: its sources failed their checks.
    """
    runs = Runs(warehouse, plan.job)
    if audit.run_id != plan.run_id:
        raise InternalError(f"an audit of run {audit.run_id} was recorded for another", run=plan.run_id)
    if audit.success and not warehouse.exists(runs.layout.staged(plan.run_id)):
        raise InternalError("a run was audited that has staged nothing", run=plan.run_id)
    step("audit.before-create")
    if warehouse.put_if_absent(runs.layout.audit(plan.run_id), audit.encode()):
        step("audit.created")
        return audit
    standing = runs.audit(plan.run_id)
    if standing is None:
        raise InternalError("the audit was there and is gone", run=plan.run_id)
    return standing


def _node_rows(outcome: TaskOutcome) -> Iterator[LedgerRow]:
    for node, metrics in sorted(outcome.metrics.items()):
        yield LedgerRow(
            check="node",
            task_id=outcome.task_id,
            node=node,
            expected=metrics.records_in + metrics.held_before,
            actual=sum(metrics.accounts.values()) + metrics.held_after,
        )


def _aside_rows(job: str, outcome: TaskOutcome) -> Iterator[LedgerRow]:
    rows = _rows_by_topic(outcome)
    metrics, task_id = outcome.metrics.values(), outcome.task_id
    topic, expected = quarantine_topic(job), sum(node.accounts.get("quarantined", 0) for node in metrics)
    yield LedgerRow(check="quarantine", task_id=task_id, topic=topic, expected=expected, actual=rows[topic])
    topic, expected = late_topic(job), sum(node.counters.get("late-record-to-topic", 0) for node in metrics)
    yield LedgerRow(check="late", task_id=task_id, topic=topic, expected=expected, actual=rows[topic])


def _changelog_rows(topics: Collection[str], outcome: TaskOutcome) -> Iterator[LedgerRow]:
    expected = sum(node.counters.get("changelog-record", 0) for node in outcome.metrics.values())
    actual = sum(sunk.file.rows for sunk in outcome.sinks if sunk.topic in topics)
    if expected or actual:
        yield LedgerRow(check="changelog", task_id=outcome.task_id, expected=expected, actual=actual)


def _source_rows(sub: SubTopology, tasks: Iterable[tuple[PlannedTask, TaskOutcome]]) -> Iterator[LedgerRow]:
    nodes = {source.topic: source.name for source in sub.all_sources if not source.internal}
    for task, outcome in tasks:
        for topic, parts in itertools.groupby(task.sources, key=lambda part: part.topic):
            ranges = list(parts)
            yield LedgerRow(
                check="source",
                task_id=task.task_id,
                node=nodes[topic],
                topic=topic,
                partition=ranges[0].partition if len(ranges) == 1 else None,
                expected=sum(part.records for part in ranges),
                actual=_metrics(outcome, nodes[topic]).records_in,
            )


def _sink_rows(sub: SubTopology, tasks: Iterable[tuple[PlannedTask, TaskOutcome]]) -> Iterator[LedgerRow]:
    for _, outcome in tasks:
        rows = _rows_by_topic(outcome)
        for file in outcome.repartitions:
            rows[file.topic] += file.rows
        for sink in sub.all_sinks:
            metrics = _metrics(outcome, sink.name)
            yield LedgerRow(
                check="sink",
                task_id=outcome.task_id,
                node=sink.name,
                topic=sink.topic,
                expected=metrics.accounts.get("written", 0) + metrics.counters.get("further-partition", 0),
                actual=rows[sink.topic],
            )


def _repartition_rows(
    sub: SubTopology, tasks: Iterable[tuple[PlannedTask, TaskOutcome]], written: Mapping[tuple[str, int], int]
) -> Iterator[LedgerRow]:
    for task, outcome in tasks:
        for source in sub.all_sources:
            if source.internal:
                yield LedgerRow(
                    check="repartition",
                    task_id=task.task_id,
                    node=source.name,
                    topic=source.topic,
                    partition=task.partition,
                    expected=written[source.topic, task.partition],
                    actual=_metrics(outcome, source.name).records_in,
                )


def _rows_by_topic(outcome: TaskOutcome) -> Counter[str]:
    """Rows of the files of topic archives."""
    rows: Counter[str] = Counter()
    for sunk in outcome.sinks:
        rows[sunk.topic] += sunk.file.rows
    return rows


def _metrics(outcome: TaskOutcome, node: str) -> NodeMetrics:
    """A node's metrics; a node that was never called has counted nothing."""
    return outcome.metrics.get(node, NodeMetrics())
