"""The temporal join of a stream with a versioned table (KIP-889), without a grace period.

Each stream record meets the version of its key that is valid at the record's timestamp, among those which have arrived
before the record. Record and table update of one sequence (a stream joined with a table of the same topic): the update
comes first. The result has the stream record's key, timestamp and headers.

A stream record with a null value is dropped. One without a match, or with a null key, is dropped by an inner join and
joined with null by a left join (Kafka's ``KStreamKTableJoinProcessor``).

The ledger counts stream records; updates are in that of the table's `TableSource`. Accounts: ``joined``, ``unmatched``,
``null-key`` (both forwarded by left joins), ``null-value``.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from statelib.batch import NULL_KEY
from statelib.operators.key_codes import key_codes
from statelib.operators.mapping import Mapper, evaluate
from statelib.operators.table_steps import through
from statelib.operators.table_writer import VersionedStore

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from statelib.batch import Batch, Uptake
    from statelib.operators.aggregations import AggregatorSpec
    from statelib.operators.base import OperatorContext
    from statelib.operators.table_steps import TableStep
    from statelib.operators.versioned_values import VersionedValues
    from statelib.stores.backend import WriteBatch


@dataclass(frozen=True, slots=True)
class StreamTableJoin:
    """Joins a stream, the first parent, with a table, the second: what the table's `TableSource` forwards.

    Attributes:
        joiner: Makes the result's value from the columns ``key``, ``left``, ``right``, ``timestamp``.
        store: Name of the table's store.
        history_retention_ms: The store's.
        segment_interval_ms: The store's.
        left: Whether records without a match go on, with a null ``right``.
        steps: From the table that has the store to the one that is joined, if that is not the same.
        aggregator: What has made the table that has the store, if it is an aggregation.
    """

    joiner: Mapper
    store: str
    history_retention_ms: int
    segment_interval_ms: int | None = None
    left: bool = False
    steps: tuple[TableStep, ...] = ()
    aggregator: AggregatorSpec | None = None

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
        return {"operator": f"stream_table_{kind}", "joiner": self.joiner.describe(), "store": self.store, **steps}

    def families(self) -> Sequence[str]:
        """None: the store belongs to the table's `TableSource`."""
        return ()


class RunningStreamTableJoin:
    """The running operator: the timelines of all keys that either side has named since the last flush."""

    def __init__(self, spec: StreamTableJoin, context: OperatorContext) -> None:
        self._spec = spec
        self._context = context
        self._working_set: VersionedValues | None = None

    def process(self, inputs: Sequence[Batch], uptake: Uptake) -> Batch:
        """The joined records, in the stream's order."""
        del uptake
        stream, table = inputs
        if self._working_set is None:  # opened here, after the last flush has been written
            spec = self._spec
            self._working_set = spec.table_store.values(self._context, table.value.type, spec.aggregator)
        codes = key_codes(stream, self._context)
        found = self._working_set.values_of(self._working_set.meet(stream, codes, table))
        right = through(self._spec.steps, stream.key, found, self._context.node)

        has_value = np.asarray(stream.value.is_valid())
        matched = np.asarray(right.is_valid()) & has_value & (codes != NULL_KEY)
        emitted = has_value if self._spec.left else matched
        left = stream.filter(emitted)
        right = right.filter(pa.array(emitted))
        value = evaluate(self._spec.joiner, _columns(left, right), self._context.node)
        self._account(len(stream), codes, has_value, matched, len(left))
        return replace(left, value=value, prior=None)

    def flush(self, write: WriteBatch) -> None:
        """Forgets the timelines; the table's own operator writes them."""
        del write
        self._working_set = None

    def memory_bytes(self) -> int:
        """The timelines and their values."""
        return 0 if self._working_set is None else self._working_set.memory_bytes()

    def _account(
        self,
        records_in: int,
        codes: NDArray[np.int64],
        has_value: NDArray[np.bool_],
        matched: NDArray[np.bool_],
        out: int,
    ) -> None:
        metrics = self._context.metrics
        metrics.records_in += records_in
        metrics.records_out += out
        null_key = int(((codes == NULL_KEY) & has_value).sum())
        metrics.account("joined", int(matched.sum()))
        metrics.account("unmatched", int((has_value & ~matched).sum()) - null_key)
        (metrics.account if self._spec.left else metrics.drop)("null-key", null_key)
        metrics.drop("null-value", records_in - int(has_value.sum()))


def _columns(left: Batch, right: pa.Array) -> pa.RecordBatch:
    """What a joiner sees."""
    return pa.RecordBatch.from_pydict(
        {"key": left.key, "left": left.value, "right": right, "timestamp": pa.array(left.timestamp)}
    )
