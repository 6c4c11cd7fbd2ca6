"""Replays a task's history once more, so that stores of a changed topology hold what they always would have held.

Each slice is replayed as it was planned, one after the other: so records of different topics meet in the order in which
they would have met. Only what leads to the stores is run; what reaches other sinks than repartition topics is not
wanted again. A task that leads to stores of a later stage does the same, for the repartition topics that it feeds.
What came of it then joins the state of the last commit: the entries of the stores, the operators' clocks, the position.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from statelib.documents.manifests import ReplayedHistory
from statelib.errors.kinds import InternalError
from statelib.migration import copy_entries
from statelib.operators.suppress.store import resolve_references
from statelib.stores.backend import WriteBatch
from statelib.stores.spec import families_of
from statelib.task.graph import Graph
from statelib.task.inputs import Inputs
from statelib.task.merge import TaskClock
from statelib.task.processing_errors import ProcessingErrors
from statelib.task.quarantine import Quarantine
from statelib.task.sinks import RepartitionSink
from statelib.task.state import TaskState
from statelib.topology.projection import wanted_fields

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from statelib.documents.manifests import RepartitionFile, TaskPosition
    from statelib.storage import Storage
    from statelib.stores.backend import Backend
    from statelib.stores.rocksdb import RocksDbBackend
    from statelib.task.work import TaskWork


@dataclass(frozen=True, slots=True)
class History:
    """What came of a task's history.

    Attributes:
        backend: Its stores, as long as the history is open.
        position: How far the task has come: offsets, times and clocks.
        made: What is told of it, and handed on.
    """

    backend: Backend
    position: TaskPosition
    made: ReplayedHistory

    def fill(self, backend: RocksDbBackend, work: TaskWork) -> None:
        """Gives a state the entries of the stores that are filled, in the place of what it may have of them."""
        filled = work.evolution.filled if work.evolution is not None else ()
        stores = [store for store in work.sub_topology.stores if store.name in filled]
        resolve_references(self.backend, [store.name for store in stores if store.kind == "suppression-buffer"])
        families = families_of(stores)
        backend.drop(families)
        for family in families:
            copy_entries(self.backend, family, backend, family)

    def goes_on(self, before: TaskPosition, work: TaskWork) -> TaskPosition:
        """The position from which a task with filled stores goes on.

        Where other stores go on beside them, neither time nor offsets of repartition topics go back: a deduplication
        knows records by these.

        Args:
            before: That of the last commit.
            work: The task.

        Raises:
            InternalError: The history does not end where the last commit does.
        """
        kept = work.evolution.nodes if work.evolution is not None else {}
        internal, offsets = set(work.sub_topology.repartition_sources), dict(before.source_offsets)
        keeps = any(node.name in kept for node in work.sub_topology.nodes)
        for place, offset in self.position.source_offsets.items():
            known = before.source_offsets.get(place, offset)
            if place.rpartition("/")[0] not in internal and known != offset:
                what = f"the history ends at offset {offset} of {place}, the state was made up to {known}"
                raise InternalError(what, task=work.planned.task_id, run=work.run_id)
            offsets[place] = max(known, offset) if keeps else offset
        stream_time = self.position.stream_time
        return before.model_copy(
            update={
                "source_offsets": offsets,
                "source_times": before.source_times | self.position.source_times,
                "stream_time": max(stream_time, before.stream_time) if keeps else stream_time,
                "clocks": {
                    **before.clocks,
                    **{node: clocks for node, clocks in self.position.clocks.items() if node not in kept},
                },
            }
        )


@contextmanager
def replayed_history(
    work: TaskWork, *, storage: Storage, attempt: str, told: Callable[[int], object] = bool
) -> Iterator[History | None]:
    """Replays what a task has to replay before its slice.

    Args:
        work: The task.
        storage: The warehouse. Only files of repartition topics are written there, into the run's own folder.
        attempt: That of the run, for the names of what is written.
        told: Called with the number of records whenever some have been processed; its answer is not looked at.

    Returns:
        What came of it, in a working copy that is gone afterwards; None: there is nothing to replay.

    Raises:
        HindstreamError: As `statelib.task.run.run_task`.
    """
    if not work.history:
        yield None
        return
    attempt = f"{attempt}-history"
    state = TaskState(work.history[0], storage=storage, attempt=attempt)
    try:
        yield _Replay(work, state, storage, attempt).run(told)
    finally:
        state.close()


class _Replay:
    """Replays the slices of one task, of which each goes on from the state after the one before, as runs do.

    Operators are made anew for each: what they do when they begin, such as a processor's ``init``, is part of it.
    """

    def __init__(self, work: TaskWork, state: TaskState, storage: Storage, attempt: str) -> None:
        self._state = state
        self._storage = storage
        self._attempt = attempt
        self._works = work.history
        self._position = state.position
        self._records = 0
        self._fields = wanted_fields(work.sub_topology.nodes)  # of all nodes: stores keep what any of them looks at

    def run(self, told: Callable[[int], object]) -> History:
        """Replays all of them."""
        files = tuple(self._slice(number, told) for number in range(len(self._works)))
        return History(self._state.backend, self._position, ReplayedHistory(records=self._records, repartitions=files))

    def _slice(self, number: int, told: Callable[[int], object]) -> tuple[RepartitionFile, ...]:
        work, state = self._works[number], self._state
        graph = Graph(
            work.sub_topology,
            state.backend,
            clocks=self._position.clocks,
            semantics=work.settings.semantics,
            partition=work.planned.partition,
            wanted=self._fields,
            leeway=work.leeway,
        )
        with graph:
            return self._replayed(graph, number, told)

    def _replayed(self, graph: Graph, number: int, told: Callable[[int], object]) -> tuple[RepartitionFile, ...]:
        work, state = self._works[number], self._state
        by_topic = {source.topic: graph.metrics[source.name] for source in work.sub_topology.all_sources}
        quarantine = Quarantine(work.settings.on_bad_record, by_topic)
        graph.errors = ProcessingErrors.of(work, quarantine)
        inputs = Inputs(work, self._position, storage=self._storage, quarantine=quarantine, fields=self._fields)
        clock = TaskClock.of(work.sub_topology.all_sources, self._position.stream_time)
        sinks = {
            sink.name: RepartitionSink(sink, work, storage=self._storage, attempt=f"{self._attempt}-{number}")
            for sink in work.sub_topology.all_sinks
            if sink.internal
        }
        try:
            for merged, parts in inputs.taken_up():
                uptake = clock.uptake(merged, work.planned.partition)
                for name, batch in graph.process(parts, merged.rank, uptake).items():
                    sinks[name].write(batch, merged.order_time_of(batch.sequence - uptake.first_sequence))
                quarantine.forget()
                told(len(merged))
                self._records += len(merged)
                if graph.memory_bytes() > state.working_set_bytes:
                    with state.spilling() as new_file:
                        graph.spill(new_file)
                    inputs.most_at_once = work.settings.batch_records_beyond_budget
            files = tuple(file for sink in sinks.values() for file in sink.close())
        except BaseException:
            for sink in sinks.values():
                sink.abort()
            raise
        write = WriteBatch(passed_to=state.backend)
        graph.flush(write)
        state.keep(write)
        self._position = self._position.model_copy(
            update={
                "source_offsets": self._position.source_offsets | inputs.offsets(),
                "source_times": self._position.source_times | inputs.times(),
                "stream_time": clock.stream_time,
                "clocks": graph.clocks,
            }
        )
        return files
