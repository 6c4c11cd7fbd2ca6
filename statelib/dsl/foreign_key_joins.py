"""The nodes of joins of tables by a foreign key (KIP-213)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from statelib.dsl import ktable
from statelib.dsl.table_joins import names_of, request_latest
from statelib.operators.foreign_key_join import ForeignKeyJoin
from statelib.operators.foreign_key_resolve import ForeignKeyResolve
from statelib.operators.foreign_key_subscribe import ForeignKeySubscribe

if TYPE_CHECKING:
    from statelib.dsl.internal_builder import InternalStreamsBuilder
    from statelib.dsl.ktable import KTable
    from statelib.dsl.options import Materialized, Named
    from statelib.operators.mapping import Mapper
    from statelib.operators.table_view import JoinedValues

_KIND = "KTABLE-FK-JOIN"


def foreign_key_joined_table(
    builder: InternalStreamsBuilder,
    left: KTable,
    right: KTable,
    foreign_key: Mapper,
    joined: JoinedValues,
    named: Named | None,
    materialized: Materialized | None,
) -> KTable:
    """The join of two tables by a foreign key (Kafka's ``KTableImpl.doJoinOnForeignKey``).

    Three stages: the left table's subscriptions go to where the right table's rows are, and the answers come back to a
    stage behind both. Kafka joins where the left table is; a stage here cannot come back to one before.
    """
    name = named.name if named else None

    def named_as(suffix: str, kind: str) -> str:
        return f"{name}-{suffix}" if name else builder.new_name(f"{_KIND}-{kind}")

    def passed_on(node: str, suffix: str, kind: str, *, as_many_as: str | None = None) -> str:
        sink, source = (
            f"{name}-{suffix}-{end}" if name else builder.new_name(f"KTABLE-{end.upper()}")
            for end in ("sink", "source")
        )
        topic = f"{named_as(suffix, kind)}-topic"
        return builder.through(node, topic, sink=sink, source=source, as_many_as=as_many_as)

    nodes, view = right.view()
    builder.request_prior_values(left.node)
    if right.versioned:
        builder.request_prior_values(right.node)
    request_latest(builder, nodes, view.stores)

    kind = "SUBSCRIPTION-REGISTRATION"
    subscribe = named_as("subscription-registration-processor", kind)
    spec = ForeignKeySubscribe(foreign_key, joined.keeps_left)
    builder.add_processor(f"{_KIND}-{kind}", [left.node], spec, name=subscribe)
    subscribed = passed_on(subscribe, "subscription-registration", kind)

    store = builder.claim_store(named_as("subscription-store", "SUBSCRIPTION-STATE-STORE"))
    kind = "SUBSCRIPTION-PROCESSOR"
    answer = named_as("subscription-join-foreign", kind)
    stores = [store, *names_of(view)]
    join = ForeignKeyJoin(joined, store, view)
    builder.add_processor(
        f"{_KIND}-{kind}", [subscribed, right.node], join, name=answer, stores=stores, looks_into=nodes
    )
    answered = passed_on(answer, "subscription-response", "SUBSCRIPTION-RESPONSE", as_many_as=subscribe)

    kind = "SUBSCRIPTION-RESPONSE-RESOLVER-PROCESSOR"
    resolver = named_as("subscription-response-resolver", kind)
    numbers = builder.claim_store(f"{resolver}-store")
    builder.add_processor(
        f"{_KIND}-{kind}", [answered], ForeignKeyResolve(numbers), name=resolver, stores=[numbers]
    )  # fmt: skip
    result = f"{name}-result" if name else None
    return ktable.table_of(builder, f"{_KIND}-OUTPUT", resolver, materialized, name=result)
