"""Which fields of its sources each field of a sink's records is made of, as far as the topology tells.

The topology runs over symbols (`statelib.topology.column_origins`) in place of records. An operator that this module
does not know, and a custom processor, are taken to make all that they forward of all that they get.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from statelib.operators.aggregation.definition import Aggregations
from statelib.operators.aggregation.operator import KeyAggregate
from statelib.operators.aggregation.table_select import TableSelect
from statelib.operators.deduplication.distinct import Distinct
from statelib.operators.deduplication.operator import DeduplicateSpec
from statelib.operators.joins.foreign_key.operator import ForeignKeyJoin
from statelib.operators.joins.foreign_key.resolve import ForeignKeyResolve
from statelib.operators.joins.foreign_key.subscribe import ForeignKeySubscribe
from statelib.operators.joins.stream_stream.operator import StreamJoinSide, StreamStreamJoin
from statelib.operators.joins.stream_stream.self_join import StreamSelfJoin
from statelib.operators.joins.stream_table.buffer import JoinBuffer
from statelib.operators.joins.stream_table.latest import StreamLatestJoin
from statelib.operators.joins.stream_table.operator import StreamTableJoin
from statelib.operators.joins.table_table.operator import TableJoin, TableJoinMerge
from statelib.operators.processors.process import Process
from statelib.operators.stateless.branch import Branch, Split
from statelib.operators.stateless.flat_map import FlatMap, FlatMapValues
from statelib.operators.stateless.merge import Merge
from statelib.operators.stateless.operator import Filter, ForEach, MapKeyValue, MapValues, Peek, SelectKey
from statelib.operators.stateless.route import Route
from statelib.operators.suppress.operator import Suppress
from statelib.operators.suppress.view import SuppressedView
from statelib.operators.tables.derived import DerivedTable, ToStream
from statelib.operators.tables.source import PlainTableSource, TableSource
from statelib.operators.tables.steps import FilterStep, MapStep, TransformStep
from statelib.operators.tables.view import JoinedView, TableView
from statelib.operators.windows.windowed_aggregate import WindowedAggregateSpec
from statelib.topology.column_origins import NOTHING, Column, Either, Made, Origin, Value, computed, mapped, used
from statelib.topology.nodes import Processor, Sink, Source
from statelib.topology.timestamp_extractors import PARTITION_TIME
from statelib.topology.turns import is_shared, turns

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from statelib.operators.aggregation.definition import AggregatorSpec
    from statelib.operators.mappers.mapping import Mapper
    from statelib.operators.tables.steps import TableStep
    from statelib.operators.tables.view import AnyView
    from statelib.topology.topology import Topology
    from statelib.topology.turns import Turn

_PASS = (Branch, Peek, ForEach, ToStream, Suppress, JoinBuffer, StreamJoinSide, TableSource, PlainTableSource)


@dataclass(frozen=True, slots=True)
class Flow:
    """What a node forwards.

    Attributes:
        key: Without its window.
        window: What the windows of keys are made of; None: they have none.
        decided_by: What decides which records there are.
    """

    key: Value
    value: Value
    timestamp: Value
    headers: Value
    window: Value | None = None
    decided_by: frozenset[Origin] = frozenset()

    @property
    def columns(self) -> dict[str, Value]:
        """As mappers see them."""
        windows = {} if self.window is None else dict.fromkeys(("window_start", "window_end"), self.window)
        return {"key": self.key, "value": self.value, "timestamp": self.timestamp, "headers": self.headers, **windows}

    @property
    def archived(self) -> dict[str, Value]:
        """As a sink writes them."""
        windows = {} if self.window is None else dict.fromkeys(("window_start", "window_end"), self.window)
        key = Made({"key": self.key, **windows}) if windows else self.key
        return {"key": key, "value": self.value, "timestamp": self.timestamp, "headers": self.headers}

    def decided(self, origins: frozenset[Origin]) -> Flow:
        """The same, where these decide too which records there are."""
        return replace(self, decided_by=self.decided_by | origins)


@dataclass(frozen=True, slots=True)
class SinkLineage:
    """What the records of a sink are made of.

    Attributes:
        fields: By column of the archive, fields of structs with dots (``value.amount``): what it is made of.
        decided_by: What decides which records there are: filters, groups, keys of joins.
    """

    fields: Mapping[str, tuple[Origin, ...]]
    decided_by: tuple[Origin, ...]


def column_lineage(
    topology: Topology, sources: Mapping[str, pa.Schema], sinks: Mapping[str, pa.Schema]
) -> dict[str, SinkLineage]:
    """By sink, what its columns are made of.

    Args:
        topology: The topology.
        sources: The columns of the archives of all source topics.
        sinks: The same of sinks; those that are not there are left out.
    """
    known = {topic: [path for path, _ in leaves(schema)] for topic, schema in sources.items()}
    found = {}
    for topic, flow in _flows(topology).items():
        if (schema := sinks.get(topic)) is None:
            continue
        fields = {}
        for path, _ in leaves(schema):
            value = flow.archived.get(path[0], NOTHING)
            for name in path[1:]:
                value = value.field(name)
            if origins := _settled(value.origins(), known):
                fields[".".join(path)] = origins
        found[topic] = SinkLineage(fields, _settled(flow.decided_by, known))
    return found


def leaves(schema: pa.Schema) -> Iterator[tuple[tuple[str, ...], pa.DataType]]:
    """The columns of a schema, those in structs instead of the structs: path and type of each."""
    for field in schema:
        yield from _leaves_of((field.name,), field.type)


def _leaves_of(path: tuple[str, ...], of: pa.DataType) -> Iterator[tuple[tuple[str, ...], pa.DataType]]:
    if pa.types.is_struct(of) and of.num_fields:
        for field in of:
            yield from _leaves_of((*path, field.name), field.type)
    else:
        yield path, of


def _settled(origins: frozenset[Origin], known: Mapping[str, list[tuple[str, ...]]]) -> tuple[Origin, ...]:
    """The origins as columns that the archives have: a struct is all that is in it, what is in bytes is the bytes."""
    settled = set()
    for origin in origins:
        for path in known.get(origin.topic, ()):
            depth = min(len(path), len(origin.path))
            if path[:depth] == origin.path[:depth]:
                settled.add(replace(origin, path=path))
    return tuple(sorted(settled))


def _flows(topology: Topology) -> dict[str, Flow]:
    """By topic that is written, what is."""
    topics: dict[str, Flow] = {}
    nodes: dict[str, Flow] = {}
    stages = topology.stages
    # What comes back in a circle is not known at first, and a step more of it each time.
    passes = [sub for stage in stages for sub in stage * (len(stage) + 1 if stage[0].returning else 1)]
    for sub in passes:
        in_order = turns(sub.nodes)
        found_in_stores = {node.name: turn for turn in in_order if is_shared(turn) for node in turn}
        for node in (node for turn in in_order for node in turn):
            parents = [nodes[parent] for parent in node.parents]
            match node:
                case Source(internal=True):
                    nodes[node.name] = topics.get(node.topic) or _unknown([])
                case Source():
                    nodes[node.name] = _source(node)
                case Sink():
                    topics[node.topic] = _one_of(parents)
                case Processor(spec=spec) if node.name in found_in_stores and (
                    node.stores or isinstance(spec, Process)
                ):
                    nodes[node.name] = _unknown(_from_outside(found_in_stores[node.name], nodes))
                case Processor(spec=Process()):
                    nodes[node.name] = _unknown(parents)
                case Processor():
                    nodes[node.name] = _forwarded(node.spec, parents)
    return topics


def _from_outside(turn: Turn, nodes: Mapping[str, Flow]) -> list[Flow]:
    """What nodes get that share stores: each may find there what the others get."""
    inside = {node.name for node in turn}
    return [nodes[parent] for node in turn for parent in node.parents if parent not in inside]


def _source(node: Source) -> Flow:
    key, value, timestamp, headers = (Column(node.topic, (name,)) for name in ("key", "value", "timestamp", "headers"))
    flow = Flow(key, value, timestamp, headers)
    extractor = node.consumed.timestamp_extractor.mapper
    if extractor is None:
        return flow
    return replace(flow, timestamp=mapped(extractor, {**flow.columns, PARTITION_TIME: NOTHING}))  # it is made of these


def _one_of(flows: Sequence[Flow]) -> Flow:
    if len(flows) == 1:
        return flows[0]
    windows = tuple(flow.window for flow in flows if flow.window is not None)
    return Flow(
        key=Either(tuple(flow.key for flow in flows)),
        value=Either(tuple(flow.value for flow in flows)),
        timestamp=Either(tuple(flow.timestamp for flow in flows)),
        headers=Either(tuple(flow.headers for flow in flows)),
        window=Either(windows) if windows else None,
        decided_by=frozenset[Origin]().union(*(flow.decided_by for flow in flows)),
    )


def _forwarded(spec: Any, parents: Sequence[Flow]) -> Flow:  # noqa: C901, PLR0911, PLR0912 - one case an operator
    flow = parents[0]
    columns = flow.columns
    match spec:
        case MapValues():
            return replace(flow, value=mapped(spec.value, columns))
        case SelectKey():
            return replace(flow, key=mapped(spec.key, columns), window=None)
        case MapKeyValue() | TableSelect():
            value = mapped(spec.value, columns)
            packed = Made({"new": value, "old": value}) if isinstance(spec, TableSelect) else value
            return replace(flow, key=mapped(spec.key, columns), value=packed, window=None)
        case FlatMapValues():
            return replace(flow, value=computed("transformation", [mapped(spec.values, columns)]))
        case FlatMap():
            made = computed("transformation", [mapped(spec.records, columns)])
            return replace(flow, key=made, value=made, window=None)
        case Filter():
            return flow.decided(used("filter", [mapped(spec.predicate, columns)]))
        case Split():
            return flow.decided(used("filter", [mapped(predicate, columns) for predicate in spec.predicates]))
        case Route():
            return flow.decided(used("filter", [mapped(spec.extractor, columns)]))
        case DeduplicateSpec():
            return flow.decided(used("filter", [flow.key if spec.id is None else mapped(spec.id, columns)]))
        case Distinct():
            window = computed("transformation", [flow.timestamp])
            return replace(flow.decided(used("filter", [flow.key, flow.timestamp])), window=window)
        case Merge() | TableJoinMerge():
            return _one_of(parents)
        case KeyAggregate() if len(parents) > 1:
            return _cogrouped(parents, spec.aggregator)
        case WindowedAggregateSpec() if len(parents) > 1:
            window = computed("transformation", [_one_of(parents).timestamp])
            return replace(_cogrouped(parents, spec.aggregator), window=window)
        case KeyAggregate():
            return _aggregated(replace(flow, value=flow.value.field("new")) if spec.of_table else flow, spec.aggregator)
        case WindowedAggregateSpec():
            window = computed("transformation", [flow.timestamp])
            return replace(_aggregated(flow, spec.aggregator), window=window)
        case StreamTableJoin():
            return _joined(spec.joiner, flow, _stepped(parents[1], spec.steps), spec.key)
        case StreamLatestJoin():
            return _joined(spec.joiner, flow, _looked_up(spec.view, iter(parents[1:])), spec.key)
        case StreamStreamJoin():
            left, right = parents if spec.left_first else reversed(parents)
            return _joined(spec.joiner, left, right)
        case StreamSelfJoin():
            return _joined(spec.joiner, flow, flow)
        case TableJoin():
            other = _looked_up(spec.view, iter(parents[1:]))
            return _joined(spec.joined.joiner, *((flow, other) if spec.is_left else (other, flow)))
        case DerivedTable():
            return _stepped(flow, [spec.step])
        case ForeignKeySubscribe():
            packed = Made({"left": flow.value, "primary_key": flow.key})
            return replace(flow, key=mapped(spec.foreign_key, columns), value=packed, window=None)
        case ForeignKeyJoin():
            left = replace(flow, key=flow.value.field("primary_key"), value=flow.value.field("left"))
            right = _looked_up(spec.view, iter(parents[2:]))
            joined = _joined(spec.joined.joiner, left.decided(used("join", [flow.key])), right)
            return replace(joined, value=Made({"value": joined.value}))
        case ForeignKeyResolve():
            return replace(flow, value=flow.value.field("value"))
        case _ if isinstance(spec, _PASS):
            return flow
        case _:
            return _unknown(parents)


def _aggregated(flow: Flow, aggregator: AggregatorSpec) -> Flow:
    columns = flow.columns
    grouped = flow.decided(used("group_by", [flow.key]))
    latest = computed("aggregation", [flow.timestamp])
    if not isinstance(aggregator, Aggregations):
        made: Value = computed("aggregation", [flow.key, flow.value], is_assumed=True)
        return replace(grouped, value=made, timestamp=latest)
    results = {
        name: computed("aggregation", [mapped(of, columns) for of in function.mappers])
        for name, function in aggregator.functions
    }
    named = {name: value for name, value in results.items() if name is not None}
    return replace(grouped, value=Made(named) if named else results[None], timestamp=latest)


def _cogrouped(parents: Sequence[Flow], aggregator: AggregatorSpec) -> Flow:
    """What several streams are aggregated to, each by functions of its own."""
    flow = _one_of(parents)
    grouped = flow.decided(used("group_by", [of.key for of in parents]))
    latest = computed("aggregation", [of.timestamp for of in parents])
    if not isinstance(aggregator, Aggregations):
        seen = [value for of in parents for value in (of.key, of.value)]
        return replace(grouped, value=computed("aggregation", seen, is_assumed=True), timestamp=latest)
    made = {
        str(name): computed("aggregation", [mapped(of, parents[stream].columns) for of in function.mappers])
        for (name, function), stream in zip(aggregator.functions, aggregator.streams, strict=True)
    }
    return replace(grouped, value=Made(dict(made)), timestamp=latest)


def _joined(joiner: Mapper, left: Flow, right: Flow, key: Mapper | None = None) -> Flow:
    """A join's results: they have the left side's keys and headers."""
    timestamp = Either((left.timestamp, right.timestamp))
    windows = {name: value for name, value in left.columns.items() if name.startswith("window_")}
    columns = {"key": left.key, "left": left.value, "right": right.value, "timestamp": timestamp, **windows}
    meets = left.key
    if key is not None:
        meets = columns["mapped_key"] = mapped(key, left.columns)
    by = used("join", [meets, right.key])
    return replace(left, value=mapped(joiner, columns), timestamp=timestamp).decided(by | right.decided_by)


def _stepped(flow: Flow, steps: Sequence[TableStep]) -> Flow:
    for step in steps:
        match step:
            case FilterStep():
                flow = flow.decided(used("filter", [mapped(step.predicate, flow.columns)]))
            case MapStep() | TransformStep():
                flow = replace(flow, value=mapped(step.mapper, flow.columns))
            case _:
                flow = _unknown([flow])
    return flow


def _looked_up(view: AnyView, tables: Iterator[Flow]) -> Flow:
    """What a join finds in a table; ``tables``: those that have the stores of the view, in its order."""
    match view:
        case SuppressedView():
            next(tables)  # what the buffer holds back is what is above it
            return _stepped(_looked_up(view.above, tables), view.steps)
        case TableView():
            return _stepped(next(tables), view.steps)
        case JoinedView():
            left = _looked_up(view.left, tables)
            return _stepped(_joined(view.joined.joiner, left, _looked_up(view.right, tables)), view.steps)
        case _:
            return _unknown([next(tables) for _ in view.stores])


def _unknown(parents: Sequence[Flow]) -> Flow:
    flow = _one_of(parents)
    made = computed("transformation", flow.columns.values(), is_assumed=True)
    return replace(flow, key=made, value=made, window=None, timestamp=made, headers=made)
