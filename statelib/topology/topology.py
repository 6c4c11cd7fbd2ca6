"""The compiled plan of a job: nodes in order, cut into sub-topologies at repartition topics."""

from __future__ import annotations

import hashlib
import json
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING

from statelib.errors.kinds import ConfigurationError
from statelib.errors.user_lines import place_beside
from statelib.operators.base import CheckedSpec
from statelib.operators.processors.process import Process
from statelib.topology.describe import text_of
from statelib.topology.lowering import lowered
from statelib.topology.node_groups import global_nodes, groups
from statelib.topology.nodes import Node, Processor, Sink, Source
from statelib.topology.patterns import check_patterns, matched_by_pattern
from statelib.topology.stages import in_stages
from statelib.topology.topics import check_names
from statelib.topology.windowed_keys import stateful_under_windowed_keys
from statelib.topology.windowed_sources import check_windowed_sources

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from statelib.stores.spec import StoreSpec


@dataclass(frozen=True)
class SubTopology:
    """Nodes that one task runs together: connected by edges or by a shared store.

    Attributes:
        index: Its number, the first half of a task id.
        nodes: In the order in which a task runs them: parents before children.
        returning: The repartition topics of the circle that it is in (`statelib.topology.stages`); none: it is in none.
    """

    index: int
    nodes: tuple[Node, ...]
    returning: frozenset[str] = frozenset()

    @cached_property
    def all_sources(self) -> tuple[Source, ...]:
        """Its sources, internal ones included, in order of declaration."""
        return tuple(node for node in self.nodes if isinstance(node, Source))

    @property
    def sources(self) -> tuple[str, ...]:
        """Topics that it takes up from archives."""
        return tuple(source.topic for source in self.all_sources if not source.internal)

    @property
    def repartition_sources(self) -> tuple[str, ...]:
        """Repartition topics that it takes up."""
        return tuple(source.topic for source in self.all_sources if source.internal)

    @cached_property
    def all_sinks(self) -> tuple[Sink, ...]:
        """Its sinks, internal ones included."""
        return tuple(node for node in self.nodes if isinstance(node, Sink))

    @property
    def sinks(self) -> tuple[str, ...]:
        """Topics that it writes to archives."""
        return tuple(sink.topic for sink in self.all_sinks if not sink.internal)

    @cached_property
    def processors(self) -> tuple[Processor, ...]:
        """Its processors."""
        return tuple(node for node in self.nodes if isinstance(node, Processor))

    @cached_property
    def global_nodes(self) -> frozenset[str]:
        """The nodes of global tables: each task of the sub-topology does the same with the same records."""
        return global_nodes(self.nodes)

    @cached_property
    def stores(self) -> tuple[StoreSpec, ...]:
        """The stores that its processors write."""
        return tuple(store for processor in self.processors for store in processor.spec.state_stores())

    @property
    def stateful(self) -> bool:
        """Whether any of its operators keeps state."""
        return bool(self.stores)


class Topology:
    """All nodes of a job, checked and cut into sub-topologies (Kafka's ``Topology``).

    Args:
        nodes: Parents before children.

    Raises:
        ConfigurationError: Two nodes have the same name, a parent is unknown, a topic has two sources, has an invalid
            name or number of partitions, repartition topics are joined with different numbers of partitions, joined
            topics have windowed keys of different windows, a pattern matches a topic of another source, an
            operator's parameters contradict each other, or there is no source; or see
            `statelib.topology.lowering.lowered`.

    Attributes:
        declared: The nodes as they were given.
    """

    def __init__(self, nodes: Sequence[Node]) -> None:
        self.declared = tuple(nodes)
        self.sub_topologies  # noqa: B018 - checks it

    @cached_property
    def nodes(self) -> tuple[Node, ...]:
        """The nodes that run: see `statelib.topology.lowering`."""
        check_patterns(self.declared)
        for node in self.declared:
            with _at_line_of(node):
                check_names(node)
        nodes = lowered(self.declared)
        _check(nodes)
        return nodes

    @cached_property
    def sub_topologies(self) -> tuple[SubTopology, ...]:
        """In an order in which each comes after those whose repartition topics it reads."""
        sub_topologies = tuple(sub for stage in self.stages for sub in stage)
        for sub in sub_topologies:
            _check_co_partitioned(sub, self._declared)
            check_windowed_sources(sub.nodes)
        return sub_topologies

    @cached_property
    def stages(self) -> tuple[tuple[SubTopology, ...], ...]:
        """The same, those together that run together: the members of a circle (`statelib.topology.stages`)."""
        found = [SubTopology(0, group) for group in groups(self.nodes)]
        reads = [{*sub.repartition_sources} for sub in found]
        writes = [{sink.topic for sink in sub.all_sinks if sink.internal} for sub in found]
        stages: list[tuple[SubTopology, ...]] = []
        index = 0
        for members in in_stages(reads, writes):
            own = set[str]().union(*(writes[member] for member in members))
            returning = frozenset(own & set[str]().union(*(reads[member] for member in members)))
            in_order = sorted(members, key=partial(_comes_later, found, returning))
            stage = [replace(found[m], index=index + at, returning=returning) for at, m in enumerate(in_order)]
            stages.append(tuple(stage))
            index += len(stage)
        return tuple(stages)

    @cached_property
    def source_topics(self) -> tuple[str, ...]:
        """Topics that are read from archives: all but those of global tables that nobody looks into."""
        read = {topic for sub in self.sub_topologies for topic in sub.sources}
        return tuple(node.topic for node in self.nodes if isinstance(node, Source) and node.topic in read)

    @property
    def bootstrap_topics(self) -> tuple[str, ...]:
        """Those that each run takes up first, to the archive's end: see `Reading`."""
        of_node = {node.topic: node.reading for node in self.nodes if isinstance(node, Source)}
        return tuple(topic for topic in self.source_topics if of_node[topic] == "bootstrap")

    @property
    def has_patterns(self) -> bool:
        """Whether a source says which topics it reads by a pattern."""
        return any(isinstance(node, Source) and node.pattern is not None for node in self.declared)

    def matched_by_pattern(self, topics: Iterable[str]) -> dict[str, str]:
        """By topic that a pattern matches and that is not read, the source of the pattern; in order of ``topics``."""
        return matched_by_pattern(self.declared, topics)

    @property
    def read_back(self) -> tuple[str, ...]:
        """Topics that it writes, and reads without their archives."""
        read = {topic for node in self.declared if isinstance(node, Source) for topic in node.topics}
        return tuple(topic for topic in self.sink_topics if topic in read)

    @property
    def source_changelogs(self) -> dict[str, str]:
        """By store, the source topic that is its changelog in a live application: see `Processor.changelog_topic`."""
        return {
            store.name: node.changelog_topic
            for node in self.declared
            if isinstance(node, Processor) and node.changelog_topic is not None
            for store in node.spec.state_stores()
        }

    @property
    def sink_topics(self) -> tuple[str, ...]:
        """Topics that are written to archives."""
        return tuple(node.topic for node in self.nodes if isinstance(node, Sink) and not node.internal)

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 (hex) of everything that decides the answer; state of another fingerprint is not used."""
        windowed = stateful_under_windowed_keys(self.nodes)
        described = [
            {
                "name": n.name,
                "parents": list(n.parents),
                **n.describe(),
                **({"stored_keys": "windowed"} if n.name in windowed else {}),
            }
            for n in self.nodes
        ]
        return hashlib.sha256(json.dumps(described, sort_keys=True).encode()).hexdigest()

    def describe(self) -> str:
        """The topology as text, as Kafka Streams' ``Topology.describe()`` prints it."""
        return text_of(self.declared)

    def with_sinks(self, names: Mapping[str, str]) -> Topology:
        """The same topology, which writes to other topics; its repartition topics keep their names.

        Args:
            names: By topic that it writes to an archive, what it writes to instead.

        Raises:
            ConfigurationError: A topic cannot be called that, or is read or written already.
        """

        def renamed(node: Node) -> Node:
            if isinstance(node, Processor) or node.internal or names.keys().isdisjoint(node.topics):
                return node
            topic, *more = (names.get(topic, topic) for topic in node.topics)
            return replace(node, topic=topic, more_topics=tuple(more))

        topology = Topology([renamed(node) for node in self.nodes])
        topology.declared = tuple(map(renamed, self.declared))
        return topology

    def partitions(self, of_sources: Mapping[str, int]) -> dict[int, int]:
        """The number of tasks of each sub-topology, given the partitions of the source topics.

        Raises:
            ConfigurationError: Topics that are joined differ in their number of partitions.
        """
        topics = {**of_sources, **self._declared}
        tasks: dict[int, int] = {}
        for sub in self.sub_topologies:
            topics |= self._undeclared(sub, topics, tasks)
            counts = {source.topic: topics[source.topic] for source in sub.all_sources if not source.is_global}
            _check_co_partitioned(sub, counts)
            tasks[sub.index] = max(counts.values())
        return tasks

    def repartition_partitions(self, of_sources: Mapping[str, int]) -> dict[str, int]:
        """The number of partitions of each repartition topic: that of the tasks which read it."""
        tasks = self.partitions(of_sources)
        return {topic: tasks[sub.index] for sub in self.sub_topologies for topic in sub.repartition_sources}

    @cached_property
    def _declared(self) -> dict[str, int]:
        """The partitions of those repartition topics of which somebody has said how many."""
        sinks = (node for node in self.nodes if isinstance(node, Sink) and node.internal)
        return {sink.topic: sink.partitions for sink in sinks if sink.partitions is not None}

    def _undeclared(self, sub: SubTopology, known: Mapping[str, int], tasks: Mapping[int, int]) -> dict[str, int]:
        """The partitions of those repartition topics of ``sub`` of which nobody has said how many.

        As in Kafka, they have as many as the topics that they come together with; if nobody has said that either, as
        many as the most of the sub-topologies that write them have tasks.
        """
        unknown = {topic for topic in sub.repartition_sources if topic not in known}
        writers = [s.index for s in self.sub_topologies if any(sink.topic in unknown for sink in s.all_sinks)]
        writers = [writer for writer in writers if writer in tasks]  # others of a circle come later
        sources = [source.topic for source in sub.all_sources if not source.is_global]
        together = [known[topic] for topic in sources if topic in known]
        partitions = max(together or [tasks[writer] for writer in writers], default=0)
        return dict.fromkeys(unknown, partitions) | self._as_many(unknown, tasks)

    def _as_many(self, topics: Iterable[str], tasks: Mapping[int, int]) -> dict[str, int]:
        """Of those topics that have as many partitions as another sub-topology has tasks, how many."""
        index_of = {node.name: sub.index for sub in self.sub_topologies for node in sub.nodes}
        sinks = (node for node in self.nodes if isinstance(node, Sink) and node.topic in topics)
        found = {sink.topic: index_of[sink.as_many_as] for sink in sinks if sink.as_many_as is not None}
        return {topic: tasks[index] for topic, index in found.items() if index in tasks}


def _comes_later(subs: Sequence[SubTopology], returning: Collection[str], number: int) -> bool:
    """Whether a member of a circle reads nothing but the circle's topics: what it reads is not known at first."""
    return all(source.topic in returning or source.is_global for source in subs[number].all_sources)


def describe(topology: Topology) -> str:
    """A topology's text: see `Topology.describe`."""
    return topology.describe()


def _check(nodes: Sequence[Node]) -> None:
    seen: set[str] = set()
    read: set[str] = set()
    written: set[str] = set()
    for node in nodes:
        with _at_line_of(node):
            if node.name in seen:
                step = "name one differently; one of several topics has a node for each of them, NAME-TOPIC"
                raise ConfigurationError("two nodes have one name", node=node.name, next_step=step)
            unknown = [parent for parent in node.parents if parent not in seen]
            if unknown:
                next_step = "declare a node after all its parents; a node below itself would be a cycle"
                raise ConfigurationError(
                    f"parent {unknown[0]} is not declared before its child", node=node.name, next_step=next_step
                )
            seen.add(node.name)
            check_names(node)
            if isinstance(node, Processor) and isinstance(node.spec, CheckedSpec):
                node.spec.check(node.name)
            if isinstance(node, Source):
                _add_topic(read, node.topic, "read", "use the stream or table that reads it twice")
            if isinstance(node, Sink):
                _add_topic(written, node.topic, "written", "write it with one sink")
    if not any(isinstance(node, Source) and not node.is_global for node in nodes):
        what = "the topology has no source but global tables" if read else "the topology has no source"
        step = "begin with StreamsBuilder.stream() or .table(), or with Topology.add_source()"
        raise ConfigurationError(what, next_step=step)


@contextmanager
def _at_line_of(node: Node) -> Iterator[None]:
    """Errors name the line that has added the node."""
    try:
        yield
    except ConfigurationError as error:
        if node.line is None or "file" in error.place:
            raise
        raise error.placed(**place_beside(node.line, error)) from error


def _add_topic(topics: set[str], topic: str, done: str, next_step: str) -> None:
    if topic in topics:
        raise ConfigurationError(f"a topic is {done} by two nodes", topic=topic, next_step=next_step)
    topics.add(topic)


def _check_co_partitioned(sub: SubTopology, partitions: Mapping[str, int]) -> None:
    """Inputs of a node with several parents that shares stores between them must have equally many partitions.

    Topics whose partitions are not known yet are left out.
    """
    topics_of: dict[str, set[str]] = {}
    for node in sub.nodes:
        if isinstance(node, Source):
            topics_of[node.name] = set() if node.is_global else {node.topic}
            continue
        topics_of[node.name] = set().union(*(topics_of[parent] for parent in node.parents))
        if isinstance(node, Sink) or isinstance(node.spec, Process):  # what these get need not meet by its key
            continue
        if len(node.parents) > 1 and (node.stores or node.spec.state_stores()):
            counts = {topic: partitions[topic] for topic in sorted(topics_of[node.name]) if topic in partitions}
            if len(set(counts.values())) > 1:
                shown = ", ".join(f"{topic} has {count}" for topic, count in counts.items())
                raise ConfigurationError(
                    f"joined topics differ in their number of partitions: {shown}",
                    node=node.name,
                    next_step="repartition() one of them to the other's number",
                )
