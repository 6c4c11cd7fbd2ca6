"""Replays some records alone, with the clocks of the whole history.

All other records advance clocks and do nothing else. So before each record the operators are told what they knew of
time at that record in the whole history: state is flushed and the operators are made anew, as between two slices, which
changes no answer. Records that a repartition brings are taken up where the whole history had them; such as it never
had (a duplicate is forwarded where the first one is left out) come where their order time belongs.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa

from statelib.explanation.replayed import TakenUp, Times, versioned_store, versioned_stores
from statelib.explanation.rows import row_keys
from statelib.operators.late_records import LateRecords
from statelib.records.batch import NO_TIMESTAMP, Uptake
from statelib.records.key_column import KeyColumn
from statelib.serdes import serde_for
from statelib.stores.backend import WriteBatch
from statelib.stores.memory import MemoryBackend
from statelib.task.graph import Graph
from statelib.task.merge import TaskClock
from statelib.task.partitioning import placement_of
from statelib.task.processing_errors import ProcessingErrors
from statelib.task.quarantine import Quarantine
from statelib.task.seal import seal
from statelib.task.source_records import HEADERS_TYPE, Records

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from statelib.explanation.replayed import Ended, TaskPlace
    from statelib.explanation.rows import RowKey
    from statelib.metrics.node_metrics import NodeMetrics
    from statelib.records.batch import Batch
    from statelib.settings.semantics import EndOfInput, Semantics
    from statelib.task.observers import Tap
    from statelib.topology import Sink, SubTopology

_UNHEARD_OF = 1 << 61

RecordId = tuple["TaskPlace", int]
"""A record by the task that took it up, and its sequence there."""


RowBytes = tuple[bytes | None, bytes | None, int]
"""Key, value and timestamp of a row that reached a sink."""


class Cause(NamedTuple):
    """What wrote a record to a repartition topic.

    Attributes:
        topic: The topic.
        task: The task that wrote it.
        sequence: There, of the record that caused it.
        key: The record's key.
        number: Of the record, among those of the key that this cause wrote to the topic.
    """

    topic: str
    task: TaskPlace
    sequence: int
    key: RowKey
    number: int


@dataclass(frozen=True)
class History:
    """What is known of the whole history: of the tasks that lead to a result.

    Attributes:
        sub_topologies: Those of these tasks, upstream ones first.
        taken_up: By task, the records that may matter.
        causes: Of those of them that came from repartition topics, what wrote them there.
        ends: By task, what is there at the end.
        partitions: By repartition topic.
        semantics: See `Semantics`.
        end_of_input: Of the last slice.
        sets_aside: Whether records are left out for which a function fails, where it does.
    """

    sub_topologies: Sequence[SubTopology]
    taken_up: Mapping[TaskPlace, Sequence[TakenUp]]
    causes: Mapping[RecordId, Cause]
    ends: Mapping[TaskPlace, Ended]
    partitions: Mapping[str, int]
    semantics: Semantics
    end_of_input: EndOfInput
    sets_aside: bool = False


@dataclass(frozen=True, slots=True)
class Written:
    """A row that reached a sink of a topic.

    Attributes:
        sink: The sink's name.
        sequence: Of its cause; None: it was let go at the end of the input.
        row_key: Its key.
        row: What it says.
    """

    sink: str
    sequence: int | None
    row_key: RowKey
    row: RowBytes


@dataclass
class Passage:
    """What happened to one record in one task; for those who ask how it went.

    Attributes:
        record: The record.
        id: It, by task and sequence; None: the whole history never had it.
        metrics: The ledgers of the nodes, of this record alone.
        late: What is told of late records: rows of `statelib.operators.late_records.VALUE_TYPE`.
        forwarded: What each node forwarded.
    """

    record: TakenUp
    id: RecordId | None
    metrics: Mapping[str, NodeMetrics]
    late: list[dict[str, object]]
    forwarded: dict[str, Batch] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Step:
    """A record that was taken up, what it wrote, and the state behind it."""

    record: RecordId
    written: list[Written]
    state: MemoryBackend


class Alone:
    """Replays some of the records that may matter.

    Args:
        history: See `History`.
    """

    def __init__(self, history: History) -> None:
        self._history = history
        self._from_repartition = {cause: record for record, cause in history.causes.items()}
        self._by_id = {
            (record.task, record.sequence): record for records in history.taken_up.values() for record in records
        }
        self._steps: list[_Step] = []
        self._unheard = 0
        self.records = 0
        """How many have been replayed."""

    @property
    def sources(self) -> list[RecordId]:
        """The records that may matter and came from topics, in order."""
        return [record for record in self._by_id if record not in self._history.causes]

    def last_sequence_of(self, task: TaskPlace) -> int:
        """That of the last record that a task takes up; what the end of the input lets go comes behind it."""
        return self._history.ends[task].last_sequence

    def run(self, kept: Collection[RecordId], passages: list[Passage] | None = None) -> list[Written]:
        """What reaches the sinks.

        Args:
            kept: The records, of `sources`.
            passages: Takes what happened to each record; None: nobody asks.
        """
        if passages is None and len(self._history.ends) == 1:
            return self._resumed(sorted(kept))
        by_task: dict[TaskPlace, list[tuple[tuple[int, int], TakenUp, RecordId | None]]] = {}
        for one in kept:
            by_task.setdefault(one[0], []).append(((one[1], 0), self._by_id[one], one))
        written: list[Written] = []
        for sub_topology in self._history.sub_topologies:
            for task in sorted(task for task in self._history.ends if task[0] == sub_topology.index):
                taken = sorted(by_task.get(task, []), key=lambda item: item[0])
                for moved in self._run_task(sub_topology, task, taken, written, passages):
                    by_task.setdefault(moved[1].task, []).append(moved)
        return written

    def _resumed(self, kept: Sequence[RecordId]) -> list[Written]:
        """The same for a single task: goes on behind the records with which the last run began as well."""
        (task,), (sub_topology,) = self._history.ends, self._history.sub_topologies
        same = 0
        while same < min(len(kept), len(self._steps)) and self._steps[same].record == kept[same]:
            same += 1
        del self._steps[same:]
        running = _Running(sub_topology, task, self._history)
        if same:
            running.backend = self._steps[-1].state.copy()
        for one in kept[same:]:
            self.records += 1
            arrived = running.take(self._by_id[one], None)
            written = [row for name, batch in arrived.items() for row in _written(name, batch, one[1])]
            self._steps.append(_Step(one, written, running.backend.copy()))
        found = [row for step in self._steps for row in step.written]
        if self._history.end_of_input == "seal" and kept:
            for name, (batch, _) in running.seal().items():
                found += _written(name, batch, None)
        return found

    def _run_task(
        self,
        sub_topology: SubTopology,
        task: TaskPlace,
        taken: Sequence[tuple[tuple[int, int], TakenUp, RecordId | None]],
        written: list[Written],
        passages: list[Passage] | None,
    ) -> Iterator[tuple[tuple[int, int], TakenUp, RecordId | None]]:
        running = _Running(sub_topology, task, self._history)
        internal = {sink.name: sink for sink in sub_topology.all_sinks if sink.internal}
        for _, record, known in taken:
            self.records += 1
            passage = None
            if passages is not None:
                passage = Passage(record, known, {}, [])
                passages.append(passage)
            arrived = running.take(record, passage)
            for name, batch in arrived.items():
                if name in internal:
                    order_time = np.full(len(batch), record.order_time)
                    yield from self._moved(internal[name], task, batch, order_time)
                else:
                    written += _written(name, batch, None if known is None else known[1])
        if self._history.end_of_input == "seal" and taken:
            for name, (batch, order_time) in running.seal().items():
                if name in internal:
                    yield from self._moved(internal[name], task, batch, order_time)
                else:
                    written += _written(name, batch, None)

    def _moved(
        self, sink: Sink, task: TaskPlace, batch: Batch, order_time: NDArray[np.int64]
    ) -> Iterator[tuple[tuple[int, int], TakenUp, RecordId | None]]:
        """What a task writes to a repartition topic, as its readers take it up."""
        if sink.drops_null_keys:
            has_key = batch.keys.valid()
            batch, order_time = batch.filter(has_key), order_time[has_key]
        if not len(batch):
            return
        partitions = self._history.partitions[sink.topic]
        placement = placement_of(sink, batch, partitions, task[1] % partitions)
        keys = row_keys(batch)
        numbers: dict[tuple[int, RowKey, int], int] = {}
        for row, partition in zip(placement.rows.tolist(), placement.partitions.tolist(), strict=True):
            key = keys[row]
            cause = int(batch.sequence[row])
            number = numbers[partition, key, cause] = numbers.get((partition, key, cause), -1) + 1
            for sub_topology in self._history.sub_topologies:
                reader = (sub_topology.index, partition)
                if sink.topic not in sub_topology.repartition_sources or reader not in self._history.ends:
                    continue
                source = [node.topic for node in sub_topology.all_sources].index(sink.topic)
                records = _records(batch, row, int(order_time[row]))
                known = self._from_repartition.get(Cause(sink.topic, task, cause, key, number))
                if known is not None and known[0] == reader and self._by_id[known].source == source:
                    there = self._by_id[known]
                    records = replace(records, offset=there.records.offset)
                    yield (known[1], 0), replace(there, records=records), known
                else:
                    yield self._unheard_of(reader, source, records)

    def _unheard_of(self, reader: TaskPlace, source: int, records: Records) -> tuple[tuple[int, int], TakenUp, None]:
        """A record that the whole history never had, where its order time belongs."""
        order_time = int(records.order_time[0])
        before = [one for one in self._history.taken_up.get(reader, ()) if one.order_time <= order_time]
        sequence = before[-1].sequence if before else -1
        times = before[-1].before if before else Times(NO_TIMESTAMP, {}, {})
        stream_time = np.array([max(times.stream_time, int(records.timestamp[0]))])
        self._unheard += 1  # nobody else has the number, so nobody takes what it causes for something else
        sources, partitions = np.array([source], np.int16), np.array([reader[1]], np.int32)
        uptake = Uptake(_UNHEARD_OF + self._unheard, stream_time, sources, partitions, records.offset)
        return (sequence, self._unheard), TakenUp(reader, sequence, source, records, uptake, times), None


class _Running:
    """A task that takes up one record after the other."""

    def __init__(self, sub_topology: SubTopology, task: TaskPlace, history: History) -> None:
        self._sub_topology = sub_topology
        self._task = task
        self._history = history
        self.backend = MemoryBackend()
        """All state."""
        self._versioned = versioned_stores(sub_topology)
        self._late = LateRecords([source.topic for source in sub_topology.all_sources])
        self._nothing = history.ends[task].nothing

    def take(self, record: TakenUp, passage: Passage | None) -> dict[str, Batch]:
        """What reaches the sinks."""
        tap = _no_tap if passage is None else _Kept(passage.forwarded)
        parts, none = list(self._nothing), np.empty(0, np.int64)
        parts[record.source] = record.records
        ranks = [np.zeros(1, np.int64) if index == record.source else none for index in range(len(parts))]
        with self._graph(record.before, tap) as graph:
            arrived = graph.process(parts, ranks, record.uptake)
            self._flush(graph)
        late = self._late.drain()
        if passage is not None:
            passage.metrics = graph.metrics
            passage.late = [] if late is None else late.column("value").to_pylist()
        return arrived

    def seal(self) -> dict[str, tuple[Batch, NDArray[np.int64]]]:
        """What reaches the sinks at the end of the input, and when it would have left."""
        end = self._history.ends[self._task]
        clock = TaskClock(end.times.stream_time, next_sequence=end.last_sequence + 1)
        with self._graph(end.times, _no_tap) as graph:
            sealed = seal(graph, self._nothing, clock, partition=self._task[1], order_time=end.order_time)
        return {name: (records.batch, records.order_time) for name, records in sealed.items()}

    def _graph(self, times: Times, tap: Tap) -> Graph:
        """The operators, which know of time what they knew in the whole history."""
        write = WriteBatch(passed_to=self.backend)
        for node, settings in self._versioned.items():
            if node in times.store_times:
                store = versioned_store(self.backend, settings)
                store.advance(times.store_times[node], write)
        self.backend.write(write)
        graph = Graph(
            self._sub_topology,
            self.backend,
            clocks=times.clocks,
            semantics=self._history.semantics,
            late=self._late,
            partition=self._task[1],
            only_wanted=False,
            tap=tap,
        )
        if self._history.sets_aside:
            topics = [source.topic for source in self._sub_topology.all_sources]
            graph.errors = ProcessingErrors(Quarantine("quarantine", {}), topics)
        return graph

    def _flush(self, graph: Graph) -> None:
        write = WriteBatch(passed_to=self.backend)
        graph.flush(write)
        self.backend.write(write)


class _Kept:
    """Keeps what each node forwards."""

    def __init__(self, forwarded: dict[str, Batch]) -> None:
        self._forwarded = forwarded

    def __call__(self, node: str, batch: Batch) -> None:
        self._forwarded[node] = batch


def _no_tap(node: str, batch: Batch) -> None:
    del node, batch


def _records(batch: Batch, row: int, order_time: int) -> Records:
    """A row of a batch, as a task reads it from a repartition topic."""
    one = batch.slice(row, row + 1)
    headers = pa.nulls(1, HEADERS_TYPE) if one.headers is None else one.headers
    keys = KeyColumn.of(one.keys.array)
    return Records(keys, one.value, one.timestamp, np.zeros(1, np.int64), headers, np.array([order_time]))


def _written(sink: str, batch: Batch, sequence: int | None) -> Iterable[Written]:
    for key, row in zip(row_keys(batch), row_bytes(batch.keys.archived, batch.value, batch.timestamp), strict=True):
        yield Written(sink, sequence, key, row)


def row_bytes(key: pa.Array, value: pa.Array, timestamp: NDArray[np.int64]) -> list[RowBytes]:
    """What rows say, to compare them: NaN is itself there."""
    if isinstance(key, pa.DictionaryArray):
        key = key.dictionary_decode()
    columns = [serde_for(column.type).serialize(column).to_pylist() for column in (key, value)]
    return list(zip(*columns, timestamp.tolist(), strict=True))
