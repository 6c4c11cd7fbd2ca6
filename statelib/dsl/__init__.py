"""Kafka Streams' DSL in Python's spelling (``StreamsBuilder``, ``KStream``, ``KTable``).

Begin with `builder`, then `stream` and `table`.
"""

from statelib.dsl.branched import Branched, BranchedKStream
from statelib.dsl.builder import StreamsBuilder
from statelib.dsl.cogrouped import CogroupedKStream, SessionWindowedCogroupedKStream, TimeWindowedCogroupedKStream
from statelib.dsl.global_ktable import GlobalKTable
from statelib.dsl.low_level import Topology
from statelib.dsl.options import (
    Deduplicated,
    Grouped,
    Joined,
    Materialized,
    Named,
    Produced,
    Repartitioned,
    TableJoined,
)
from statelib.dsl.stream_joins import StreamJoined
from statelib.dsl.streams_and_tables import (
    KGroupedStream,
    KGroupedTable,
    KStream,
    KTable,
    SessionWindowedKStream,
    TimeWindowedKStream,
    WindowedKTable,
)
from statelib.state import KeyValueBytesStoreSupplier, Stores, VersionedBytesStoreSupplier

__all__ = [
    "Branched",
    "BranchedKStream",
    "CogroupedKStream",
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
    "SessionWindowedCogroupedKStream",
    "SessionWindowedKStream",
    "Stores",
    "StreamJoined",
    "StreamsBuilder",
    "TableJoined",
    "TimeWindowedCogroupedKStream",
    "TimeWindowedKStream",
    "Topology",
    "VersionedBytesStoreSupplier",
    "WindowedKTable",
]
