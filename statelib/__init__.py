"""Hindstream's engine: describe a topology as in Kafka Streams, and replay archived topics through it.

This is the whole public API: it builds jobs (`StreamsBuilder`, `Job`) and reads their stores (`open_state`). Everything
else in the package may change.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from statelib.changelog import StoreFormat, export_changelog, import_changelog
    from statelib.dsl import (
        Branched,
        BranchedKStream,
        CogroupedKStream,
        Deduplicated,
        GlobalKTable,
        Grouped,
        Joined,
        KGroupedStream,
        KGroupedTable,
        KStream,
        KTable,
        Materialized,
        Named,
        Produced,
        Repartitioned,
        SessionWindowedCogroupedKStream,
        SessionWindowedKStream,
        StreamJoined,
        StreamsBuilder,
        TableJoined,
        TimeWindowedCogroupedKStream,
        TimeWindowedKStream,
        Topology,
        WindowedKTable,
    )
    from statelib.dsl.store_suppliers import BuiltInDslStoreSuppliers
    from statelib.errors.kinds import (
        ConfigurationError,
        CorruptedDataError,
        FencedError,
        HindstreamError,
        InputError,
        InternalError,
        RetryableError,
    )
    from statelib.job.handover import Handover
    from statelib.job.iceberg_table import IcebergTable
    from statelib.job.job import Expectation, Job, expect, load_job
    from statelib.job.kafka_topic import KafkaTopic
    from statelib.job.lake_topic import LakeTopic
    from statelib.job.switch_over import SwitchOver
    from statelib.operators.aggregation.sql_functions import (
        Aggregation,
        approx_count_distinct,
        arg_max,
        arg_min,
        collect_list,
        collect_set,
        count,
        count_distinct,
        first,
        last,
        max_,
        mean_,
        min_,
        quantiles,
        stddev,
        sum_,
        top_n,
        variance,
    )
    from statelib.operators.joins.stream_stream.definition import JoinWindows
    from statelib.operators.mappers.mapping import per_record
    from statelib.operators.processors.definition import (
        Cancellable,
        FixedKeyProcessor,
        FixedKeyRecord,
        Processor,
        ProcessorContext,
        ProcessorSupplier,
        PunctuationType,
        Record,
        RecordMetadata,
        TransformerContext,
        ValueTransformerWithKey,
        ValueTransformerWithKeySupplier,
    )
    from statelib.operators.stateless.printed import Printed
    from statelib.operators.suppress.definition import BufferConfig, EagerBufferConfig, StrictBufferConfig, Suppressed
    from statelib.operators.windows.day_windows import DayWindows
    from statelib.operators.windows.definition import SessionWindows, SlidingWindows, TimeWindows, UnlimitedWindows
    from statelib.operators.windows.emit_strategy import EmitStrategy
    from statelib.serdes.avro.serde import AvroSerde
    from statelib.serdes.by_type import serde_for
    from statelib.serdes.json import JsonSerde
    from statelib.serdes.plain import BytesSerde, StringSerde
    from statelib.serdes.protobuf.serde import ProtobufSerde
    from statelib.serdes.uuids import UuidSerde
    from statelib.serdes.windowed import SessionWindowedSerde, TimeWindowedSerde
    from statelib.settings.settings import Settings, load_settings
    from statelib.snapshots import StateSnapshot, StoreSnapshot, open_state
    from statelib.state import (
        AggregationWithHeaders,
        KeyValueBytesStoreSupplier,
        KeyValueStore,
        MultiVersionedKeyQuery,
        SessionBytesStoreSupplier,
        SessionStore,
        SessionStoreWithHeaders,
        StateStore,
        StoreBuilder,
        Stores,
        TimestampedKeyValueStore,
        TimestampedKeyValueStoreWithHeaders,
        TimestampedWindowStore,
        TimestampedWindowStoreWithHeaders,
        ValueAndTimestamp,
        ValueTimestampHeaders,
        VersionedBytesStore,
        VersionedBytesStoreSupplier,
        VersionedKeyQuery,
        VersionedKeyValueStore,
        VersionedRecord,
        WindowBytesStoreSupplier,
        Windowed,
        WindowStore,
    )
    from statelib.storage import Storage
    from statelib.testing.driver import TopologyTestDriver
    from statelib.testing.records import TestRecord
    from statelib.topics.append import append_records
    from statelib.topics.archive import TopicArchive
    from statelib.topics.parquet.schema import topic_schema
    from statelib.topology import (
        Consumed,
        FailOnInvalidTimestamp,
        LogAndSkipOnInvalidTimestamp,
        TimestampExtractor,
        UsePartitionTimeOnInvalidTimestamp,
        describe,
    )

_HOMES = {
    "statelib.changelog": ("StoreFormat", "export_changelog", "import_changelog"),
    "statelib.operators.windows.day_windows": ("DayWindows",),
    "statelib.dsl": (
        "Branched", "BranchedKStream", "CogroupedKStream", "Deduplicated", "GlobalKTable", "Grouped", "Joined",
        "KGroupedStream", "KGroupedTable", "KStream", "KTable", "Materialized", "Named", "Produced", "Repartitioned",
        "SessionWindowedCogroupedKStream", "SessionWindowedKStream", "StreamJoined", "StreamsBuilder", "TableJoined",
        "TimeWindowedCogroupedKStream", "TimeWindowedKStream", "Topology", "WindowedKTable",
    ),
    "statelib.dsl.store_suppliers": ("BuiltInDslStoreSuppliers",),
    "statelib.errors.kinds": (
        "ConfigurationError", "CorruptedDataError", "FencedError", "HindstreamError", "InputError", "InternalError",
        "RetryableError",
    ),
    "statelib.job.handover": ("Handover",),
    "statelib.operators.joins.stream_stream.definition": ("JoinWindows",),
    "statelib.job.iceberg_table": ("IcebergTable",),
    "statelib.job.kafka_topic": ("KafkaTopic",),
    "statelib.job.lake_topic": ("LakeTopic",),
    "statelib.job.switch_over": ("SwitchOver",),
    "statelib.job.job": ("Expectation", "Job", "expect", "load_job"),
    "statelib.operators.aggregation.sql_functions": (
        "Aggregation", "approx_count_distinct", "arg_max", "arg_min", "collect_list", "collect_set", "count",
        "count_distinct", "first", "last", "max_", "mean_", "min_", "quantiles", "stddev", "sum_", "top_n", "variance",
    ),
    "statelib.operators.mappers.mapping": ("per_record",),
    "statelib.operators.processors.definition": (
        "Cancellable", "FixedKeyProcessor", "FixedKeyRecord", "Processor", "ProcessorContext", "ProcessorSupplier",
        "PunctuationType", "Record", "RecordMetadata",
        "TransformerContext", "ValueTransformerWithKey", "ValueTransformerWithKeySupplier",
    ),
    "statelib.serdes.avro.serde": ("AvroSerde",),
    "statelib.serdes.by_type": ("serde_for",),
    "statelib.serdes.json": ("JsonSerde",),
    "statelib.serdes.plain": ("BytesSerde", "StringSerde"),
    "statelib.serdes.protobuf.serde": ("ProtobufSerde",),
    "statelib.serdes.uuids": ("UuidSerde",),
    "statelib.serdes.windowed": ("SessionWindowedSerde", "TimeWindowedSerde"),
    "statelib.settings.settings": ("Settings", "load_settings"),
    "statelib.snapshots": ("StateSnapshot", "StoreSnapshot", "open_state"),
    "statelib.state": (
        "AggregationWithHeaders", "KeyValueBytesStoreSupplier", "KeyValueStore", "MultiVersionedKeyQuery",
        "SessionBytesStoreSupplier", "SessionStore", "SessionStoreWithHeaders", "StateStore", "StoreBuilder", "Stores",
        "TimestampedKeyValueStore", "TimestampedKeyValueStoreWithHeaders", "TimestampedWindowStore",
        "TimestampedWindowStoreWithHeaders", "ValueAndTimestamp", "ValueTimestampHeaders", "VersionedBytesStore",
        "VersionedBytesStoreSupplier",
        "VersionedKeyQuery", "VersionedKeyValueStore", "VersionedRecord", "WindowBytesStoreSupplier",
        "WindowStore", "Windowed",
    ),
    "statelib.operators.stateless.printed": ("Printed",),
    "statelib.operators.suppress.definition": ("BufferConfig", "EagerBufferConfig", "StrictBufferConfig", "Suppressed"),
    "statelib.storage": ("Storage",),
    "statelib.topics.append": ("append_records",),
    "statelib.topics.archive": ("TopicArchive",),
    "statelib.topics.parquet.schema": ("topic_schema",),
    "statelib.topology": (
        "Consumed", "FailOnInvalidTimestamp", "LogAndSkipOnInvalidTimestamp", "TimestampExtractor",
        "UsePartitionTimeOnInvalidTimestamp", "describe",
    ),
    "statelib.testing.driver": ("TopologyTestDriver",),
    "statelib.testing.records": ("TestRecord",),
    "statelib.operators.windows.emit_strategy": ("EmitStrategy",),
    "statelib.operators.windows.definition": ("SessionWindows", "SlidingWindows", "TimeWindows", "UnlimitedWindows"),
}  # fmt: skip
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = [
    "Aggregation", "AggregationWithHeaders", "AvroSerde", "Branched", "BranchedKStream", "BufferConfig",
    "BuiltInDslStoreSuppliers", "BytesSerde", "Cancellable",
    "CogroupedKStream", "ConfigurationError", "Consumed", "CorruptedDataError", "DayWindows", "Deduplicated",
    "EagerBufferConfig", "EmitStrategy", "Expectation", "FailOnInvalidTimestamp", "FencedError", "FixedKeyProcessor",
    "FixedKeyRecord", "GlobalKTable", "Grouped", "Handover", "HindstreamError", "IcebergTable", "InputError",
    "InternalError", "Job", "JoinWindows", "Joined", "JsonSerde", "KGroupedStream", "KGroupedTable", "KStream",
    "KTable", "KafkaTopic", "KeyValueBytesStoreSupplier", "KeyValueStore", "LakeTopic", "LogAndSkipOnInvalidTimestamp",
    "Materialized", "MultiVersionedKeyQuery", "Named", "Printed", "Processor", "ProcessorContext", "ProcessorSupplier",
    "Produced",
    "ProtobufSerde", "PunctuationType", "Record", "RecordMetadata", "Repartitioned", "RetryableError",
    "SessionBytesStoreSupplier", "SessionStore", "SessionStoreWithHeaders",
    "SessionWindowedCogroupedKStream", "SessionWindowedKStream",
    "SessionWindowedSerde", "SessionWindows", "Settings", "SlidingWindows", "StateSnapshot", "StateStore", "Storage",
    "StoreBuilder", "StoreFormat", "StoreSnapshot", "Stores", "StreamJoined", "StreamsBuilder", "StrictBufferConfig",
    "StringSerde", "Suppressed", "SwitchOver", "TableJoined", "TestRecord", "TimeWindowedCogroupedKStream",
    "TimeWindowedKStream", "TimeWindowedSerde", "TimeWindows", "TimestampExtractor", "TimestampedKeyValueStore",
    "TimestampedKeyValueStoreWithHeaders", "TimestampedWindowStore", "TimestampedWindowStoreWithHeaders",
    "TopicArchive", "Topology", "TopologyTestDriver", "TransformerContext", "UnlimitedWindows",
    "UsePartitionTimeOnInvalidTimestamp", "UuidSerde", "ValueAndTimestamp", "ValueTimestampHeaders",
    "ValueTransformerWithKey", "ValueTransformerWithKeySupplier", "VersionedBytesStore",
    "VersionedBytesStoreSupplier", "VersionedKeyQuery",
    "VersionedKeyValueStore", "VersionedRecord", "WindowBytesStoreSupplier", "WindowStore", "Windowed",
    "WindowedKTable", "append_records", "approx_count_distinct", "arg_max", "arg_min", "collect_list", "collect_set",
    "count", "count_distinct", "describe", "expect", "export_changelog", "first", "import_changelog", "last",
    "load_job", "load_settings", "max_", "mean_", "min_", "open_state", "per_record", "quantiles", "serde_for",
    "stddev", "sum_", "top_n", "topic_schema", "variance",
]  # fmt: skip

if not TYPE_CHECKING:  # to a type checker, a package with a ``__getattr__`` has any name

    def __getattr__(name: str) -> object:
        """Loads a name where it is first used: a command that needs none of the engine is spared its compiler."""
        if name not in _HOME_OF:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return getattr(importlib.import_module(_HOME_OF[name]), name)

    def __dir__() -> list[str]:
        return sorted({*globals(), *__all__})
