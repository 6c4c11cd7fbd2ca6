"""The temporal join of a stream with a versioned table (KIP-889), without a grace period.

Each stream record meets the version of its key that is valid at the record's timestamp, among those which have arrived
before the record. The result has the stream record's key, timestamp and headers.

A join with a versioned global table is the same under a key that is made of the record. What becomes of nulls, and the
ledger: `statelib.operators.joins.stream_table.stream_side`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from statelib.operators.asking import Asking
from statelib.operators.joins.stream_table.stream_side import StreamSide, StreamSideSpec
from statelib.operators.tables.steps import through
from statelib.operators.tables.writer import VersionedStore

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from statelib.operators.base import OperatorContext
    from statelib.operators.mappers.mapping import Mapper
    from statelib.operators.tables.steps import TableStep
    from statelib.operators.versioned.working_set import VersionedValues
    from statelib.records.batch import Batch, Uptake
    from statelib.stores.backend import WriteBatch
    from statelib.stores.stored_rows import StoredStates


@dataclass(frozen=True, slots=True)
class StreamTableJoin(StreamSideSpec):
    """Joins a stream, the first parent, with a table, the second: what the table's `TableSource` forwards.

    Attributes:
        store: Name of the table's store.
        history_retention_ms: The store's.
        segment_interval_ms: The store's.
        steps: From the table that has the store to the one that is joined, if that is not the same.
        aggregator: What has made the table that has the store, if it is an aggregation.
    """

    joiner: Mapper
    store: str
    history_retention_ms: int
    segment_interval_ms: int | None = None
    left: bool = False
    steps: tuple[TableStep, ...] = ()
    aggregator: StoredStates | None = None
    key: Mapper | None = None

    @property
    def table_store(self) -> VersionedStore:
        """The store that is read."""
        return VersionedStore(self.store, self.history_retention_ms, self.segment_interval_ms)

    def build(self, context: OperatorContext) -> RunningStreamTableJoin:
        """The running operator."""
        return RunningStreamTableJoin(self, context)

    def describe(self) -> Mapping[str, object]:
        """Kind and parameters."""
        kind = "left_join" if self.left else "join"
        steps = {"steps": [step.describe() for step in self.steps]} if self.steps else {}
        key = {"key": self.key.describe()} if self.key else {}
        joiner = self.joiner.describe()
        return {"operator": f"stream_table_{kind}", "joiner": joiner, "store": self.store, **steps, **key}


class RunningStreamTableJoin:
    """The running operator: the timelines of all keys that either side has named since the last flush."""

    def __init__(self, spec: StreamTableJoin, context: OperatorContext) -> None:
        self._spec = spec
        self._context = context
        self._stream = StreamSide(context, spec)
        self._working_set: VersionedValues | None = None

    def process(self, inputs: Sequence[Batch], uptake: Uptake) -> Batch:
        """The joined records, in the stream's order."""
        del uptake
        stream, table = inputs
        if self._working_set is None:  # opened here, after the last flush has been written
            spec = self._spec
            self._working_set = spec.table_store.values(self._context, table.value.type, spec.aggregator)
        asking = Asking.of(self._context, stream.sequence)
        key, codes = self._stream.keys_of(stream, table, asking)
        found = self._working_set.values_of(self._working_set.meet(stream, codes, table))
        steps = self._spec.steps
        right = through(steps, key, found, asking) if steps else found
        return self._stream.joined(stream, key, codes, right, asking)

    def flush(self, write: WriteBatch) -> None:
        """Forgets the timelines; the table's own operator writes them."""
        del write
        self._working_set = None

    def memory_bytes(self) -> int:
        """The timelines and their values."""
        return 0 if self._working_set is None else self._working_set.memory_bytes()
