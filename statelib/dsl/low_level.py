"""The Processor API's entry point: `Topology`, put together of sources, processors and sinks by their names."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

from statelib.calls import KafkasNames, arguments_checked, constructor_checked
from statelib.calls.names import check_given_name
from statelib.dsl.options import Produced
from statelib.dsl.state_stores import StateStores
from statelib.errors.kinds import ConfigurationError
from statelib.errors.user_lines import calling_line, place_of_call
from statelib.operators.mappers.mapping import mapper
from statelib.operators.processors.definition import ProcessorSupplier
from statelib.operators.processors.process import Process
from statelib.topology.nodes import Consumed, Processor, Sink, Source
from statelib.topology.patterns import topics_and_pattern
from statelib.topology.topics import check_names
from statelib.topology.topology import Topology as CompiledTopology

if TYPE_CHECKING:
    import re
    from collections.abc import Iterable, Sequence

    import pyarrow as pa

    from statelib.operators.mappers.mapping import MapperLike
    from statelib.operators.processors.definition import ProcessorSupplierLike
    from statelib.state import StoreBuilder
    from statelib.topology.nodes import Node


@constructor_checked
@arguments_checked
class Topology(KafkasNames, CompiledTopology):
    """Kafka's ``Topology``: sources, processors, stores and sinks, connected by their names.

    All processors of a sub-topology are called record by record, depth first, and have one queue of callbacks, as in
    Kafka Streams. ::

        topology = (
            Topology("alarms")
            .add_source("readings", "readings")
            .add_processor("silence", SilenceAlarm, "readings", value_type=pa.string())
            .add_state_store(last_seen, "silence")
            .add_sink("alarms", "alarms", "silence")
        )

    Args:
        application_id: The id that processors see. Use the job's name.
    """

    def __init__(self, application_id: str) -> None:
        check_given_name(application_id, "an application")
        self.application_id = application_id
        self.declared: tuple[Node, ...] = ()
        self._stores = StateStores()

    @classmethod
    def of(cls, application_id: str, nodes: Sequence[Node], stores: StateStores) -> Self:
        """What a `StreamsBuilder` has described, checked; more can be added.

        Args:
            application_id: See the class.
            nodes: In the order in which Kafka Streams writes them.
            stores: Those of custom processors.
        """
        made = cls(application_id)
        made.declared, made._stores = tuple(nodes), stores
        made.sub_topologies  # noqa: B018 - checks it
        return made

    # --- nodes ---------------------------------------------------------------------------------------------------

    def add_source(
        self,
        name: str,
        *topic: str | re.Pattern[str],
        consumed: Consumed | None = None,
        topics: Iterable[str] = (),
    ) -> Self:
        """Adds a source of one topic or several (Kafka's ``addSource``).

        Args:
            name: The node's.
            topic: What it reads; or one pattern, see `StreamsBuilder.stream`.
            consumed: Serdes and timestamp extractor; its name is not looked at.
            topics: All topics that the pattern matches.

        Raises:
            ConfigurationError: The name is taken or impossible, there is no topic, a topic has an impossible name or is
                read already, or a pattern is not alone; or the topics of a pattern are not listed, or it does not
                match one of them.
        """
        if not topic:
            raise _refused("a source has no topic", "name at least one topic", node=name)
        named = [one for one in topic if isinstance(one, str)]
        if len(named) < len(topic) > 1:
            step = "add a source for each pattern, and one for the topics that are named"
            raise _refused("a source has a pattern, and more beside it", step, node=name)
        read, pattern = topics_and_pattern(named or topic[0], topics)
        first, *more = dict.fromkeys(read)
        return self._add(Source(name, first, consumed or Consumed(), more_topics=tuple(more), pattern=pattern))

    def add_processor(
        self,
        name: str,
        processor_supplier: ProcessorSupplierLike,
        *parent_names: str,
        key_type: pa.DataType | None = None,
        value_type: pa.DataType | None = None,
    ) -> Self:
        """Adds a processor below others or sources (Kafka's ``addProcessor``).

        Args:
            name: The node's.
            processor_supplier: The `Processor`'s class, or a function or `ProcessorSupplier` that returns a new one.
            parent_names: Whose records it gets.
            key_type: Arrow type of the keys that it forwards to sinks; None: as of its first parent.
            value_type: Arrow type of the values; None: as of its first parent.

        Raises:
            ConfigurationError: The name is taken or impossible, or there is no such parent.
        """
        self._check_parents(name, parent_names)
        types = (key_type, value_type)
        spec = Process(processor_supplier, (), name, self.application_id, *types, low_level=True)
        self._add(Processor(name, tuple(dict.fromkeys(parent_names)), spec))
        own = processor_supplier.stores() if isinstance(processor_supplier, ProcessorSupplier) else ()
        for store in own:
            self.add_state_store(store, name)
        return self

    def add_sink(
        self,
        name: str,
        topic: str | MapperLike,
        *parent_names: str,
        produced: Produced | None = None,
        topics: Sequence[str] = (),
    ) -> Self:
        """Adds a sink (Kafka's ``addSink``).

        Args:
            name: The node's.
            topic: The topic; or with ``topics`` a mapper that chooses one of these for each record.
            parent_names: Whose records it writes.
            produced: Number of partitions and partitioner; its name is not looked at.
            topics: The topics that may be chosen.

        Raises:
            ConfigurationError: The name is taken or impossible, there is no such parent, a topic has an impossible name
                or number of partitions, or a mapper has no topics to choose from.
        """
        self._check_parents(name, parent_names)
        options = produced or Produced()
        if not isinstance(topic, str) and not topics:
            step = "name all topics that may be chosen: topics=[...]"
            raise _refused("a topic is chosen by a mapper, but among none", step, node=name)
        first, *more = dict.fromkeys(topics) if topics else [str(topic)]
        by_key = all(isinstance(node, Source) for node in self.declared if node.name in parent_names)
        return self._add(
            Sink(
                name,
                tuple(dict.fromkeys(parent_names)),
                first,
                options.partitions,
                partitioner=None if options.partitioner is None else mapper(options.partitioner),
                topic_extractor=mapper(topic) if topics else None,
                more_topics=tuple(more),
                key_kept=by_key,
            )
        )

    # --- stores --------------------------------------------------------------------------------------------------

    def add_state_store(self, builder: StoreBuilder[Any], *processor_names: str) -> Self:
        """Adds a store, and connects processors with it (Kafka's ``addStateStore``).

        Raises:
            ConfigurationError: Another store has its name, or there is no such processor.
        """
        if not self._stores.has(builder):
            if self._stores.has_name(builder.name):
                raise _refused("two stores have one name", "name one differently", store=builder.name)
            self._stores.add(builder)
        for name in processor_names:
            self.connect_processor_and_state_stores(name, builder.name)
        return self

    def connect_processor_and_state_stores(self, processor_name: str, *store_names: str) -> Self:
        """Lets a processor use stores (Kafka's ``connectProcessorAndStateStores``).

        Raises:
            ConfigurationError: There is no such processor or store.
        """
        node = self._node(processor_name)
        if not isinstance(node, Processor) or not isinstance(node.spec, Process):
            step = "connect one that was added with add_processor()"
            raise _refused("only processors use stores", step, node=processor_name)
        for name in store_names:
            if not self._stores.has_name(name):
                step = "add_state_store() its builder before"
                raise _refused("there is no such store", step, store=name, node=processor_name)
        names = list(dict.fromkeys((*node.stores, *store_names)))
        stores = self._stores.connect(names, processor_name, tables={})
        spec = replace(node.spec, stores=stores.own, shared=stores.shared)
        connected = replace(node, spec=spec, stores=tuple(names))
        self.declared = tuple(connected if other is node else other for other in self.declared)
        self._forget()
        return self

    def add_global_store(
        self,
        builder: StoreBuilder[Any],
        source_name: str,
        topic: str,
        processor_name: str,
        processor_supplier: ProcessorSupplierLike,
        consumed: Consumed | None = None,
    ) -> Self:
        """Adds a store that each task has in full and all processors may read: see `StreamsBuilder.add_global_store`.

        Raises:
            ConfigurationError: A name is taken or impossible, or the topic is read already.
        """
        source = Source(source_name, topic, consumed or Consumed(), reading="bootstrap")
        return self._add_writer(source, builder, processor_name, processor_supplier, writes_global=True)

    def add_read_only_state_store(
        self,
        builder: StoreBuilder[Any],
        source_name: str,
        topic: str,
        processor_name: str,
        processor_supplier: ProcessorSupplierLike,
        consumed: Consumed | None = None,
    ) -> Self:
        """Adds a store that one processor fills from a topic, and others read (KIP-813, ``addReadOnlyStateStore``).

        The others are connected with it by its name. As in Kafka, nothing keeps them from writing.

        Raises:
            ConfigurationError: A name is taken or impossible, or the topic is read already.
        """
        source = Source(source_name, topic, consumed or Consumed())
        return self._add_writer(source, builder, processor_name, processor_supplier, writes_global=False)

    # -------------------------------------------------------------------------------------------------------------

    def _add_writer(
        self,
        source: Source,
        builder: StoreBuilder[Any],
        name: str,
        supplier: ProcessorSupplierLike,
        *,
        writes_global: bool,
    ) -> Self:
        self._add(source)
        spec = Process(
            supplier,
            (),
            name,
            self.application_id,
            None,
            None,
            low_level=not writes_global,
            writes_global=writes_global,
        )
        self._add(Processor(name, (source.name,), spec))
        return self.add_state_store(builder, name)

    def _add(self, node: Node) -> Self:
        check_names(node, **place_of_call())
        if any(other.name == node.name for other in self.declared):
            raise _refused("two nodes have one name", "name one differently", node=node.name)
        if isinstance(node, Source):
            self._check_read_once(node)
        self.declared = (*self.declared, replace(node, line=calling_line()))
        self._forget()
        return self

    def _check_read_once(self, source: Source) -> None:
        for other in self.declared:
            if isinstance(other, Source) and (shared := {*source.topics}.intersection(other.topics)):
                step = f"name {other.name} as a parent, which reads it already"
                if source.is_global or other.is_global:
                    step = "give the global store a topic that no other source reads"
                raise _refused("a topic is read by two nodes", step, topic=min(shared), node=source.name)

    def _node(self, name: str) -> Node:
        for node in self.declared:
            if node.name == name:
                return node
        known = ", ".join(node.name for node in self.declared) or "none yet"
        raise _refused("there is no such node", f"add it before; there are: {known}", node=name)

    def _check_parents(self, name: str, parents: Sequence[str]) -> None:
        if not parents:
            raise _refused("a node has no parents", "name those whose records it gets", node=name)
        for parent in parents:
            if isinstance(self._node(parent), Sink):
                what = f"{parent} is a sink, and forwards nothing"
                raise _refused(what, "name a source or a processor", node=name)

    def _forget(self) -> None:
        """What was worked out of the nodes so far does not hold any more."""
        for name in [name for name in self.__dict__ if isinstance(getattr(type(self), name, None), cached_property)]:
            del self.__dict__[name]


def _refused(what: str, next_step: str, **place: object) -> ConfigurationError:
    """The error about a call, with its line."""
    return ConfigurationError(what, next_step=next_step, **place_of_call(), **place)
