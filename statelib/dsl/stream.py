"""The operators of a stream that return a stream, and those that end it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self, cast, overload

from statelib.calls import KafkasNames
from statelib.dsl.global_ktable import GlobalKTable
from statelib.dsl.options import Deduplicated, Joined, Named, Produced, Repartitioned
from statelib.dsl.processing import add_process
from statelib.dsl.repartitioning import add_repartition, stream_names
from statelib.dsl.stream_joins import StreamJoined, joined_stream
from statelib.dsl.stream_table_joins import held_back, stream_join
from statelib.errors.kinds import ConfigurationError
from statelib.operators.deduplication.operator import DeduplicateSpec
from statelib.operators.mappers.mapping import Mapper, MapperLike, mapper
from statelib.operators.stateless.flat_map import FlatMap, FlatMapValues
from statelib.operators.stateless.merge import Merge
from statelib.operators.stateless.operator import Filter, ForEach, MapKeyValue, MapValues, Peek, SelectKey, by_batch
from statelib.operators.stateless.printed import PrintLines
from statelib.settings.durations import milliseconds
from statelib.topology.nodes import Described

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from datetime import timedelta

    import pyarrow as pa

    from statelib.dsl.graph import Role
    from statelib.dsl.internal_builder import InternalStreamsBuilder
    from statelib.dsl.table import Table
    from statelib.operators.base import OperatorSpec
    from statelib.operators.deduplication.ids import Kind
    from statelib.operators.joins.stream_stream.definition import JoinWindows
    from statelib.operators.processors.definition import ProcessorSupplierLike
    from statelib.operators.stateless.printed import Printed


class Stream(KafkasNames):
    """A stream. Each method returns a new one.

    Mappers are paths, expressions or functions: see `statelib.operators.mappers.mapping`.
    """

    def __init__(self, builder: InternalStreamsBuilder, node: str, *, key_changed: bool, read_again: int = 0) -> None:
        self._builder = builder
        self.node = node
        self._key_changed = key_changed
        self._read_again = read_again
        self._by_key: str | None = None

    # --- one record at a time ------------------------------------------------------------------------------------

    def filter(self, predicate: MapperLike, named: Named | None = None) -> Self:
        """The records for which ``predicate`` is true."""
        return self._then("KSTREAM-FILTER", Filter(mapper(predicate)), named)

    def filter_not(self, predicate: MapperLike, named: Named | None = None) -> Self:
        """The records for which ``predicate`` is false or null; comparisons with null give null."""
        return self._then("KSTREAM-FILTER", Filter(mapper(predicate), negated=True), named)

    def map_values(self, value: MapperLike, named: Named | None = None) -> Self:
        """Replaces the value and keeps the key."""
        return self._then("KSTREAM-MAPVALUES", MapValues(mapper(value)), named, role="value-changing")

    def select_key(self, key: MapperLike, named: Named | None = None) -> Self:
        """Replaces the key. The next operator that needs the key repartitions the stream."""
        return self._then("KSTREAM-KEY-SELECT", SelectKey(mapper(key)), named, role="key-changing")

    def map(self, key: MapperLike, value: MapperLike, named: Named | None = None) -> Self:
        """Replaces key and value. The next operator that needs the key repartitions the stream."""
        return self._then("KSTREAM-MAP", MapKeyValue(mapper(key), mapper(value)), named, role="key-changing")

    def flat_map(self, records: MapperLike, named: Named | None = None) -> Self:
        """Zero, one or many records for each record (``KStreamFlatMap``).

        ``records`` is a mapper that returns a column of lists of structs with the fields ``key`` and ``value``: a path
        to such a field, or a function. Slower is ``per_record(f, pa.list_(pa.struct([("key", ...), ("value", ...)])))``
        with an ``f`` that returns a list of dicts or pairs. The results of a record come in the order of its list, with
        the record's timestamp and headers. An empty list, or null, gives no result. The next operator that needs the
        key repartitions the stream.
        """
        return self._then("KSTREAM-FLATMAP", FlatMap(mapper(records)), named, role="key-changing")

    def flat_map_values(self, values: MapperLike, named: Named | None = None) -> Self:
        """Zero, one or many values for each record, under the same key (``KStreamFlatMapValues``).

        ``values`` is a mapper that returns a column of lists, such as ``flat_map_values("tags")``. Slower is
        ``flat_map_values(per_record(str.split, pa.list_(pa.string()), "text"))``. See `flat_map`.
        """
        return self._then("KSTREAM-FLATMAPVALUES", FlatMapValues(mapper(values)), named, role="value-changing")

    def peek(
        self, action: Callable[[pa.RecordBatch], object] | Callable[[Any, Any], object], named: Named | None = None
    ) -> Self:
        """Calls ``action`` and passes the records on. What it is called with, and how often: see `foreach`."""
        return self._then("KSTREAM-PEEK", Peek(by_batch(action)), named)

    # --- several streams -----------------------------------------------------------------------------------------

    def merge(self, other: Stream, named: Named | None = None) -> Self:
        """The records of both streams, in the order in which the task processes them (``KSTREAM-MERGE``).

        Keys and values must have the same types. If the topics differ in their number of partitions, repartition the
        merged stream before an operator that needs its keys.
        """
        self._builder.check_same(other._builder)
        name = self._builder.name_of(named, "KSTREAM-MERGE")
        parents = list(dict.fromkeys((self.node, other.node)))  # a stream and itself are, as in Kafka, the stream
        both: list[Stream] = [self, other]
        declared = sorted(both, key=Stream._joins_its_source)
        described = [Described(name, tuple(stream.node for stream in declared))]
        self._builder.add_processor(name, parents, Merge(), described=described, role="merge")
        return type(self)(self._builder, name, key_changed=self._key_changed or other._key_changed)

    # --- custom processors (KIP-820) -----------------------------------------------------------------------------

    def process(
        self,
        processor_supplier: ProcessorSupplierLike,
        *store_names: str | Named,
        key_type: pa.DataType | None = None,
        value_type: pa.DataType | None = None,
        named: Named | None = None,
    ) -> Self:
        """Calls a `Processor` for each record, for logic that the DSL cannot express; slow (``KStreamProcess``).

        Args:
            processor_supplier: The processor's class, or a function or `ProcessorSupplier` that returns a new one; see
                `statelib.operators.processors.definition`.
            store_names: Stores added with `StreamsBuilder.add_state_store`; several processors may use one. A `Named`
                may stand before them, as in Kafka.
            key_type: Arrow type of the forwarded keys; None: as in this stream. The next operator that needs the key
                repartitions the stream.
            value_type: Arrow type of the forwarded values; None: as in this stream.
            named: The node's name.
        """
        types = {"key_type": key_type, "value_type": value_type}
        node = add_process(
            self._builder, self.node, processor_supplier, store_names, **types, fixed_key=False, named=named
        )
        return type(self)(self._builder, node, key_changed=True)

    def process_values(
        self,
        processor_supplier: ProcessorSupplierLike,
        *store_names: str | Named,
        value_type: pa.DataType | None = None,
        named: Named | None = None,
    ) -> Self:
        """As `process`, with a `FixedKeyProcessor`: keys stay the same, and nothing is repartitioned."""
        types = {"key_type": None, "value_type": value_type}
        node = add_process(
            self._builder, self.node, processor_supplier, store_names, **types, fixed_key=True, named=named
        )
        return type(self)(self._builder, node, key_changed=self._key_changed)

    # --- partitions ----------------------------------------------------------------------------------------------

    def repartition(self, repartitioned: Repartitioned | None = None) -> Self:
        """The same records, repartitioned by key.

        Records without a key are dropped and counted, unless an operator further down uses them: a left or outer join
        (KIP-962), or a deduplication by key (KIP-655).
        """
        options = repartitioned or Repartitioned()
        chosen = None if options.partitioner is None else mapper(options.partitioner)
        name = self._builder.new_name("KSTREAM-REPARTITION") if options.name is None else options.name
        return self._through(name, partitions=options.partitions, partitioner=chosen)

    # --- deduplication (KIP-655) ---------------------------------------------------------------------------------

    def deduplicate_by_key(self, interval: timedelta, deduplicated: Deduplicated | None = None) -> Self:
        """Drops a record if its key was already forwarded within ``interval`` of it.

        Records without a key are forwarded. A stream whose keys were changed is repartitioned first, through the topic
        ``<application id>-<name>-repartition``.
        """
        return self._deduplicate("by_key", None, interval, deduplicated)

    def deduplicate_by_key_value(
        self, id_selector: MapperLike, interval: timedelta, deduplicated: Deduplicated | None = None
    ) -> Self:
        """Drops a record if its key and id were already forwarded within ``interval`` of it.

        Records without a key or an id are forwarded. A stream whose keys were changed is repartitioned first.
        """
        return self._deduplicate("by_key_value", mapper(id_selector), interval, deduplicated)

    def deduplicate(
        self, id_selector: MapperLike, interval: timedelta, deduplicated: Deduplicated | None = None
    ) -> Self:
        """Drops records whose id was forwarded within ``interval`` of them, over all partitions.

        The stream is repartitioned by id; records keep their keys, and what needs the key next repartitions again.
        Records without an id are forwarded.
        """
        return self._deduplicate("by_id", mapper(id_selector), interval, deduplicated)

    # --- tables --------------------------------------------------------------------------------------------------

    @overload
    def join(self, other: Table, joiner: MapperLike, joined: Joined | None = None) -> Self: ...

    @overload
    def join(
        self, other: GlobalKTable, key_mapper: MapperLike, joiner: MapperLike, named: Named | None = None
    ) -> Self: ...

    @overload
    def join(
        self, other: Stream, joiner: MapperLike, windows: JoinWindows, joined: StreamJoined | None = None
    ) -> Self: ...

    def join(self, other: Table | GlobalKTable | Stream, *how: Any, **options: Any) -> Self:
        """Joins each record with a table, or with the records of another stream.

        With a table: each record is joined with the table's value for its key (Kafka's ``KStreamKTableJoinProcessor``).
        In a versioned table that is the version valid at the record's timestamp (KIP-889), in a plain one the value
        that arrived last. Records without a match, or without a key, are dropped and counted.

        With a stream: records with the same key are joined if their timestamps are close enough
        (``KStreamKStreamJoin``); see `statelib.operators.joins.stream_stream.operator`. ::

            found = searches.join(
                clicks,
                {"terms": "left.terms", "page": "right.page"},
                JoinWindows.of_time_difference_and_grace(timedelta(minutes=5), timedelta(minutes=1)),
            )

        ``join(table, joiner, joined)``: the table must have as many partitions as the stream. ``joined`` sets the
        node's name, and how long records wait for late updates of the table.

        ``join(global_table, key_mapper, joiner, named)``: ``key_mapper`` computes the table's key from a record. A null
        key has no match (``KStreamGlobalKTableJoin``).

        ``join(stream, joiner, windows, joined)``: the other stream must have as many partitions as this one.

        The joiner is a mapper over the columns ``key``, ``left`` (the record's value), ``right``, ``timestamp`` and,
        with a global table, ``mapped_key``: what ``key_mapper`` has computed (KIP-1340).
        """
        return self._join(other, *how, left=False, **options)

    @overload
    def left_join(self, other: Table, joiner: MapperLike, joined: Joined | None = None) -> Self: ...

    @overload
    def left_join(
        self, other: GlobalKTable, key_mapper: MapperLike, joiner: MapperLike, named: Named | None = None
    ) -> Self: ...

    @overload
    def left_join(
        self, other: Stream, joiner: MapperLike, windows: JoinWindows, joined: StreamJoined | None = None
    ) -> Self: ...

    def left_join(self, other: Table | GlobalKTable | Stream, *how: Any, **options: Any) -> Self:
        """As `join`, but records without a match are joined with null.

        With a stream, this result is emitted once no match can arrive any more.
        """
        return self._join(other, *how, left=True, **options)

    def outer_join(
        self, other: Stream, joiner: MapperLike, windows: JoinWindows, joined: StreamJoined | None = None
    ) -> Self:
        """As `left_join` with a stream, but unmatched records of the other stream are joined with null, too."""
        return self._join_stream(other, joiner, windows, joined, keeps_left=True, keeps_right=True)

    # --- the end -------------------------------------------------------------------------------------------------

    def foreach(
        self, action: Callable[[pa.RecordBatch], object] | Callable[[Any, Any], object], named: Named | None = None
    ) -> None:
        """Calls ``action`` and ends the stream (``KSTREAM-FOREACH``).

        An ``action`` of one argument is called with each batch, one of two arguments with each record's key and value
        as Python data, which is slow.

        Side effects of ``action`` are not covered by the run's commit: they happen before the audit, and again when a
        task is retried. Use only side effects that are idempotent.
        """
        name = self._builder.name_of(named, "KSTREAM-FOREACH")
        self._builder.add_processor(name, [self.node], ForEach(by_batch(action)))

    def print(self, printed: Printed) -> None:
        """Prints the records and ends the stream (``KSTREAM-PRINTER``); for development: see `foreach`.

        Tasks print where they run: in an executor's log, if Spark runs them.
        """
        name = self._builder.name_of(printed.name, "KSTREAM-PRINTER")
        self._builder.add_processor(name, [self.node], ForEach(PrintLines(printed, self.node)))

    def to(self, topic: MapperLike, produced: Produced | None = None, *, topics: Iterable[str] | None = None) -> None:
        """Writes the records to a topic, partitioned by key.

        With ``topics``, ``topic`` is a mapper that gives the name of each record's topic, one of these (Kafka's
        ``TopicNameExtractor``). ::

            orders.to("country", topics=["de", "fr"])

        A topic may be written by several sinks, and read by the same topology.

        Raises:
            ConfigurationError: ``topic`` is a mapper, and ``topics`` does not say which topics it may give.
        """
        options = produced or Produced()
        if topics is None and not isinstance(topic, str):
            raise ConfigurationError(
                "to() is given a mapper that chooses the topic of each record, but not among which",
                next_step="name all that it may give: to(extractor, topics=[...])",
            )
        extractor = None if topics is None else mapper(topic)
        named = topic if topics is None else topics
        self._builder.add_sink(
            self.node, cast("str | Iterable[str]", named), options, extractor=extractor, key_changed=self._key_changed
        )

    # -------------------------------------------------------------------------------------------------------------

    def _then(self, kind: str, spec: OperatorSpec, named: Named | None, *, role: Role | None = None) -> Self:
        name = self._builder.name_of(named, kind)
        self._builder.add_processor(name, [self.node], spec, role=role)
        return type(self)(self._builder, name, key_changed=self._key_changed or role == "key-changing")

    def _joins_its_source(self) -> int:
        """When Kafka connects what is below with the source: those of a topic that is read again become one later."""
        return self._read_again

    def _through(
        self,
        prefix: str,
        *,
        partitions: int | None = None,
        by: Mapper | None = None,
        partitioner: Mapper | None = None,
        role: Role | None = None,
    ) -> Self:
        """This stream behind a repartition topic whose name begins with ``prefix``."""
        names = stream_names(self._builder, prefix)
        source = add_repartition(
            self._builder, self.node, names, partitions=partitions, by=by, partitioner=partitioner, role=role
        )
        return type(self)(self._builder, source, key_changed=by is not None)

    def _for_join(self, name: str | None) -> Self:
        """This stream, partitioned by its keys (Kafka's ``repartitionForJoin``).

        Joins without a name share the repartition topic of the stream's first join, whatever that is called.
        """
        if not self._key_changed:
            return self
        names = stream_names(self._builder, self.node if name is None else name)
        if self._by_key is None or name not in {None, self.node}:
            self._by_key = add_repartition(self._builder, self.node, names, role="repartition")
        return type(self)(self._builder, self._by_key, key_changed=False)

    def _deduplicate(
        self, kind: Kind, by: Mapper | None, interval: timedelta, deduplicated: Deduplicated | None
    ) -> Self:
        options = deduplicated or Deduplicated()
        name = self._builder.name_of(options.name, "KSTREAM-DEDUPLICATE")
        stream = self
        if self._key_changed or kind == "by_id":
            stream = self._through(name, by=by if kind == "by_id" else None)
        store = self._builder.claim_store(options.store_name or f"{name}-STORE")
        interval_ms = milliseconds(interval, "deduplication interval")
        spec = DeduplicateSpec(kind, by, interval_ms, store, options.id_serde)
        role: Role | None = "key-changing" if kind == "by_id" else None  # records are not where their keys say
        self._builder.add_processor(name, [stream.node], spec, stores=[store], role=role)
        return type(self)(self._builder, name, key_changed=kind == "by_id")

    def _join(self, other: Table | GlobalKTable | Stream, *how: Any, left: bool, **options: Any) -> Self:
        if isinstance(other, Stream):
            return self._join_stream(other, *how, keeps_left=left, keeps_right=False, **options)
        if isinstance(other, GlobalKTable):
            return self._join_global_table(other, *how, left=left, **options)
        return self._join_table(other, *how, left=left, **options)

    def _join_global_table(
        self, table: GlobalKTable, key_mapper: MapperLike, joiner: MapperLike, named: Named | None = None, *, left: bool
    ) -> Self:
        self._builder.check_same(table.builder)
        spec = stream_join(table.view, joiner, left=left, key=mapper(key_mapper))
        name = self._builder.name_of(named, "KSTREAM-LEFTJOIN")  # in Kafka both kinds of join have this name
        self._builder.add_processor(name, [self.node], spec, looks_into=[table.node])
        return type(self)(self._builder, name, key_changed=self._key_changed)

    def _join_stream(
        self, other: Stream, joiner: MapperLike, windows: JoinWindows, joined: StreamJoined | None = None, *,
        keeps_left: bool, keeps_right: bool,
    ) -> Self:  # fmt: skip
        self._builder.check_same(other._builder)
        joined = joined or StreamJoined()
        left, right = (
            stream._for_join(joined.name and f"{joined.name}-{side}")  # noqa: SLF001 - of this class
            for stream, side in ((self, "left"), (other, "right"))
        )
        node = joined_stream(
            self._builder, left.node, right.node, mapper(joiner), windows, joined,
            keeps_left=keeps_left, keeps_right=keeps_right,
        )  # fmt: skip
        return type(self)(self._builder, node, key_changed=False)

    def _join_table(self, table: Table, joiner: MapperLike, joined: Joined | None = None, *, left: bool) -> Self:
        self._builder.check_same(table.builder)
        given = joined.name if joined else None
        stream = self._for_join(given)
        name = self._builder.name_of(given, "KSTREAM-LEFTJOIN" if left else "KSTREAM-JOIN")
        parent, buffers = stream.node, []
        if joined and joined.grace_period_ms is not None:
            parent, buffer = held_back(self._builder, stream.node, table.of, joined.grace_period_ms, name)
            buffers = [buffer]
        parents, view = table.of.view()
        spec = stream_join(view, joiner, left=left)
        stores = [store.name for store in view.stores]
        described = [Described(name, (parent,), (*buffers, *stores))]
        self._builder.add_processor(
            name, [parent], spec, stores=stores, looks_into=parents, described=described if buffers else None
        )
        return type(self)(self._builder, name, key_changed=False)
