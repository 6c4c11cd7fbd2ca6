"""Runs whole topologies in memory, a partition each, in the order in which records come: a test driver, in batches.

Every stage takes up what has come in that order, whatever its timestamps are: what one record causes is before what the
next one causes, through repartition topics too.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa

from statelib.metrics.node_metrics import NodeMetrics
from statelib.operators.processors.forwarded import headers_of
from statelib.records.key_column import KeyColumn
from statelib.stores.backend import WriteBatch
from statelib.stores.memory import MemoryBackend
from statelib.stores.spec import families_of
from statelib.task.graph import Graph
from statelib.task.merge import Merged, TaskClock
from statelib.task.processing_errors import ProcessingErrors
from statelib.task.source_records import HEADERS_TYPE, Records
from tests.operators.keys import key_column

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from numpy.typing import NDArray

    from statelib.operators.base import Operator
    from statelib.operators.processors.definition import Headers
    from statelib.records.batch import Batch, Uptake
    from statelib.settings.semantics import Semantics
    from statelib.topology import Source, SubTopology, Topology


class Fed(NamedTuple):
    """A record of a source topic."""

    topic: str
    key: Any
    value: Any
    timestamp: int


class Row(NamedTuple):
    """A record that has come out; ``cause``: the number of the source record that caused it."""

    cause: int
    key: Any
    value: Any
    timestamp: int


class _LeftOut(ProcessingErrors):
    """Records for which a function fails, which are counted, and kept nowhere."""

    def __init__(self) -> None:
        """There is nothing to keep."""

    def _set_aside(self, cause: int, reason: str) -> None:
        pass


@dataclass
class Flow:
    """A topology under test.

    Attributes:
        topology: The topology.
        types: Of each source topic the Arrow types of keys and values.
        headers_of: Gives the headers of a source record, by its number; None: none has any.
        goes_on: Whether records for which a function fails are left out; they are not set aside anywhere.
        types_first: Whether no records go through it at first, so that all types are known before the first batch.
        headers: By sink topic, those of what the last batch has sent there.
        watched: A node, of which ``seen`` has everything that it has forwarded; None: no node.
    """

    topology: Topology
    types: Mapping[str, tuple[pa.DataType, pa.DataType]]
    semantics: Semantics = "kip"
    watched: str | None = None
    seen: list[Batch] = field(default_factory=list)
    headers_of: Callable[[int], Headers] | None = None
    goes_on: bool = False
    types_first: bool = True
    headers: dict[str, list[Headers]] = field(default_factory=dict)
    metrics: NodeMetrics = field(default_factory=NodeMetrics)
    by_node: dict[str, NodeMetrics] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.backends = [MemoryBackend() for _ in self.topology.sub_topologies]
        self._task_clocks = [TaskClock(-1, _timeless(sub)) for sub in self.topology.sub_topologies]
        self._clocks: list[dict[str, dict[str, int]]] = [{} for _ in self.topology.sub_topologies]
        self._internal: dict[str, Records] = {}
        self._count = 0
        self._start()
        if self.types_first:
            self.process([])

    def _start(self) -> None:
        self.graphs = [
            Graph(sub, backend, clocks=clocks, semantics=self.semantics)
            for sub, backend, clocks in zip(self.topology.sub_topologies, self.backends, self._clocks, strict=True)
        ]
        for graph in self.graphs:
            graph.errors = _LeftOut() if self.goes_on else None
            if self.watched in graph.operators:
                graph.operators[self.watched] = _Watched(graph.operators[self.watched], self.seen)

    def process(self, fed: Sequence[Fed]) -> dict[str, list[Row]]:
        """One batch through all stages; what reaches each sink topic."""
        self._fed, self._first = fed, self._count
        self._count += len(fed)
        self._internal, self.headers = {}, {}
        out: dict[str, list[Row]] = {}
        for sub, graph, clock in zip(self.topology.sub_topologies, self.graphs, self._task_clocks, strict=True):
            parts = [self._records(source) for source in sub.all_sources]
            ranks = _ranks([part.order_time for part in parts])
            uptake = clock.uptake(Merged(tuple(parts), tuple(ranks)), 0)
            causes = np.sort(np.concatenate([part.order_time for part in parts]), kind="stable")
            for name, batch in graph.process(parts, ranks, uptake).items():
                cause = causes[batch.sequence - uptake.first_sequence]
                (sink,) = [sink for sink in sub.all_sinks if sink.name == name]
                if sink.internal:
                    kept = batch.keys.valid() | (not sink.drops_null_keys)
                    graph.metrics[name].drop("null-key", len(batch) - int(kept.sum()))
                    self._internal[sink.topic] = _forwarded(batch.filter(kept), cause[kept])
                else:
                    out.setdefault(sink.topic, []).extend(_rows(batch, cause))
                    self.headers.setdefault(sink.topic, []).extend(headers_of(batch.headers, len(batch)))
        return out

    def flush(self) -> None:
        """Writes the state, as at the end of a slice."""
        for graph, backend in zip(self.graphs, self.backends, strict=True):
            write = WriteBatch()
            graph.flush(write)
            backend.write(write)

    def restart(self) -> None:
        """A new process: all that was in memory is gone."""
        self.flush()
        for graph in self.graphs:
            for name, metrics in graph.metrics.items():
                self.metrics.add(metrics)
                self.by_node.setdefault(name, NodeMetrics()).add(metrics)
                if name in graph.operators:
                    assert metrics.unaccounted == 0, name
        self._clocks = [{name: dict(clocks) for name, clocks in graph.clocks.items()} for graph in self.graphs]
        self._start()

    def run(self, fed: Sequence[Fed], cuts: Sequence[int] = (), *, flush_every: int = 0) -> dict[str, list[Row]]:
        """All records, cut into batches before ``cuts``; a flush and restart after so many batches, and at the end."""
        out: dict[str, list[Row]] = {}
        bounds = [0, *sorted(cut for cut in set(cuts) if 0 < cut < len(fed)), len(fed)]
        for number, (start, end) in enumerate(itertools.pairwise(bounds), start=1):
            for topic, rows in self.process(fed[start:end]).items():
                out.setdefault(topic, []).extend(rows)
            if flush_every and number % flush_every == 0:
                self.restart()
        self.restart()
        return out

    def dropped(self) -> int:
        """Kafka's ``dropped-records-total`` since the beginning."""
        live = [metrics for graph in self.graphs for metrics in graph.metrics.values()]
        return sum(sum(metrics.dropped.values()) for metrics in [self.metrics, *live])

    def content(self) -> list[dict[str, list[tuple[bytes, bytes]]]]:
        """All bytes of all stores."""
        return [
            {
                family: list(backend.scan(family))
                for p in sub.processors
                for family in families_of(p.spec.state_stores())
            }
            for sub, backend in zip(self.topology.sub_topologies, self.backends, strict=True)
        ]

    def _records(self, source: Source) -> Records:
        if source.internal:
            return self._internal[source.topic]
        key_type, value_type = self.types[source.topic]
        numbered = [(self._first + i, fed) for i, fed in enumerate(self._fed) if fed.topic == source.topic]
        causes = np.array([number for number, _ in numbered], dtype=np.int64)
        return Records(
            key_column([fed.key for _, fed in numbered], key_type),
            pa.array([fed.value for _, fed in numbered], value_type),
            np.array([fed.timestamp for _, fed in numbered], dtype=np.int64),
            causes,
            self._headers([number for number, _ in numbered]),
            causes,
        )

    def _headers(self, numbers: Sequence[int]) -> pa.Array:
        if self.headers_of is None:
            return pa.nulls(len(numbers), HEADERS_TYPE)
        rows = [[{"key": name, "value": value} for name, value in self.headers_of(number)] for number in numbers]
        return pa.array([row or None for row in rows], HEADERS_TYPE)


class _Watched:
    """An operator, and what it has forwarded."""

    def __init__(self, operator: Operator, seen: list[Batch]) -> None:
        self._operator = operator
        self._seen = seen
        self.flush, self.memory_bytes = operator.flush, operator.memory_bytes

    def process(self, inputs: Sequence[Batch], uptake: Uptake) -> Batch:
        self._seen.append(self._operator.process(inputs, uptake))
        return self._seen[-1]


def _timeless(sub: SubTopology) -> frozenset[int]:
    return frozenset(number for number, source in enumerate(sub.all_sources) if source.reading != "partition")


def _ranks(order: Sequence[NDArray[np.int64]]) -> list[NDArray[np.int64]]:
    places = np.argsort(np.concatenate(order), kind="stable")
    rank = np.empty(len(places), dtype=np.int64)
    rank[places] = np.arange(len(places))
    return np.split(rank, np.cumsum([len(part) for part in order])[:-1])


def _forwarded(batch: Batch, cause: NDArray[np.int64]) -> Records:
    headers = pa.nulls(len(batch), HEADERS_TYPE) if batch.headers is None else batch.headers
    keys = KeyColumn.of(batch.keys.array)  # as a task reads them: with none of the codes that another has given them
    return Records(keys, batch.value, batch.timestamp, cause, headers, cause)


def _rows(batch: Batch, cause: NDArray[np.int64]) -> list[Row]:
    columns = (cause.tolist(), batch.keys.archived.to_pylist(), batch.value.to_pylist(), batch.timestamp.tolist())
    return [Row(*row) for row in zip(*columns, strict=True)]
