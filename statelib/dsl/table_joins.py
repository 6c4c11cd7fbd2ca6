"""The nodes of joins of tables by key."""

from __future__ import annotations

from typing import TYPE_CHECKING

from statelib.dsl import ktable
from statelib.operators.table_join import TableJoin, TableJoinMerge
from statelib.operators.table_writer import VersionedStore

if TYPE_CHECKING:
    from collections.abc import Sequence

    from statelib.dsl.internal_builder import InternalStreamsBuilder
    from statelib.dsl.ktable import KTable
    from statelib.dsl.options import Materialized, Named
    from statelib.operators.table_view import AnyView, JoinedValues


def joined_table(
    builder: InternalStreamsBuilder,
    left: KTable,
    right: KTable,
    joined: JoinedValues,
    named: Named | None,
    materialized: Materialized | None,
) -> KTable:
    """The join of two tables (Kafka's ``KTableImpl.doJoin``)."""
    of_left, left_view = left.view()
    of_right, right_view = right.view()
    for table, is_kept in ((left, joined.keeps_left), (right, joined.keeps_right)):
        if is_kept or table.versioned:  # a versioned table says together what it replaces and what is the latest
            builder.request_prior_values(table.node)
    request_latest(builder, (*of_left, *of_right), (*left_view.stores, *right_view.stores))

    name = named.name if named else None
    order = builder.passing_order()
    left_ends, right_ends = (order[table.node].ends for table in (left, right))
    left_spec = TableJoin(joined, right_view, True, tuple(order[node].begins < left_ends for node in of_right))
    right_spec = TableJoin(joined, left_view, False, tuple(order[node].begins < right_ends for node in of_left))
    sides = [
        builder.add_processor(
            kind, [table.node], spec, name=name and f"{name}{suffix}", stores=names_of(spec.view), looks_into=nodes
        )
        for kind, suffix, table, spec, nodes in (
            ("KTABLE-JOINTHIS", "-join-this", left, left_spec, of_right),
            ("KTABLE-JOINOTHER", "-join-other", right, right_spec, of_left),
        )
    ]
    if right_ends < left_ends:  # a cause of both changes comes to the right side first
        sides.reverse()
    store = None
    if materialized is not None and materialized.store_name is not None:
        store = materialized.table_store(materialized.store_name)
    stores = [] if store is None else [builder.claim_store(store.name)]
    node = builder.add_processor("KTABLE-MERGE", sides, TableJoinMerge(store), name=name, stores=stores)
    if store is None:
        return ktable.JoinedTable(builder, node, left, right, joined)
    return ktable.KTable(builder, node, store=store, versioned=isinstance(store, VersionedStore))


def request_latest(builder: InternalStreamsBuilder, nodes: Sequence[str], stores: Sequence[object]) -> None:
    """Makes versioned tables that are looked into say which of their changes are the latest."""
    for node, store in zip(nodes, stores, strict=True):
        if isinstance(store, VersionedStore):
            builder.request_prior_values(node)


def names_of(view: AnyView) -> list[str]:
    """The names of a view's stores."""
    return [store.name for store in view.stores]
