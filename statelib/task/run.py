"""Runs one task over one slice: (state at commit n, slice n+1) -> (staged files, state at commit n+1, metrics).

Nothing that a task writes is visible to anyone until the run is committed, and every name that it writes under is its
attempt's own: a task may be killed at any instant, and run twice at once.
"""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from operator import attrgetter
from typing import TYPE_CHECKING, Self

from statelib.commits.layout import changelog_topic, late_topic, quarantine_topic
from statelib.commits.maintenance.leftovers import attempt_name
from statelib.documents.manifests import TaskOutcome, TaskPosition
from statelib.documents.places import place_of
from statelib.errors.fault_points import step
from statelib.errors.kinds import CorruptedDataError, HindstreamError
from statelib.metrics.peak_memory import peak_memory_bytes
from statelib.operators.changelog import Changelog
from statelib.operators.late_records import LateRecords
from statelib.records.batch import NO_TIMESTAMP
from statelib.records.key_sample import KeySample
from statelib.storage import Storage
from statelib.stores.backend import WriteBatch
from statelib.task.freed_memory import release_freed_memory, reuse_freed_memory
from statelib.task.graph import Graph
from statelib.task.history import replayed_history
from statelib.task.inputs import Inputs
from statelib.task.merge import TaskClock
from statelib.task.processing_errors import ProcessingErrors
from statelib.task.quarantine import Quarantine
from statelib.task.seal import seal
from statelib.task.sinks import ArchiveSink, Delivered, RepartitionSink
from statelib.task.state import TaskState
from statelib.task.wall_clock import HeldWallClock

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from types import TracebackType

    import numpy as np
    import pyarrow as pa
    from numpy.typing import NDArray

    from statelib.documents.plans import Leeway
    from statelib.records.batch import Batch, Uptake
    from statelib.task.history import History
    from statelib.task.merge import Merged
    from statelib.task.observers import NodeSeconds
    from statelib.task.source_records import Records
    from statelib.task.work import TaskWork


@dataclass(slots=True)
class Phases:
    """Seconds spent in each phase, by a clock that the caller gives."""

    clock: Callable[[], float]
    seconds: dict[str, float] = field(default_factory=dict)
    _since: float = 0.0

    def begin(self) -> None:
        """Time counts from now on."""
        self._since = self.clock()

    def end(self, phase: str) -> None:
        """What has passed since then, or since the last phase, belongs to ``phase``."""
        now = self.clock()
        self.seconds[phase] = self.seconds.get(phase, 0.0) + now - self._since
        self._since = now


def run_task(
    work: TaskWork,
    *,
    attempt: str,
    clock: Callable[[], float],
    host: str = "localhost",
    told: Callable[[int], object] = bool,
    spent: NodeSeconds | None = None,
) -> TaskOutcome:
    """Runs ``work``.

    Args:
        work: What to do.
        attempt: Unique among all attempts at this task in this run: letters, digits, ``-``, ``_``.
        clock: Seconds, for the figures of phases only.
        host: Where this runs, for the report.
        told: Called with the number of records whenever some have been processed; its answer is not looked at.
        spent: Takes the seconds of each node; None: nobody asks.

    Returns:
        What was made. ``metrics`` and ``position`` depend on nothing but ``work``.

    Raises:
        InputError: A record or file of the sources cannot be used; the message names topic, partition and offset.
        HindstreamError: See `statelib.errors.kinds`; every one names the task.
    """
    phases = Phases(clock)
    phases.begin()
    reuse_freed_memory()
    name = attempt_name(work.job, work.run_id, work.planned.task_id, attempt)
    storage = Storage(work.settings.warehouse, work.settings.storage_options)
    with told_of(work):
        with replayed_history(work, storage=storage, attempt=name, told=told) as history:
            if history is not None:
                phases.end("fill")
                step("task.history-replayed")
            task = RunningTask(work, storage, name, spent, history)
        phases.end("restore")
        step("task.restored")
        with task, told_of(work, task):
            return task.run(phases, host, told)


@contextmanager
def told_of(work: TaskWork, task: RunningTask | None = None) -> Iterator[None]:
    """Lets errors of a task name it; if what the running ``task`` has restored is damaged, it is not used again."""
    try:
        yield
    except HindstreamError as error:
        found = task.state.damaged(error) if task is not None and isinstance(error, CorruptedDataError) else error
        if found is error and "task" in error.place:
            raise
        place = {**found.place, "task": work.planned.task_id}
        raise type(found)(found.what, next_step=found.next_step, **place) from error


class RunningTask:
    """The parts of one running task, which end with the context; what was staged is deleted if that ends by an error.

    Args:
        work: What to do.
        storage: The warehouse.
        attempt: The whole name of the attempt.
        spent: See `run_task`.
        history: What filled its stores; None: nothing did.
        passed_on: Told topic, partition and rows of what it writes to the repartition topics of its circle.
    """

    def __init__(
        self,
        work: TaskWork,
        storage: Storage,
        attempt: str,
        spent: NodeSeconds | None = None,
        history: History | None = None,
        passed_on: Callable[[str, int, pa.RecordBatch], object] | None = None,
    ) -> None:
        self._work = work
        self._attempt = attempt
        self._storage = storage
        self._history = history
        self.state = TaskState(work, storage=self._storage, attempt=attempt, history=history)
        before = self.state.position
        topics = [source.topic for source in work.sub_topology.all_sources]
        self._late = LateRecords(topics) if work.settings.on_late_record == "topic" else None
        self._changelogs = {
            store.name: (Changelog(), self._archive_sink(changelog_topic(work.job, store.name)))
            for store in work.sub_topology.stores
            if changelog_topic(work.job, store.name) in work.partitions
        }
        self.graph = Graph(
            work.sub_topology,
            self.state.backend,
            clocks=before.clocks,
            semantics=work.settings.semantics,
            late=self._late,
            partition=work.planned.partition,
            changelogs={store: changelog for store, (changelog, _) in self._changelogs.items()},
            spent=spent,
            sample=None if work.sample_keys is None else KeySample(work.sample_keys),
            leeway=work.leeway,
        )
        by_topic = {source.topic: self.graph.metrics[source.name] for source in work.sub_topology.all_sources}
        self._quarantine = Quarantine(work.settings.on_bad_record, by_topic)
        self.graph.errors = ProcessingErrors.of(work, self._quarantine)
        self._quarantine_sink = self._archive_sink(quarantine_topic(work.job))
        self._late_sink = self._archive_sink(late_topic(work.job))
        self.inputs = Inputs(work, before, storage=self._storage, quarantine=self._quarantine)
        self._clock = TaskClock.of(work.sub_topology.all_sources, before.stream_time)
        self._archive_sinks = {
            s.name: self._archive_sink(s.topic, is_placed=s.is_placed)
            for s in work.sub_topology.all_sinks
            if not s.internal
        }
        self._repartition_sinks = {
            sink.name: RepartitionSink(
                sink,
                work,
                storage=self._storage,
                attempt=attempt,
                passed_on=partial(passed_on, sink.topic)
                if passed_on is not None and sink.topic in work.sub_topology.returning
                else None,
            )
            for sink in work.sub_topology.all_sinks
            if sink.internal
        }
        self._order_time = NO_TIMESTAMP
        self._wall_clock = None if passed_on is None else HeldWallClock(self.graph.operators.values())
        self._ending = ExitStack()

    def __enter__(self) -> Self:
        self._ending.callback(self.state.close)
        self._ending.push(self._abort)
        self._ending.enter_context(self.graph)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ending.__exit__(kind, error, trace)

    def run(self, phases: Phases, host: str, told: Callable[[int], object]) -> TaskOutcome:
        """Takes up all that there is, and finishes."""
        for merged, parts in self.inputs.taken_up():
            self.take_up(merged, parts, phases)
            told(len(merged))
        return self.finish(phases, host)

    def take_up(self, merged: Merged, parts: Sequence[Records], phases: Phases) -> None:
        """Processes a run of the merged order, and delivers what comes of it."""
        work = self._work
        phases.end("read")
        uptake = self._clock.uptake(merged, work.planned.partition)
        arrived = self.graph.process(parts, merged.rank, uptake)
        phases.end("process")
        self._deliver_all(arrived, merged, uptake)
        phases.end("write")
        if self._wall_clock is not None:
            self._wall_clock.last = merged, uptake
        step("task.batch-processed")
        if self.graph.memory_bytes() > self.state.working_set_bytes:
            release_freed_memory()
            self._spill()
            release_freed_memory()
            self.inputs.most_at_once = work.settings.batch_records_beyond_budget
            reuse_freed_memory(scarce=True)
            phases.end("spill")
        self._order_time = merged.last_order_time

    def call(self, phases: Phases) -> bool:
        """Makes the callbacks that have waited until all that a record of the circle causes was taken up.

        Returns:
            Whether there were any. Where nothing was taken up since, there are none.
        """
        clock = self._wall_clock
        if clock is None or (last := clock.due(self._clock.stream_time)) is None:
            return False
        merged, uptake = last
        with clock.going():
            arrived = self.graph.call(self.inputs.nothing, uptake)
        phases.end("process")
        self._deliver_all(arrived, merged, uptake)
        phases.end("write")
        return True

    def settled(self) -> None:
        """All that a record of the circle has caused, callbacks included, has been taken up."""
        if self._wall_clock is not None:
            self._wall_clock.last = None

    def finish(self, phases: Phases, host: str) -> TaskOutcome:
        """What was made, when all has been taken up."""
        work, order_time = self._work, self._order_time
        if work.end_of_input == "seal":
            self._seal(order_time, None)
            phases.end("process")
        elif work.leeway is not None and work.leeway.ends:
            self._seal(order_time, work.leeway)
            phases.end("process")
        self._deliver_aside()  # what was logged before the first record
        sink_files = tuple(file for sink in self._all_archive_sinks for file in sink.close())
        repartitions = tuple(file for sink in self._repartition_sinks.values() for file in sink.close())
        phases.end("write")
        step("task.files-staged")
        write = WriteBatch(passed_to=self.state.backend)
        self.graph.flush(write)
        position = self._position()
        state = self.state.commit(write, position)
        self.graph.count_windows(work.end_of_input)
        for node in work.sub_topology.processors:
            for store in node.spec.state_stores():
                if store.name in self._changelogs:
                    self.graph.metrics[node.name].count("changelog-record", self._changelogs[store.name][0].added)
        phases.end("checkpoint")
        step("task.state-saved")
        return TaskOutcome(
            task_id=work.planned.task_id,
            attempt=self._attempt,
            sinks=sink_files,
            repartitions=repartitions,
            state=state,
            position=position,
            metrics=self.graph.metrics,
            stores=self.state.sizes(),
            seconds=phases.seconds,
            peak_memory_bytes=peak_memory_bytes(),
            host=host,
            history=None if self._history is None else self._history.made,
            fetched_bytes=self.state.fetched_bytes,
        )

    def _spill(self) -> None:
        """Writes the working sets, which have outgrown the memory budget."""
        with self.state.spilling() as new_file:
            self.graph.spill(new_file)
        step("task.spilled")

    def _abort(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Deletes what was staged where an error has ended the task: it will never be looked at."""
        del error, trace
        if kind is None:
            return
        for archive in self._all_archive_sinks:
            archive.abort()
        for repartition in self._repartition_sinks.values():
            repartition.abort()

    def _deliver_all(self, arrived: Mapping[str, Batch], merged: Merged, uptake: Uptake) -> None:
        """Writes what arrives at all sinks of what has been taken up."""
        for name, batch in arrived.items():
            with self.graph.placing(name, uptake):
                self._deliver(name, batch, partial(merged.order_time_of, batch.sequence - uptake.first_sequence))
        self._deliver_aside()

    def _deliver(self, sink: str, batch: Batch, order_time: Callable[[], NDArray[np.int64]]) -> None:
        """Writes what arrives at a sink; only repartition topics keep the order time of each record."""
        metrics = self.graph.metrics[sink]
        metrics.records_in += len(batch)
        delivered = Delivered(len(batch), len(batch))
        if sink in self._archive_sinks:
            self._archive_sinks[sink].write(batch)
        else:
            delivered = self._repartition_sinks[sink].write(batch, order_time())
        metrics.account("written", delivered.records)
        metrics.account("no-partition", delivered.nowhere)
        metrics.drop("null-key", delivered.null_keys)
        metrics.count("further-partition", delivered.rows - delivered.records)

    def _seal(self, order_time: int, leeway: Leeway | None) -> None:
        """Lets go what the operators hold; ``order_time``: of the last record taken up; ``leeway``: see `seal`."""
        nothing, partition = self.inputs.nothing, self._work.planned.partition
        let_go = seal(self.graph, nothing, self._clock, partition=partition, order_time=order_time, leeway=leeway)
        for name, sealed in let_go.items():
            self._deliver(name, sealed.batch, partial(attrgetter("order_time"), sealed))
        self._deliver_aside()

    def _deliver_aside(self) -> None:
        """Writes what has gone to the job's quarantine topic, to its topic of late records, and to changelogs."""
        for changelog, sink in self._changelogs.values():
            changes = changelog.drain()
            if len(changes):
                sink.write_rows(changes)
        for rows in self._quarantine.drain():
            self._quarantine_sink.write_rows(rows)
        late = self._late.drain() if self._late is not None else None
        if late is not None:
            self._late_sink.write_rows(late)

    @property
    def _all_archive_sinks(self) -> list[ArchiveSink]:
        changelogs = [sink for _, sink in self._changelogs.values()]
        return [*self._archive_sinks.values(), *changelogs, self._quarantine_sink, self._late_sink]

    def _archive_sink(self, topic: str, *, is_placed: bool = False) -> ArchiveSink:
        work = self._work
        aside = topic in {quarantine_topic(work.job), late_topic(work.job)}
        partition = work.ordinal if aside else work.planned.partition
        return ArchiveSink(
            topic,
            partition=partition,
            partitions=work.partitions[topic],
            next_offset=self.state.position.sink_offsets.get(place_of(topic, partition), 0),
            storage=self._storage,
            attempt=self._attempt,
            is_placed=is_placed,
        )

    def _position(self) -> TaskPosition:
        work = self._work
        return TaskPosition(
            task_id=work.planned.task_id,
            commit=work.commit,
            fingerprint=work.fingerprint,
            source_offsets=self.inputs.offsets(),
            source_times=self.inputs.times(),
            stream_time=self._clock.stream_time,
            clocks=self.graph.clocks,
            # What a former topology wrote is kept: should it come again, it goes on from there.
            sink_offsets=self.state.position.sink_offsets
            | {sink.place: sink.next_offset for sink in self._all_archive_sinks},
        )
