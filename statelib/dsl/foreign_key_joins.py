"""The nodes of joins of tables by a foreign key (KIP-213)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from statelib.dsl.options import TableJoined
from statelib.dsl.table_joins import names_of, request_latest
from statelib.dsl.table_node import table_node_of
from statelib.operators.joins.foreign_key.operator import ForeignKeyJoin
from statelib.operators.joins.foreign_key.resolve import ForeignKeyResolve
from statelib.operators.joins.foreign_key.subscribe import ForeignKeySubscribe
from statelib.operators.mappers.mapping import mapper
from statelib.topology import Sink, Source
from statelib.topology.nodes import Described

if TYPE_CHECKING:
    from statelib.dsl.internal_builder import InternalStreamsBuilder
    from statelib.dsl.options import Materialized, Named
    from statelib.dsl.table_node import TableNode
    from statelib.operators.mappers.mapping import Mapper
    from statelib.operators.tables.view import JoinedValues

_KIND = "KTABLE-FK-JOIN"


def foreign_key_joined_table(
    builder: InternalStreamsBuilder,
    left: TableNode,
    right: TableNode,
    foreign_key: Mapper,
    joined: JoinedValues,
    named: Named | TableJoined | None,
    materialized: Materialized | None,
) -> TableNode:
    """The join of two tables by a foreign key (Kafka's ``KTableImpl.doJoinOnForeignKey``).

    Three stages: the left table's subscriptions go to where the right table's rows are, and the answers come back to a
    stage behind both. Kafka joins where the left table is; a stage here cannot come back to one before.
    """
    name = named.name if named else None
    nodes, view = right.view()
    for table in (right, left):  # Kafka asks the right one too, to find equal values
        builder.request_prior_values(table.node)
    request_latest(builder, nodes, view.stores)

    topic = f"{builder.suffixed(name, '-subscription-registration', f'{_KIND}-SUBSCRIPTION-REGISTRATION')}-topic"
    send = builder.suffixed(name, "-subscription-registration-processor", f"{_KIND}-SUBSCRIPTION-REGISTRATION")
    windows = None if right.windows is None else right.windows.of_keys
    builder.add_processor(send, [left.node], ForeignKeySubscribe(foreign_key, joined.keeps_left, windows))
    partitioner, other_partitioner = _partitioners(named)
    subscribed = _passed_on(builder, send, topic, name, "-subscription-registration", other_partitioner)

    store = builder.claim_store(builder.suffixed(name, "-subscription-store", f"{_KIND}-SUBSCRIPTION-STATE-STORE"))
    kind = f"{_KIND}-SUBSCRIPTION-PROCESSOR"
    receive = builder.suffixed(name, "-subscription-receive", kind)
    answer = builder.suffixed(name, "-subscription-join-foreign", kind)
    tell = builder.suffixed(name, "-foreign-join-subscription", kind)
    described = (
        Described(receive, (subscribed,), (store,)),
        Described(answer, (receive,), tuple(names_of(view))),
        Described(tell, (right.node,), (store,)),
    )
    join = ForeignKeyJoin(joined, store, view)
    stores = [store, *names_of(view)]
    builder.add_processor(answer, [subscribed, right.node], join, stores=stores, looks_into=nodes, described=described)
    topic = f"{builder.suffixed(name, '-subscription-response', f'{_KIND}-SUBSCRIPTION-RESPONSE')}-topic"
    answered = _passed_on(builder, answer, topic, name, "-subscription-response", partitioner, as_many_as=send)

    kind = f"{_KIND}-SUBSCRIPTION-RESPONSE-RESOLVER-PROCESSOR"
    resolver = builder.suffixed(name, "-subscription-response-resolver", kind)
    numbers = builder.claim_store(f"{resolver}-store")
    shown = Described(resolver, (answered,), tuple(left.store_names()))
    builder.add_processor(resolver, [answered], ForeignKeyResolve(numbers), stores=[numbers], described=(shown,))
    kind = f"{_KIND}-OUTPUT"
    result = builder.suffixed(name, "-result", kind)
    return table_node_of(builder, result, resolver, materialized, builder.store_name_of(materialized, kind))


def _passed_on(
    builder: InternalStreamsBuilder,
    node: str,
    topic: str,
    name: str | None,
    suffix: str,
    partitioner: Mapper | None,
    *,
    as_many_as: str | None = None,
) -> str:
    """The source behind a topic; the topic's name comes with neither the application's nor ``-repartition``."""
    sink = builder.suffixed(name, f"{suffix}-sink", "KTABLE-SINK")
    source = builder.suffixed(name, f"{suffix}-source", "KTABLE-SOURCE")
    full = builder.internal_topic(topic)
    is_placed = partitioner is not None
    builder.add(
        Sink(
            sink,
            (node,),
            full,
            partitioner=partitioner,
            places_keys=is_placed,
            internal=True,
            as_many_as=as_many_as,
            topic_in_text=topic,
        ),
        Source(source, full, internal=True, by_partitioner=is_placed, topic_in_text=topic),
    )
    return source


def _partitioners(named: Named | TableJoined | None) -> tuple[Mapper | None, Mapper | None]:
    """What places keys of the left table, and of the right one."""
    if not isinstance(named, TableJoined):
        return None, None
    this, other = (None if of is None else mapper(of) for of in (named.partitioner, named.other_partitioner))
    return this, other
