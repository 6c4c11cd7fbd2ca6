"""The accumulator of functions that pick one record's value: see `PickAccumulator`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from statelib.columns.arrow_buffers import taken, valid_of
from statelib.columns.growing import grown, shrunk
from statelib.errors.kinds import InternalError
from statelib.operators.aggregation.accumulators.inputs import column_of_numbers, has_numbers, numbers_of
from statelib.operators.aggregation.accumulators.picks_kernel import NO_PICK, running_pick
from statelib.operators.aggregation.accumulators.tagged_bytes import tagged, untagged
from statelib.records.row_pool import RowPool

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from statelib.operators.aggregation.accumulators.inputs import Inputs, Updates

_ROWS_PER_SLOT = 4

Order: TypeAlias = Literal["arrival", "time", "by", "value"]
"""What decides which record is picked: when it comes, its timestamp, another field, or the value itself."""


class PickAccumulator:
    """The value of one record: of the first, the last, or the one whose key is the largest or smallest.

    The values of picked records lie in a pool, and the state of a slot is the number of one. Keys are numbers; keys of
    other types that have an order (decimals, strings, booleans) are ranked, all that there are for each batch.

    Args:
        of: The type of the values.
        order: What decides.
        largest: Whether the record with the largest key is picked, else that with the smallest.
        later: Whether of equal keys the later record is picked, else the first.
        by: The type of keys; None: int64.
    """

    def __init__(
        self,
        of: pa.DataType,
        order: Order,
        *,
        largest: bool = False,
        later: bool = False,
        by: pa.DataType | None = None,
    ) -> None:
        self._order = order
        self._largest, self._later = largest, later
        self._by = by or pa.int64()
        self._is_ranked = not has_numbers(self._by)
        self._dtype = np.float64 if pa.types.is_floating(self._by) else np.int64
        self._pool = RowPool(pa.schema([("value", of), *([("by", self._by)] if self._keeps_by else [])]))
        self._picked = np.empty(0, dtype=np.int64)
        self._best = np.empty(0, dtype=self._dtype)
        self._walked: tuple[pa.RecordBatch, NDArray[Any], NDArray[np.bool_]] | None = None

    @property
    def _keeps_by(self) -> bool:
        """Whether the pool has the keys: the ranks of a batch say nothing later, unless the values are the keys."""
        return self._order == "by" and self._is_ranked

    @property
    def types(self) -> list[pa.DataType]:
        """See `Accumulator`."""
        of = self._pool.schema.field("value").type
        return {"by": [of, pa.binary()], "time": [of, pa.int64()]}.get(self._order, [of])

    @property
    def initial(self) -> list[object]:
        """See `Accumulator`."""
        return [None] * len(self.types)

    def reserve(self, slots: int) -> None:
        """See `Accumulator`."""
        self._picked = grown(self._picked, slots, NO_PICK)
        self._best = grown(self._best, slots)

    def keep(self, slots: NDArray[np.int64]) -> None:
        """See `Accumulator`."""
        self._picked = shrunk(self._picked, slots, NO_PICK)
        self._best = shrunk(self._best, slots)
        self._drop_garbage()

    def set(self, slots: NDArray[np.int64], states: Sequence[pa.Array]) -> None:
        """See `Accumulator`.

        Raises:
            ConfigurationError: The type of what decides has changed.
        """
        value, *keys = states
        key = value
        if self._order == "by":
            key = untagged(keys[0], self._by)
        elif self._order == "time":
            (key,) = keys
        there = valid_of(key)
        if self._order == "arrival" or self._is_ranked:
            self._best[slots] = 0
        else:
            self._best[slots] = numbers_of(key)[0]
        self._picked[slots] = np.where(there, self._append(value, key) + np.arange(len(slots)), NO_PICK)

    def get(self, slots: NDArray[np.int64]) -> list[pa.Array]:
        """See `Accumulator`."""
        picked = self._picked[slots]
        there = picked != NO_PICK
        rows = self._pool.take(picked[there])
        place = pa.array(np.cumsum(there) - 1, mask=~there)
        columns = [taken(column, place) for column in rows.columns]
        return self._states(pa.RecordBatch.from_arrays(columns, schema=rows.schema), self._best[slots], there)

    def shown(self, slots: NDArray[np.int64]) -> list[pa.Array]:
        """See `Accumulator`."""
        return self.get(slots)

    def walk(self, updates: Updates, inputs: Inputs) -> list[pa.Array]:
        """See `Accumulator`."""
        best = np.empty(len(updates.rows), dtype=self._dtype)
        picked = np.empty(len(updates.rows), dtype=np.int64)
        columns = self._run(updates, inputs, best, picked)
        self._walked = (columns, best, picked != NO_PICK)
        return [columns.column(0)]

    def walked(self) -> list[pa.Array]:
        """See `Accumulator`."""
        if self._walked is None:
            raise InternalError("an aggregation has no batch")
        return self._states(*self._walked)

    def add(self, updates: Updates, inputs: Inputs) -> None:
        """See `Accumulator`."""
        nobody_asks = np.empty(0, dtype=self._dtype), np.empty(0, dtype=np.int64)
        self._run(updates, inputs, *nobody_asks)

    def _run(self, updates: Updates, inputs: Inputs, best: NDArray[Any], picked: NDArray[np.int64]) -> pa.RecordBatch:
        """Gives the pool's columns after each update, null where nothing is picked, if there is room for the picks."""
        value = inputs.column
        key = value if inputs.by is None else inputs.by
        keys, valid = self._keys(key, inputs.timestamp)
        first = len(self._pool)
        running_pick(
            self._largest,
            self._later,
            *updates.walked,
            keys,
            valid,
            first,
            self._best,
            self._picked,
            best,
            picked,
        )
        columns = self._columns(value, key)
        results = self._picked_columns(columns, first, picked)
        touched = np.flatnonzero(self._picked >= first)
        self._pool.append(columns.take(pa.array(self._picked[touched] - first)))
        self._picked[touched] = first + np.arange(len(touched))
        self._drop_garbage()
        return results

    def _keys(self, key: pa.Array, timestamp: NDArray[np.int64]) -> tuple[NDArray[Any], NDArray[np.bool_]]:
        """The keys of a batch's records and which of them are not null (empty: all); ranks keys, those of slots too."""
        valid = valid_of(key) if key.null_count else np.empty(0, dtype=np.bool_)
        if self._order == "arrival":
            return np.zeros(len(key), dtype=np.int64), valid
        if self._order == "time":
            return timestamp, valid
        if not self._is_ranked:
            numbers, valid = numbers_of(key)
            return numbers.astype(self._dtype, copy=False), valid
        there = np.flatnonzero(self._picked != NO_PICK)
        known = self._pool.take(self._picked[there]).column(-1)
        ranks = np.asarray(pc.rank(pa.concat_arrays([known, key]), tiebreaker="dense")).astype(np.int64)
        self._best[there] = ranks[: len(there)]
        return ranks[len(there) :], valid

    def _columns(self, value: pa.Array, key: pa.Array) -> pa.RecordBatch:
        columns = [value.cast(self._pool.schema.field("value").type)]
        return pa.RecordBatch.from_arrays(columns + ([key] if self._keeps_by else []), schema=self._pool.schema)

    def _append(self, value: pa.Array, key: pa.Array) -> int:
        return self._pool.append(self._columns(value, key))

    def _picked_columns(self, batch: pa.RecordBatch, first: int, picked: NDArray[np.int64]) -> pa.RecordBatch:
        """The rows with the numbers ``picked``: of the pool below ``first``, else of the batch."""
        is_old = (picked != NO_PICK) & (picked < first)
        numbers, place = np.unique(picked[is_old], return_inverse=True)
        source = picked - first + len(numbers)
        source[is_old] = place
        choices = pa.concat_batches([self._pool.take(numbers), batch])
        chosen = pa.array(source, mask=picked == NO_PICK)
        return pa.RecordBatch.from_arrays([taken(column, chosen) for column in choices.columns], schema=choices.schema)

    def _states(self, columns: pa.RecordBatch, best: NDArray[Any], there: NDArray[np.bool_]) -> list[pa.Array]:
        if self._order == "time":
            return [columns.column(0), pa.array(best, mask=~there)]
        if self._order != "by":
            return [columns.column(0)]
        by = columns.column(1) if self._is_ranked else column_of_numbers(best, there, self._by)
        return [columns.column(0), tagged(by)]

    def _drop_garbage(self) -> None:
        """Drops values that no slot has any more, whenever most of them are."""
        if len(self._pool) > _ROWS_PER_SLOT * len(self._picked):
            there = self._picked != NO_PICK
            wanted = np.unique(self._picked[there])
            self._pool.keep(wanted)
            self._picked[there] = np.searchsorted(wanted, self._picked[there])

    def memory_bytes(self) -> int:
        """See `Accumulator`."""
        return int(self._picked.nbytes + self._best.nbytes + self._pool.memory_bytes())
