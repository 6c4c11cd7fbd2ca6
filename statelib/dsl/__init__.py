"""Kafka Streams' DSL in Python's spelling."""

from statelib.dsl.branched import Branched, BranchedKStream
from statelib.dsl.builder import StreamsBuilder
from statelib.dsl.global_ktable import GlobalKTable
from statelib.dsl.grouped import KGroupedStream, SessionWindowedKStream, TimeWindowedKStream
from statelib.dsl.grouped_table import KGroupedTable
from statelib.dsl.kstream import KStream
from statelib.dsl.ktable import KTable, WindowedKTable
from statelib.dsl.options import (
    Deduplicated,
    Grouped,
    Joined,
    Materialized,
    Named,
    Produced,
    Repartitioned,
)
from statelib.dsl.stream_joins import StreamJoined
from statelib.state import KeyValueBytesStoreSupplier, Stores, VersionedBytesStoreSupplier

__all__ = [
    "Branched",
    "BranchedKStream",
    "Deduplicated",
    "GlobalKTable",
    "Grouped",
    "Joined",
    "KGroupedStream",
    "KGroupedTable",
    "KStream",
    "KTable",
    "KeyValueBytesStoreSupplier",
    "Materialized",
    "Named",
    "Produced",
    "Repartitioned",
    "SessionWindowedKStream",
    "Stores",
    "StreamJoined",
    "StreamsBuilder",
    "TimeWindowedKStream",
    "VersionedBytesStoreSupplier",
    "WindowedKTable",
]
