"""Runs a custom processor (`statelib.operators.processors.definition`) over each record: Kafka's ``KStreamProcess``.

A call that is scheduled comes behind the source record that moved the task's stream time, whether that record reached
the processor or not, and behind all that it caused here; what it forwards carries that record's sequence. Stores are
written to the task's state before the next processor runs, so nothing depends on where batches end. Processors that
share a store are visited record by record, as in Kafka Streams (`statelib.task.in_turns`).

Accounts: ``processed``. Counters: ``punctuations``, ``failed-punctuations`` (among these).
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from statelib.calls import KafkasNames
from statelib.errors.kinds import ConfigurationError
from statelib.operators.mappers.function_errors import UserFunctionError, calling
from statelib.operators.processors.changelog import NotInInit, StoreLog
from statelib.operators.processors.definition import (
    FixedKeyRecord,
    PunctuationType,
    Record,
)
from statelib.operators.processors.forwarded import TO_ALL, Forwarded, sent_to
from statelib.operators.processors.punctuation import Scheduler, begin
from statelib.operators.processors.read_only_store import ReadOnlyStore
from statelib.operators.processors.table_store import StoreOfTable
from statelib.operators.processors.task_stores import TaskStores
from statelib.operators.processors.visits import Visits, records_of
from statelib.records.batch import NO_TIMESTAMP
from statelib.settings.durations import milliseconds
from statelib.state.epoch_time import epoch_ms

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import timedelta

    from statelib.operators.base import OperatorContext
    from statelib.operators.mappers.function_errors import OnFailure
    from statelib.operators.processors.definition import (
        Cancellable,
        RecordMetadata,
    )
    from statelib.operators.processors.process import Process
    from statelib.operators.processors.punctuation import Schedule
    from statelib.operators.processors.visits import Deliver, Visit
    from statelib.records.batch import Batch, Uptake
    from statelib.state import StateStore, StoreBuilder
    from statelib.state.epoch_time import Time
    from statelib.stores.backend import WriteBatch


class ProcessOperator(KafkasNames):
    """The running operator; also the `ProcessorContext` of its processor."""

    _shown_as = "ProcessorContext"

    def __init__(self, spec: Process, context: OperatorContext) -> None:
        self._spec = spec
        self._context = context
        self._children = {name: number for number, name in enumerate(context.children)}
        self._task = TaskStores.of(context)
        self._stores = {builder.name: self._opened(builder) for builder in (*spec.stores, *spec.shared)}
        self.tables = {name: StoreOfTable(name) for name in spec.tables}
        """The stores of tables that it uses, to be bound to these."""
        logged = (*self._stores, *spec.tables, spec.schedule_family)
        self._of_all = {builder.name: ReadOnlyStore(self._opened(builder)) for builder in spec.of_all}
        self.asked: set[str] = set()
        """The stores that it has asked for."""
        self._logs = {name: self._log_of(name) for name in logged if name in context.changelogs}
        self._schedule_log = self._logs.get(spec.schedule_family)
        self._visit: Visit | None = None  # None in init
        self._forwarded = Forwarded(pa.null(), pa.null())
        self._addressee = np.empty(0, np.int64)
        self._deliver: Deliver = self._collect
        self._processor = spec.new_processor()
        self.scheduler = Scheduler(context.backend, context.node, spec.schedule_family, self._processor)
        for name in self._logs.keys() & self._stores.keys():
            self._stores[name].log_to(NotInInit(name))
        self._guarded(self._processor.init, self, self._processor.init)
        for name, store in self._stores.items():
            store.log_to(self._logs.get(name))
        if not context.in_turns:
            begin([self.scheduler])
            self.hand_over()

    def _opened(self, builder: StoreBuilder[Any]) -> StateStore[Any]:
        """The task's store, which the first of its processors opens."""
        context, opened = self._context, self._task.opened
        if builder.name not in opened:
            store = builder.build().init(context.backend, semantics=context.semantics, metrics=context.metrics)
            opened[builder.name] = store
        return opened[builder.name]

    def _log_of(self, store: str) -> StoreLog:
        """What takes the changes of a store of the task."""
        stores = self._task
        if store not in stores.logs:
            stores.logs[store] = StoreLog(self._context.changelogs[store], lambda: stores.timestamp)
        return stores.logs[store]

    # --- ProcessorContext ----------------------------------------------------------------------------------------

    @property
    def application_id(self) -> str:
        """See `ProcessorContext`."""
        return self._spec.application_id

    @property
    def task_id(self) -> str:
        """See `ProcessorContext`."""
        return self._context.task_id

    def forward(self, record: FixedKeyRecord, child_name: str | None = None) -> None:
        """See `ProcessorContext`."""
        if self._visit is None:
            what = "init() and close() have nothing to forward"
            raise ConfigurationError(what, next_step="forward from process() or a callback")
        wanted = FixedKeyRecord if self._spec.fixed_key else Record
        if type(record) is not wanted:
            step = f"forward a {wanted.__name__}"
            raise ConfigurationError(f"a {type(record).__name__} cannot be forwarded here", next_step=step)
        if child_name is not None and child_name not in self._children:
            known = ", ".join(self._children) or "there are none"
            raise ConfigurationError(f"there is no child {child_name!r}", next_step=f"one of: {known}")
        self._deliver(record, TO_ALL if child_name is None else self._children[child_name], self._visit)

    def schedule(
        self,
        interval: timedelta,
        punctuation_type: PunctuationType,
        callback: Callable[[int], object],
        start_time: Time | None = None,
    ) -> Cancellable:
        """See `ProcessorContext`."""
        if self._spec.writes_global:
            raise ConfigurationError(
                "the processor of a global store schedules a call",
                next_step="schedule calls in a processor of a stream, which may read the store",
            )
        interval_ms = milliseconds(interval, "punctuation interval", at_least=1)
        start_ms = None if start_time is None else epoch_ms(start_time)
        if start_ms is not None and start_ms < 0:
            raise ConfigurationError(
                f"callbacks cannot start at {start_time}", next_step="start in 1970 or later, or leave start_time out"
            )
        return self.scheduler.schedule(
            interval_ms,
            callback,
            start_ms=start_ms,
            now_ms=self.current_stream_time_ms(),
            by_wall_clock=punctuation_type is PunctuationType.WALL_CLOCK_TIME,
        )

    def commit(self) -> None:
        """See `ProcessorContext`."""

    def get_state_store(self, name: str) -> Any:
        """See `ProcessorContext`."""
        self.asked.add(name)
        if name in self.tables:
            return self.tables[name]
        if name in self._of_all:
            return self._of_all[name]
        if name not in self._stores:
            known = ", ".join((*self._stores, *self.tables, *self._of_all)) or "it has none"
            raise ConfigurationError(
                f"the processor has no store of this name; of its own: {known}",
                store=name,
                next_step="add_state_store() the store's builder, and give its name to process()",
            )
        return self._stores[name]

    def current_stream_time_ms(self) -> int:
        """See `ProcessorContext`."""
        return NO_TIMESTAMP if self._visit is None else self._visit.stream_time

    def current_system_time_ms(self) -> int:
        """See `ProcessorContext`."""
        return self.current_stream_time_ms()

    def record_metadata(self) -> RecordMetadata | None:
        """See `ProcessorContext`."""
        return None if self._visit is None else self._visit.metadata

    # --- Operator ------------------------------------------------------------------------------------------------

    def process(self, inputs: Sequence[Batch], uptake: Uptake) -> Batch:
        """What the processor forwards for each record, and for the calls that come due meanwhile."""
        batch = inputs[0]
        self._forwarded = self.nothing_forwarded(batch)
        visits, metrics = Visits(uptake, self._context.sources), self._context.metrics
        self.begin_clock(visits)
        rows, processed = (batch.sequence - uptake.first_sequence).tolist(), 0
        for row, record in zip(rows, records_of(batch, fixed_key=self._spec.fixed_key), strict=True):
            self._punctuate(visits, before=row)
            processed += self.visit(record, visits.at(row))
        self._punctuate(visits, before=len(uptake))
        self.hand_over()
        forwarded = self._forwarded.batch(self.functions)
        self._addressee = np.array(self._forwarded.addressee, np.int64)
        metrics.records_in += len(batch)
        metrics.records_out += len(forwarded)
        metrics.account("processed", processed)
        return forwarded

    def begin_clock(self, visits: Visits) -> None:
        """Says what time it is at the first of a task's records: calls may have waited for that."""
        queue, now_ms = self.scheduler.queue, visits.first_time_ms
        if queue.waits and now_ms is not None:
            self._task.timestamp = now_ms
            queue.begin_clock(now_ms)
            self.log_schedule()

    def visit(self, record: FixedKeyRecord, visit: Visit) -> bool:
        """Processes one record; gives whether that has not failed. What was put and forwarded before it did, stays."""
        stores, succeeds = self._task, True
        before, self._visit, stores.timestamp = stores.timestamp, visit, record.timestamp
        try:
            self._guarded(self._processor.process, record, self._processor.process)
        except UserFunctionError as error:
            if (on_failure := self._goes_on(error)) is None:
                raise
            on_failure(visit.sequence, error.what)
            succeeds = False
        stores.timestamp = before
        self.log_schedule()
        return succeeds

    def call(self, schedule: Schedule, visit: Visit) -> None:
        """Makes a call that has come due. One that fails is counted: there is no record that could be left out."""
        self._visit, self._task.timestamp = visit, visit.stream_time
        try:
            self._guarded(schedule.callback, visit.stream_time, schedule.callback)
        except UserFunctionError as error:
            if self._goes_on(error) is None:
                raise
            self._context.metrics.count("failed-punctuations", 1)
        self._context.metrics.count("punctuations", 1)

    def _goes_on(self, error: UserFunctionError) -> OnFailure | None:
        """What is told of a failure of the processor's own; None: the error ends the run."""
        return self._context.on_failure if error.place.get("node") == self._context.node else None

    def log_of(self, store: str) -> StoreLog | None:
        """What takes the changes of a store that it uses; None: nothing does."""
        return self._logs.get(store)

    def deliver_to(self, deliver: Deliver) -> None:
        """From now on hands on each record as it is forwarded."""
        self._deliver = deliver

    def nothing_forwarded(self, batch: Batch) -> Forwarded:
        """Takes what it forwards; ``batch``: of the types of what it gets."""
        key_type, value_type = self._spec.key_type, self._spec.value_type
        return Forwarded(
            batch.keys.type if key_type is None else key_type, batch.value.type if value_type is None else value_type
        )

    @property
    def functions(self) -> list[object]:
        """The user's that forward records, for errors."""
        return [self._processor.process]

    @property
    def fixed_key(self) -> bool:
        """Whether it gets records whose keys stay."""
        return self._spec.fixed_key

    def sent_to(self, child: str, forwarded: Batch) -> Batch:
        """See `RoutingOperator`."""
        return sent_to(forwarded, self._addressee, self._children[child])

    def flush(self, write: WriteBatch) -> None:
        """Writes what is scheduled; stores have been written already."""
        self.scheduler.flush(write)

    def memory_bytes(self) -> int:
        """Nothing is kept."""
        return 0

    def close(self) -> None:
        """Tells the processor that its task ends, if it wants to know."""
        close = getattr(self._processor, "close", None)  # none of `Processor`: its code is in fingerprints
        if callable(close):
            self._visit = None
            self._guarded(lambda _: close(), None, close)

    # -------------------------------------------------------------------------------------------------------------

    def _collect(self, record: FixedKeyRecord, addressee: int, visit: Visit) -> None:
        self._forwarded.add(record, visit.sequence, addressee)

    def _punctuate(self, visits: Visits, *, before: int) -> None:
        """Makes the calls that come due at rows of the uptake from the current one to ``before``, exclusive."""
        queue = self.scheduler.queue
        while (row := visits.due_at(queue.next_due_ms)) is not None and row < before:
            visit = visits.call_at(row)
            queue.punctuate(visit.stream_time, partial(self.call, visit=visit))
            self.log_schedule()

    def log_schedule(self) -> None:
        """Logs what is scheduled, if that has a changelog and has changed."""
        if self._schedule_log is not None:
            self.scheduler.log(self._schedule_log)

    def hand_over(self) -> None:
        """Writes what is left in memory: others may look into the stores, and want the logs, from now on."""
        self.log_schedule()
        for store in self._stores.values():
            store.flush()
        for log in self._logs.values():
            log.hand_over()

    def _guarded(self, function: Callable[..., Any], argument: object, of_user: object) -> Any:
        """Calls the user's code, of which ``of_user`` is the function; an error says where it was."""
        with calling("a processor", [of_user], node=self._context.node, sequence=lambda _: self._sequence()):
            return function(argument)

    def _sequence(self) -> int | None:
        """Of the record that is being processed; None: there is none, a call is made."""
        visit = self._visit
        return None if visit is None or visit.metadata is None else visit.sequence
