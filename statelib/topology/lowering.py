"""From a topology as it was described to the one that runs.

Kafka Streams has nodes for which this engine has none of its own; each becomes a few that it has:

* A source of several topics, or with a pattern: a source for each, and a merge of its name.
* A sink whose topics an extractor chooses: a sink for each, below a node of its name that sends each record to one.
* Sinks that write one topic: nodes of their names that only pass on, merged before one sink.
* A sink whose records are not where the topic has them, as their keys have changed or a partitioner chooses: a
  repartition before it.
* A topic that is written and read: the same repartition, behind which both the sink and those who read it are.
* A sink of several nodes: a merge of its name before it.
* A store that all processors may read: those that do look into the node that writes it.

What was lowered stays as it is when it is lowered again.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from statelib.errors.kinds import ConfigurationError
from statelib.operators.stateless.merge import Merge
from statelib.operators.stateless.route import Route
from statelib.topology.global_stores import with_global_stores
from statelib.topology.node_groups import groups
from statelib.topology.nodes import Consumed, Processor, Sink, Source

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import pyarrow as pa

    from statelib.topology.nodes import Node

_REPARTITION = "-REPARTITION"
_MERGE = "-MERGE"
_OF_ALL = "-OF-ALL"
_SINK = "-SINK"


def addressed_name(node: Node) -> str:
    """The name by which records are forwarded to a node: a sink's own, although a repartition comes before it."""
    return node.name.removesuffix(_REPARTITION) if isinstance(node, Sink) and node.internal else node.name


def lowered(declared: Sequence[Node]) -> tuple[Node, ...]:
    """The nodes that run.

    Args:
        declared: Those of a topology as it was described, parents before their children.

    Raises:
        ConfigurationError: A topic that is written is read with a timestamp extractor, or as a global table; or two
            sinks declare different numbers of partitions for one topic.
    """
    nodes = [node for of in with_global_stores(declared) for node in _of_one_topic(of)]
    return tuple(_Written(nodes).nodes())


def _of_one_topic(node: Node) -> Iterator[Node]:
    """A source or sink of each topic."""
    if isinstance(node, Source) and (node.more_topics or node.pattern is not None):
        matched_by = None if node.pattern is None else node.pattern.pattern
        one = replace(node, more_topics=(), pattern=None, matched_by=matched_by)
        parts = [replace(one, name=f"{node.name}-{topic}", topic=topic) for topic in node.topics]
        yield from parts
        yield Processor(node.name, tuple(part.name for part in parts), Merge(), line=node.line)
    elif isinstance(node, Sink) and node.topic_extractor is not None:
        targets = {topic: f"{node.name}-{topic}" for topic in node.topics}
        yield Processor(node.name, node.parents, Route(node.topic_extractor, tuple(targets.items())), line=node.line)
        for topic, name in targets.items():
            yield replace(node, name=name, parents=(node.name,), topic=topic, more_topics=(), topic_extractor=None)
    elif isinstance(node, Sink) and len(node.parents) > 1 and not node.internal:
        yield Processor(node.name, node.parents, Merge(), line=node.line)
        yield replace(node, name=f"{node.name}{_SINK}", parents=(node.name,))
    else:
        yield node


class _Written:
    """The topics that sinks write, and what leads to each.

    Sinks of one topic that belong to one sub-topology share a *way*: what they write comes in the order in which Kafka
    Streams would write it. Between sub-topologies there is none but that of time.
    """

    def __init__(self, nodes: Sequence[Node]) -> None:
        self._nodes = nodes
        self._sinks: dict[str, list[Sink]] = {}
        for node in nodes:
            if isinstance(node, Sink) and not node.internal:
                self._sinks.setdefault(node.topic, []).append(node)
        self._readers = {
            node.topic: node
            for node in nodes
            if isinstance(node, Source) and not node.internal and node.topic in self._sinks
        }
        self._elsewhere = self._below_partitioners()
        self._group_of = {node.name: number for number, group in enumerate(groups(nodes)) for node in group}

    def nodes(self) -> Iterator[Node]:
        """All, parents before their children."""
        waiting = {topic: len(sinks) + (topic in self._readers) for topic, sinks in self._sinks.items()}
        for node in self._nodes:
            is_sink = isinstance(node, Sink) and not node.internal
            if isinstance(node, Processor) or not (is_sink or self._readers.get(node.topic) is node):
                yield node
                continue
            topic = node.topic
            waiting[topic] -= 1
            if not is_sink:
                yield from self._read_side(topic)
            elif node is self._sinks[topic][-1]:
                yield from self._write_side(topic)
            if not waiting[topic] and not self._is_direct(topic):
                if topic not in self._readers:
                    yield from self._read_side(topic)
                yield self._behind_repartitions(topic)

    def _is_direct(self, topic: str) -> bool:
        """Whether the sink needs no repartition before it."""
        in_place = all(
            sink.is_placed or (sink.key_kept and sink.partitioner is None and sink.name not in self._elsewhere)
            for sink in self._sinks[topic]
        )
        return in_place and topic not in self._readers and len(self._ways(topic)) == 1

    def _below_partitioners(self) -> set[str]:
        """The nodes whose records are where a partitioner has placed them, not where their keys belong."""
        found: set[str] = set()
        for node in self._nodes:
            if isinstance(node, Source):
                placed = [sink.partitioner is not None for sink in self._sinks.get(node.topic, ())]
                is_below = node.by_partitioner or any(placed)
            else:
                is_below = not found.isdisjoint(node.parents)
            if is_below:
                found.add(node.name)
        return found

    def _ways(self, topic: str) -> list[list[Sink]]:
        ways: list[list[Sink]] = []
        for sink in self._sinks[topic]:
            for way in ways:
                if self._same_way(way[0], sink):
                    way.append(sink)
                    break
            else:
                ways.append([sink])
        return ways

    def _same_way(self, one: Sink, other: Sink) -> bool:
        groups_of = self._group_of[one.name], self._group_of[other.name]
        return groups_of[0] == groups_of[1] and one.partitioner == other.partitioner

    def _write_side(self, topic: str) -> Iterator[Node]:
        """What leads to the sink of a topic, or to the repartition before it."""
        for number, way in enumerate(self._ways(topic)):
            name, parents = way[0].name, way[0].parents
            if len(way) > 1:
                for sink in way:
                    yield Processor(sink.name, sink.parents, Merge(), line=sink.line)
                name, parents = f"{topic}{_MERGE}{number or ''}", tuple(sink.name for sink in way)
                yield Processor(name, parents, Merge(), line=way[0].line)
                name, parents = f"{name}{_SINK}", (name,)
            if self._is_direct(topic):
                yield replace(way[0], name=name, parents=parents, partitions=self._partitions(topic))
            else:
                yield Sink(
                    f"{name}{_REPARTITION}",
                    parents,
                    self._internal_topic(topic, number),
                    self._partitions(topic),
                    partitioner=way[0].partitioner,
                    internal=True,
                    line=way[0].line,
                )

    def _read_side(self, topic: str) -> Iterator[Node]:
        """What comes from the repartition of a topic, last the node of all that is written to it."""
        reader = self._readers.get(topic)
        if reader is not None:
            _check_reader(reader)
        ways = self._ways(topic)
        for number, way in enumerate(ways):
            name = self._source(topic, way, number) if reader is None or len(ways) > 1 else reader.name
            line = way[0].line if reader is None else reader.line
            placed = way[0].partitioner is not None
            yield Source(
                name,
                self._internal_topic(topic, number),
                internal=True,
                by_partitioner=placed,
                told_types=None if reader is None else _told_types(reader.consumed),
                line=line,
            )
        if len(ways) > 1:
            sources = tuple(self._source(topic, way, number) for number, way in enumerate(ways))
            yield Processor(self._node_of_all(topic), sources, Merge(), line=self._sinks[topic][0].line)

    def _behind_repartitions(self, topic: str) -> Sink:
        sinks = self._sinks[topic]
        return Sink(
            sinks[0].name if len(sinks) == 1 else f"{topic}{_SINK}",
            (self._node_of_all(topic),),
            topic,
            self._partitions(topic),
            is_placed=any(sink.partitioner is not None for sink in sinks),
            line=sinks[0].line,
        )

    def _node_of_all(self, topic: str) -> str:
        """The node that forwards all that is written to a topic."""
        ways = self._ways(topic)
        if topic in self._readers:
            return self._readers[topic].name
        if len(ways) == 1:
            return self._source(topic, ways[0], 0)
        has_merge = len(ways[0]) > 1  # of this name, before the repartition
        return f"{topic}{_MERGE}{_OF_ALL if has_merge else ''}"

    def _source(self, topic: str, way: Sequence[Sink], number: int) -> str:
        sink = way[0].name if len(way) == 1 else f"{topic}{_MERGE}{number or ''}{_SINK}"
        return f"{sink}{_REPARTITION}-SOURCE"

    def _internal_topic(self, topic: str, number: int) -> str:
        return f"{topic}-repartition{number or ''}"

    def _partitions(self, topic: str) -> int | None:
        declared = sorted({sink.partitions for sink in self._sinks[topic] if sink.partitions is not None})
        if len(declared) > 1:
            raise ConfigurationError(
                f"two sinks declare different numbers of partitions: {' and '.join(map(str, declared))}",
                topic=topic,
                next_step="declare one, with Produced.with_partitions()",
            )
        return next(iter(declared), None)


def _told_types(consumed: Consumed) -> tuple[pa.DataType, pa.DataType] | None:
    """The types that serdes tell; None: they do not tell both."""
    serdes = consumed.key_serde, consumed.value_serde
    return None if serdes[0] is None or serdes[1] is None else (serdes[0].arrow_type, serdes[1].arrow_type)


def _check_reader(reader: Source) -> None:
    if reader.is_global:
        raise ConfigurationError(
            "the topic of a global table is written by the same topology",
            topic=reader.topic,
            node=reader.name,
            next_step="use table() in place of it, or write the topic in a job of its own",
        )
    if reader.consumed.timestamp != Consumed().timestamp:
        raise ConfigurationError(
            "a topic that the same topology writes is read with a timestamp extractor",
            topic=reader.topic,
            node=reader.name,
            next_step="leave the extractor out: records have the timestamps with which they are written",
        )
