"""The values of the records with the largest or smallest keys, some of them for each group.

The values and keys of these records lie in a pool, and a group is a block of keys and numbers of the pool, the best
first (`statelib.operators.aggregation.accumulators.top_kernel`). Kernels compare int64 keys: of numbers their bits in
order; keys of other types are ranked for each batch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from statelib.columns.arrow_buffers import from_zero, taken, valid_of
from statelib.columns.lists import lengths_of
from statelib.operators.aggregation.accumulators.blocks import Blocks
from statelib.operators.aggregation.accumulators.inputs import NO_SLOTS, Updates, has_numbers, numbers_of
from statelib.operators.aggregation.accumulators.tagged_bytes import tagged, untagged
from statelib.operators.aggregation.accumulators.top_kernel import (
    MORE_WORDS,
    WORDS_PER_RECORD,
    gather_numbers,
    rekey_blocks,
    renumber_blocks,
    running_top,
)
from statelib.records.row_pool import RowPool

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from statelib.operators.aggregation.accumulators.inputs import Inputs

    _Array = NDArray[np.int64]

MOST = 1_000
"""So many records of a group can be kept."""

_ROWS_PER_RECORD = 4
_FEW_ROWS = 1 << 10
_MAGNITUDE = np.int64(2**63 - 1)


class TopAccumulator:
    """The values of the records with the largest keys, the largest first; of equal keys, the first first.

    Args:
        of: The type of the values.
        by: The type of the keys.
        limit: Of how many records.
        largest: Whether those with the largest keys are kept, else those with the smallest.
    """

    def __init__(self, of: pa.DataType, by: pa.DataType, limit: int, *, largest: bool) -> None:
        self.types: Sequence[pa.DataType] = (pa.list_(of), pa.binary())
        self._of, self._by = of, by
        self._limit = limit
        self._largest = largest
        self._is_ranked = not has_numbers(by)
        self._pool = RowPool(pa.schema([("value", of), ("by", by)]))
        self._blocks = Blocks()
        self._walked: tuple[pa.RecordBatch, NDArray[np.int64]] = (self._pool.take(NO_SLOTS), NO_SLOTS)

    @property
    def initial(self) -> Sequence[object]:
        """See `Accumulator`."""
        return [None, None]

    def reserve(self, slots: int) -> None:
        """See `Accumulator`."""
        self._blocks.reserve(slots)

    def keep(self, slots: NDArray[np.int64]) -> None:
        """See `Accumulator`."""
        self._blocks.keep(slots)
        self._drop_garbage()

    def set(self, slots: NDArray[np.int64], states: Sequence[pa.Array]) -> None:
        """See `Accumulator`.

        Raises:
            ConfigurationError: The keys are of another type.
        """
        by = untagged(states[1], pa.list_(self._by))
        sizes = lengths_of(by)
        rows = pa.RecordBatch.from_arrays([states[0].flatten(), by.flatten()], schema=self._pool.schema)
        blocks, begin = self._blocks, from_zero(sizes)
        blocks.room[slots] = 0
        blocks.drop_garbage()
        blocks.grow(2 * rows.num_rows)
        blocks.offset[slots], blocks.room[slots], blocks.count[slots] = (
            blocks.used[0] + 2 * begin[:-1],
            2 * sizes,
            sizes,
        )
        at = np.repeat(blocks.used[0] + begin[:-1], sizes) + np.arange(rows.num_rows)
        blocks.words[at] = self._keys(rows.column(1))[0]
        blocks.words[at + np.repeat(sizes, sizes)] = self._pool.append(rows) + np.arange(rows.num_rows)
        blocks.used[0] += 2 * rows.num_rows

    def get(self, slots: NDArray[np.int64]) -> list[pa.Array]:
        """See `Accumulator`."""
        return self._states(self._pool.take(self._numbers(slots)), self._blocks.count[slots])

    def shown(self, slots: NDArray[np.int64]) -> list[pa.Array]:
        """See `Accumulator`."""
        values = self._pool.take(self._numbers(slots)).column(0)
        return [_lists(self._blocks.count[slots], values)]

    def walk(self, updates: Updates, inputs: Inputs) -> list[pa.Array]:
        """See `Accumulator`."""
        offset, room, sizes = (np.empty(len(updates.rows), dtype=np.int64) for _ in range(3))
        batch = self._run(updates, inputs, (offset, room, sizes))
        numbers = np.empty(int(sizes.sum()), dtype=np.int64)
        gather_numbers(offset, room, sizes, self._blocks.words, numbers)
        first = len(self._pool)
        is_old = numbers < first
        known, place = np.unique(numbers[is_old], return_inverse=True)
        source = numbers - first + len(known)
        source[is_old] = place
        choices, chosen = pa.concat_batches([self._pool.take(known), batch]), pa.array(source)
        columns = choices.columns if updates.remembers else choices.columns[:1]
        columns = [taken(column, chosen) for column in columns]
        if updates.remembers:
            self._walked = (pa.RecordBatch.from_arrays(columns, schema=batch.schema), sizes)
        self._settle(updates.slots, batch)
        return [_lists(sizes, columns[0])]

    def walked(self) -> list[pa.Array]:
        """See `Accumulator`."""
        return self._states(*self._walked)

    def add(self, updates: Updates, inputs: Inputs) -> None:
        """See `Accumulator`."""
        self._settle(updates.slots, self._run(updates, inputs, (NO_SLOTS, NO_SLOTS, NO_SLOTS)))

    def _run(self, updates: Updates, inputs: Inputs, out: tuple[_Array, _Array, _Array]) -> pa.RecordBatch:
        """Gives the batch's rows, which the pool has not yet: they are numbered from its end on."""
        by = pa.nulls(len(inputs.column), self._by) if inputs.by is None else inputs.by.cast(self._by)
        batch = pa.RecordBatch.from_arrays([inputs.column.cast(self._of), by], schema=self._pool.schema)
        keys, valid = self._keys(by, with_those_there=True)
        blocks = self._blocks
        blocks.drop_garbage()
        done = 0
        while done < len(updates.rows):
            blocks.grow(WORDS_PER_RECORD * self._limit + MORE_WORDS)
            done = running_top(
                done, *updates.walked, keys, valid, len(self._pool), self._limit, len(out[0]) > 0, *blocks.all, *out
            )
        return batch

    def _keys(self, by: pa.Array, *, with_those_there: bool = False) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """int64 keys, the smallest is the best, and which there are (empty: all); those of groups are ranked, too."""
        if self._is_ranked:
            valid = valid_of(by) if by.null_count else np.empty(0, dtype=np.bool_)
            if not with_those_there:
                return np.zeros(len(by), dtype=np.int64), valid
            known = self._pool.take(np.arange(len(self._pool))).column(1)
            ranks = np.asarray(pc.rank(pa.concat_arrays([known, by]), tiebreaker="dense")).astype(np.int64)
            keys = ~ranks if self._largest else ranks
            offset, room, count, words, _ = self._blocks.all
            rekey_blocks(offset, room, count, keys[: len(known)], words)
            return keys[len(known) :], valid
        keys, valid = numbers_of(by)
        if keys.dtype == np.float64:
            numbers = keys + 0.0  # no -0.0
            numbers[np.isnan(numbers)] = np.nan
            bits = numbers.view(np.int64)
            keys = np.where(bits < 0, bits ^ _MAGNITUDE, bits)
        return ~keys if self._largest else keys, valid

    def _settle(self, slots: NDArray[np.int64], batch: pa.RecordBatch) -> None:
        """Moves those records of the batch into the pool that are in groups."""
        first, touched = len(self._pool), np.unique(slots)
        numbers = self._numbers(touched)
        new = np.unique(numbers[numbers >= first])
        self._pool.append(batch.take(pa.array(new - first)))
        places = np.zeros(batch.num_rows, dtype=np.int64)
        places[new - first] = first + np.arange(len(new))
        self._renumber(touched, first, places)
        self._drop_garbage()

    def _renumber(self, slots: NDArray[np.int64], first: int, numbers: NDArray[np.int64]) -> None:
        offset, room, count, words, _ = self._blocks.all
        renumber_blocks(offset[slots], room[slots], count[slots], first, numbers, words)

    def _numbers(self, slots: NDArray[np.int64]) -> NDArray[np.int64]:
        """The numbers of the records of groups, one group's behind another's."""
        offset, room, count, words, _ = self._blocks.all
        numbers = np.empty(int(count[slots].sum()), dtype=np.int64)
        gather_numbers(offset[slots], room[slots], count[slots], words, numbers)
        return numbers

    def _drop_garbage(self) -> None:
        """Drops records that no group has any more, whenever most of them are."""
        if len(self._pool) > _ROWS_PER_RECORD * int(self._blocks.count.sum()) + _FEW_ROWS * (
            len(self._blocks.count) > 0
        ):
            everywhere = np.arange(len(self._blocks.count))
            wanted = np.unique(self._numbers(everywhere))
            places = np.zeros(len(self._pool), dtype=np.int64)
            places[wanted] = np.arange(len(wanted))
            self._pool.keep(wanted)
            self._renumber(everywhere, 0, places)

    def _states(self, rows: pa.RecordBatch, sizes: NDArray[np.int64]) -> list[pa.Array]:
        return [_lists(sizes, rows.column(0)), tagged(_lists(sizes, rows.column(1)))]

    def memory_bytes(self) -> int:
        """See `Accumulator`."""
        return self._blocks.memory_bytes() + self._pool.memory_bytes()


def _lists(sizes: NDArray[np.int64], flat: pa.Array) -> pa.Array:
    """A list of each group's items; null of none."""
    offsets = pa.array(from_zero(sizes), pa.int32())
    return pa.ListArray.from_arrays(offsets, flat, type=pa.list_(flat.type), mask=pa.array(sizes == 0))
