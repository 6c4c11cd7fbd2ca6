"""A suppressed table as joins look into it (the getter of Kafka's ``KTableSuppressProcessorSupplier``).

As long as a key waits in the buffer, the table has for it what is known downstream: the value that the update replaced
with which it began to wait, without a timestamp. Else it has what the table above has. A key waits until all that its
leaving causes has happened.

So those who look are told, in place of what is forwarded, when keys come into the buffer, with that value, and when
they have left it. What waited at the last flush they find in the buffer's store.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from statelib.columns.arrow_buffers import valid_of
from statelib.columns.scatter import scatter
from statelib.errors.kinds import InternalError
from statelib.operators.base import Told
from statelib.operators.key_codes import key_codes
from statelib.operators.suppress.codec import encode_keys
from statelib.operators.suppress.store import SuppressionBufferStore
from statelib.operators.tables.lookup import shown
from statelib.operators.tables.steps import through
from statelib.operators.tables.stored_latest import Found
from statelib.operators.tables.working_set import LatestValues, Updates
from statelib.operators.windows.definition import SessionWindows
from statelib.records.batch import NO_TIMESTAMP, Batch
from statelib.records.key_column import concat_keys
from statelib.serdes import serde_for
from statelib.stores.byte_columns import split_tail

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from statelib.operators.asking import Asking
    from statelib.operators.base import OperatorContext
    from statelib.operators.suppress.buffer import Puts
    from statelib.operators.suppress.codec import BufferedRows
    from statelib.operators.suppress.departures import Departures
    from statelib.operators.suppress.operator import Suppress
    from statelib.operators.tables.lookup import TableLookup
    from statelib.operators.tables.steps import TableStep
    from statelib.operators.tables.view import AnyView, NamedStore
    from statelib.operators.tables.working_set import Lookups
    from statelib.records.key_column import KeyColumn

_PRIOR = "prior"
_WORDS = {1: np.dtype([("start", ">i8")]), 2: np.dtype([("end", ">i8"), ("start", ">i8")])}


def told_of(batch: Batch, puts: Puts, left: Departures, left_keys: KeyColumn, forwarded: NDArray[np.bool_]) -> Told:
    """What those are told that look into the table.

    Args:
        batch: The records that were put, with what they replace.
        puts: What they have put.
        left: What has left because of them.
        left_keys: The keys of that.
        forwarded: bool, which of it is forwarded.
    """
    if puts.known is None:
        raise InternalError("a suppressed table that others look into does not know what updates replace")
    came = np.flatnonzero(puts.is_first)
    known = pa.StructArray.from_arrays([puts.known.take(pa.array(came))], [_PRIOR])
    record = np.concatenate([came, left.trigger])
    order = np.argsort(2 * record + (np.arange(len(record)) >= len(came)), kind="stable")
    results = np.concatenate([np.zeros(len(came), np.int64), forwarded.astype(np.int64)])[order]
    changes = Batch(
        concat_keys([batch.keys.take(pa.array(came)), left_keys]),
        None,
        pa.concat_arrays([known, pa.nulls(len(left), known.type)]),
        np.full(len(record), NO_TIMESTAMP),
        batch.sequence[record],
    )
    return Told(replace(changes.take(order), sequence=batch.sequence[record[order]]), np.cumsum(results) - 1)


def told_of_sealed(forwarded: Batch) -> Told:
    """That all of it has left."""
    kind = pa.struct([(_PRIOR, forwarded.value.type)])
    gone = replace(forwarded, value=pa.nulls(len(forwarded), kind), prior=None, headers=None, is_latest=None)
    return Told(gone, np.arange(len(forwarded)))


@dataclass(frozen=True, slots=True)
class BufferLookedInto:
    """The buffer's store."""

    name: str


@dataclass(frozen=True, slots=True)
class SuppressedView:
    """Where a suppressed table's values are; see the module's docstring and `AnyView`.

    Attributes:
        node: The suppression's.
        suppress: The suppression.
        above: How one looks into the table that is suppressed.
        steps: From the suppressed table to this one.
    """

    node: str
    suppress: Suppress
    above: AnyView
    steps: tuple[TableStep, ...] = ()

    @property
    def stores(self) -> tuple[NamedStore, ...]:
        """The buffer, and those of the table above."""
        return (BufferLookedInto(self.suppress.store), *self.above.stores)

    def then(self, step: TableStep) -> SuppressedView:
        """See `AnyView`."""
        return replace(self, steps=(*self.steps, step))

    def lookup(self, context: OperatorContext) -> SuppressedLookup:
        """See `AnyView`."""
        return SuppressedLookup(self, context)

    def describe(self) -> Mapping[str, object]:
        """As plain data."""
        steps = [step.describe() for step in self.steps]
        return {"buffer": self.suppress.store, "above": self.above.describe(), "steps": steps}


class SuppressedLookup:
    """The view at work; see `TableLookup`."""

    def __init__(self, view: SuppressedView, context: OperatorContext) -> None:
        self._view = view
        self._context = context
        self._above: TableLookup = view.above.lookup(context)
        self._waiting: LatestValues | None = None
        self._flushed_at = self._clock

    @property
    def _clock(self) -> int:
        """The suppression's, ms."""
        return self._context.clocks_of[self._view.node].get("stream_time", NO_TIMESTAMP)

    def look_up(self, keys: KeyColumn, lookups: Lookups, changes: Sequence[Batch], asking: Asking) -> Found:
        """See `TableLookup`."""
        told, *above = changes
        found = self._above.look_up(keys, lookups, above, asking)
        if self._waiting is None:  # opened here, after the last flush has been written
            stored = StoredBuffer(self._context, self._view.suppress, told.value.type, self._flushed_at)
            self._waiting = LatestValues(self._context, stored)
        updates = Updates(told.sequence, key_codes(told, self._context), told.timestamp, told.value)
        waiting = self._waiting.look_up(lookups, updates).value
        waits = valid_of(waiting)
        prior = pc.struct_field(waiting, [0]).cast(found.value.type)
        value = pc.if_else(pa.array(waits), prior, found.value) if waits.any() else found.value
        since = np.where(waits, NO_TIMESTAMP, found.timestamp)
        return shown(through(self._view.steps, keys, value, asking), since)

    def forget(self) -> None:
        """See `TableLookup`."""
        self._above.forget()
        self._waiting = None
        self._flushed_at = self._clock

    def memory_bytes(self) -> int:
        """See `TableLookup`."""
        return self._above.memory_bytes() + (0 if self._waiting is None else self._waiting.memory_bytes())


class StoredBuffer:
    """What waited in a buffer at the last flush, by the bytes of keys; see `StoredLatest`.

    Args:
        context: The operator's that looks.
        suppress: The suppression.
        value_type: A struct of what is known downstream.
        flushed_at: The suppression's clock then, ms.
    """

    def __init__(self, context: OperatorContext, suppress: Suppress, value_type: pa.DataType, flushed_at: int) -> None:
        self.value_type = value_type
        self._suppress = suppress
        self._left_until_ms = max(flushed_at - suppress.wait_ms(context.semantics), -1)
        self._store = SuppressionBufferStore(
            context.backend,
            suppress.store,
            suffix_words=suppress.suffix_words,
            time_is_of_key=suppress.suppressed.final_results,
        )

    @property
    def is_empty(self) -> bool:
        """See `StoredLatest`."""
        return self._store.totals()[0] == 0

    def load(self, keys: Sequence[bytes]) -> Found:
        """See `StoredLatest`."""
        raw_keys = pa.array(keys, pa.large_binary())
        time = self._times(raw_keys)
        may_wait = time > self._left_until_ms if self._store.is_by_time else np.ones(len(keys), np.bool_)
        row_of = {raw: row for row, raw in enumerate(keys)}
        rows, known = [], [pa.nulls(0, self.value_type)]
        schema = self._store.header.schema
        for some in self._store.load(raw_keys.filter(pa.array(may_wait)), time[may_wait]):
            if len(some) and schema is not None:
                columns = serde_for(pa.struct(list(schema))).deserialize(some.row)
                rows += [row_of[raw] for raw in self._raw_keys(some).to_pylist()]
                known.append(pa.StructArray.from_arrays([columns.field(_PRIOR)], fields=list(self.value_type)))
        waits = np.zeros(len(keys), np.bool_)
        waits[rows] = True
        values = pa.concat_arrays(known).take(pa.array(np.argsort(np.array(rows, np.int64), kind="stable")))
        return Found(scatter(values, waits), np.full(len(keys), NO_TIMESTAMP))

    def _times(self, raw_keys: pa.Array) -> NDArray[np.int64]:
        """int64, the buffer times of keys that have only one: the ends of their windows, ms; of others nobody asks."""
        windows = self._suppress.windows
        if windows is None or not self._store.is_by_time:
            return np.zeros(len(raw_keys), np.int64)
        _, words = split_tail(raw_keys, _WORDS[self._suppress.suffix_words], self._suppress.store)
        if isinstance(windows, SessionWindows):
            return words["end"].astype(np.int64)
        return windows.end_of(words["start"].astype(np.int64))

    def _raw_keys(self, rows: BufferedRows) -> pa.Array:
        return encode_keys(rows, self._suppress.suffix_words)
