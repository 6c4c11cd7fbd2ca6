"""Collects the nodes of a topology while it is described (Kafka's ``InternalStreamsBuilder``)."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from statelib.dsl.null_keys import with_null_keys_kept
from statelib.dsl.state_stores import StateStores
from statelib.errors import ConfigurationError, InternalError
from statelib.operators.derived_table import DerivedTable
from statelib.operators.suppress import Suppress
from statelib.operators.table_join import TableJoin, TableJoinMerge
from statelib.operators.table_source import PlainTableSource
from statelib.topology import Consumed, Processor, Sink, Source, Topology
from statelib.topology.passing_order import passing_order

if TYPE_CHECKING:
    from collections.abc import Sequence

    from statelib.operators.base import OperatorSpec
    from statelib.operators.mapping import Mapper
    from statelib.state import StoreBuilder
    from statelib.topology import Node
    from statelib.topology.nodes import Reading
    from statelib.topology.passing_order import Visit


class InternalStreamsBuilder:
    """Shared by all streams and tables of one `StreamsBuilder`.

    Args:
        application_id: Repartition topics begin with it.
    """

    def __init__(self, application_id: str) -> None:
        self.application_id = application_id
        self._nodes: list[Node] = []
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

    def build(self) -> Topology:
        """The topology, checked."""
        return Topology(tuple(with_null_keys_kept(self._nodes)))

    def add_source(self, kind: str, topic: str, consumed: Consumed | None = None, *, internal: bool = False) -> str:
        """Adds a source and gives its name; a topic that is read already in the same way keeps its one source.

        Raises:
            ConfigurationError: The topic is read already, in another way.
        """
        consumed = consumed or Consumed()
        new = Source(consumed.name or self.new_name(kind), topic, consumed, internal)
        for node in self._nodes:
            if isinstance(node, Source) and node.topic == topic:
                if node.is_global:
                    raise ConfigurationError(
                        "the topic of a global table is read otherwise, too",
                        topic=topic,
                        node=node.name,
                        next_step="join with the global table, or use table() in place of it",
                    )
                if replace(node, name=new.name) != new:
                    raise ConfigurationError(
                        "a topic is read twice, with a different Consumed each time",
                        topic=topic,
                        node=node.name,
                        next_step="read it with one Consumed, the same object both times, and map what differs",
                    )
                return node.name
        self._nodes.append(new)
        return new.name

    def add_global_source(self, topic: str, consumed: Consumed | None, *, reading: Reading) -> str:
        """Adds the source of a global table and gives its name.

        Raises:
            ConfigurationError: The topic is read already; as in Kafka, a global table has it for itself.
        """
        consumed = consumed or Consumed()
        new = Source(consumed.name or self.new_name("KSTREAM-SOURCE"), topic, consumed, reading=reading)
        for node in self._nodes:
            if isinstance(node, Source) and node.topic == topic:
                raise ConfigurationError(
                    "the topic of a global table is read otherwise, too",
                    topic=topic,
                    node=node.name,
                    next_step="use the one global table everywhere, or a table() in place of it",
                )
        self._nodes.append(new)
        return new.name

    def add_processor(
        self,
        kind: str,
        parents: Sequence[str],
        spec: OperatorSpec,
        *,
        name: str | None = None,
        stores: Sequence[str] = (),
        looks_into: Sequence[str] = (),
    ) -> str:
        """Adds a processor and gives its name; ``looks_into``: the tables whose stores it reads."""
        generated = self.new_name(kind)
        inputs = (*parents, *looks_into)
        self._nodes.append(Processor(name or generated, inputs, spec, tuple(stores), len(looks_into)))
        return name or generated

    def add_sink(self, parent: str, topic: str, *, name: str | None, partitions: int | None, key_changed: bool) -> None:
        """Adds a sink to a topic archive."""
        generated = self.new_name("KSTREAM-SINK")
        self._nodes.append(Sink(name or generated, (parent,), topic, partitions, key_kept=not key_changed))

    def repartition(
        self, parent: str, name: str | None, *, partitions: int | None = None, by: Mapper | None = None
    ) -> str:
        """Ends the sub-topology at ``parent``; gives the name of the source at which the next one begins."""
        generated = self.new_name("KSTREAM-REPARTITION")
        topic = f"{self.application_id}-{name or generated}-repartition"
        sink = Sink(f"{generated}-SINK", (parent,), topic, partitions, partition_by=by, internal=True)
        self._nodes.append(replace(sink, drops_null_keys=by is None))  # unless something behind it takes them: `build`
        return self.add_source("KSTREAM-SOURCE", topic, internal=True)

    def through(self, parent: str, topic: str, *, sink: str, source: str, as_many_as: str | None = None) -> str:
        """As `repartition`, with the names of the topic (behind the application's), the sink and the source."""
        full = f"{self.application_id}-{topic}"
        self._nodes.append(Sink(sink, (parent,), full, internal=True, as_many_as=as_many_as))
        self._nodes.append(Source(source, full, internal=True))
        return source

    def request_prior_values(self, node: str, *, materialize: bool = True) -> bool:
        """Makes a table say with each update what it replaces (Kafka's ``enableSendingOldValues``).

        Args:
            node: The table.
            materialize: Whether a topic's table is given a store for that, if it has none.

        Returns:
            Whether it does.
        """
        index, table = self._processor(node)
        spec: Any = table.spec
        if isinstance(spec, TableJoinMerge | TableJoin):  # as in Kafka, whether there is a store or not
            for parent in table.parents if isinstance(spec, TableJoinMerge) else table.parents[:1]:
                self.request_prior_values(parent)
        derived = isinstance(spec, Suppress) or (isinstance(spec, DerivedTable) and spec.store is None)
        if derived and not self.request_prior_values(table.parents[0], materialize=materialize):
            return False
        if isinstance(spec, PlainTableSource) and not spec.materialized:
            if not materialize:
                return False
            self.materialize(node)
        if not isinstance(spec, Suppress):
            index, table = self._processor(node)
            spec = table.spec
            self._nodes[index] = replace(table, spec=replace(spec, needs_prior=True))
        return True

    def passing_order(self) -> dict[str, Visit]:
        """See `statelib.topology.passing_order`, of the nodes so far."""
        return passing_order(self._nodes)

    def replace_spec(self, node: str, spec: OperatorSpec) -> None:
        """Changes what a processor does, as long as the topology is being described."""
        index, processor = self._processor(node)
        self._nodes[index] = replace(processor, spec=spec)

    def materialize(self, node: str) -> None:
        """Gives a topic's table its store, if it has none yet."""
        index, table = self._processor(node)
        if isinstance(table.spec, PlainTableSource):
            spec = replace(table.spec, materialized=True)
            self._nodes[index] = replace(table, spec=spec, stores=(spec.store,))

    def _processor(self, name: str) -> tuple[int, Processor]:
        for index, node in enumerate(self._nodes):
            if isinstance(node, Processor) and node.name == name:
                return index, node
        raise InternalError("a table is no processor", node=name)

    def claim_store(self, name: str) -> str:
        """Makes sure that a store's name is used once.

        Raises:
            ConfigurationError: Another operator has a store of this name.
        """
        if name in self._stores:
            raise ConfigurationError("two stores have one name", store=name, next_step="name one differently")
        self._stores.add(name)
        return name

    def add_state_store(self, builder: StoreBuilder[Any]) -> None:
        """Adds a store for a custom processor; the same builder twice is one store.

        Raises:
            ConfigurationError: Another store has its name.
        """
        if not self.state_stores.has(builder):
            self.claim_store(builder.name)
            self.state_stores.add(builder)

    def new_name(self, kind: str, *, ahead: int = 0) -> str:
        """A node's name as Kafka Streams makes it: the kind and a running number; ``ahead``: so many nodes later."""
        return f"{kind}-{len(self._nodes) + ahead:010d}"
