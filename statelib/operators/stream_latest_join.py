"""The join of a stream with a table as it is now: each record meets what its key has when it comes.

The table is a plain one, or a join of two tables without a store (Kafka's ``KStreamKTableJoin``). What counts is the
order in which records and updates arrive, not their timestamps; of one sequence (a stream joined with a table of the
same topic) the update comes first. A join with a global table is the same under a key that is made of the record. The
result has the record's key, timestamp and headers.

A record with a null value is dropped. One without a match, or with a null key, is dropped by an inner join and joined
with null by a left join (KIP-962). Here the shipped library has a gap: its left join with a global table drops a record
that has a key but makes a null one; with ``semantics="kip"`` it is joined with null.

The ledger counts records; updates are in that of the table. Accounts: ``joined``, ``unmatched``, ``null-key`` (both
forwarded by left joins), ``null-value``.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from statelib.batch import NULL_KEY
from statelib.operators.key_codes import key_codes
from statelib.operators.latest_values import Lookups
from statelib.operators.mapping import Mapper, evaluate
from statelib.operators.table_lookup import table_lookup
from statelib.serdes import serde_for

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from statelib.batch import Batch, Uptake
    from statelib.operators.base import OperatorContext
    from statelib.operators.table_view import AnyView
    from statelib.stores.backend import WriteBatch


@dataclass(frozen=True, slots=True)
class StreamLatestJoin:
    """Joins a stream, the first parent, with a table; the other parents are the tables that have the view's stores.

    Attributes:
        joiner: Makes the result's value from the columns ``key``, ``left``, ``right``, ``timestamp``.
        view: How the table is looked up.
        left: Whether records without a match go on, with a null ``right``.
        key: Makes the table's key of a record (global tables); None: it is the record's.
    """

    joiner: Mapper
    view: AnyView
    left: bool = False
    key: Mapper | None = None

    def build(self, context: OperatorContext) -> RunningStreamLatestJoin:
        """The running operator."""
        return RunningStreamLatestJoin(self, context)

    def describe(self) -> Mapping[str, object]:
        """Kind and parameters."""
        return {
            "operator": f"stream_latest_{'left_join' if self.left else 'join'}",
            "joiner": self.joiner.describe(),
            "key": None if self.key is None else self.key.describe(),
            "view": self.view.describe(),
        }

    def families(self) -> Sequence[str]:
        """None: the store belongs to the table."""
        return ()


class RunningStreamLatestJoin:
    """The running operator: what all keys have that either side has named since the last flush."""

    def __init__(self, spec: StreamLatestJoin, context: OperatorContext) -> None:
        self._spec = spec
        self._context = context
        self._table = table_lookup(spec.view, context, [True] * len(spec.view.stores))

    def process(self, inputs: Sequence[Batch], uptake: Uptake) -> Batch:
        """The joined records, in the stream's order."""
        del uptake
        stream, *tables = inputs
        key, codes = self._keys_of(stream)
        right = self._table.look_up(key, Lookups(stream.sequence, codes), tables).value

        usable = np.asarray(stream.value.is_valid()) & self._has_key(stream, codes)
        matched = np.asarray(right.is_valid()) & usable & (codes != NULL_KEY)
        emitted = usable if self._spec.left else matched
        left = stream.filter(emitted)
        columns = {
            "key": left.key,
            "left": left.value,
            "right": right.filter(pa.array(emitted)),
            "timestamp": pa.array(left.timestamp),
        }
        value = evaluate(self._spec.joiner, pa.RecordBatch.from_pydict(columns), self._context.node)
        self._account(stream, codes, usable, matched, len(left))
        return replace(left, value=value)

    def flush(self, write: WriteBatch) -> None:
        """Forgets what keys have; the table's own operator writes it."""
        del write
        self._table.forget()

    def memory_bytes(self) -> int:
        """What keys have."""
        return self._table.memory_bytes()

    def _keys_of(self, stream: Batch) -> tuple[pa.Array, NDArray[np.int64]]:
        """The key under which each record is looked up, and its code."""
        if self._spec.key is None:
            return stream.key, key_codes(stream, self._context)
        key = evaluate(self._spec.key, stream.as_record_batch(), self._context.node)
        return key, self._context.keys.encode(serde_for(key.type).serialize(key))

    def _has_key(self, stream: Batch, codes: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Which records have what the join needs of a key; a left join mostly needs none."""
        has_key: NDArray[np.bool_] = codes != NULL_KEY
        if not self._spec.left:
            return has_key
        if self._context.semantics == "kafka-4.3" and self._spec.key is not None:
            has_key |= np.asarray(stream.key.is_null())
            return has_key
        return np.ones(len(codes), dtype=np.bool_)

    def _account(
        self,
        stream: Batch,
        codes: NDArray[np.int64],
        usable: NDArray[np.bool_],
        matched: NDArray[np.bool_],
        out: int,
    ) -> None:
        metrics = self._context.metrics
        metrics.records_in += len(stream)
        metrics.records_out += out
        has_value = np.asarray(stream.value.is_valid())
        null_key = has_value & (codes == NULL_KEY)
        metrics.account("joined", int(matched.sum()))
        metrics.account("unmatched", int((usable & ~matched & ~null_key).sum()))
        metrics.account("null-key", int((null_key & usable).sum()))
        metrics.drop("null-key", int((null_key & ~usable).sum()))
        metrics.drop("null-value", len(stream) - int(has_value.sum()))
