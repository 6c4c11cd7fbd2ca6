"""Quantiles of an aggregate's values, about: a histogram for each slot, with buckets that grow with the numbers.

A bucket has the numbers that agree in sign, exponent and the first `_BITS` bits of the significand: the first bits of a
float64. So it is known without a logarithm, on every machine the same, and its middle is off by at most one part in
256 from any number in it. This is DDSketch (Masson, Rim and Lee, 2019) with a mapping that is linear in between.

A state is stored as bytes::

    1 | for each bucket that is not empty, by ascending key: key - the key before | how many values

The key is the first bits of the number's magnitude as an integer, negative for negative numbers; 0: 0, and what is
nearer to it than the smallest normal float64. Both are zigzag varints, as of Protobuf's sint64. Of no values the state
is null.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from statelib.columns.arrow_buffers import any_binary_array, from_zero, spans_of
from statelib.columns.growing import grown, shrunk
from statelib.errors.kinds import InputError
from statelib.operators.aggregation.accumulators.blocks import Blocks
from statelib.operators.aggregation.accumulators.inputs import Updates, floats_of
from statelib.operators.aggregation.accumulators.quantiles_kernel import (
    MORE_WORDS,
    NO_KEY,
    WORDS_PER_WORD,
    quantile_keys,
    read_histograms,
    running_histograms,
    write_histograms,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from statelib.operators.aggregation.accumulators.inputs import Inputs
    from statelib.operators.aggregation.accumulators.table_numbers import Changes

FORMAT_VERSION = 1
_BITS = 7
_SHIFT = 52 - _BITS
_MAGNITUDE = np.int64(2**63 - 1)
_LEAST_NORMAL = np.int64(1 << 52)
_INFINITY = 0x7FF << _BITS
_NAN = _INFINITY + 1
_NOTHING = np.empty(0, dtype=np.int64)


def keys_of(column: pa.Array) -> NDArray[np.int64]:
    """int64: the bucket of each number, `NO_KEY` of a null. All NaN are in one, above all others."""
    numbers, valid = floats_of(column)
    bits = numbers.view(np.int64)
    magnitude = bits & _MAGNITUDE
    keys = magnitude >> _SHIFT
    keys[magnitude < _LEAST_NORMAL] = 0
    keys = np.where(bits < 0, -keys, keys)
    keys[np.isnan(numbers)] = _NAN
    if len(valid):
        keys[~valid] = NO_KEY
    return keys


def middle_of(keys: NDArray[np.int64], *, whole: bool) -> NDArray[np.float64]:
    """float64: the middle of each bucket, or, for ``whole`` numbers, the whole number in it that is next to 0."""
    magnitude = np.abs(keys)
    middles = ((magnitude << _SHIFT) | (1 << (_SHIFT - 1))).view(np.float64)
    middles[magnitude == 0] = 0
    middles[magnitude == _INFINITY] = np.inf
    middles[magnitude == _NAN] = np.nan
    middles = np.where(keys < 0, -middles, middles)
    return np.trunc(middles) if whole else middles


class _Histograms:
    """The histograms of all slots.

    Args:
        of: The type of the values.
        at: The quantiles, 0 to 1.
    """

    types: Sequence[pa.DataType] = (pa.list_(pa.float64()), pa.binary())

    def __init__(self, of: pa.DataType, at: Sequence[float]) -> None:
        self._of = of
        self._places = np.argsort(at, kind="stable")
        self._ranks = np.array(at, dtype=np.float64)[self._places]
        self._blocks = Blocks()
        self._total = np.empty(0, dtype=np.int64)
        self._walked: tuple[pa.Array, tuple[NDArray[np.int64], ...]] = (pa.nulls(0, self.types[0]), ())

    def reserve(self, slots: int) -> None:
        """See `Accumulator`."""
        self._blocks.reserve(slots)
        self._total = grown(self._total, slots)

    def keep(self, slots: NDArray[np.int64]) -> None:
        """See `Accumulator`."""
        self._blocks.keep(slots)
        self._total = shrunk(self._total, slots)

    def set(self, slots: NDArray[np.int64], states: Sequence[pa.Array]) -> None:
        """See `Accumulator`.

        Raises:
            InputError: They are no histograms that this version has written.
        """
        data, start, length = spans_of(states[1])
        if (data[start[length > 0]] != FORMAT_VERSION).any():
            raise InputError(
                "a state of quantiles() is of another version",
                next_step="use the version of Hindstream that wrote it, or let the store begin empty: "
                "--set reset_stores=NAME",
            )
        self._blocks.room[slots] = 0
        self._blocks.drop_garbage()
        self._blocks.grow(4 * int(length.sum()) + 8 * len(length))
        read_histograms(slots, start + 1, np.maximum(length - 1, 0), data, *self._blocks.all, self._total)

    def get(self, slots: NDArray[np.int64]) -> list[pa.Array]:
        """See `Accumulator`."""
        blocks = self._blocks
        return [*self.shown(slots), self._written(blocks.offset[slots], blocks.room[slots], blocks.count[slots])]

    def shown(self, slots: NDArray[np.int64]) -> list[pa.Array]:
        """See `Accumulator`."""
        keys = np.empty(len(slots) * len(self._ranks), dtype=np.int64)
        offset, room, count, words, _ = self._blocks.all
        quantile_keys(
            offset[slots], room[slots], count[slots], words, self._total[slots], self._ranks, self._places, keys
        )
        return [self._quantiles(keys)]

    def walked(self) -> list[pa.Array]:
        """See `Accumulator`."""
        quantiles, blocks = self._walked
        return [quantiles, self._written(*blocks)]

    def _walk(
        self, updates: Updates, keys: NDArray[np.int64], old_keys: NDArray[np.int64] = _NOTHING
    ) -> list[pa.Array]:
        found = np.empty(len(updates.rows) * len(self._ranks), dtype=np.int64)
        blocks = tuple(np.empty(len(updates.rows), dtype=np.int64) for _ in range(3))
        self._run(updates, keys, old_keys, found, *(blocks if updates.remembers else ()))
        quantiles = self._quantiles(found)
        self._walked = (quantiles, blocks)
        return [quantiles]

    def _run(
        self,
        updates: Updates,
        keys: NDArray[np.int64],
        old_keys: NDArray[np.int64],
        out_keys: NDArray[np.int64],
        out_offset: NDArray[np.int64] = _NOTHING,
        out_room: NDArray[np.int64] = _NOTHING,
        out_count: NDArray[np.int64] = _NOTHING,
    ) -> None:
        blocks, asked = self._blocks, (self._ranks, self._places)
        outs = (out_keys, out_offset, out_room, out_count)
        blocks.drop_garbage()
        done = 0
        while done < len(updates.rows):
            blocks.grow(WORDS_PER_WORD * 2 * int(blocks.room.max()) + MORE_WORDS)
            done = running_histograms(
                done, *updates.walked, keys, old_keys, updates.remembers, *blocks.all, self._total, *asked, *outs
            )

    def _quantiles(self, keys: NDArray[np.int64]) -> pa.Array:
        """A list of each aggregate; null of no values."""
        middles = middle_of(keys, whole=pa.types.is_integer(self._of))
        width = len(self._ranks)
        offsets = np.arange(0, len(keys) + 1, width, dtype=np.int32)
        is_nothing = keys[::width] == NO_KEY
        return pa.ListArray.from_arrays(pa.array(offsets), pa.array(middles), mask=pa.array(is_nothing))

    def _written(self, offset: NDArray[np.int64], room: NDArray[np.int64], count: NDArray[np.int64]) -> pa.Array:
        blocks = (offset, room, count, self._blocks.words)
        there = count > 0
        lengths = there.astype(np.int64)
        write_histograms(*blocks, lengths, np.empty(0, dtype=np.uint8))
        offsets = from_zero(lengths)
        data = np.full(offsets[-1], FORMAT_VERSION, dtype=np.uint8)
        write_histograms(*blocks, offsets[:-1] + there, data)
        return pc.if_else(pa.array(there), any_binary_array(offsets, data), None)

    def memory_bytes(self) -> int:
        """See `Accumulator`."""
        return self._blocks.memory_bytes() + self._total.nbytes


class QuantilesAccumulator(_Histograms):
    """Quantiles of a stream's values."""

    @property
    def initial(self) -> Sequence[object]:
        """See `Accumulator`."""
        return [None, None]

    def walk(self, updates: Updates, inputs: Inputs) -> list[pa.Array]:
        """See `Accumulator`."""
        return self._walk(updates, keys_of(inputs.column))

    def add(self, updates: Updates, inputs: Inputs) -> None:
        """See `Accumulator`."""
        self._run(updates, keys_of(inputs.column), _NOTHING, _NOTHING)


class TableQuantiles(_Histograms):
    """Quantiles of a table's values, which are taken back."""

    @property
    def counts(self) -> NDArray[np.int64]:
        """See `TableAccumulator`."""
        return np.zeros(len(self._total), dtype=np.int64)

    def walk(self, changes: Changes) -> list[pa.Array]:
        """See `TableAccumulator`."""
        old = np.where(changes.takes_back, keys_of(changes.old), NO_KEY)
        updates = Updates(np.arange(len(changes.slots)), changes.slots, remembers=changes.remembers)
        return self._walk(updates, keys_of(changes.new), old)
