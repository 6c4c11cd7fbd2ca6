"""Tables that every task has whole (Kafka's ``GlobalKTable``)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from statelib.dsl.options import Materialized
from statelib.operators.table_source import PlainTableSource, TableSource
from statelib.operators.table_view import TableView
from statelib.operators.table_writer import VersionedStore

if TYPE_CHECKING:
    from statelib.dsl.internal_builder import InternalStreamsBuilder
    from statelib.operators.table_writer import TableStore
    from statelib.topology import Consumed


class GlobalKTable:
    """Kafka's ``GlobalKTable``, made by `StreamsBuilder.global_table`.

    Streams look into it with `KStream.join` and `KStream.left_join`.

    Args:
        builder: Shared by all streams and tables of a topology.
        node: What writes the table.
        store: The table's store.
    """

    def __init__(self, builder: InternalStreamsBuilder, node: str, store: TableStore) -> None:
        self.builder = builder
        self.node = node
        self.view = TableView(store)

    @property
    def queryable_store_name(self) -> str:
        """The store's name."""
        return self.view.store.name


def global_table_of(
    builder: InternalStreamsBuilder, topic: str, materialized: Materialized | None, consumed: Consumed | None
) -> GlobalKTable:
    """A topic as a global table (Kafka's ``InternalStreamsBuilder.globalTable``)."""
    kind = "KTABLE-SOURCE"
    options = materialized or Materialized()
    is_versioned = isinstance(options.table_store(""), VersionedStore)
    source = builder.add_global_source(topic, consumed, reading="follow" if is_versioned else "bootstrap")
    store = options.table_store(f"{builder.new_name(kind)}-STORE")
    builder.claim_store(store.name)
    spec: TableSource | PlainTableSource
    if isinstance(store, VersionedStore):
        spec = TableSource(store.name, store.history_retention_ms, store.segment_interval_ms)
    else:
        spec = PlainTableSource(store.name)
    node = builder.add_processor(kind, [source], spec, stores=[store.name])
    return GlobalKTable(builder, node, store)
