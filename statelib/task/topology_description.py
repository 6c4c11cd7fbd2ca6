"""A topology as a document: its nodes and stores as plain data, with the types that the sources' archives give them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from statelib.columns.schema_text import encode_schema
from statelib.columns.windowed_type import WindowedType, archived_type
from statelib.documents.topologies import NodeDescription, StoreDescription, TopologyDescription
from statelib.operators.aggregation.operator import KeyAggregate
from statelib.operators.deduplication.distinct import Distinct
from statelib.operators.deduplication.operator import DeduplicateSpec
from statelib.operators.joins.foreign_key.operator import ForeignKeyJoin
from statelib.operators.joins.foreign_key.resolve import ForeignKeyResolve
from statelib.operators.joins.stream_stream.operator import StreamStreamJoin
from statelib.operators.joins.stream_stream.self_join import StreamSelfJoin
from statelib.operators.joins.stream_table.buffer import JoinBuffer, row_schema
from statelib.operators.mappers.mapping import evaluate
from statelib.operators.processors.process import Process
from statelib.operators.sessions.operator import SessionAggregate
from statelib.operators.sliding.operator import SlidingAggregate
from statelib.operators.suppress.buffered_columns import rows_of, stored_schema
from statelib.operators.suppress.operator import Suppress
from statelib.operators.windows.operator import WindowAggregate
from statelib.stores.stored_rows import stored_type
from statelib.task.type_inference import forwarded_of_nothing, types_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from statelib.records.batch import Batch
    from statelib.settings.semantics import Semantics
    from statelib.topics.parquet.reader import PartitionReader
    from statelib.topology import Processor, Topology


def describe_topology(
    topology: Topology, readers: Mapping[str, PartitionReader], semantics: Semantics = "kip"
) -> TopologyDescription:
    """What ``topology`` is made of. Args and errors as of `statelib.task.type_inference.topic_types`."""
    forwarded = forwarded_of_nothing(topology, readers, semantics)
    types = {name: types_of(batch) for name, batch in forwarded.items()}
    nodes, stores = [], {}
    for sub in topology.sub_topologies:
        for node in sub.nodes:
            settings = dict(node.describe())
            nodes.append(
                NodeDescription(name=node.name, sub_topology=sub.index, parents=node.parents, settings=settings)
            )
        for node in sub.processors:
            for store in node.spec.state_stores():
                stores[store.name] = StoreDescription(
                    name=store.name,
                    kind=store.kind,
                    node=node.name,
                    sub_topology=sub.index,
                    families=store.families,
                    settings=dict(store.settings),
                    arrow_schema=encode_schema(_schema(node, store.name, types, forwarded)),
                )
    return TopologyDescription(fingerprint=topology.fingerprint, nodes=tuple(nodes), stores=tuple(stores.values()))


def _schema(node: Processor, store: str, types: Mapping[str, pa.Schema], forwarded: Mapping[str, Batch]) -> pa.Schema:
    """See `StoreDescription.arrow_schema`."""
    spec, made = node.spec, _made(node, types[node.name])
    fields = made
    match spec:
        case DeduplicateSpec():
            fields = _ids(spec, node, forwarded[node.parents[0]])
        case KeyAggregate() | WindowAggregate() | SlidingAggregate() | SessionAggregate():
            columns = spec.aggregator.stored_columns(made.field("value").type)
            kept = [pa.field("stored", stored_type(columns)), pa.field("row", pa.struct(list(columns)))]
            fields = pa.schema([*made, *kept])
        case Distinct():
            of_count = [pa.field(name, pa.int64()) for name in ("value", "stored")]
            fields = pa.schema([made.field("key"), *of_count, pa.field("row", pa.struct([of_count[0]]))])
        case Suppress():
            row = stored_schema(rows_of(forwarded[node.parents[0]]).schema)
            fields = pa.schema([*made, pa.field("row", pa.struct(list(row)))])
        case JoinBuffer():
            row = row_schema(forwarded[node.parents[0]])
            fields = pa.schema([*made, pa.field("row", pa.struct(list(row)))])
        case ForeignKeyResolve():
            fields = pa.schema([made.field("key"), pa.field("value", pa.int64())])  # the number of an answer
        case ForeignKeyJoin():
            got = types[node.parents[0]]
            left = got.field("value").type.field("left").type
            fields = pa.schema([made.field("key"), ("foreign_key", got.field("key").type), ("value", left)])
        case StreamStreamJoin() | StreamSelfJoin():
            fields = _of_join(spec, store, made, [types[parent] for parent in node.parents])
        case Process():
            builders = [builder for builder in spec.stores if builder.name == store]
            serdes = [part for b in builders for part in (("key", b.key_serde), ("value", b.value_serde))]
            fields = pa.schema([(name, serde.arrow_type) for name, serde in serdes])
    return fields


def _of_join(
    spec: StreamStreamJoin | StreamSelfJoin, store: str, made: pa.Schema, sides: Sequence[pa.Schema]
) -> pa.Schema:
    if isinstance(spec, StreamSelfJoin):
        return sides[0]
    left, right = sides[:: 1 if spec.left_first else -1]
    both = pa.struct([("left", left.field("value").type), ("right", right.field("value").type)])
    of_held = pa.schema([*made, pa.field("row", both)])
    return {spec.left_store: left, spec.right_store: right}.get(store, of_held)


def _made(node: Processor, forwarded: pa.Schema) -> pa.Schema:
    """What a store has of what its node forwards: some have windows beside the key, as columns of their own."""
    spec, key_type = node.spec, forwarded.field("key").type
    beside = isinstance(spec, WindowAggregate | SlidingAggregate | SessionAggregate | Distinct) or (
        isinstance(spec, Suppress) and spec.windows is not None
    )
    if beside and isinstance(key_type, WindowedType):
        return forwarded.set(0, pa.field("key", key_type.key_type))
    return forwarded


def _ids(spec: DeduplicateSpec, node: Processor, got: Batch) -> pa.Schema:
    """What a deduplication goes by."""
    key = pa.field("key", got.keys.type if spec.id_serde is None else archived_type(got.keys.type))
    if spec.id is None:
        return pa.schema([key])
    id_ = pa.field("id", evaluate(spec.id, got.as_record_batch(), node.name).type)
    return pa.schema([id_] if spec.kind == "by_id" else [pa.field("key", got.keys.type), id_])
