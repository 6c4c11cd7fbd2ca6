"""The entry point of the DSL: `StreamsBuilder`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

from statelib.calls import KafkasNames, arguments_checked, constructor_checked
from statelib.calls.names import check_given_name
from statelib.dsl.global_ktable import global_table_of
from statelib.dsl.internal_builder import InternalStreamsBuilder
from statelib.dsl.optimization import optimizations_of
from statelib.dsl.options import Materialized
from statelib.dsl.processing import add_global_store
from statelib.dsl.streams_and_tables import KStream, KTable
from statelib.dsl.table_node import table_node_of
from statelib.errors.kinds import ConfigurationError
from statelib.topology import Consumed
from statelib.topology.patterns import topics_and_pattern

if TYPE_CHECKING:
    import re
    from collections.abc import Iterable, Mapping

    from statelib.dsl.global_ktable import GlobalKTable
    from statelib.dsl.low_level import Topology
    from statelib.operators.processors.definition import ProcessorSupplierLike
    from statelib.state import StoreBuilder


@constructor_checked
@arguments_checked
class StreamsBuilder(KafkasNames):
    """Builds a topology, like Kafka Streams' class of the same name.

    Args:
        application_id: Kafka's application id, the prefix of repartition topics. Use the job's name.
    """

    def __init__(self, application_id: str) -> None:
        check_given_name(application_id, "an application")
        self.application_id = application_id
        self._builder = InternalStreamsBuilder(application_id)
        self._read_again = 0

    def stream(
        self,
        topic: str | Iterable[str] | re.Pattern[str],
        consumed: Consumed | None = None,
        *,
        topics: Iterable[str] = (),
    ) -> KStream:
        """The records of a topic, or of several as if they were one.

        Records of several topics come in the order in which the task processes them; of equal timestamps those of the
        first topic come first. Their keys and values must have the same types. ::

            builder.stream(re.compile("orders-.*"), topics=["orders-eu", "orders-us"])

        Args:
            topic: The topic; several of them; or a pattern that matches the whole name of each (``stream(Pattern)``).
            consumed: How they are read.
            topics: All topics that the pattern matches. A run is refused if the warehouse has others.

        Raises:
            ConfigurationError: One of the topics is read already, in another way or together with others; or the topics
                of a pattern are not listed, or it does not match one of them.
        """
        name = self._builder.name_of(consumed, "KSTREAM-SOURCE")
        source = self._builder.add_source(name, *topics_and_pattern(topic, topics), consumed)
        if source == name:
            return KStream(self._builder, source, key_changed=False)
        self._read_again += 1
        return KStream(self._builder, source, key_changed=False, read_again=self._read_again)

    def table(
        self,
        topic: str,
        materialized: Materialized | Consumed | None = None,
        consumed: Consumed | Materialized | None = None,
    ) -> KTable:
        """Reads a topic as a table: the latest record of a key is its value, and null deletes the key.

        Args:
            topic: The topic.
            materialized: The table's store. With a versioned store (``Stores.persistent_versioned_key_value_store``)
                the latest record is the one with the largest timestamp, and older ones are kept. With any other, it is
                the record that arrived last. None: a store is created only if an operator reads the table.
            consumed: How the topic is read. Kafka's order, ``table(topic, consumed, materialized)``, works too.
        """
        consumed, materialized = _by_type(topic, materialized, consumed)
        store = self._builder.store_name_of(materialized, topic)
        names = self._builder.source_names(consumed)
        source = self._builder.add_source(names.source, topic, None, consumed)
        return KTable(table_node_of(self._builder, names.table, source, materialized, store, role="table-source"))

    def global_table(
        self,
        topic: str,
        materialized: Materialized | Consumed | None = None,
        consumed: Consumed | Materialized | None = None,
    ) -> GlobalKTable:
        """Reads a topic as a table of which every task has all keys, so that streams can look up any key.

        *Without a versioned store* it works as in Kafka (``GlobalKTable``): the table is complete before the first
        record is processed. Each run first loads all that the topic's archive holds when the run is planned, even
        beyond the end of the slice.

        *With a versioned store*, which Kafka does not offer here, the table is updated as stream time advances, and a
        record is joined with the version valid at its timestamp, however the history is sliced. Use this for tables
        that have changed over time. See docs/decisions/0009-global-tables.md.

        Args:
            topic: The topic. Nothing else may read it.
            materialized: The table's store.
            consumed: How the topic is read; see `table`.
        """
        consumed, materialized = _by_type(topic, materialized, consumed)
        return global_table_of(self._builder, topic, materialized, consumed)

    def add_state_store(self, builder: StoreBuilder[Any]) -> Self:
        """Adds a store, which a custom processor uses by name: see `KStream.process`.

        Raises:
            ConfigurationError: Another store has its name.
        """
        self._builder.add_state_store(builder)
        return self

    def add_global_store(
        self,
        builder: StoreBuilder[Any],
        topic: str,
        consumed: Consumed | None,
        state_update_supplier: ProcessorSupplierLike,
    ) -> Self:
        """Adds a store that each task has in full and all processors may read (Kafka's ``addGlobalStore``).

        Each run first loads all that the topic's archive holds when the run is planned, as for a global table without a
        versioned store. Processors get the store by its name in ``init``, and are not connected with it.

        Args:
            builder: Builds the store.
            topic: The topic. Nothing else may read it.
            consumed: How the topic is read.
            state_update_supplier: Makes the processor that puts the topic's records into the store. It gets that by its
                name, forwards nothing and schedules no callbacks.

        Raises:
            ConfigurationError: Another store has its name, or the topic is read already.
        """
        add_global_store(self._builder, builder, topic, consumed, state_update_supplier)
        return self

    def build(self, props: Mapping[str, str] | None = None) -> Topology:
        """The topology, checked.

        Optimised as the live application is::

            builder.build({"topology.optimization": "all"})

        Args:
            props: As Kafka's ``build(Properties)``: ``topology.optimization`` is ``none``, ``all``, or one or several
                of ``reuse.ktable.source.topics``, ``merge.repartition.topics`` (KIP-295) and ``single.store.self.join``
                (KIP-862), with commas between them. With Kafka's internal ``__enable.process.processValue.fix__``,
                processors count as changing keys or values. Give the live application's values.

        Raises:
            ConfigurationError: It cannot work: see `Topology`. Or there is no such setting or optimisation, or Kafka
                Streams fails to optimise this topology.
        """
        return self._builder.build(optimizations_of(props or {}))


def _by_type(topic: str, *given: Consumed | Materialized | None) -> tuple[Consumed | None, Materialized | None]:
    """What was given in either order: how a table is read, and its store.

    Raises:
        ConfigurationError: Something else was given, or two of a kind.
    """
    consumed = [option for option in given if isinstance(option, Consumed)]
    materialized = [option for option in given if isinstance(option, Materialized)]
    if len(consumed) > 1 or len(materialized) > 1 or len(consumed) + len(materialized) + given.count(None) < len(given):
        shown = ", ".join(type(option).__name__ for option in given if option is not None)
        raise ConfigurationError(
            f"a table cannot be made with {shown}",
            topic=topic,
            next_step="give it at most one Materialized and one Consumed",
        )
    return next(iter(consumed), None), next(iter(materialized), None)
