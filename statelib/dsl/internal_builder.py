"""Collects the nodes of a topology while it is described (Kafka's ``InternalStreamsBuilder``)."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from statelib.dsl.graph import DslGraph
from statelib.dsl.low_level import Topology
from statelib.dsl.merged_repartitions import merge_repartition_topics
from statelib.dsl.null_keys import with_null_keys_kept
from statelib.dsl.options import Named
from statelib.dsl.repartitioning import check_repartitions
from statelib.dsl.reused_topics import reuse_source_topics
from statelib.dsl.self_joins import keep_one_store_of_self_joins
from statelib.dsl.state_stores import StateStores
from statelib.errors.kinds import ConfigurationError, InternalError
from statelib.errors.user_lines import place_of_call
from statelib.operators.joins.table_table.operator import TableJoin, TableJoinMerge
from statelib.operators.mappers.mapping import mapper
from statelib.operators.processors.process import Process
from statelib.operators.suppress.operator import Suppress
from statelib.operators.tables.derived import DerivedTable
from statelib.operators.tables.source import PlainTableSource
from statelib.topology import Consumed, Processor, Sink, Source
from statelib.topology.node_groups import global_nodes
from statelib.topology.patterns import check_patterns

if TYPE_CHECKING:
    import re
    from collections.abc import Iterable, Mapping, Sequence

    from statelib.dsl.graph import Role
    from statelib.dsl.optimization import Optimizations
    from statelib.dsl.options import Materialized, Produced
    from statelib.operators.base import OperatorSpec
    from statelib.operators.mappers.mapping import Mapper
    from statelib.state import StoreBuilder
    from statelib.topology import Node
    from statelib.topology.nodes import Described


_OF_TABLES = {"key-value", "versioned", "window", "session"}


def _distinct(topics: str | Iterable[str]) -> list[str]:
    """The names of topics, each once.

    Raises:
        ConfigurationError: There is none.
    """
    if isinstance(topics, set | frozenset):
        topics = sorted(topics)  # in another process it may come in another order
    names = [topics] if isinstance(topics, str) else list(dict.fromkeys(topics))
    if not names:
        raise ConfigurationError("no topic is named", next_step="name at least one")
    return names


class SourceNames(NamedTuple):
    """Those of the nodes of a topic's table."""

    source: str
    table: str


class InternalStreamsBuilder:
    """Shared by all streams and tables of one `StreamsBuilder`.

    Args:
        application_id: Repartition topics begin with it.
    """

    def __init__(self, application_id: str) -> None:
        self.application_id = application_id
        self._graph = DslGraph()
        self._index = 0
        self._stores: set[str] = set()
        self.state_stores = StateStores()

    def check_same(self, other: InternalStreamsBuilder) -> None:
        """Looks whether a stream or table of ``other`` goes together with those of this one.

        Raises:
            ConfigurationError: They are parts of two topologies.
        """
        if other is not self:
            raise ConfigurationError(
                "streams and tables of two StreamsBuilders do not go together",
                next_step="describe a topology with one StreamsBuilder; a topic connects two",
            )

    def build(self, optimizations: Optimizations) -> Topology:
        """The topology, optimised and checked."""
        nodes = with_null_keys_kept(self.optimized(optimizations))
        return Topology.of(self.application_id, tuple(nodes), self.state_stores)

    def optimized(self, optimizations: Optimizations) -> Sequence[Node]:
        """The nodes so far, optimised, as `declared`.

        Raises:
            ConfigurationError: Kafka Streams cannot optimise them.
        """
        graph, counted = self._graph.copied(), self._index
        if "reuse.ktable.source.topics" in optimizations.rules:
            reuse_source_topics(graph)
        if "merge.repartition.topics" in optimizations.rules:
            merge_repartition_topics(graph, self, knows_processors=optimizations.knows_processors)
        if "single.store.self.join" in optimizations.rules:
            keep_one_store_of_self_joins(graph)
        self._index = counted  # so that the same is built again
        check_repartitions(graph.nodes)
        return graph.written()

    @property
    def declared(self) -> Sequence[Node]:
        """The nodes so far, in the order in which Kafka Streams writes them."""
        return self._graph.written()

    # --- names ---------------------------------------------------------------------------------------------------

    def new_name(self, kind: str) -> str:
        """A node's name as Kafka Streams makes it (``newProcessorName``); one count for nodes, stores and topics."""
        self._index += 1
        return f"{kind}-{self._index - 1:010d}"

    def new_store_name(self, kind: str) -> str:
        """A store's name as Kafka Streams makes it (``newStoreName``)."""
        return self.new_name(f"{kind}-STATE-STORE")

    def name_of(self, given: Named | Consumed | str | None, kind: str) -> str:
        """The name given, else a new one; both count (``NamedInternal.orElseGenerateWithPrefix``)."""
        new = self.new_name(kind)
        name = given.name if isinstance(given, Named | Consumed) else given
        return new if name is None else name

    def suffixed(self, name: str | None, suffix: str, kind: str) -> str:
        """The name given with a suffix, else a new one; both count (``NamedInternal.suffixWithOrElseGet``)."""
        new = self.new_name(kind)
        return new if name is None else f"{name}{suffix}"

    def store_name_of(self, materialized: Materialized | None, kind: str) -> str:
        """The store's name given, which does not count, else a new one (``MaterializedInternal``)."""
        name = None if materialized is None else materialized.store_name
        return self.new_store_name(kind) if name is None else name

    def source_names(self, consumed: Consumed | None) -> SourceNames:
        """The names of a topic's table, global or not: with a name given they are that one and it with ``-source``."""
        name = None if consumed is None else consumed.name
        source = self.suffixed(name, "-source", "KSTREAM-SOURCE")
        return SourceNames(source, self.name_of(name, "KTABLE-SOURCE"))

    # --- nodes ---------------------------------------------------------------------------------------------------

    def add_source(
        self, name: str, topics: str | Iterable[str], pattern: re.Pattern[str] | None, consumed: Consumed | None
    ) -> str:
        """Adds a source and gives its name; what is read already in the same way keeps its one source.

        Raises:
            ConfigurationError: One of the topics is read already, in another way or together with others.
        """
        topic, *more = _distinct(topics)
        new = Source(name, topic, consumed or Consumed(), more_topics=tuple(more), pattern=pattern)
        for node in self._graph.nodes:
            if isinstance(node, Source) and (shared := sorted({*node.topics}.intersection(new.topics))):
                topic = shared[0]
                if node.is_global:
                    raise ConfigurationError(
                        "the topic of a global table is also read by another source",
                        topic=topic,
                        node=node.name,
                        next_step="join with the global table, or use table() in place of it",
                    )
                check_patterns([node, new] if node.pattern != new.pattern else [])
                if {*node.topics} != {*new.topics}:
                    raise ConfigurationError(
                        "a topic is read by two sources, of which one reads others with it",
                        topic=topic,
                        node=node.name,
                        next_step="read each topic with one source, and merge() the streams",
                    )
                new = replace(new, topic=node.topic, more_topics=node.more_topics)
                if replace(node, name=name, consumed=replace(node.consumed, name=new.consumed.name)) != new:
                    raise ConfigurationError(
                        "a topic is read twice, with a different Consumed each time",
                        topic=topic,
                        node=node.name,
                        next_step="read it with one Consumed, the same object both times, and map what differs",
                    )
                return node.name
        self._graph.add(new)
        return name

    def add_global_table(self, source: Source, name: str, spec: OperatorSpec, store: str) -> str:
        """Adds the source and the table of a global table and gives the table's name.

        Raises:
            ConfigurationError: The topic is read already; as in Kafka, a global table has it for itself.
        """
        for node in self._graph.nodes:
            if isinstance(node, Source) and source.topic in node.topics:
                raise ConfigurationError(
                    "the topic of a global table is also read by another source",
                    topic=source.topic,
                    node=node.name,
                    next_step="use the one global table everywhere, or a table() in place of it",
                )
        self._graph.add(source, Processor(name, (source.name,), spec, (store,)))
        return name

    def add_processor(
        self,
        name: str,
        parents: Sequence[str],
        spec: OperatorSpec,
        *,
        stores: Sequence[str] = (),
        looks_into: Sequence[str] = (),
        described: Sequence[Described] | None = None,
        role: Role | None = None,
    ) -> str:
        """Adds a processor and gives its name; ``looks_into``: the tables whose stores it reads."""
        shown = None if described is None else tuple(described)
        self.add(Processor(name, (*parents, *looks_into), spec, tuple(stores), len(looks_into), shown), role=role)
        return name

    def add(self, *nodes: Node, role: Role | None = None, parents: Iterable[str] | None = None) -> None:
        """Adds nodes that Kafka Streams writes together: see `DslGraph.add`."""
        self._graph.add(*nodes, role=role, parents=parents)

    def has_node(self, name: str) -> bool:
        """Whether a node has this name."""
        return self._graph.has(name)

    def add_again(self, node: str) -> None:
        """See `DslGraph.add_again`."""
        self._graph.add_again(node)

    def add_sink(
        self,
        parent: str,
        topics: str | Iterable[str],
        produced: Produced,
        *,
        extractor: Mapper | None = None,
        key_changed: bool,
    ) -> None:
        """Adds a sink to a topic archive, or to those of several topics among which an extractor chooses."""
        sink = self.name_of(produced.name, "KSTREAM-SINK")
        topic, *more = _distinct(topics)
        self.add(
            Sink(
                sink,
                (parent,),
                topic,
                produced.partitions,
                partitioner=None if produced.partitioner is None else mapper(produced.partitioner),
                topic_extractor=extractor,
                more_topics=tuple(more),
                key_kept=not key_changed,
            )
        )

    def internal_topic(self, topic: str) -> str:
        """The whole name of a repartition topic: the application's comes before it."""
        return f"{self.application_id}-{topic}"

    def request_prior_values(self, node: str, *, materialize: bool = True, for_latest: bool = False) -> bool:
        """Makes a table say with each update what it replaces (Kafka's ``enableSendingOldValues``).

        Args:
            node: The table.
            materialize: Whether a topic's table is given a store for that, if it has none.
            for_latest: Whether that is for the sake of what is the latest alone: Kafka Streams asks nothing there.

        Returns:
            Whether it does.
        """
        table = self._processor(node)
        spec: Any = table.spec
        if isinstance(spec, TableJoinMerge | TableJoin):  # as in Kafka, whether there is a store or not
            for parent in table.parents if isinstance(spec, TableJoinMerge) else table.parents[:1]:
                self.request_prior_values(parent, for_latest=for_latest)
        derived = isinstance(spec, Suppress) or (isinstance(spec, DerivedTable) and spec.store is None)
        above = table.parents[0]
        if derived and not self.request_prior_values(above, materialize=materialize, for_latest=for_latest):
            return False
        if isinstance(spec, PlainTableSource) and not spec.materialized:
            if not materialize:
                return False
            self.materialize(node)
        if not isinstance(spec, Suppress):
            table = self._processor(node)
            spec = table.spec
            if isinstance(spec, DerivedTable):
                spec = replace(spec, for_latest=for_latest and (spec.for_latest or not spec.needs_prior))
            self._graph.replace(replace(table, spec=replace(spec, needs_prior=True)))
        return True

    def changes_with_prior_values(self, node: str) -> bool:
        """Whether a table forwards something else if it says what it replaces, though it has a store of its own.

        A filter with a store is one, and a join: it asks the tables that it joins, whose filters drop more then.
        """
        spec = self._processor(node).spec
        is_filter = isinstance(spec, DerivedTable) and spec.step.is_filter and spec.store is not None
        return is_filter or isinstance(spec, TableJoinMerge | TableJoin)

    def store_of_table(self, node: str) -> str | None:
        """The store in which a table's rows are, if it has one of its own."""
        kept = (store.name for store in self._processor(node).spec.state_stores() if store.kind in _OF_TABLES)
        return next(kept, None)

    def replace_spec(self, node: str, spec: OperatorSpec) -> None:
        """Changes what a processor does, as long as the topology is being described."""
        self._graph.replace(replace(self._processor(node), spec=spec))

    def materialize(self, node: str) -> None:
        """Gives a topic's table its store, if it has none yet."""
        table = self._processor(node)
        if isinstance(table.spec, PlainTableSource):
            spec = replace(table.spec, materialized=True)
            self._graph.replace(replace(table, spec=spec, stores=(spec.store,)))

    def _processor(self, name: str) -> Processor:
        node = self._graph.node(name)
        if not isinstance(node, Processor):
            raise InternalError("a table is no processor", node=name)
        return node

    def claim_store(self, name: str) -> str:
        """Makes sure that a store's name is used once.

        Raises:
            ConfigurationError: Another operator has a store of this name.
        """
        if name in self._stores:
            step = "name one differently"
            raise ConfigurationError("two stores have one name", **place_of_call(), store=name, next_step=step)
        self._stores.add(name)
        return name

    @property
    def stores_of_tables(self) -> Mapping[str, bool]:
        """The names of the stores that tables and aggregations have, and whether these are global."""
        of_globals = global_nodes(self._graph.nodes)
        return {
            store.name: node.name in of_globals
            for node in self._graph.nodes
            if isinstance(node, Processor) and not isinstance(node.spec, Process)
            for store in node.spec.state_stores()
            if store.kind in {"key-value", "versioned", "window", "session"}
        }

    def add_state_store(self, builder: StoreBuilder[Any]) -> None:
        """Adds a store for a custom processor; the same builder twice is one store.

        Raises:
            ConfigurationError: Another store has its name.
        """
        if not self.state_stores.has(builder):
            self.claim_store(builder.name)
            self.state_stores.add(builder)
