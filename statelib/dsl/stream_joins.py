"""The nodes of joins of two streams (Kafka's ``KStreamImplJoin``)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from statelib.calls import arguments_checked
from statelib.calls.names import check_given_name
from statelib.dsl.serde_options import WithOtherSerde, check_key_serde
from statelib.dsl.store_suppliers import BuiltInDslStoreSuppliers
from statelib.errors.kinds import ConfigurationError
from statelib.operators.joins.stream_stream.operator import StreamJoinSide, StreamStreamJoin
from statelib.settings.durations import milliseconds
from statelib.topology import Processor

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import timedelta

    from statelib.dsl.internal_builder import InternalStreamsBuilder
    from statelib.operators.joins.stream_stream.definition import JoinWindows
    from statelib.operators.mappers.mapping import Mapper
    from statelib.serdes import Serde
    from statelib.state import WindowBytesStoreSupplier


@arguments_checked
@dataclass(frozen=True, slots=True)
class StreamJoined(WithOtherSerde):
    """Names of a stream-stream join's nodes and stores (Kafka's ``StreamJoined``).

    Stores keep records for the windows' size and grace period; Kafka, too, refuses any other retention.

    Attributes:
        name: Prefix of the names of the nodes, and of the repartition topics if the join needs any.
        store_name: Prefix of the stores' names.
        emit_interval_ms: See `with_emit_interval`.
        this_store: See `with_this_store_supplier`.
        other_store: See `with_other_store_supplier`.
    """

    name: str | None = None
    store_name: str | None = None
    emit_interval_ms: int = 0
    this_store: WindowBytesStoreSupplier | None = None
    other_store: WindowBytesStoreSupplier | None = None

    def __post_init__(self) -> None:
        """Checks the names, as Kafka does (``Named.validate``)."""
        check_given_name(self.name, "a node")
        check_given_name(self.store_name, "a store")

    @classmethod
    def as_(cls, store_name: str) -> StreamJoined:
        """Stores whose names begin with ``store_name``, as in Kafka."""
        return cls(store_name=store_name)

    def with_name(self, name: str) -> StreamJoined:
        """A copy whose node names begin with ``name``."""
        return replace(self, name=name)

    def with_store_name(self, store_name: str) -> StreamJoined:
        """A copy whose store names begin with ``store_name``."""
        return replace(self, store_name=store_name)

    @classmethod
    def with_(
        cls,
        key_serde: Serde | BuiltInDslStoreSuppliers | None = None,
        value_serde: Serde | None = None,
        other_value_serde: Serde | None = None,
    ) -> StreamJoined:
        """Without names; serdes change nothing, nor does where the live application has its stores.

        Raises:
            ConfigurationError: The key serde writes other bytes than the keys' type has.
        """
        if isinstance(key_serde, BuiltInDslStoreSuppliers):
            return cls().with_dsl_store_suppliers(key_serde)
        del value_serde, other_value_serde
        check_key_serde(key_serde)
        return cls()

    def with_dsl_store_suppliers(self, dsl_store_suppliers: BuiltInDslStoreSuppliers) -> StreamJoined:
        """Where the live application has its stores; changes nothing: see `BuiltInDslStoreSuppliers`."""
        del dsl_store_suppliers
        return self

    def with_this_store_supplier(self, supplier: WindowBytesStoreSupplier) -> StreamJoined:
        """A copy whose store of this stream's records is that of a supplier, and has its name (KIP-479).

        As in Kafka, the supplier's window size is that of the join, its retention period size and grace period, and it
        retains duplicates; the join refuses any other.
        """
        return replace(self, this_store=supplier)

    def with_other_store_supplier(self, supplier: WindowBytesStoreSupplier) -> StreamJoined:
        """The same for the other stream's records."""
        return replace(self, other_store=supplier)

    def with_logging_enabled(self, config: Mapping[str, str] | None = None) -> StreamJoined:
        """Changes nothing: a replay writes no changelog, its state is in checkpoints."""
        del config
        return self

    def with_logging_disabled(self) -> StreamJoined:
        """Changes nothing: a replay writes no changelog, its state is in checkpoints."""
        return self

    def with_emit_interval(self, interval: timedelta) -> StreamJoined:
        """How long a live application waits between two checks for records that stay without a match.

        In a live application that is one second of wall-clock time, unless its internal setting
        ``__emit.interval.ms.kstreams.outer.join.spurious.results.fix__`` says otherwise. A replay has no wall clock:
        with ``semantics="kafka-4.3"`` the interval is in the task's stream time, as if the application had run live,
        and by default there is none. With ``"kip"`` nothing is delayed.
        """
        return replace(self, emit_interval_ms=milliseconds(interval, "emit_interval"))


def joined_stream(
    builder: InternalStreamsBuilder,
    left: str,
    right: str,
    joiner: Mapper,
    windows: JoinWindows,
    joined: StreamJoined,
    *,
    keeps_left: bool,
    keeps_right: bool,
) -> str:
    """Adds the five nodes of a join; gives the name of the last one.

    Args:
        builder: Of both streams.
        left: The node of the left stream, partitioned by key.
        right: The same of the right one.
        joiner: See `StreamStreamJoin`.
        windows: See `StreamStreamJoin`.
        joined: Names.
        keeps_left: Whether left records without a match give results.
        keeps_right: The same of right ones.
    """
    name, base = joined.name, joined.store_name
    this_kind, this_suffix = _kind_and_suffix("THIS", is_outer=keeps_right)
    other_kind, other_suffix = _kind_and_suffix("OTHER", is_outer=keeps_left)

    left_windowed = builder.suffixed(name, "-this-windowed", "KSTREAM-WINDOWED")
    right_windowed = builder.suffixed(name, "-other-windowed", "KSTREAM-WINDOWED")
    made_this, made_other = builder.new_name(this_kind), builder.new_name(other_kind)
    this = made_this if name is None else f"{name}{this_suffix}"
    other = made_other if name is None else f"{name}{other_suffix}"
    merge = builder.suffixed(name, "-merge", "KSTREAM-MERGE")

    def store(base: str | None, made: str, suffix: str, supplier: WindowBytesStoreSupplier | None = None) -> str:
        if supplier is not None:
            return builder.claim_store(_fitting(supplier, windows).name)
        return builder.claim_store(f"{made if base is None else base + suffix}-store")

    left_store = store(base, made_this, this_suffix, joined.this_store)
    right_store = store(base, made_other, other_suffix, joined.other_store)
    held = None
    if keeps_left and not windows.unmatched_at_once:
        made_shared = f"KSTREAM-OUTERSHARED{made_this.removeprefix(this_kind)}"
        shared_base = base if joined.this_store is None else joined.this_store.name
        held = store(shared_base, made_shared, f"-{'outer' if keeps_right else 'left'}-shared-join")
    spec = StreamStreamJoin(
        joiner, windows, left_store, right_store, held,
        keeps_left=keeps_left, keeps_right=keeps_right, emit_interval_ms=joined.emit_interval_ms,
    )  # fmt: skip

    shared = () if held is None else (held,)
    builder.add_processor(left_windowed, [left], StreamJoinSide(), stores=[left_store])
    builder.add_processor(right_windowed, [right], StreamJoinSide(), stores=[right_store])
    sides = (this, other)
    builder.add(
        Processor(this, (left_windowed,), StreamJoinSide(), (right_store, *shared)),
        Processor(other, (right_windowed,), StreamJoinSide(), (left_store, *shared)),
        Processor(merge, sides, spec),
        role="stream-join",
        parents=(left, right),
    )
    return merge


def _fitting(supplier: WindowBytesStoreSupplier, windows: JoinWindows) -> WindowBytesStoreSupplier:
    """The supplier itself (Kafka's ``assertWindowSettings``).

    Raises:
        ConfigurationError: It does not fit the join's windows.
    """
    given = (supplier.window_size_ms, supplier.retention_ms, supplier.retain_duplicates)
    wanted = (windows.size_ms, windows.retention_ms, True)
    if given != wanted:
        raise ConfigurationError(
            "the supplier of a join's store has other settings than the join: window size "
            f"{given[0]} ms, retention period {given[1]} ms, retain_duplicates={given[2]}",
            store=supplier.name,
            next_step=f"give it a window size of {wanted[0]} ms (before and after), a retention period of {wanted[1]} "
            "ms (that and the grace period), and retain_duplicates=True",
        )
    return supplier


def _kind_and_suffix(side: str, *, is_outer: bool) -> tuple[str, str]:
    """Of the node that joins the records of one side; ``is_outer``: the other side's give results without a match."""
    if is_outer:
        return f"KSTREAM-OUTER{side}", f"-outer-{side.lower()}-join"
    return f"KSTREAM-JOIN{side}", f"-{side.lower()}-join"
