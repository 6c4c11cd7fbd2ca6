"""Custom processors, for what the DSL cannot say (KIP-820, KIP-478; Kafka's ``processor.api``).

A processor takes one record at a time, keeps state in stores, forwards what it likes, and can be called as stream time
goes on::

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

It is the slow way: tens of microseconds a record, where the DSL takes tenths of one. It must be pure, as all functions
of a topology: the answer depends on records and stores alone. Whatever it keeps in itself is gone with the next slice;
what it keeps in stores is not.
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

Headers: TypeAlias = tuple[tuple[str, bytes | None], ...]
"""(name, value) of each header, in order."""


@dataclass(frozen=True, slots=True)
class FixedKeyRecord:
    """A record whose key stays (KIP-820, ``FixedKeyRecord``): given to `FixedKeyProcessor`, which changes the rest.

    Attributes:
        key: As Python data; of a windowed record a `Windowed`.
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
        """The same with another value."""
        return replace(self, value=value)

    def with_timestamp(self, timestamp: int) -> Self:
        """The same with another timestamp."""
        return replace(self, timestamp=timestamp)

    def with_headers(self, headers: Headers) -> Self:
        """The same with other headers."""
        return replace(self, headers=headers)


@dataclass(frozen=True, slots=True)
class Record(FixedKeyRecord):
    """A record (KIP-478, ``Record``): what a `Processor` is given and forwards."""

    def with_key(self, key: Any) -> Self:
        """The same with another key."""
        return replace(self, key=key)


class RecordMetadata(NamedTuple):
    """Where the source record comes from that caused the current one (Kafka's ``RecordMetadata``)."""

    topic: str
    partition: int
    offset: int


class PunctuationType(Enum):
    """Which clock calls (Kafka's ``PunctuationType``)."""

    STREAM_TIME = "stream time"
    WALL_CLOCK_TIME = "wall-clock time"
    """Refused: a replay has no wall clock."""


class Cancellable(Protocol):
    """What `ProcessorContext.schedule` gives (Kafka's ``Cancellable``)."""

    def cancel(self) -> None:
        """Ends the calls; a second time does nothing."""


class ProcessorContext(Protocol):
    """What a processor works with (KIP-478, ``ProcessorContext``); the same object all the time."""

    @property
    def application_id(self) -> str:
        """Of the `StreamsBuilder`."""

    @property
    def task_id(self) -> str:
        """``<sub-topology>_<partition>``."""

    def forward(self, record: FixedKeyRecord, child_name: str | None = None) -> None:
        """Sends a record on, to all children or to the one of that name.

        Raises:
            ConfigurationError: There is no such child, or there is nothing to forward from: this is `Processor.init`.
        """

    def schedule(
        self, interval: timedelta, punctuation_type: PunctuationType, callback: Callable[[int], object]
    ) -> Cancellable:
        """Has ``callback`` called with the stream time in ms, every ``interval`` of stream time.

        As in Kafka: for the first time behind the next record; then when stream time has come to a multiple of the
        interval, or passed it, once, however many it has passed. Calls come behind the record that moved stream time.

        The calls go on in the next slice. So `Processor.init` must schedule the same ones each time, and what is
        scheduled elsewhere must be a method of the processor.

        Raises:
            ConfigurationError: By wall-clock time, an interval of less than 1 ms, or a callback that the next slice
                could not find again.
        """

    def get_state_store(self, name: str) -> Any:
        """The store of that name.

        Raises:
            ConfigurationError: The processor has not been connected with such a store.
        """

    def current_stream_time_ms(self) -> int:
        """The task's stream time: the largest timestamp it has taken up, that of the current record included.

        -1 in `Processor.init`.
        """

    def record_metadata(self) -> RecordMetadata | None:
        """Of the current record; None where there is none: in callbacks, or behind what held records back."""


class _AnyProcessor(ABC):
    context: ProcessorContext

    def init(self, context: ProcessorContext) -> None:
        """Called at the beginning of each slice; keeps the context. Get stores and schedule calls here."""
        self.context = context


class Processor(_AnyProcessor):
    """Takes records, gives any (KIP-820, for ``KStream.process``). There is no ``close``: nothing is left open."""

    @abstractmethod
    def process(self, record: Record) -> None:
        """Called with each record, also where key or value is None."""


class FixedKeyProcessor(_AnyProcessor):
    """Takes records, gives some with the same keys (KIP-820, for ``KStream.process_values``)."""

    @abstractmethod
    def process(self, record: FixedKeyRecord) -> None:
        """Called with each record, also where key or value is None."""


class ProcessorSupplier(ABC):
    """Makes processors, and knows their stores (KIP-401, ``ConnectedStoreProvider``).

    Where the stores are named in ``process()``, the processor's class, or any function that gives a new one, will do.
    """

    @abstractmethod
    def get(self) -> Processor | FixedKeyProcessor:
        """A new processor each time."""

    def stores(self) -> Sequence[StoreBuilder[Any]]:
        """Its stores: they are added to the topology and connected with the processor."""
        return ()


ProcessorSupplierLike: TypeAlias = "ProcessorSupplier | Callable[[], Processor | FixedKeyProcessor]"
"""What gives processors: see `ProcessorSupplier`."""
