"""Runs a custom processor (`statelib.operators.processors.definition`) over each record: Kafka's ``KStreamProcess``.

A call that is scheduled comes behind the source record that moved the task's stream time, whether that record reached
the processor or not, and behind all that it caused here; what it forwards carries that record's sequence. Stores are
written to the task's state before the next processor runs, so nothing depends on where batches end.

Accounts: ``processed``. Counter: ``punctuations``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from statelib.errors.kinds import ConfigurationError
from statelib.metrics.node_metrics import NodeMetrics
from statelib.operators.base import OperatorContext
from statelib.operators.mappers.code_identity import describe_class, describe_factory
from statelib.operators.mappers.function_errors import calling
from statelib.operators.mappers.python_values import items_of, python_keys
from statelib.operators.processors.changelog import NotInInit, StoreLog
from statelib.operators.processors.definition import (
    FixedKeyProcessor,
    FixedKeyRecord,
    Processor,
    ProcessorSupplier,
    PunctuationType,
    Record,
    RecordMetadata,
)
from statelib.operators.processors.forwarded import TO_ALL, Forwarded, headers_of, sent_to
from statelib.operators.processors.punctuation import Scheduler
from statelib.records.batch import NO_OFFSET, NO_TIMESTAMP
from statelib.records.key_table import KeyTable
from statelib.settings.durations import milliseconds
from statelib.stores.memory import MemoryBackend
from statelib.stores.spec import StoreSpec

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from datetime import timedelta

    from statelib.operators.processors.definition import Cancellable, ProcessorSupplierLike
    from statelib.records.batch import Batch, Uptake
    from statelib.state import StateStore, StoreBuilder
    from statelib.stores.backend import WriteBatch


@dataclass(frozen=True, slots=True)
class Process:
    """``process`` and ``processValues``.

    Attributes:
        supplier: Makes the processor.
        stores: What it is connected with.
        node: Names the state of what it schedules.
        application_id: What it is told.
        key_type: Arrow type of the keys that it forwards; None: that of those it gets, windows included.
        value_type: Arrow type of the values; None: that of those it gets.
        fixed_key: ``processValues``: keys stay.
    """

    supplier: ProcessorSupplierLike
    stores: tuple[StoreBuilder[Any], ...]
    node: str
    application_id: str
    key_type: pa.DataType | None
    value_type: pa.DataType | None
    fixed_key: bool = False

    def check(self, node: str) -> None:
        """Makes a processor and lets it begin, over empty stores in memory: what it asks for in vain is refused here.

        Raises:
            ConfigurationError: See `build`.
        """
        self.build(OperatorContext(node, MemoryBackend(), KeyTable(), NodeMetrics()))

    def build(self, context: OperatorContext) -> ProcessOperator:
        """The running operator.

        Raises:
            ConfigurationError: The supplier gives no new processor, or its ``init`` fails.
        """
        return ProcessOperator(self, context)

    def describe(self) -> Mapping[str, object]:
        """The processor's code, its stores and types."""
        supplier = self.supplier
        by_class = isinstance(supplier, ProcessorSupplier)
        return {
            "operator": "process_values" if self.fixed_key else "process",
            "supplier": describe_class(type(supplier)) if by_class else describe_factory(supplier),  # type: ignore[arg-type]
            "connected": [dict(store.describe()) for store in self.stores],
            "key_type": None if self.key_type is None else str(self.key_type),
            "value_type": None if self.value_type is None else str(self.value_type),
        }

    def state_stores(self) -> Sequence[StoreSpec]:
        """The stores', and that of what is scheduled."""
        scheduled = StoreSpec(self.schedule_family, "punctuation", (self.schedule_family,))
        return (*(store.spec() for store in self.stores), scheduled)

    @property
    def schedule_family(self) -> str:
        """Where what is scheduled is kept."""
        return f"{self.node}.punctuation"

    def new_processor(self) -> Processor | FixedKeyProcessor:
        """A processor of the kind that is wanted.

        Raises:
            ConfigurationError: The supplier gives something else.
        """
        supplier: Any = self.supplier.get if isinstance(self.supplier, ProcessorSupplier) else self.supplier
        with calling("a processor's supplier", [supplier], node=self.node):
            processor = supplier()
        wanted: type[Processor | FixedKeyProcessor] = FixedKeyProcessor if self.fixed_key else Processor
        if not isinstance(processor, wanted):
            raise ConfigurationError(
                f"the supplier gives a {type(processor).__name__}, not a {wanted.__name__}",
                node=self.node,
                next_step=f"derive it from statelib.{wanted.__name__}",
            )
        return processor


class ProcessOperator:
    """The running operator; also the `ProcessorContext` of its processor."""

    def __init__(self, spec: Process, context: OperatorContext) -> None:
        self._spec = spec
        self._context = context
        self._children = {name: number for number, name in enumerate(context.children)}
        self._stores: dict[str, StateStore[Any]] = {}
        for builder in spec.stores:
            store = builder.build().init(context.backend, semantics=context.semantics, metrics=context.metrics)
            self._stores[builder.name] = store
        self._logs = {
            store.name: StoreLog(context.changelogs[store.name], self._timestamp)
            for store in spec.state_stores()
            if store.name in context.changelogs
        }
        self._schedule_log = self._logs.get(spec.schedule_family)
        self._stream_time = NO_TIMESTAMP
        self._first_sequence = 0
        self._forwarded = Forwarded(pa.null(), pa.null())
        self._addressee = np.empty(0, np.int64)
        self._row: int | None = None  # of the uptake; None in init
        self._record_timestamp = 0
        self._metadata: RecordMetadata | None = None
        self._processor = spec.new_processor()
        self._scheduler = Scheduler(context.backend, context.node, spec.schedule_family, self._processor)
        for name in self._logs.keys() & self._stores.keys():
            self._stores[name].log_to(NotInInit(name))
        self._guarded(self._processor.init, self, self._processor.init)
        self._scheduler.end_init()
        for name, store in self._stores.items():
            store.log_to(self._logs.get(name))
        self._log_schedule()
        self._hand_over()

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
        if self._row is None:
            raise ConfigurationError("init() has nothing to forward", next_step="forward from process() or a callback")
        wanted = FixedKeyRecord if self._spec.fixed_key else Record
        if type(record) is not wanted:
            step = f"forward a {wanted.__name__}"
            raise ConfigurationError(f"a {type(record).__name__} cannot be forwarded here", next_step=step)
        if child_name is not None and child_name not in self._children:
            known = ", ".join(self._children) or "there are none"
            raise ConfigurationError(f"there is no child {child_name!r}", next_step=f"one of: {known}")
        addressee = TO_ALL if child_name is None else self._children[child_name]
        self._forwarded.add(record, self._first_sequence + self._row, addressee)

    def schedule(
        self, interval: timedelta, punctuation_type: PunctuationType, callback: Callable[[int], object]
    ) -> Cancellable:
        """See `ProcessorContext`."""
        if punctuation_type is not PunctuationType.STREAM_TIME:
            raise ConfigurationError(
                "a replay has no wall clock for callbacks",
                next_step="schedule by PunctuationType.STREAM_TIME",
            )
        interval_ms = milliseconds(interval, "punctuation interval", at_least=1)
        return self._scheduler.schedule(interval_ms, callback)

    def get_state_store(self, name: str) -> Any:
        """See `ProcessorContext`."""
        if name not in self._stores:
            known = ", ".join(self._stores) or "it has none"
            raise ConfigurationError(
                f"the processor has no store of this name; of its own: {known}",
                store=name,
                next_step="add_state_store() the store's builder, and give its name to process()",
            )
        return self._stores[name]

    def current_stream_time_ms(self) -> int:
        """See `ProcessorContext`."""
        return self._stream_time

    def record_metadata(self) -> RecordMetadata | None:
        """See `ProcessorContext`."""
        return self._metadata

    # --- Operator ------------------------------------------------------------------------------------------------

    def process(self, inputs: Sequence[Batch], uptake: Uptake) -> Batch:
        """What the processor forwards for each record, and for the calls that come due meanwhile."""
        (batch,) = inputs
        spec, metrics = self._spec, self._context.metrics
        key_type = batch.keys.type if spec.key_type is None else spec.key_type
        value_type = batch.value.type if spec.value_type is None else spec.value_type
        self._forwarded = Forwarded(key_type, value_type)
        self._first_sequence = uptake.first_sequence
        self._row = 0
        kind = FixedKeyRecord if spec.fixed_key else Record
        columns = (
            (batch.sequence - uptake.first_sequence).tolist(),
            python_keys(batch.keys),
            items_of(batch.value),
            batch.timestamp.tolist(),
            headers_of(batch.headers, len(batch)),
        )
        for row, key, value, timestamp, headers in zip(*columns, strict=True):
            self._punctuate(uptake, before=row)
            self._row, self._stream_time = row, int(uptake.stream_time[row])
            self._metadata = self._metadata_of(uptake, row)
            self._record_timestamp = timestamp
            self._guarded(self._processor.process, kind(key, value, timestamp, headers), self._processor.process)
            self._log_schedule()
        self._punctuate(uptake, before=len(uptake))
        self._hand_over()
        forwarded = self._forwarded.batch([self._processor.process])
        self._addressee = np.array(self._forwarded.addressee, np.int64)
        metrics.records_in += len(batch)
        metrics.records_out += len(forwarded)
        metrics.account("processed", len(batch))
        return forwarded

    def sent_to(self, child: str, forwarded: Batch) -> Batch:
        """See `RoutingOperator`."""
        return sent_to(forwarded, self._addressee, self._children[child])

    def flush(self, write: WriteBatch) -> None:
        """Writes what is scheduled; stores have been written already."""
        self._scheduler.flush(write)

    def memory_bytes(self) -> int:
        """Nothing is kept."""
        return 0

    # -------------------------------------------------------------------------------------------------------------

    def _punctuate(self, uptake: Uptake, *, before: int) -> None:
        """Makes the calls that come due at rows of the uptake from the current one to ``before``, exclusive."""
        queue = self._scheduler.queue
        while (due_ms := queue.next_due_ms) is not None:
            row = max(int(np.searchsorted(uptake.stream_time, due_ms)), self._row or 0)
            if row >= before or (row := uptake.end_of(row)) >= before:
                return
            self._row, self._stream_time, self._metadata = row, int(uptake.stream_time[row]), None
            self._record_timestamp = self._stream_time
            made = self._guarded(queue.punctuate, self._stream_time, queue.next_callback)
            self._log_schedule()
            self._context.metrics.count("punctuations", made)

    def _timestamp(self) -> int:
        """That of the record that is being processed, or the time of the call, ms."""
        return self._record_timestamp

    def _log_schedule(self) -> None:
        if self._schedule_log is not None:
            self._scheduler.log(self._schedule_log)

    def _hand_over(self) -> None:
        """Writes what is left in memory: others may look into the stores, and want the logs, from now on."""
        for store in self._stores.values():
            store.flush()
        for log in self._logs.values():
            log.hand_over()

    def _metadata_of(self, uptake: Uptake, row: int) -> RecordMetadata | None:
        offset = int(uptake.offset[row])
        if offset == NO_OFFSET:
            return None
        topics = self._context.sources
        topic = topics[int(uptake.source[row])] if topics else ""
        return RecordMetadata(topic, int(uptake.partition[row]), offset)

    def _guarded(self, function: Callable[..., Any], argument: object, of_user: object) -> Any:
        """Calls the user's code, of which ``of_user`` is the function; an error says where it was."""
        with calling("a processor", [of_user], node=self._context.node, sequence=lambda _: self._sequence()):
            return function(argument)

    def _sequence(self) -> int | None:
        """Of the record that is being processed; None: there is none, a call is made."""
        return None if self._metadata is None or self._row is None else self._first_sequence + self._row
