"""Custom processors, for logic that the DSL cannot express (KIP-820, KIP-478; Kafka's ``processor.api``).

A processor gets one record at a time, keeps state in stores, forwards any records, and can be called back as stream
time advances::

    class Count(Processor):
        def init(self, context):
            super().init(context)
            self.counts = context.get_state_store("counts")
            context.schedule(timedelta(minutes=1), PunctuationType.STREAM_TIME, self.tell)

        def process(self, record):
            self.counts.put(record.key, (self.counts.get(record.key) or 0) + 1)

        def tell(self, time_ms):
            for key, count in self.counts.all():
                self.context.forward(Record(key, count, time_ms))

Processors are slow: tens of microseconds per record, where the DSL takes tenths of one. Like all functions of a
topology, a processor must be pure: its results depend on records and stores alone. Attributes of the object are lost
at the end of a slice; stores are kept.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from enum import Enum
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, Self, TypeAlias

from statelib.errors.kinds import InputError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import timedelta

    from statelib.state import StoreBuilder
    from statelib.state.epoch_time import Time

Headers: TypeAlias = tuple[tuple[str, bytes | None], ...]
"""(name, value) of each header, in order."""


@dataclass(frozen=True, slots=True)
class FixedKeyRecord:
    """A record whose key cannot be changed (KIP-820, ``FixedKeyRecord``), for a `FixedKeyProcessor`.

    Attributes:
        key: As Python data; a windowed key is a `Windowed`.
        value: As Python data; None is a tombstone.
        timestamp: Milliseconds since 1970, not negative.
        headers: See `Headers`.
    """

    key: Any
    value: Any
    timestamp: int
    headers: Headers = ()

    def __post_init__(self) -> None:
        if self.timestamp < 0:
            raise InputError(f"timestamp {self.timestamp} is negative")

    def with_value(self, value: Any) -> Self:
        """A copy with another value."""
        return replace(self, value=value)

    def with_timestamp(self, timestamp: int) -> Self:
        """A copy with another timestamp."""
        return replace(self, timestamp=timestamp)

    def with_headers(self, headers: Headers) -> Self:
        """A copy with other headers."""
        return replace(self, headers=headers)


@dataclass(frozen=True, slots=True)
class Record(FixedKeyRecord):
    """A record (KIP-478, ``Record``), which a `Processor` receives and forwards."""

    def with_key(self, key: Any) -> Self:
        """A copy with another key."""
        return replace(self, key=key)


class RecordMetadata(NamedTuple):
    """The position of the source record that led to the current record (Kafka's ``RecordMetadata``)."""

    topic: str
    partition: int
    offset: int


class PunctuationType(Enum):
    """The clock that triggers callbacks (Kafka's ``PunctuationType``)."""

    STREAM_TIME = "stream time"
    WALL_CLOCK_TIME = "wall-clock time"
    """The clock shows what it would if each record were processed at its timestamp: the task's stream time."""


class Cancellable(Protocol):
    """Returned by `ProcessorContext.schedule`, to cancel the callbacks (Kafka's ``Cancellable``)."""

    def cancel(self) -> None:
        """Cancels the callbacks. A second call does nothing."""


class ProcessorContext(Protocol):
    """A processor's access to stores, time and children (KIP-478, ``ProcessorContext``); always the same object."""

    @property
    def application_id(self) -> str:
        """Of the `StreamsBuilder`."""

    @property
    def task_id(self) -> str:
        """``<sub-topology>_<partition>``."""

    def forward(self, record: FixedKeyRecord, child_name: str | None = None) -> None:
        """Forwards a record to all children, or to the child of that name.

        Raises:
            ConfigurationError: There is no such child, or the call is in `Processor.init`, where there is no record.
        """

    def schedule(
        self,
        interval: timedelta,
        punctuation_type: PunctuationType,
        callback: Callable[[int], object],
        start_time: Time | None = None,
    ) -> Cancellable:
        """Calls ``callback`` with the time in ms, every ``interval`` of stream time or wall-clock time.

        As in Kafka, by stream time the first call comes after the next record. Further calls come when stream time
        reaches or passes a multiple of the interval: one call, however many multiples it passes, after the record that
        advanced stream time. With ``start_time`` (ms, or a `datetime` with a time zone) the first call comes when
        stream time reaches it, and multiples count from there (KIP-1146); if it is past already, at the next multiple.

        By wall-clock time the first call comes an interval after the current time; if that is not known yet, in
        `Processor.init`, an interval after the time of the task's first record. Callbacks by stream time come first.

        Callbacks continue in the next slice. So `Processor.init` must schedule the same ones each time, and a callback
        scheduled elsewhere must be a method of the processor.

        Raises:
            ConfigurationError: The interval is less than 1 ms, the start is before 1970, or the next slice could not
                find the callback again.
        """

    def commit(self) -> None:
        """Changes nothing: a run commits a slice as a whole. In Kafka, too, it is only a request."""

    def get_state_store(self, name: str) -> Any:
        """The store of that name.

        Raises:
            ConfigurationError: The processor is not connected with a store of that name.
        """

    def current_stream_time_ms(self) -> int:
        """The task's stream time: the largest timestamp that it has processed, including the current record's.

        -1 in `Processor.init`.
        """

    def current_system_time_ms(self) -> int:
        """The wall clock: as `current_stream_time_ms`; see `PunctuationType.WALL_CLOCK_TIME`."""

    def record_metadata(self) -> RecordMetadata | None:
        """The current record's metadata; None if there is none: in callbacks, or after an operator that buffers."""


class TransformerContext(ProcessorContext, Protocol):
    """What a `ValueTransformerWithKey` sees of its task and of the record (Kafka's ``processor.ProcessorContext``).

    It forwards nothing.
    """

    def timestamp(self) -> int:
        """Of the record, in ms since 1970; in a callback, its time."""

    def headers(self) -> Headers:
        """Of the record; none in a callback."""

    def topic(self) -> str | None:
        """The topic that the record came from; None if there is none: see `ProcessorContext.record_metadata`."""

    def partition(self) -> int:
        """The partition that the record came from; -1 if there is none."""

    def offset(self) -> int:
        """The offset that the record came from; -1 if there is none."""


class _AnyProcessor(ABC):
    context: ProcessorContext

    def init(self, context: ProcessorContext) -> None:
        """Called at the beginning of each slice; keeps the context. Get stores and schedule callbacks here."""
        self.context = context


class Processor(_AnyProcessor):
    """Processes records and forwards any (KIP-820, for ``KStream.process``).

    If it has a method ``close(self)``, that is called at the end of each slice, whether the slice succeeds or fails, to
    release what `init` has opened. Stores can be read there; what is put into them is lost.
    """

    @abstractmethod
    def process(self, record: Record) -> None:
        """Called with each record, also where key or value is None."""


class FixedKeyProcessor(_AnyProcessor):
    """Processes records and forwards some with the same keys (KIP-820, for ``KStream.process_values``).

    A method ``close(self)`` is called as `Processor` says.
    """

    @abstractmethod
    def process(self, record: FixedKeyRecord) -> None:
        """Called with each record, also where key or value is None."""


class ValueTransformerWithKey(ABC):
    """Makes a table's values of another's, with stores (Kafka's ``ValueTransformerWithKey``)."""

    context: TransformerContext

    def init(self, context: TransformerContext) -> None:
        """Called at the beginning of each slice; keeps the context. Get stores here; nothing can be forwarded."""
        self.context = context

    @abstractmethod
    def transform(self, read_only_key: Any, value: Any) -> Any:
        """The new value of a key; called for each change, also where the value is None."""


class ProcessorSupplier(ABC):
    """Creates processors and declares their stores (KIP-401, ``ConnectedStoreProvider``).

    If ``process()`` names the stores, the processor's class, or a function that returns a new processor, is enough.
    """

    @abstractmethod
    def get(self) -> Processor | FixedKeyProcessor | ValueTransformerWithKey:
        """A new processor each time."""

    def stores(self) -> Sequence[StoreBuilder[Any]]:
        """The stores to add to the topology and to connect with the processor."""
        return ()


class ValueTransformerWithKeySupplier(ProcessorSupplier):
    """Creates transformers of a table's values and declares their stores (Kafka's ``ValueTransformerWithKeySupplier``).

    If ``transform_values_with()`` names the stores, the transformer's class, or a function that returns one, is enough.
    """

    @abstractmethod
    def get(self) -> ValueTransformerWithKey:
        """A new transformer each time."""


ValueTransformerSupplierLike: TypeAlias = "ValueTransformerWithKeySupplier | Callable[[], ValueTransformerWithKey]"
"""What gives transformers: see `ValueTransformerWithKeySupplier`."""

ProcessorSupplierLike: TypeAlias = "ProcessorSupplier | Callable[[], Processor | FixedKeyProcessor]"
"""What gives processors: see `ProcessorSupplier`."""
