"""The ledger, over a topology with a repartition and records in quarantine, each count wrong in turn."""

from __future__ import annotations

import copy

import pytest

from statelib.commits import reconcile
from statelib.documents.manifests import RepartitionFile, SinkFile, Staged, StateManifest, TaskOutcome, TaskPosition
from statelib.documents.plans import Plan, PlannedTask, SourceRange
from statelib.metrics.node_metrics import NodeMetrics
from statelib.topics.files import ArchiveFile
from statelib.topology import Sink, Source, Topology

TOPOLOGY = Topology([
    Source("SOURCE", "events"),
    Sink("OUT-REPARTITION", ("SOURCE",), "by-id", internal=True),
    Source("BY-ID", "by-id", internal=True),
    Sink("SINK", ("BY-ID",), "result"),
])  # fmt: skip


def planned() -> Plan:
    source = SourceRange(topic="events", partition=0, start_offset=5, end_offset=20, records=10)
    return Plan(
        job="j", run_id="00000001-1", commit=1, fingerprint="f", until_ms=None, sources=(), created_at_ms=0,
        tasks=(
            PlannedTask(task_id="0_0", sub_topology=0, partition=0, sources=(source,)),
            PlannedTask(task_id="1_0", sub_topology=1, partition=0),
            PlannedTask(task_id="1_1", sub_topology=1, partition=1),
        ),
        sink_partitions={"result": 2, "j-quarantine": 3, "j-late": 3},
    )  # fmt: skip


def outcome(task_id: str, *, metrics, sinks=(), repartitions=()) -> TaskOutcome:
    return TaskOutcome(
        task_id=task_id, attempt="a", metrics=metrics, repartitions=repartitions, state=StateManifest(), stores={},
        sinks=tuple(
            SinkFile(topic=topic, file=ArchiveFile(
                path="x", partition=0, rows=rows, size_bytes=1, first_offset=0, last_offset=rows - 1,
                min_timestamp_ms=0, max_timestamp_ms=0,
            ))
            for topic, rows in sinks
        ),
        position=TaskPosition(task_id=task_id, commit=1, fingerprint="f"),
        seconds={}, peak_memory_bytes=0, host="h",
    )  # fmt: skip


def repartition(partition: int, rows: int) -> RepartitionFile:
    return RepartitionFile(topic="by-id", partition=partition, path="x", rows=rows, size_bytes=1)


def staged() -> Staged:
    """Ten records: one in quarantine, four to partition 0 and five to partition 1: one of them held, one late."""
    return Staged(run_id="00000001-1", seconds=0, tasks=(
        outcome(
            "0_0",
            metrics={
                "SOURCE": NodeMetrics(records_in=10, accounts={"forwarded": 9, "quarantined": 1}),
                "OUT-REPARTITION": NodeMetrics(records_in=9, accounts={"written": 9}),
            },
            sinks=[("j-quarantine", 1)],
            repartitions=(repartition(0, 4), repartition(1, 3), repartition(1, 2)),
        ),
        outcome(
            "1_0",
            metrics={
                "BY-ID": NodeMetrics(records_in=4, accounts={"forwarded": 4}),
                "SINK": NodeMetrics(records_in=4, accounts={"written": 4}),
            },
            sinks=[("result", 3), ("result", 1)],
        ),
        outcome(
            "1_1",
            metrics={
                "BY-ID": NodeMetrics(records_in=5, accounts={"forwarded": 5}),
                "HOLD": NodeMetrics(
                    records_in=5, held_before=2, held_after=3, accounts={"emitted": 3, "late": 1},
                    counters={"late-record-to-topic": 1},
                ),
                "SINK": NodeMetrics(records_in=3, accounts={"written": 3}),
            },
            sinks=[("result", 3), ("j-late", 1)],
        ),
    ))  # fmt: skip


def test_a_right_run():
    rows = reconcile(TOPOLOGY, planned(), staged())
    assert not [row for row in rows if row.difference]
    counted = {check: sum(row.expected for row in rows if row.check == check) for check in {row.check for row in rows}}
    assert counted == {
        "node": 10 + 9 + 4 + 4 + 5 + 7 + 3,
        "source": 10,
        "sink": 9 + 7,
        "repartition": 9,
        "quarantine": 1,
        "late": 1,
    }


def metrics_of(run: Staged, task: int, node: str) -> NodeMetrics:
    return run.tasks[task].metrics[node]


def lose_at_source(run):
    metrics_of(run, 0, "SOURCE").records_in -= 1
    metrics_of(run, 0, "SOURCE").accounts["forwarded"] -= 1


def lose_in_operator(run):
    metrics_of(run, 2, "HOLD").accounts["emitted"] -= 1


def lose_held(run):
    metrics_of(run, 2, "HOLD").held_after -= 1


def lose_in_shuffle(run):
    metrics_of(run, 1, "BY-ID").records_in -= 1
    metrics_of(run, 1, "BY-ID").accounts["forwarded"] -= 1


def count_too_much_written(run):
    metrics_of(run, 1, "SINK").accounts["written"] += 1
    metrics_of(run, 1, "SINK").records_in += 1


def forget_quarantined(run):
    metrics_of(run, 0, "SOURCE").accounts["quarantined"] -= 1
    metrics_of(run, 0, "SOURCE").accounts["forwarded"] += 1


def lose_late(run):
    metrics_of(run, 2, "HOLD").counters["late-record-to-topic"] += 1


def never_call_a_source(run):
    del run.tasks[2].metrics["BY-ID"]


@pytest.mark.parametrize(
    ("harm", "found"),
    [
        (lose_at_source, [("source", "0_0", "SOURCE", "events", -1)]),
        (lose_in_operator, [("node", "1_1", "HOLD", None, -1)]),
        (lose_held, [("node", "1_1", "HOLD", None, -1)]),
        (lose_in_shuffle, [("repartition", "1_0", "BY-ID", "by-id", -1)]),
        (count_too_much_written, [("sink", "1_0", "SINK", "result", -1)]),
        (forget_quarantined, [("quarantine", "0_0", None, "j-quarantine", 1)]),
        (lose_late, [("late", "1_1", None, "j-late", -1)]),
        (never_call_a_source, [("repartition", "1_1", "BY-ID", "by-id", -5)]),
    ],
)
def test_a_wrong_count_shows_where_it_is(harm, found):
    run = copy.deepcopy(staged())
    harm(run)
    rows = [row for row in reconcile(TOPOLOGY, planned(), run) if row.difference]
    assert [(row.check, row.task_id, row.node, row.topic, row.difference) for row in rows] == found
