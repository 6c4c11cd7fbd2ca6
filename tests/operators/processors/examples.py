"""Processors that tests run."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import pyarrow as pa

from statelib import FixedKeyProcessor, FixedKeyRecord, Processor, ProcessorSupplier, PunctuationType, Record, Stores

if TYPE_CHECKING:
    from statelib import KeyValueStore, ProcessorContext, StoreBuilder

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
