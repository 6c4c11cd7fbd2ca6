"""Processors, sources and sinks by name (the Processor API), beside what the DSL has made of other topics."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from statelib import (
    FixedKeyProcessor,
    FixedKeyRecord,
    Processor,
    PunctuationType,
    Record,
    Stores,
    Topology,
    ValueTransformerWithKey,
)
from tests.surface.records import CALLS, VISITS

if TYPE_CHECKING:
    from statelib import ProcessorContext, StoreBuilder, TransformerContext

STRING = pa.string()
_TELLS = timedelta(milliseconds=25)


def text_store(name: str) -> StoreBuilder[Any]:
    """A store of texts by text."""
    return Stores.key_value_store_builder(Stores.persistent_key_value_store(name), STRING, STRING)


def number_store(name: str) -> StoreBuilder[Any]:
    """A store of numbers by text."""
    return Stores.key_value_store_builder(Stores.persistent_key_value_store(name), STRING, pa.int64())


def id_of(value: Any) -> str:
    """That of a record's value."""
    return "-" if value is None else value["id"]


class Keeping(Processor):
    """Puts the id of each key's latest record into a store, which is the only one that it has."""

    def __init__(self, store: str) -> None:
        self.store_name = store

    def init(self, context: ProcessorContext) -> None:
        super().init(context)
        self.store = context.get_state_store(self.store_name)

    def process(self, record: Record) -> None:
        if record.key is not None:
            self.store.put(record.key, id_of(record.value))


class Meeting(Processor):
    """Tells of each record what stores hold of its key, and now and then how many records there were."""

    def init(self, context: ProcessorContext) -> None:
        super().init(context)
        self.stores = [context.get_state_store(name) for name in ("calls-kept", "tariffs-kept", "seen")]
        context.schedule(_TELLS, PunctuationType.STREAM_TIME, self.tell)

    def process(self, record: Record) -> None:
        key = record.key
        if key is None:
            return
        called, tariff, seen = (store.get(key) for store in self.stores)
        self.stores[2].put(key, (seen or 0) + 1)
        self.context.forward(record.with_value(f"{id_of(record.value)} {called} {tariff} {seen}"), "kept")
        if record.value is not None:
            self.context.forward(Record(record.value["id"], id_of(record.value), record.timestamp), "by-id")

    def tell(self, time_ms: int) -> None:
        for key, seen in self.stores[2].all():
            self.context.forward(Record(key, f"{seen} by {time_ms}", time_ms), "kept")


class Shortening(Processor):
    """Forwards the end of a text to all that come below it."""

    def process(self, record: Record) -> None:
        self.context.forward(record.with_value(record.value[-20:]))


class Counting(FixedKeyProcessor):
    """Makes of each value how many there were of its key, and what a store that all tasks have says of the key."""

    def init(self, context: Any) -> None:
        super().init(context)
        self.counts = context.get_state_store("counts-of-values")
        self.places = context.get_state_store("places-kept")

    def process(self, record: FixedKeyRecord) -> None:
        if record.key is not None:
            counted = (self.counts.get(record.key) or 0) + 1
            self.counts.put(record.key, counted)
            self.context.forward(record.with_value(f"{counted} {self.places.get(record.key)}"))


class Numbering(ValueTransformerWithKey):
    """Makes of each value its id and how many changes the key has seen."""

    def init(self, context: TransformerContext) -> None:
        super().init(context)
        self.changes = context.get_state_store("changes")

    def transform(self, read_only_key: Any, value: Any) -> str | None:
        changes = (self.changes.get(read_only_key) or 0) + 1
        self.changes.put(read_only_key, changes)
        return None if value is None else f"{value['id']} {changes}"


def add_low_level(topology: Topology) -> None:
    """Adds sources, processors with stores of all kinds, and sinks."""
    topology.add_source("visits", VISITS)
    topology.add_read_only_state_store(
        text_store("calls-kept"), "calls", CALLS, "keep-calls", lambda: Keeping("calls-kept")
    )
    topology.add_global_store(
        text_store("tariffs-kept"), "tariffs", "tariffs", "keep-tariffs", lambda: Keeping("tariffs-kept")
    )
    topology.add_processor("meet", Meeting, "visits", value_type=STRING)
    topology.add_state_store(number_store("seen"), "meet")
    topology.connect_processor_and_state_stores("meet", "calls-kept")
    topology.add_processor("kept", Shortening, "meet", value_type=STRING)
    topology.add_processor("by-id", Shortening, "meet", value_type=STRING)
    topology.add_sink("visits-met", "visits-met", "kept")
    topology.add_sink("visits-by-id", "visits-by-id", "by-id", "kept")
