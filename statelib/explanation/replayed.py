"""Replays one task over the whole history, in a scratch place, while somebody looks on."""

from __future__ import annotations

import copy
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from statelib.operators.versioned.store import VersionedKeyValueStore
from statelib.records.batch import NO_TIMESTAMP
from statelib.task.graph import Graph
from statelib.task.inputs import Inputs
from statelib.task.merge import TaskClock
from statelib.task.processing_errors import ProcessingErrors
from statelib.task.quarantine import Quarantine
from statelib.task.seal import seal
from statelib.task.sinks import RepartitionSink
from statelib.task.state import TaskState

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from statelib.documents.manifests import RepartitionFile
    from statelib.records.batch import Batch, Uptake
    from statelib.storage import Storage
    from statelib.stores.backend import Backend
    from statelib.task.merge import Merged
    from statelib.task.observers import Tap
    from statelib.task.source_records import Records
    from statelib.task.work import TaskWork
    from statelib.topology import SubTopology

TaskPlace = tuple[int, int]
"""Sub-topology and partition of a task."""

Clocks = dict[str, dict[str, int]]
"""What operators know of time, by node."""


@dataclass(frozen=True, slots=True)
class Times:
    """What a task's operators know of time at some record.

    Attributes:
        stream_time: The task's.
        clocks: The operators' own.
        store_times: The clocks of versioned stores, by node.
    """

    stream_time: int
    clocks: Clocks
    store_times: dict[str, int]


_NO_TIMES = Times(NO_TIMESTAMP, {}, {})


@dataclass(frozen=True, slots=True)
class TakenUp:
    """A record that a task took up.

    Attributes:
        task: The task.
        sequence: Its number there, over all slices.
        source: The index of its source among those of the sub-topology.
        records: The record, alone.
        uptake: What the task knew at it.
        before: What operators knew of time before it.
    """

    task: TaskPlace
    sequence: int
    source: int
    records: Records
    uptake: Uptake
    before: Times

    @property
    def offset(self) -> int:
        """In its topic's partition."""
        return int(self.records.offset[0])

    @property
    def order_time(self) -> int:
        """What its task merges sources by."""
        return int(self.records.order_time[0])


@dataclass(frozen=True, slots=True)
class Ended:
    """What is there when a task has taken up everything.

    Attributes:
        times: What its operators know of time then.
        last_sequence: The number of the last record.
        next_sequence: The number of a next record: behind what the end of the input let go.
        order_time: That of the last record.
        nothing: No records, of the types of each source.
    """

    times: Times
    last_sequence: int
    next_sequence: int
    order_time: int
    nothing: list[Records]


class ReplayedTask:
    """One task, over one slice after the other.

    Args:
        works: What it does in each slice, first one first.
        storage: The warehouse.
        staging: Where repartition files come from and go to.
        tap: Looks on; see `Graph`.
        writes: Whether to write repartition files.
    """

    def __init__(
        self, works: Sequence[TaskWork], *, storage: Storage, staging: Storage, tap: Tap, writes: bool = False
    ) -> None:
        self._works = works
        self._storage = storage
        self._staging = staging
        self._writes = writes
        self._look_on = tap
        self._versioned = versioned_stores(works[0].sub_topology)
        self._store_times: dict[str, int] = {}
        self.files: list[tuple[RepartitionFile, ...]] = []
        """Written, by slice."""
        self.slice = 0
        """Which is being replayed."""

    def run(self, sequences: NDArray[np.int64], take: Callable[[TakenUp], object], *, one_by_one: bool) -> Ended:
        """Replays it.

        Args:
            sequences: int64, ascending: the records to give to ``take``.
            take: Takes them.
            one_by_one: Whether each of them is processed by itself, to note what is known of time before it; else
                nothing is noted.
        """
        first = self._works[0]
        state = TaskState(first, storage=self._storage, attempt="explained")
        try:
            graph = Graph(
                first.sub_topology,
                state.backend,
                clocks=state.position.clocks,
                semantics=first.settings.semantics,
                partition=first.planned.partition,
                only_wanted=False,
                tap=self._tap,
            )
            with graph:
                return self._run(graph, state, _Taker(sequences, take, one_by_one=one_by_one))
        finally:
            state.close()

    def _run(self, graph: Graph, state: TaskState, taker: _Taker) -> Ended:
        position = state.position
        clock = TaskClock.of(self._works[0].sub_topology.all_sources, position.stream_time)
        self._store_times = _store_times(self._versioned, state.backend)
        metrics = {source.topic: graph.metrics[source.name] for source in self._works[0].sub_topology.all_sources}
        order_time, nothing, last_sequence = NO_TIMESTAMP, [], -1
        for number, work in enumerate(self._works):
            self.slice = number
            quarantine = Quarantine(work.settings.on_bad_record, metrics)
            graph.errors = ProcessingErrors.of(work, quarantine)
            inputs = Inputs(work, position, storage=self._storage, quarantine=quarantine, staging=self._staging)
            nothing, sinks = inputs.nothing, self._sinks(work)
            for merged, _ in inputs.taken_up():
                for piece in taker.pieces(merged, clock.next_sequence):
                    parts = [none if part is None else part for part, none in zip(piece.parts, nothing, strict=True)]
                    self._take_up(graph, clock, sinks, (piece, parts), taker)
                if graph.memory_bytes() > state.working_set_bytes:
                    with state.spilling() as new_file:
                        graph.spill(new_file)
                order_time = max(order_time, merged.last_order_time)
                quarantine.forget()
            last_sequence = clock.next_sequence - 1
            if work.end_of_input == "seal":
                partition = work.planned.partition
                sealed = seal(graph, nothing, clock, partition=partition, order_time=order_time)
                for name, records in sealed.items():
                    if name in sinks:
                        sinks[name].write(records.batch, records.order_time)
            self.files.append(tuple(file for sink in sinks.values() for file in sink.close()))
            update = {"source_offsets": inputs.offsets(), "source_times": inputs.times()}
            position = position.model_copy(update=update)
        return Ended(self._times(graph, clock), last_sequence, clock.next_sequence, order_time, nothing)

    def _take_up(
        self,
        graph: Graph,
        clock: TaskClock,
        sinks: Mapping[str, RepartitionSink],
        merged: tuple[Merged, list[Records]],
        taker: _Taker,
    ) -> None:
        """Takes up a run of records."""
        piece, parts = merged
        partition = self._works[0].planned.partition
        task = (self._works[0].sub_topology.index, partition)
        wanted = taker.wanted(clock.next_sequence, len(piece))
        times = self._times(graph, clock) if taker.one_by_one and len(wanted) else _NO_TIMES
        uptake = clock.uptake(piece, partition)
        for place in (wanted - uptake.first_sequence).tolist():
            source = int(uptake.source[place])
            row = int(np.searchsorted(piece.rank[source], place))
            taker.take(
                TakenUp(task, uptake.first_sequence + place, source, parts[source].slice(row, row + 1), uptake, times)
            )
        for name, batch in graph.process(parts, piece.rank, uptake).items():
            if name in sinks:
                sinks[name].write(batch, piece.order_time_of(batch.sequence - uptake.first_sequence))

    def _sinks(self, work: TaskWork) -> dict[str, RepartitionSink]:
        if not self._writes:
            return {}
        return {
            sink.name: RepartitionSink(sink, work, storage=self._staging, attempt="explained", causes=True)
            for sink in work.sub_topology.all_sinks
            if sink.internal
        }

    def _times(self, graph: Graph, clock: TaskClock) -> Times:
        return Times(clock.stream_time, copy.deepcopy(graph.clocks), dict(self._store_times))

    def _tap(self, node: str, batch: Batch) -> None:
        if node in self._versioned and len(batch):
            known = self._store_times.get(node, NO_TIMESTAMP)
            self._store_times[node] = max(known, int(batch.timestamp.max()))
        self._look_on(node, batch)


class _Taker:
    """See `ReplayedTask.run`."""

    def __init__(self, sequences: NDArray[np.int64], take: Callable[[TakenUp], object], *, one_by_one: bool) -> None:
        self._sequences = sequences
        self.take = take
        self.one_by_one = one_by_one

    def wanted(self, first: int, count: int) -> NDArray[np.int64]:
        """Which of the ``count`` sequences from ``first`` on are wanted."""
        start, end = np.searchsorted(self._sequences, [first, first + count])
        return self._sequences[start:end]

    def pieces(self, merged: Merged, first: int) -> Iterator[Merged]:
        """All of it; if they are noted one by one, with each wanted record by itself."""
        rest, done = merged, 0
        for place in (self.wanted(first, len(merged)) - first).tolist() if self.one_by_one else ():
            if place > done:
                before, rest = rest.cut(place - done)
                yield before
            one, rest = rest.cut(1)
            yield one
            done = place + 1
        if len(rest):
            yield rest


def versioned_stores(sub_topology: SubTopology) -> dict[str, Mapping[str, object]]:
    """By the node that writes it, what each versioned store is: a clock of its own is in it."""
    return {
        node.name: {"name": store.name, **store.settings}
        for node in sub_topology.processors
        for store in node.spec.state_stores()
        if store.kind == "versioned"
    }


def _store_times(versioned: Mapping[str, Mapping[str, object]], backend: Backend) -> dict[str, int]:
    """The clocks of versioned stores, by node; of those that have one."""
    stores = {node: versioned_store(backend, settings) for node, settings in versioned.items()}
    return {node: store.stream_time for node, store in stores.items() if store.stream_time != NO_TIMESTAMP}


def versioned_store(backend: Backend, settings: Mapping[str, object]) -> VersionedKeyValueStore:
    """One of those that `versioned_stores` names."""
    return VersionedKeyValueStore(
        backend,
        str(settings["name"]),
        history_retention_ms=settings["history_retention_ms"],  # type: ignore[arg-type]
        segment_interval_ms=settings["segment_interval_ms"],  # type: ignore[arg-type]
    )


def with_repartitions(work: TaskWork, files: Sequence[RepartitionFile]) -> TaskWork:
    """The work with the files of its own partition of the topics that it reads."""
    wanted, partition = set(work.sub_topology.repartition_sources), work.planned.partition
    own = tuple(file for file in files if file.topic in wanted and file.partition == partition)
    return replace(work, repartitions=own)
