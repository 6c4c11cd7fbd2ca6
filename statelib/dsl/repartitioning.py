"""The nodes of repartition topics (Kafka's ``KStreamImpl.createRepartitionedSource``)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from statelib.topology import Sink, Source

if TYPE_CHECKING:
    from statelib.dsl.internal_builder import InternalStreamsBuilder
    from statelib.operators.mappers.mapping import Mapper

SUFFIX = "-repartition"
_GENERATED = re.compile(r"KSTREAM.*-[0-9]{10}")


@dataclass(frozen=True, slots=True)
class RepartitionNames:
    """Those of one repartition topic.

    Attributes:
        topic: The topic's, without the application's before it.
        sink: Of the node that writes it.
        source: Of the node that reads it.
        null_key_filter: Of the processor that Kafka Streams has before the sink.
    """

    topic: str
    sink: str
    source: str
    null_key_filter: str | None = None


def stream_names(builder: InternalStreamsBuilder, prefix: str) -> RepartitionNames:
    """The names for a stream's repartition topic; they count, whether they are used or not.

    Args:
        builder: Shared by all streams and tables of a topology.
        prefix: What the topic's name begins with: a name that was given, or one that was made for a node or store.
    """
    sink, null_key_filter, source = (builder.new_name(f"KSTREAM-{kind}") for kind in ("SINK", "FILTER", "SOURCE"))
    topic = prefix if prefix.endswith(SUFFIX) else f"{prefix}{SUFFIX}"
    if _GENERATED.fullmatch(prefix):
        return RepartitionNames(topic, sink, source, null_key_filter)
    return RepartitionNames(topic, f"{topic}-sink", f"{topic}-source", f"{topic}-filter")


def table_names(builder: InternalStreamsBuilder, name: str | None, prefix: str) -> RepartitionNames:
    """The same for a table's rows that are grouped (``KGroupedTableImpl``).

    Args:
        builder: Shared by all streams and tables of a topology.
        name: The aggregation's; None: it has been given none.
        prefix: What the topic's name begins with.
    """
    sink = builder.suffixed(name, "-sink", "KSTREAM-SINK")
    source = builder.suffixed(name, "-source", "KSTREAM-SOURCE")
    return RepartitionNames(f"{prefix}{SUFFIX}", sink, source)


def add_repartition(
    builder: InternalStreamsBuilder,
    parent: str,
    names: RepartitionNames,
    *,
    partitions: int | None = None,
    by: Mapper | None = None,
    partitioner: Mapper | None = None,
) -> str:
    """Ends the sub-topology at ``parent``; gives the name of the source at which the next one begins."""
    topic = builder.internal_topic(names.topic)
    sink = Sink(
        names.sink,
        (parent,),
        topic,
        partitions,
        partition_by=by,
        partitioner=partitioner,
        internal=True,
        drops_null_keys=by is None,  # unless something behind it takes them: `InternalStreamsBuilder.build`
        null_key_filter=names.null_key_filter,
        topic_in_text=names.topic,
    )
    by_partitioner = partitioner is not None
    builder.add(
        sink,
        Source(names.source, topic, internal=True, topic_in_text=names.topic, by_partitioner=by_partitioner),
    )
    return names.source


class Grouping:
    """Where the records or rows are that several aggregations share (Kafka's ``GroupedStreamAggregateBuilder``).

    Each aggregation repartitions for itself, through a topic that is called after its store, unless the grouping has a
    name: then all go through one topic of that name.

    Args:
        builder: Shared by all streams and tables of a topology.
        node: What is grouped.
        name: Of the grouping.
        needs_repartition: Whether records are elsewhere than their keys say.
    """

    def __init__(
        self, builder: InternalStreamsBuilder, node: str, name: str | None, *, needs_repartition: bool
    ) -> None:
        self.builder = builder
        self.node = node
        self.name = name
        self.needs_repartition = needs_repartition
        self._shared: str | None = None

    def for_stream_aggregation(self, store: str) -> str:
        """The node whose records are aggregated in ``store``."""
        if not self.needs_repartition:
            return self.node
        return self.through(stream_names(self.builder, self.name or store))

    def through(self, names: RepartitionNames) -> str:
        """The node behind the repartition topic of these names, or behind the one that the grouping has."""
        if self._shared is not None:
            self.builder.add_again(self._shared)
            return self._shared
        source = add_repartition(self.builder, self.node, names)
        if self.name is not None:
            self._shared = source
        return source
