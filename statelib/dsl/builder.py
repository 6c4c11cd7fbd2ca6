"""The beginning and the end of a topology in the DSL: `StreamsBuilder`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from statelib.dsl.internal_builder import InternalStreamsBuilder
from statelib.dsl.kstream import KStream
from statelib.dsl.ktable import KTable
from statelib.errors import ConfigurationError
from statelib.operators.table_source import TableSource

if TYPE_CHECKING:
    from statelib.dsl.options import Materialized
    from statelib.topology import Consumed, Topology


class StreamsBuilder:
    """Builds a topology, as Kafka Streams' class of the same name does.

    Args:
        application_id: Kafka's application id; repartition topics begin with it. Use the job's name.
    """

    def __init__(self, application_id: str) -> None:
        self.application_id = application_id
        self._builder = InternalStreamsBuilder(application_id)

    def stream(self, topic: str, consumed: Consumed | None = None) -> KStream:
        """The records of a topic."""
        name = self._builder.add_source("KSTREAM-SOURCE", topic, consumed)
        return KStream(self._builder, name, key_changed=False)

    def table(self, topic: str, materialized: Materialized, consumed: Consumed | None = None) -> KTable:
        """A topic as a table: the latest record of a key holds, null deletes it.

        Args:
            topic: The topic.
            materialized: Its store; today that is a versioned one, see ``Stores.persistent_versioned_key_value_store``.
            consumed: How it is read.

        Raises:
            ConfigurationError: The store is not versioned.
        """
        if materialized.supplier is None:
            raise ConfigurationError(
                "a table needs a versioned store",
                topic=topic,
                next_step="Materialized.as_(Stores.persistent_versioned_key_value_store(name, history_retention))",
            )
        supplier = materialized.supplier
        source = self._builder.add_source("KSTREAM-SOURCE", topic, consumed)
        store = self._builder.claim_store(supplier.name)
        spec = TableSource(store, supplier.history_retention_ms, supplier.segment_interval_ms)
        node = self._builder.add_processor("KTABLE-SOURCE", [source], spec, stores=[store])
        return KTable(self._builder, node, store=supplier)

    def build(self) -> Topology:
        """The topology, checked.

        Raises:
            ConfigurationError: It cannot work: see `Topology`.
        """
        return self._builder.build()
