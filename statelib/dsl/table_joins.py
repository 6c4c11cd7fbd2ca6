"""The nodes of joins of tables by key."""

from __future__ import annotations

from typing import TYPE_CHECKING

from statelib.dsl.table_node import JoinedTableNode, TableNode
from statelib.operators.joins.table_table.operator import TableJoin, TableJoinMerge
from statelib.operators.tables.writer import VersionedStore
from statelib.topology import Processor

if TYPE_CHECKING:
    from collections.abc import Sequence

    from statelib.dsl.internal_builder import InternalStreamsBuilder
    from statelib.dsl.options import Materialized, Named
    from statelib.operators.tables.view import AnyView, JoinedValues


def joined_table(
    builder: InternalStreamsBuilder,
    left: TableNode,
    right: TableNode,
    joined: JoinedValues,
    named: Named | None,
    materialized: Materialized | None,
) -> TableNode:
    """The join of two tables (Kafka's ``KTableImpl.doJoin``)."""
    store = None
    if materialized is not None:
        store = materialized.table_store(builder.store_name_of(materialized, "KTABLE-MERGE"))
    given = named.name if named else None
    name = builder.name_of(given, "KTABLE-MERGE")
    of_left, left_view = left.view()
    of_right, right_view = right.view()
    for table, is_kept in ((left, joined.keeps_left), (right, joined.keeps_right)):
        if is_kept or table.versioned:  # a versioned table says together what it replaces and what is the latest
            builder.request_prior_values(table.node, for_latest=not is_kept)
    request_latest(builder, (*of_left, *of_right), (*left_view.stores, *right_view.stores))

    this = builder.suffixed(given, "-join-this", "KTABLE-JOINTHIS")
    other = builder.suffixed(given, "-join-other", "KTABLE-JOINOTHER")
    left_spec, right_spec = TableJoin(joined, right_view, is_left=True), TableJoin(joined, left_view, is_left=False)
    sides = (this, other)
    builder.add(
        *(
            Processor(side, (table.node, *nodes), spec, tuple(names_of(spec.view)), len(nodes))
            for side, table, spec, nodes in ((this, left, left_spec, of_right), (other, right, right_spec, of_left))
        ),
        Processor(
            name,
            sides,
            TableJoinMerge(store),
            () if store is None else (builder.claim_store(store.name),),
        ),
    )
    if store is None:
        return JoinedTableNode(builder, name, left=left, right=right, joined=joined)
    return TableNode(builder, name, store, versioned=isinstance(store, VersionedStore))


def request_latest(builder: InternalStreamsBuilder, nodes: Sequence[str], stores: Sequence[object]) -> None:
    """Makes versioned tables that are looked into say which of their changes are the latest."""
    for node, store in zip(nodes, stores, strict=True):
        if isinstance(store, VersionedStore):
            builder.request_prior_values(node, for_latest=True)


def names_of(view: AnyView) -> list[str]:
    """The names of a view's stores."""
    return [store.name for store in view.stores]
