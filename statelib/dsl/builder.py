"""The beginning and the end of a topology in the DSL: `StreamsBuilder`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

from statelib.calls import KafkasNames, arguments_checked, constructor_checked
from statelib.calls.names import check_name
from statelib.dsl.global_ktable import global_table_of
from statelib.dsl.internal_builder import InternalStreamsBuilder
from statelib.dsl.options import Materialized
from statelib.dsl.streams_and_tables import KStream, KTable
from statelib.dsl.table_node import table_node_of
from statelib.errors.kinds import ConfigurationError
from statelib.topology import Consumed

if TYPE_CHECKING:
    from statelib.dsl.global_ktable import GlobalKTable
    from statelib.state import StoreBuilder
    from statelib.topology import Topology


@constructor_checked
@arguments_checked
class StreamsBuilder(KafkasNames):
    """Builds a topology, as Kafka Streams' class of the same name does.

    Args:
        application_id: Kafka's application id; repartition topics begin with it. Use the job's name.
    """

    def __init__(self, application_id: str) -> None:
        check_name(application_id, "an application")
        self.application_id = application_id
        self._builder = InternalStreamsBuilder(application_id)
        self._read_again = 0

    def stream(self, topic: str, consumed: Consumed | None = None) -> KStream:
        """The records of a topic."""
        name = self._builder.name_of(consumed, "KSTREAM-SOURCE")
        source = self._builder.add_source(name, topic, consumed)
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
        """A topic as a table: the latest record of a key holds, null deletes it.

        Args:
            topic: The topic.
            materialized: Its store. With a versioned one (``Stores.persistent_versioned_key_value_store``) what holds
                is the record with the latest timestamp, and older ones are kept; otherwise it is the one that arrived
                last. Without any, there is a store only if something looks into the table.
            consumed: How it is read. Kafka's order, ``table(topic, consumed, materialized)``, will do as well.
        """
        consumed, materialized = _by_type(topic, materialized, consumed)
        store = self._builder.store_name_of(materialized, topic)
        names = self._builder.source_names(consumed)
        source = self._builder.add_source(names.source, topic, consumed)
        return KTable(table_node_of(self._builder, names.table, source, materialized, store))

    def global_table(
        self,
        topic: str,
        materialized: Materialized | Consumed | None = None,
        consumed: Consumed | Materialized | None = None,
    ) -> GlobalKTable:
        """A topic as a table that every task has whole, so that streams can look up any key in it (``GlobalKTable``).

        Without a versioned store it is, as in Kafka, complete before the first record is taken up: each run takes up
        first what its archive holds when the run is planned, wherever the slice ends. With a versioned store, which
        Kafka has no global tables with, it is followed as time goes on, and a record meets the version that was valid
        at its time, however the history is cut: that is the one for history that has changed. See
        docs/decisions/0009-global-tables.md.

        Args:
            topic: The topic; nothing else may read it.
            materialized: Its store.
            consumed: How it is read; see `table`.
        """
        consumed, materialized = _by_type(topic, materialized, consumed)
        return global_table_of(self._builder, topic, materialized, consumed)

    def add_state_store(self, builder: StoreBuilder[Any]) -> Self:
        """Adds a store that a custom processor is connected with by name: see `KStream.process`.

        Raises:
            ConfigurationError: Another store has its name.
        """
        self._builder.add_state_store(builder)
        return self

    def build(self) -> Topology:
        """The topology, checked.

        Raises:
            ConfigurationError: It cannot work: see `Topology`.
        """
        return self._builder.build()


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
