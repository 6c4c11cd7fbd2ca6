"""What of a job's topology decides its cost: the kind of each node, and how many columns are read and written."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

import pyarrow as pa

from hindstream.estimate.state import kept_ms_of
from statelib.task import topic_types
from statelib.topology import Processor, Sink, Source
from statelib.topology.projection import wanted_fields

if TYPE_CHECKING:
    from collections.abc import Mapping

    from statelib.settings.semantics import Semantics
    from statelib.topics.archive import TopicArchive
    from statelib.topology import Node, SubTopology, Topology

_CALLS = ("per_record", "reduce", "table_reduce", "initializer", "table_aggregate", "supplier")
"""Names, in the description of an operator, of functions that are called for each record."""


@dataclass(frozen=True, slots=True)
class Columns:
    """The columns of a value: ``numbers`` have a fixed size, ``texts`` (and bytes, lists, maps) have not."""

    numbers: int = 0
    texts: int = 0


@dataclass(frozen=True, slots=True)
class ShapedNode:
    """A node of a topology.

    Attributes:
        name: Its name.
        kind: Of an operator the name that its description has; else ``source``, ``sink`` or ``repartition``.
        role: What it is.
        sub_topology: Whose tasks run it.
        parents: Who forwards to it.
        topic: That it reads or writes.
        columns: What is read, or written, of a record's value.
        is_global: Whether every task takes up all of the topic.
        calls: How many functions of the user's are called for each record.
        keeps_state: Whether it writes a store.
    """

    name: str
    kind: str
    role: Literal["source", "operator", "sink"]
    sub_topology: int
    parents: tuple[str, ...] = ()
    topic: str | None = None
    columns: Columns = Columns()
    is_global: bool = False
    calls: int = 0
    keeps_state: bool = False


@dataclass(frozen=True, slots=True)
class Shape:
    """A topology over sources of known types.

    Attributes:
        nodes: In an order in which each comes after those that it gets records from.
        tasks: The number of tasks of each sub-topology.
        kept_ms: By family of each store, how long an entry is kept: see `kept_ms_of`.
    """

    nodes: tuple[ShapedNode, ...]
    tasks: Mapping[int, int]
    kept_ms: Mapping[str, int | None] = field(default_factory=dict)


def shape_of(topology: Topology, archives: Mapping[str, TopicArchive], semantics: Semantics) -> Shape:
    """The shape of a topology.

    Args:
        topology: The topology.
        archives: Those of its source topics.
        semantics: See `Semantics`.

    Raises:
        ConfigurationError: The topology does not work over these archives.
    """
    readers = {topic: archive.reader(0, 0, 0) for topic, archive in archives.items()}
    types = {topic: schema.field("value").type for topic, schema in topic_types(topology, readers, semantics).items()}
    types |= {topic: archive.schema.field("value").type for topic, archive in archives.items()}
    nodes = [node for sub in topology.sub_topologies for node in _shaped(sub, types)]
    tasks = topology.partitions({topic: archive.partitions for topic, archive in archives.items()})
    stores = [store for sub in topology.sub_topologies for store in sub.stores]
    kept_ms = {family: kept_ms_of(store) for store in stores for family in store.families}
    return Shape(tuple(nodes), tasks, kept_ms)


def columns_of(type_: pa.DataType, fields: frozenset[str] | None = None) -> Columns:
    """The columns of a type; ``fields``: of a struct only these of its fields, None: all."""
    if pa.types.is_struct(type_):
        parts = [columns_of(field.type) for field in type_ if fields is None or field.name in fields]
        return Columns(sum(part.numbers for part in parts), sum(part.texts for part in parts))
    if pa.types.is_null(type_):
        return Columns()
    return Columns(numbers=1) if pa.types.is_primitive(type_) or pa.types.is_decimal(type_) else Columns(texts=1)


def _shaped(sub: SubTopology, types: Mapping[str, pa.DataType]) -> list[ShapedNode]:
    wanted = wanted_fields(sub.nodes)
    return [_node(node, sub.index, types, wanted[node.name]) for node in sub.nodes]


def _node(node: Node, sub: int, types: Mapping[str, pa.DataType], wanted: frozenset[str] | None) -> ShapedNode:
    match node:
        case Source():
            columns = columns_of(types[node.topic], wanted)
            kind = "repartition" if node.internal else "source"
            return ShapedNode(
                node.name, kind, "source", sub, topic=node.topic, columns=columns, is_global=node.is_global
            )
        case Sink():
            kind = "repartition" if node.internal else "sink"
            return ShapedNode(
                node.name, kind, "sink", sub, node.parents, topic=node.topic, columns=columns_of(types[node.topic])
            )
        case Processor():
            described = node.spec.describe()
            stores = node.spec.state_stores()
            return ShapedNode(
                node.name,
                str(described["operator"]),
                "operator",
                sub,
                node.parents,
                calls=_calls(described),
                keeps_state=bool(stores),
            )


def _calls(described: object) -> int:
    if isinstance(described, dict):
        return sum((name in _CALLS) + _calls(inner) for name, inner in described.items())
    return sum(map(_calls, described)) if isinstance(described, (list, tuple)) else 0
