"""Objects of all classes of the DSL, and arguments of all kinds that its methods take."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any

import pyarrow as pa

import statelib
from statelib import (
    Branched,
    BufferConfig,
    Consumed,
    DayWindows,
    Deduplicated,
    Grouped,
    Job,
    Joined,
    JoinWindows,
    JsonSerde,
    Materialized,
    Named,
    Processor,
    Produced,
    Record,
    Repartitioned,
    SessionWindows,
    SlidingWindows,
    Stores,
    StreamJoined,
    StreamsBuilder,
    Suppressed,
    TimeWindows,
    TopologyTestDriver,
    UnlimitedWindows,
    ValueTransformerWithKey,
    count,
)

MINUTE = timedelta(minutes=1)
WINDOWS = TimeWindows.of_size_with_no_grace(MINUTE)

UNCHECKED = {
    "Aggregation": "made by count() and the like",
    "AvroSerde": "a serde looks at its arguments itself",
    "BytesSerde": "a serde", "JsonSerde": "a serde", "ProtobufSerde": "a serde", "StringSerde": "a serde",
    "UuidSerde": "a serde", "SessionWindowedSerde": "a serde", "TimeWindowedSerde": "a serde",
    "BuiltInDslStoreSuppliers": "an enumeration",
    "Cancellable": "given to processors", "ProcessorContext": "given to processors",
    "TransformerContext": "given to transformers",
    "FixedKeyProcessor": "a user's class", "Processor": "a user's class", "ProcessorSupplier": "a user's class",
    "ValueTransformerWithKey": "a user's class", "ValueTransformerWithKeySupplier": "a user's class",
    "FixedKeyRecord": "one for each record", "Record": "one for each record", "RecordMetadata": "one for each record",
    "TestRecord": "a result", "ValueAndTimestamp": "a result", "VersionedRecord": "a result", "Windowed": "a result",
    "PunctuationType": "an enumeration", "StoreFormat": "of changelogs",
    "KeyValueStore": "called for each record", "SessionStore": "called for each record",
    "StateStore": "called for each record", "TimestampedKeyValueStore": "called for each record",
    "TimestampedWindowStore": "called for each record", "VersionedBytesStore": "called for each record",
    "VersionedKeyValueStore": "called for each record", "WindowStore": "called for each record",
    "SessionStoreWithHeaders": "called for each record", "TimestampedWindowStoreWithHeaders": "called for each record",
    "TimestampedKeyValueStoreWithHeaders": "called for each record",
    "AggregationWithHeaders": "a result", "ValueTimestampHeaders": "a result",
    "StoreBuilder": "made by Stores", "MultiVersionedKeyQuery": "of a store", "VersionedKeyQuery": "of a store",
    "StateSnapshot": "of inspection", "StoreSnapshot": "of inspection", "Handover": "no part of the DSL",
    "SwitchOver": "no part of the DSL",
    "Expectation": "made by expect()", "IcebergTable": "no part of the DSL", "KafkaTopic": "no part of the DSL",
    "Topology": "made by StreamsBuilder",
    "Settings": "made by load_settings()", "Storage": "no part of the DSL", "TopicArchive": "no part of the DSL",
}  # fmt: skip
"""Public classes whose methods are not looked at, and why."""


class Unchanged(ValueTransformerWithKey):
    """A transformer of a table's values."""

    def transform(self, read_only_key: Any, value: Any) -> Any:
        del read_only_key
        return value


class Doubled(Processor):
    """A processor."""

    def process(self, record: Record) -> None:
        """Forwards it twice."""
        self.context.forward(record)
        self.context.forward(record)


def checked_classes() -> list[type]:
    """All public classes but those of `UNCHECKED` and the errors."""
    found = [getattr(statelib, name) for name in statelib.__all__]
    classes = [one for one in found if isinstance(one, type) and not issubclass(one, Exception)]
    return [one for one in classes if one.__name__ not in UNCHECKED]


def an(of: str, folder: str) -> Any:
    """A new object of a class, by its name; all streams and tables belong to a builder of their own."""
    streams = StreamsBuilder("job")
    if of in STREAMS:
        return STREAMS[of](streams)
    if of in {"TopologyTestDriver", "TestInputTopic", "TestOutputTopic"}:
        driver = TopologyTestDriver(topology())
        topic = {"TestInputTopic": driver.create_input_topic, "TestOutputTopic": driver.create_output_topic}.get(of)
        return driver if topic is None else topic("in" if of == "TestInputTopic" else "out")
    return OBJECTS[of]


STREAMS: dict[str, Any] = {
    "StreamsBuilder": lambda s: s,
    "KStream": lambda s: s.stream("a"),
    "KTable": lambda s: s.table("a"),
    "GlobalKTable": lambda s: s.global_table("a"),
    "KGroupedStream": lambda s: s.stream("a").group_by_key(),
    "KGroupedTable": lambda s: s.table("a").group_by("k"),
    "TimeWindowedKStream": lambda s: s.stream("a").group_by_key().windowed_by(WINDOWS),
    "SessionWindowedKStream": lambda s: s.stream("a").group_by_key().windowed_by(OBJECTS["SessionWindows"]),
    "CogroupedKStream": lambda s: s.stream("a").group_by_key().cogroup({"n": count()}),
    "TimeWindowedCogroupedKStream": lambda s: STREAMS["CogroupedKStream"](s).windowed_by(WINDOWS),
    "SessionWindowedCogroupedKStream": lambda s: STREAMS["CogroupedKStream"](s).windowed_by(OBJECTS["SessionWindows"]),
    "WindowedKTable": lambda s: s.stream("a").group_by_key().windowed_by(WINDOWS).count(),
    "BranchedKStream": lambda s: s.stream("a").split(),
}


@cache
def topology() -> statelib.Topology:
    """From ``in`` to ``out``."""
    streams = StreamsBuilder("job")
    streams.stream("in").to("out")
    return streams.build()


OBJECTS: dict[str, Any] = {
    "Branched": Branched.as_("b"),
    "BufferConfig": BufferConfig(),
    "Consumed": Consumed(),
    "DayWindows": DayWindows.of_zone_with_no_grace("UTC"),
    "Deduplicated": Deduplicated(),
    "EagerBufferConfig": BufferConfig.max_records(1),
    "EmitStrategy": statelib.EmitStrategy.on_window_close(),
    "FailOnInvalidTimestamp": statelib.FailOnInvalidTimestamp(),
    "Grouped": Grouped.as_("g"),
    "Job": Job("job", topology()),
    "JoinWindows": JoinWindows.of_time_difference_with_no_grace(MINUTE),
    "Joined": Joined.as_("j"),
    "KeyValueBytesStoreSupplier": Stores.persistent_key_value_store("s"),
    "LogAndSkipOnInvalidTimestamp": statelib.LogAndSkipOnInvalidTimestamp(),
    "Materialized": Materialized.as_("m"),
    "Named": Named.as_("n"),
    "Printed": statelib.Printed(),
    "Produced": Produced(),
    "Repartitioned": Repartitioned(),
    "SessionBytesStoreSupplier": Stores.persistent_session_store("s", MINUTE),
    "SessionWindows": SessionWindows.of_inactivity_gap_with_no_grace(MINUTE),
    "SlidingWindows": SlidingWindows.of_time_difference_with_no_grace(MINUTE),
    "Stores": Stores(),
    "StreamJoined": StreamJoined(),
    "StrictBufferConfig": BufferConfig.unbounded(),
    "Suppressed": Suppressed.until_time_limit(MINUTE, BufferConfig.unbounded()),
    "TableJoined": statelib.TableJoined(),
    "TimeWindows": WINDOWS,
    "TimestampExtractor": statelib.TimestampExtractor("t"),
    "Topology": topology(),
    "UnlimitedWindows": UnlimitedWindows.of(),
    "UsePartitionTimeOnInvalidTimestamp": statelib.UsePartitionTimeOnInvalidTimestamp(),
    "VersionedBytesStoreSupplier": Stores.persistent_versioned_key_value_store("s", MINUTE),
    "WindowBytesStoreSupplier": Stores.persistent_window_store("s", MINUTE, MINUTE),
}

ARGUMENTS: dict[str, Any] = {
    "AlignedWindows": WINDOWS,
    "AnyBufferConfig": BufferConfig.unbounded(),
    "BytesStoreSupplier": Stores.persistent_key_value_store("s"),
    "BuiltInDslStoreSuppliers": statelib.BuiltInDslStoreSuppliers.IN_MEMORY,
    "Clock": "first",
    "Iterable": [],
    "MapperLike": "field",
    "Mapping": {"n": count()},
    "Path": "folder",
    "ProcessorSupplierLike": Doubled,
    "ValueTransformerSupplierLike": Unchanged,
    "Semantics": "kip",
    "Serde": JsonSerde(pa.int64()),
    "SerdeLike": pa.int64(),
    "StoreBuilder": Stores.key_value_store_builder(Stores.persistent_key_value_store("s"), pa.string(), pa.string()),
    "bool": False,
    "datetime": datetime(2024, 1, 1, tzinfo=UTC),
    "int": 1,
    "pa.DataType": pa.int64(),
    "str": "in",
    "timedelta": MINUTE,
    "tuple": (),
}
"""By the name of a kind, one that is right."""


def function_of(count: int) -> Any:
    """A function that takes so many arguments."""
    return (lambda: 0, lambda _: 0, lambda *_: 0, lambda *_: 0)[count]
