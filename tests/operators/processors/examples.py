"""Processors that tests run."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

import pyarrow as pa

from statelib import (
    FixedKeyProcessor,
    FixedKeyRecord,
    Named,
    Processor,
    ProcessorSupplier,
    PunctuationType,
    Record,
    Stores,
)

if TYPE_CHECKING:
    from statelib import KeyValueStore, KStream, ProcessorContext, StoreBuilder

INTERVAL = 10
COUNTS = Stores.key_value_store_builder(Stores.persistent_key_value_store("counts"), pa.string(), pa.int64())


class CountAndTell(Processor):
    """See `tests.reference.process.CountAndTell`."""

    def init(self, context: ProcessorContext) -> None:
        super().init(context)
        self.counts = context.get_state_store("counts")
        context.schedule(timedelta(milliseconds=INTERVAL), PunctuationType.STREAM_TIME, self.tell)

    def process(self, record: Record) -> None:
        if record.key is None:
            return
        count = (self.counts.get(record.key) or 0) + 1
        self.counts.put(record.key, count)
        if count == 1:
            self.context.forward(record.with_value(f"new: {record.value}"))

    def tell(self, time_ms: int) -> None:
        for key, count in self.counts.all():
            self.context.forward(Record(key, f"{count} by {time_ms}", time_ms))


class CountAndTellSupplier(ProcessorSupplier):
    """Brings the store."""

    def get(self) -> CountAndTell:
        return CountAndTell()

    def stores(self) -> list[StoreBuilder[KeyValueStore]]:
        return [COUNTS]


class StreamTime(FixedKeyProcessor):
    """Gives each record the task's stream time as its value."""

    def process(self, record: FixedKeyRecord) -> None:
        self.context.forward(record.with_value(self.context.current_stream_time_ms()))


RELAYED = Stores.key_value_store_builder(Stores.persistent_key_value_store("relayed"), pa.string(), pa.string())


class Relay(Processor):
    """See `tests.reference.process.Relays`; several of them share a store."""

    def __init__(self, name: str, interval: int | None) -> None:
        self.name = name
        self.interval = interval

    def init(self, context: ProcessorContext) -> None:
        super().init(context)
        self.store = context.get_state_store("relayed")
        if self.interval is not None:
            context.schedule(timedelta(milliseconds=self.interval), PunctuationType.STREAM_TIME, self.tell)

    def process(self, record: Record) -> None:
        if record.key is None:
            return
        for word in ("finds", "again"):
            self.context.forward(record.with_value(f"{self.name} {word} {self.store.get(record.key)}"))
            self.store.put(record.key, f"{record.value} of {self.name}"[:40])

    def tell(self, time_ms: int) -> None:
        for key, value in list(self.store.all()):
            self.context.forward(Record(key, f"{self.name} by {time_ms}: {value}", time_ms))
            self.store.put(key, f"told by {self.name}")


@dataclass(frozen=True)
class RelaySupplier(ProcessorSupplier):
    """Brings the store, whichever of them is the first."""

    name: str
    interval: int | None = None

    def get(self) -> Relay:
        return Relay(self.name, self.interval)

    def stores(self) -> list[StoreBuilder[KeyValueStore]]:
        return [RELAYED]


def relays(one: KStream, other: KStream) -> None:
    """Three of them: two in a row, with a step between, and one elsewhere."""
    first = one.process(RelaySupplier("first", 10), value_type=pa.string(), named=Named.as_("first"))
    second = first.map_values({"was": "value"}).map_values("was")
    second.process(RelaySupplier("second", 15), named=Named.as_("second")).to("relayed-twice")
    first.to("relayed-once")
    third = other.process(RelaySupplier("third"), value_type=pa.string(), named=Named.as_("third"))
    third.merge(first).to("relayed-anywhere")
