"""Tells of records that were replayed alone where they were dropped, and what each node made of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from statelib.explanation.explanation import Dropped, Step
from statelib.explanation.rows import ids_of, key_bytes
from statelib.operators.deduplication.distinct import Distinct
from statelib.operators.deduplication.operator import DeduplicateSpec
from statelib.topology import Processor, Sink, Source

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from statelib.explanation.alone import Cause, Passage, RecordId
    from statelib.explanation.explanation import Place
    from statelib.records.batch import Batch
    from statelib.topology import Node, SubTopology

_DROPS = (
    "duplicate", "late", "before-first-window", "refused", "null-key", "null-value", "null-foreign-key", "filtered",
    "unmatched", "out-of-order", "stale", "empty-list", "no-partition", "quarantined",
)  # fmt: skip
"""Accounts of those that end at a node."""

_LATE_WINDOWS = "late-record-drop"
"""The counter of windows that were closed for a record, whatever other windows took it."""


def dropped_in(
    sub_topologies: Sequence[SubTopology],
    passages: Sequence[Passage],
    wanted: Collection[RecordId],
    causes: Mapping[RecordId, Cause],
    places: Mapping[RecordId, Place],
) -> list[Dropped]:
    """What was dropped of some records, in the order in which it was.

    Args:
        sub_topologies: Those that the records came through.
        passages: What happened, in order.
        wanted: The records to tell of, by the task that took them up from a topic.
        causes: Of records of repartition topics, what wrote them.
        places: Of records of topics.
    """
    nodes = {sub_topology.index: sub_topology.nodes for sub_topology in sub_topologies}
    first: dict[tuple[str, Any], Place] = {}
    found: list[Dropped] = []
    for passage in passages:
        root = root_of(passage.id, causes)
        if root is None or root not in places:
            continue
        for node in nodes[passage.record.task[0]]:
            if not isinstance(node, Processor) or node.name not in passage.metrics:
                continue
            ids = _ids(node, passage)
            metrics = passage.metrics[node.name]
            drops = [
                name
                for name in _DROPS
                if metrics.accounts.get(name) and (name not in {"unmatched", "null-key"} or not metrics.records_out)
            ]
            if not drops and metrics.counters.get(_LATE_WINDOWS):
                drops = ["late"]
            late = next((row for row in passage.late if row["node"] == node.name), {})
            if root in wanted:
                found += [
                    Dropped(
                        places[root],
                        node.name,
                        node.line,
                        rule,
                        late.get("lateness_ms") if rule in {"late", "refused"} else None,  # type: ignore[arg-type]
                        late.get("clock_ms") if rule in {"late", "refused"} else None,  # type: ignore[arg-type]
                        next((first[one] for one in ids if one in first), None) if rule == "duplicate" else None,
                    )
                    for rule in drops
                ]
            if ids and len(passage.forwarded.get(node.name, ())):
                first.update(dict.fromkeys(ids, places[root]))
    return found


def _ids(node: Processor, passage: Passage) -> list[tuple[str, Any]]:
    """What makes the record a duplicate of others."""
    came = passage.forwarded.get(node.parents[0])
    if came is None or not len(came):
        return []
    if isinstance(node.spec, DeduplicateSpec):
        return [(node.name, one) for one in ids_of(node.name, node.spec, came) if one is not None]
    if isinstance(node.spec, Distinct):
        return [(node.name, key) for key in key_bytes(came.keys).to_pylist() if key is not None]
    return []


def root_of(one: RecordId | None, causes: Mapping[RecordId, Cause]) -> RecordId | None:
    """The record of a topic that caused a record, over all repartitions."""
    while one is not None and one in causes:
        one = (causes[one].task, causes[one].sequence)
    return one


def steps_in(sub_topologies: Sequence[SubTopology], passages: Sequence[Passage], sink: Sink) -> tuple[Step, ...]:
    """What the nodes that lead to a sink made of some records, from the sources on."""
    nodes = [node for sub_topology in sub_topologies for node in sub_topology.nodes]
    writers = {node.topic: node.name for node in nodes if isinstance(node, Sink) and node.internal}
    parents = {
        node.name: (writers[node.topic],) if isinstance(node, Source) and node.internal else node.parents
        for node in nodes
    }
    leading, waiting = {sink.name}, [sink.name]
    while waiting:
        above = [parent for parent in parents[waiting.pop()] if parent not in leading]
        leading.update(above)
        waiting += above
    return tuple(
        _step(node, parents[node.name], sub_topology.index, passages)
        for sub_topology in sub_topologies
        for node in sub_topology.nodes
        if node.name in leading
    )


def _step(node: Node, parents: tuple[str, ...], sub_topology: int, passages: Sequence[Passage]) -> Step:
    forwarded = [
        passage.forwarded[node.name]
        for passage in passages
        if passage.record.task[0] == sub_topology and len(passage.forwarded.get(node.name, ()))
    ]
    kind = str(node.spec.describe()["operator"]) if isinstance(node, Processor) else str(node.describe()["node"])
    topic = None if isinstance(node, Processor) else node.topic
    last = _last(forwarded[-1]) if forwarded else None
    return Step(node.name, kind, parents, sub_topology, node.line, topic, sum(map(len, forwarded)), last)


def _last(batch: Batch) -> dict[str, Any]:
    """The last row."""
    one = batch.slice(len(batch) - 1, len(batch))
    keys = one.keys.archived
    return {"key": keys[0].as_py(), "value": one.value[0].as_py(), "timestamp_ms": int(one.timestamp[0])}
