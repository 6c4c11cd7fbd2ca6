"""The types of what flows through a topology, found by running it over no records."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from statelib.batch import Uptake
from statelib.errors import InternalError
from statelib.stores.memory import MemoryBackend
from statelib.task.graph import Graph
from statelib.task.quarantine import Quarantine
from statelib.task.sinks import archive_key, in_order
from statelib.task.sources import Progress, TopicSource, no_records

if TYPE_CHECKING:
    from collections.abc import Mapping

    from statelib.semantics import Semantics
    from statelib.task.records import Records
    from statelib.topics.reader import PartitionReader
    from statelib.topology import Source, SubTopology, Topology


def topic_types(
    topology: Topology, readers: Mapping[str, PartitionReader], semantics: Semantics = "kip"
) -> dict[str, pa.Schema]:
    """The schema (fields ``key`` and ``value``) of every topic that the topology writes, repartitions included.

    Args:
        topology: The topology.
        readers: A reader of each source topic; only its schema is looked at.
        semantics: See `Semantics`.

    Raises:
        ConfigurationError: An operator cannot work on what it would get; names the node.
    """
    types: dict[str, pa.Schema] = {}
    for sub in topology.sub_topologies:
        parts = [_nothing(source, readers, types) for source in sub.all_sources]
        types.update(_sink_types(sub, parts, semantics))
    return types


def _nothing(source: Source, readers: Mapping[str, PartitionReader], types: Mapping[str, pa.Schema]) -> Records:
    if source.internal:
        if source.topic not in types:
            raise InternalError("a repartition topic is read before it is written", topic=source.topic)
        return no_records(types[source.topic])
    quarantine = Quarantine("fail", {})
    return TopicSource(source, readers[source.topic], partition=0, progress=Progress(), quarantine=quarantine).empty


def _sink_types(sub: SubTopology, parts: list[Records], semantics: Semantics) -> dict[str, pa.Schema]:
    none = np.empty(0, np.int64)
    uptake = Uptake(0, none, none.astype(np.int16), none.astype(np.int32), none)
    graph = Graph(sub, MemoryBackend(), clocks={}, semantics=semantics)
    arrived = graph.process(parts, [none] * len(parts), uptake)
    types = {}
    for sink in sub.all_sinks:
        batch = in_order(arrived[sink.name])
        types[sink.topic] = pa.schema([("key", archive_key(batch).type), ("value", batch.value.type)])
    return types
