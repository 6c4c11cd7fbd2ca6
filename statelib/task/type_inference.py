"""The types of what flows through a topology, found by running it over no records."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from statelib.columns.windowed_type import archived_type
from statelib.errors.kinds import ConfigurationError, InternalError
from statelib.records.batch import Uptake
from statelib.stores.memory import MemoryBackend
from statelib.task.graph import Graph
from statelib.task.quarantine import Quarantine
from statelib.task.sources import Progress, TopicSource, no_records
from statelib.topology.leading import without_topics

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from statelib.records.batch import Batch
    from statelib.settings.semantics import Semantics
    from statelib.task.source_records import Records
    from statelib.topics.parquet.reader import PartitionReader
    from statelib.topology import Sink, Source, SubTopology, Topology


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
    topics, _ = _types(topology, readers, semantics)
    return topics


def forwarded_types(
    topology: Topology, readers: Mapping[str, PartitionReader], semantics: Semantics = "kip"
) -> dict[str, pa.Schema]:
    """The types of what each source and processor forwards, by its name: ``key``, without its window, and ``value``.

    Args and errors as of `topic_types`.
    """
    forwarded = forwarded_of_nothing(topology, readers, semantics)
    return {
        name: pa.schema([("key", batch.keys.without_windows.type), ("value", batch.value.type)])
        for name, batch in forwarded.items()
    }


def forwarded_of_nothing(
    topology: Topology, readers: Mapping[str, PartitionReader], semantics: Semantics = "kip"
) -> dict[str, Batch]:
    """An empty batch as each source and processor forwards it, by its name. Args and errors as of `topic_types`."""
    _, nodes = _types(topology, readers, semantics)
    return nodes


def types_of(batch: Batch) -> pa.Schema:
    """The types of a batch's records: ``key`` and ``value``."""
    return pa.schema([("key", batch.keys.type), ("value", batch.value.type)])


def _types(
    topology: Topology, readers: Mapping[str, PartitionReader], semantics: Semantics
) -> tuple[dict[str, pa.Schema], dict[str, Batch]]:
    """By topic that is written, and by node.

    Where an operator looks for a field that is not there, the error names all that are, not only those that are in use.
    """
    try:
        return _types_of(topology, readers, semantics, only_wanted=True)
    except ConfigurationError:
        _types_of(topology, readers, semantics, only_wanted=False)
        raise


def _types_of(
    topology: Topology, readers: Mapping[str, PartitionReader], semantics: Semantics, *, only_wanted: bool
) -> tuple[dict[str, pa.Schema], dict[str, Batch]]:
    topics: dict[str, pa.Schema] = {}
    nodes: dict[str, Batch] = {}
    none = np.empty(0, np.int64)
    uptake = Uptake(0, none, none.astype(np.int16), none.astype(np.int32), none)
    told: dict[str, pa.Schema] = {}
    for sub in _in_passes(topology, topics, told):
        parts = [_nothing(source, readers, topics) for source in sub.all_sources]
        with Graph(sub, MemoryBackend(), clocks={}, semantics=semantics, only_wanted=only_wanted) as graph:
            nodes |= graph.forwarded_of_nothing(parts)
            arrived = graph.process(parts, [none] * len(parts), uptake)
        for sink in sub.all_sinks:
            batch = arrived[sink.name]
            key = batch.keys.type if sink.internal else archived_type(batch.keys.type)
            types = pa.schema([("key", key), ("value", batch.value.type)])
            _check_told(sink, told.get(sink.topic, types), types)
            _check_settled(sink, topics.get(sink.topic, types), types)
            topics[sink.topic] = types
    return topics, nodes


def _check_told(sink: Sink, told: pa.Schema, written: pa.Schema) -> None:
    """Refuses serdes that tell other types than those of what is written."""
    if name := _of_other_type(told, written):
        raise ConfigurationError(
            f"{sink.topic} is read with {name}s of type {told.field(name).type}, and {name}s of type"
            f" {written.field(name).type} are written to it",
            node=sink.name,
            next_step="read the topic with the serdes of what is written",
        )


def _check_settled(sink: Sink, before: pa.Schema, now: pa.Schema) -> None:
    """Refuses a circle whose records have other types each time that they come back."""
    if name := _of_other_type(before, now):
        raise ConfigurationError(
            f"what comes back through {sink.topic} has other types each time: its {name}s are"
            f" {before.field(name).type}, then {now.field(name).type}",
            node=sink.name,
            next_step="bring them to one type with map() before the circle closes",
        )


def _of_other_type(one: pa.Schema, other: pa.Schema) -> str | None:
    """``key`` or ``value``, if that has not the same type in both."""
    return next((name for name in ("key", "value") if one.field(name).type != other.field(name).type), None)


def _in_passes(topology: Topology, topics: dict[str, pa.Schema], told: dict[str, pa.Schema]) -> Iterator[SubTopology]:
    """The sub-topologies; those of a circle first as far as types are ``topics`` by then, at last whole.

    Where the types of a circle follow from nothing but its own topics, those that the readers' serdes tell are added to
    ``topics``, and to ``told``.

    Raises:
        ConfigurationError: The types of a topic of a circle follow from nothing but the topic.
    """
    for stage in topology.stages:
        returning = stage[0].returning
        while unknown := returning.difference(topics):
            yield from (part for sub in stage if (part := without_topics(sub, unknown)) is not None)
            if unknown == returning.difference(topics):
                sources = [source for sub in stage for source in sub.all_sources if source.topic in unknown]
                told |= {
                    source.topic: pa.schema(list(zip(("key", "value"), source.told_types, strict=True)))
                    for source in sources
                    if source.told_types is not None
                }
                topics |= {topic: types for topic, types in told.items() if topic in unknown}
                if unknown == returning.difference(topics):
                    raise _types_unknown(sources)
        yield from stage


def _types_unknown(sources: Sequence[Source]) -> ConfigurationError:
    back = [source for source in sources if not source.topic_in_text]
    topics = ", ".join(sorted(source.topic for source in sources))
    return ConfigurationError(
        f"the types of what comes back to it cannot be told: of {topics}",
        node=(back or sources)[0].name,
        next_step="tell them where the topology reads a topic that it writes:"
        " stream(topic, Consumed.with_(key_serde, value_serde))",
    )


def _nothing(source: Source, readers: Mapping[str, PartitionReader], types: Mapping[str, pa.Schema]) -> Records:
    if source.internal:
        if source.topic not in types:
            raise InternalError("a repartition topic is read before it is written", topic=source.topic)
        return no_records(types[source.topic])
    quarantine = Quarantine("fail", {})
    return TopicSource(source, readers[source.topic], partition=0, progress=Progress(), quarantine=quarantine).empty
