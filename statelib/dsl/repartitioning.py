"""The nodes of repartition topics (Kafka's ``KStreamImpl.createRepartitionedSource``)."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from itertools import count
from typing import TYPE_CHECKING

from statelib.errors.kinds import ConfigurationError
from statelib.topology import Sink, Source

if TYPE_CHECKING:
    from collections.abc import Iterable

    from statelib.dsl.graph import Role
    from statelib.dsl.internal_builder import InternalStreamsBuilder
    from statelib.operators.mappers.mapping import Mapper
    from statelib.topology import Node

SUFFIX = "-repartition"
_GENERATED = re.compile(r"KSTREAM.*-[0-9]{10}")
_AGAIN = " again "
"""Stands in no name that a user may give."""


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
    role: Role | None = None,
) -> str:
    """Ends the sub-topology at ``parent``; gives the name of the source at which the next one begins.

    Args:
        builder: Shared by all streams and tables of a topology.
        parent: What is repartitioned.
        names: Of the topic and its nodes.
        partitions: How many the topic has; None: nobody has said.
        by: See `Sink.partition_by`.
        partitioner: See `Sink.partitioner`.
        role: ``repartition`` if Kafka's optimiser may merge it with others.
    """
    sink, source = repartition_nodes(builder, parent, names, partitions=partitions, by=by, partitioner=partitioner)
    if role == "repartition" and builder.has_node(sink.name):  # if the two are not merged, it is refused
        again = next(number for number in count(2) if not builder.has_node(f"{sink.name}{_AGAIN}{number}"))
        sink = replace(sink, name=f"{sink.name}{_AGAIN}{again}")
        source = replace(source, name=f"{source.name}{_AGAIN}{again}")
    builder.add(sink, source, role=role)
    return source.name


def check_repartitions(nodes: Iterable[Node]) -> None:
    """Looks whether two repartition topics have one name.

    Raises:
        ConfigurationError: They do.
    """
    for node in nodes:
        if isinstance(node, Sink) and _AGAIN in node.name:
            raise ConfigurationError(
                "two repartition topics have one name",
                topic=node.topic,
                node=node.name.partition(_AGAIN)[0],
                next_step="name one of the groupings or joins differently: group_by_key(Grouped.as_(name)); or build "
                "with merge.repartition.topics, as your application does",
                **({} if node.line is None else node.line._asdict()),
            )


def repartition_nodes(
    builder: InternalStreamsBuilder,
    parent: str,
    names: RepartitionNames,
    *,
    partitions: int | None = None,
    by: Mapper | None = None,
    partitioner: Mapper | None = None,
) -> tuple[Sink, Source]:
    """The two nodes of a repartition topic; args: see `add_repartition`."""
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
    return sink, Source(names.source, topic, internal=True, topic_in_text=names.topic, by_partitioner=by_partitioner)


class Grouping:
    """Where the records or rows are that several aggregations share (Kafka's ``GroupedStreamAggregateBuilder``).

    Each aggregation repartitions for itself, through a topic that is called after its store, unless the grouping has a
    name: then all go through one topic of that name.

    Args:
        builder: Shared by all streams and tables of a topology.
        node: What is grouped.
        name: Of the grouping.
        needs_repartition: Whether records are elsewhere than their keys say.
        role: Of the repartition topics: see `add_repartition`.
    """

    def __init__(
        self,
        builder: InternalStreamsBuilder,
        node: str,
        name: str | None,
        *,
        needs_repartition: bool,
        role: Role | None = "repartition",
    ) -> None:
        self.builder = builder
        self.node = node
        self.name = name
        self.needs_repartition = needs_repartition
        self.role = role
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
        source = add_repartition(self.builder, self.node, names, role=self.role)
        if self.name is not None:
            self._shared = source
        return source
