"""The nodes of a join of a stream with a table."""

from __future__ import annotations

from typing import TYPE_CHECKING

from statelib.errors.kinds import ConfigurationError
from statelib.operators.joins.stream_table.buffer import JoinBuffer
from statelib.operators.joins.stream_table.latest import StreamLatestJoin
from statelib.operators.joins.stream_table.operator import StreamTableJoin
from statelib.operators.mappers.mapping import mapper
from statelib.operators.tables.view import TableView
from statelib.operators.tables.writer import VersionedStore

if TYPE_CHECKING:
    from statelib.dsl.internal_builder import InternalStreamsBuilder
    from statelib.dsl.table_node import TableNode
    from statelib.operators.mappers.mapping import Mapper, MapperLike
    from statelib.operators.tables.view import AnyView


def stream_join(
    view: AnyView, joiner: MapperLike, *, left: bool, key: Mapper | None = None
) -> StreamTableJoin | StreamLatestJoin:
    """How a stream is joined with a table: at the record's time where the table's store is versioned."""
    if not isinstance(view, TableView) or not isinstance(view.store, VersionedStore):
        return StreamLatestJoin(mapper(joiner), view, left, key)
    return StreamTableJoin(
        joiner=mapper(joiner),
        store=view.store.name,
        history_retention_ms=view.store.history_retention_ms,
        segment_interval_ms=view.store.segment_interval_ms,
        left=left,
        steps=view.steps,
        aggregator=view.aggregator,
        key=key,
    )


def held_back(
    builder: InternalStreamsBuilder, stream: str, table: TableNode, grace_ms: int, name: str
) -> tuple[str, str]:
    """The node of a stream that waits for late updates of a table (KIP-923), and its store.

    In Kafka Streams the join itself has that store.

    Args:
        builder: Shared by all streams and tables of a topology.
        stream: The stream's node.
        table: The table.
        grace_ms: How long records wait, in stream time.
        name: The join's.

    Raises:
        ConfigurationError: The table forgets what the join would ask for.
    """
    _, view = table.view()
    if not isinstance(view, TableView) or not isinstance(view.store, VersionedStore):
        raise ConfigurationError(
            "a table must be versioned to be joined with a grace period",
            node=name,
            next_step="materialize it with Stores.persistent_versioned_key_value_store()",
        )
    if view.store.history_retention_ms < grace_ms:
        raise ConfigurationError(
            f"the table keeps its history for {view.store.history_retention_ms} ms, less than the join's grace "
            f"period of {grace_ms} ms",
            store=view.store.name,
            node=name,
            next_step="make the history retention at least the grace period",
        )
    store = builder.claim_store(f"{name}-Buffer")
    spec = JoinBuffer(store, grace_ms)
    return builder.add_processor(f"{name}-buffer", [stream], spec, stores=[store], described=()), store
