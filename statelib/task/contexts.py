"""What the operators of a task are given to work with."""

from __future__ import annotations

from typing import TYPE_CHECKING

from statelib.assignment.model import TaskId
from statelib.operators.base import OperatorContext
from statelib.operators.mappers.fields import ALL
from statelib.topology import addressed_name
from statelib.topology.nodes import senders
from statelib.topology.turns import is_shared, turns

if TYPE_CHECKING:
    from collections.abc import Mapping

    from statelib.metrics.node_metrics import NodeMetrics
    from statelib.operators.changelog import Changelog
    from statelib.operators.late_records import LateRecords
    from statelib.operators.mappers.fields import Fields
    from statelib.records.key_table import KeyTable
    from statelib.settings.semantics import Semantics
    from statelib.stores.backend import Backend
    from statelib.topology import SubTopology


def contexts_of(
    sub_topology: SubTopology,
    backend: Backend,
    keys: KeyTable,
    metrics: Mapping[str, NodeMetrics],
    clocks: Mapping[str, dict[str, int]],
    *,
    semantics: Semantics,
    late: LateRecords | None,
    partition: int,
    changelogs: Mapping[str, Changelog],
    wanted: Mapping[str, Fields],
) -> dict[str, OperatorContext]:
    """The context of each processor, by its name. Args as of `statelib.task.graph.Graph` and `OperatorContext`.

    Args:
        sub_topology: What the task runs.
        backend: Its stores.
        keys: Its keys.
        metrics: By node.
        clocks: By processor.
        semantics: See `Semantics`.
        late: Takes late records.
        partition: The task's.
        changelogs: By store.
        wanted: By node, the fields that are looked at; of those that are not there all.
    """
    nodes = sub_topology.nodes
    together = {node.name for turn in turns(nodes) if is_shared(turn) for node in turn}
    looked_into = {table for node in nodes for table in node.parents[len(senders(node)) :]}
    shared: dict[str, object] = {}
    return {
        name: OperatorContext(
            node=name,
            backend=backend,
            keys=keys,
            metrics=metrics[name],
            clocks=clocks[name],
            semantics=semantics,
            sources=[source.topic for source in sub_topology.all_sources],
            late=None if name in sub_topology.global_nodes else late,  # each task would tell of them
            task_id=str(TaskId(sub_topology.index, partition)),
            children=[addressed_name(node) for node in nodes if name in node.parents],
            changelogs=changelogs,
            wanted=wanted.get(name, ALL),
            shared=shared,
            in_turns=name in together,
            clocks_of=clocks,
            is_looked_into=name in looked_into,
        )
        for name in (processor.name for processor in sub_topology.processors)
    }
