"""The join of a stream with a table as it is now: each record meets what its key has when it comes.

The table is a plain one, or a join of two tables without a store (Kafka's ``KStreamKTableJoin``). What counts is the
order in which records and updates arrive, not their timestamps. A join with a global table is the same under a key that
is made of the record. The result has the record's key, timestamp and headers.

What becomes of nulls, and the ledger: `statelib.operators.joins.stream_table.stream_side`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from statelib.operators.asking import Asking
from statelib.operators.joins.stream_table.stream_side import StreamSide, StreamSideSpec
from statelib.operators.tables.working_set import Lookups

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from statelib.operators.base import OperatorContext
    from statelib.operators.mappers.mapping import Mapper
    from statelib.operators.tables.view import AnyView
    from statelib.records.batch import Batch, Uptake
    from statelib.stores.backend import WriteBatch


@dataclass(frozen=True, slots=True)
class StreamLatestJoin(StreamSideSpec):
    """Joins a stream, the first parent, with a table; the other parents are the tables that have the view's stores.

    Attributes:
        view: How the table is looked up.
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


class RunningStreamLatestJoin:
    """The running operator: what all keys have that either side has named since the last flush."""

    def __init__(self, spec: StreamLatestJoin, context: OperatorContext) -> None:
        self._context = context
        self._stream = StreamSide(context, spec)
        self._table = spec.view.lookup(context)

    def process(self, inputs: Sequence[Batch], uptake: Uptake) -> Batch:
        """The joined records, in the stream's order."""
        del uptake
        stream, *tables = inputs
        asking = Asking.of(self._context, stream.sequence)
        key, codes = self._stream.keys_of(stream, tables[0], asking)
        right = self._table.look_up(key, Lookups(stream.sequence, codes), tables, asking).value
        return self._stream.joined(stream, key, codes, right, asking)

    def flush(self, write: WriteBatch) -> None:
        """Forgets what keys have; the table's own operator writes it."""
        del write
        self._table.forget()

    def memory_bytes(self) -> int:
        """What keys have."""
        return self._table.memory_bytes()
