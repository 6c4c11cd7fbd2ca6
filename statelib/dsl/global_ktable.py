"""Tables of which every task has all keys (Kafka's ``GlobalKTable``)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from statelib.calls import KafkasNames, arguments_checked
from statelib.dsl.options import Materialized
from statelib.operators.tables.source import PlainTableSource, TableSource
from statelib.operators.tables.view import TableView
from statelib.operators.tables.writer import VersionedStore
from statelib.topology import Consumed, Source

if TYPE_CHECKING:
    from statelib.dsl.internal_builder import InternalStreamsBuilder
    from statelib.operators.tables.writer import TableStore
    from statelib.topology.nodes import Reading


@arguments_checked
class GlobalKTable(KafkasNames):
    """Kafka's ``GlobalKTable``, made by `StreamsBuilder.global_table`.

    Streams look up keys in it with `KStream.join` and `KStream.left_join`.

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
    options = materialized or Materialized()
    store = options.table_store(builder.store_name_of(materialized, topic))
    builder.claim_store(store.name)
    names = builder.source_names(consumed)
    reading: Reading = "follow" if isinstance(store, VersionedStore) else "bootstrap"
    source = Source(names.source, topic, consumed or Consumed(), reading=reading)
    spec: TableSource | PlainTableSource
    if isinstance(store, VersionedStore):
        spec = TableSource(store.name, store.history_retention_ms, store.segment_interval_ms)
    else:
        spec = PlainTableSource(store.name)
    return GlobalKTable(builder, builder.add_global_table(source, names.table, spec, store.name), store)
