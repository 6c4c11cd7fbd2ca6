"""Tables: what holds now for each key (Kafka's ``KTable``)."""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

from statelib.dsl import kstream
from statelib.errors import ConfigurationError
from statelib.operators.suppress import Suppress
from statelib.windows import UnlimitedWindows

if TYPE_CHECKING:
    from statelib.dsl.internal_builder import InternalStreamsBuilder
    from statelib.dsl.options import VersionedBytesStoreSupplier
    from statelib.suppressed import Suppressed
    from statelib.windows import AnyWindows


class KTable:
    """A topic as a versioned table; made by `StreamsBuilder.table`."""

    def __init__(self, builder: InternalStreamsBuilder, node: str, *, store: VersionedBytesStoreSupplier) -> None:
        self._builder = builder
        self.node = node
        self.store = store

    def suppress(self, suppressed: Suppressed) -> NoReturn:
        """Refused: what a versioned table says of the past would be lost in the buffer, which keeps one value a key.

        Raises:
            ConfigurationError: Always, as Kafka Streams does ("only supported for non-versioned KTables").
        """
        raise ConfigurationError(
            "suppress() is only supported for tables that are not versioned",
            store=self.store.name,
            node=suppressed.name,
            next_step="suppress a windowed aggregation, or leave the table's updates as they are",
        )

    def to_stream(self) -> kstream.KStream:
        """Its updates as a stream."""
        return kstream.KStream(self._builder, self.node, key_changed=False)


class WindowedKTable:
    """A table with windowed keys; made by the aggregations of `TimeWindowedKStream` and `SessionWindowedKStream`."""

    def __init__(self, builder: InternalStreamsBuilder, node: str, *, windows: AnyWindows) -> None:
        self._builder = builder
        self._node = node
        self._windows = windows

    def suppress(self, suppressed: Suppressed) -> WindowedKTable:
        """Holds updates back: until windows close, or for a time (KIP-328).

        Raises:
            ConfigurationError: There would never be a final result.
        """
        if suppressed.final_results and isinstance(self._windows, UnlimitedWindows):
            raise ConfigurationError(
                "a window without end never closes, so it has no final result",
                node=suppressed.name,
                next_step="suppress with until_time_limit, or aggregate by TimeWindows",
            )
        kind = "KTABLE-SUPPRESS"
        name = suppressed.name or self._builder.new_name(kind)
        store = self._builder.claim_store(f"{name}-store")
        spec = Suppress(store, suppressed, self._windows)
        if suppressed.buffer.byte_limit is not None or spec.may_repeat:  # as shipped, prior values count too
            self._builder.request_prior_values(self._node)
        node = self._builder.add_processor(kind, [self._node], spec, name=name, stores=[store])
        return WindowedKTable(self._builder, node, windows=self._windows)

    def to_stream(self) -> kstream.KStream:
        """Its updates as a stream, windowed keys included."""
        return kstream.KStream(self._builder, self._node, key_changed=False)
