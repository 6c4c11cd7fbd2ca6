"""Runs a sub-topology's nodes over one run of records after the other."""

from __future__ import annotations

from typing import TYPE_CHECKING

from statelib.batch import Batch
from statelib.errors import HindstreamError
from statelib.kernels.key_table import KeyTable
from statelib.metrics import NodeMetrics
from statelib.operators.base import OperatorContext
from statelib.serdes import serde_for
from statelib.topology import Processor, Sink, Source

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from statelib.batch import Uptake
    from statelib.operators.base import Operator
    from statelib.operators.late import LateRecords
    from statelib.semantics import Semantics
    from statelib.stores.backend import Backend, WriteBatch
    from statelib.task.records import Records
    from statelib.topology import SubTopology


class Graph:
    """The running operators of one task.

    Args:
        sub_topology: What to run.
        backend: The task's stores.
        clocks: The operators' clocks as of the last commit, by node; kept up to date as the task goes on.
        semantics: See `Semantics`.
        late: Takes late records; None: they are dropped and counted, nothing else.
    """

    def __init__(
        self,
        sub_topology: SubTopology,
        backend: Backend,
        *,
        clocks: Mapping[str, Mapping[str, int]],
        semantics: Semantics,
        late: LateRecords | None = None,
    ) -> None:
        self._nodes = sub_topology.nodes
        self._sources = {source.name: index for index, source in enumerate(sub_topology.all_sources)}
        self._encode_keys = sub_topology.stateful
        self.keys = KeyTable()
        self.metrics = {node.name: NodeMetrics() for node in self._nodes}
        self.clocks = {p.name: dict(clocks.get(p.name, {})) for p in sub_topology.processors}
        self._operators: dict[str, Operator] = {}
        for processor in sub_topology.processors:
            context = OperatorContext(
                processor.name,
                backend,
                self.keys,
                self.metrics[processor.name],
                self.clocks[processor.name],
                semantics,
                [source.topic for source in sub_topology.all_sources],
                late,
            )
            self._operators[processor.name] = processor.spec.build(context)

    def process(
        self, parts: Sequence[Records], ranks: Sequence[NDArray[np.int64]], uptake: Uptake
    ) -> dict[str, tuple[Batch, ...]]:
        """Takes up some records of each source, in the order of ``Topology``'s sources.

        Returns:
            By sink node, the batches that reached it, one a parent.
        """
        made: dict[str, Batch] = {}
        arrived: dict[str, tuple[Batch, ...]] = {}
        for node in self._nodes:
            match node:
                case Source():
                    index = self._sources[node.name]
                    made[node.name] = self._source(parts[index], ranks[index] + uptake.first_sequence)
                    self._count(node.name, len(made[node.name]), len(made[node.name]))
                    self.metrics[node.name].account("forwarded", len(made[node.name]))
                case Processor():
                    inputs = tuple(made[parent] for parent in node.parents)
                    made[node.name] = self._run(node, inputs, uptake)
                case Sink():
                    arrived[node.name] = tuple(made[parent] for parent in node.parents)
        return arrived

    def flush(self, write: WriteBatch) -> None:
        """Adds every operator's unwritten changes to ``write`` and forgets all working sets and key codes."""
        for operator in self._operators.values():
            operator.flush(write)
        self.keys.clear()

    def memory_bytes(self) -> int:
        """Size of all working sets."""
        return self.keys.memory_bytes() + sum(o.memory_bytes() for o in self._operators.values())

    def _run(self, node: Processor, inputs: tuple[Batch, ...], uptake: Uptake) -> Batch:
        try:
            return self._operators[node.name].process(inputs, uptake)
        except HindstreamError as error:
            if "node" in error.place:
                raise
            raise type(error)(error.what, next_step=error.next_step, **{**error.place, "node": node.name}) from error

    def _source(self, records: Records, sequence: NDArray[np.int64]) -> Batch:
        codes = self.keys.encode(serde_for(records.key.type).serialize(records.key)) if self._encode_keys else None
        return Batch(records.key, codes, records.value, records.timestamp, sequence, headers=records.headers)

    def _count(self, node: str, records_in: int, records_out: int) -> None:
        metrics = self.metrics[node]
        metrics.records_in += records_in
        metrics.records_out += records_out
