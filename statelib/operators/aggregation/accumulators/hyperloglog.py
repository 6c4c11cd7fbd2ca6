"""About how many distinct values an aggregate has taken: a HyperLogLog sketch for each slot.

A state is stored in the bytes of Apache DataSketches, so that its libraries read and merge them: a compact HLL sketch
of 8-bit registers and 4,096 of these, ``hll_sketch.deserialize(...)``; numbers are little-endian::

    0   1   2   3   4          5      6       7     8
    2 | 1 | 7 |12 | 3        |  8   | count | 8   | coupons, 4 bytes each                       up to 7 values
    3 | 1 | 7 |12 | log size |  8   | 0     | 9   | count, 4 bytes | coupons, 4 bytes each      up to 384
    10| 1 | 7 |12 | 0        | 24   | 0     | 10  | 0, 8 bytes | sum of 2**-r of r < 32, 8 bytes | of others, 8 bytes |
                                                     empty registers, 4 bytes | 0, 4 bytes | 4,096 registers r

Coupons are sorted: equal sets have equal bytes. Of no values it is null. Beside it is the estimate, which is not quite
that of DataSketches (`statelib.operators.aggregation.accumulators.hyperloglog_kernel`).

Hashes are DataSketches' own: of integers, dates and times as 64 bits, of floats as float64, of texts as UTF-8.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from statelib.columns.arrow_buffers import any_binary_array, byte_buffers, from_zero, spans_of, valid_of
from statelib.columns.growing import grown, shrunk
from statelib.columns.murmur3 import murmur3
from statelib.errors.kinds import InputError
from statelib.operators.aggregation.accumulators.blocks import Blocks
from statelib.operators.aggregation.accumulators.hyperloglog_kernel import (
    DENSE,
    LOG_REGISTERS,
    MOST_WORDS,
    NOT_ESTIMATED,
    REGISTERS,
    coupons_by_sketch,
    coupons_of,
    estimates,
    read_registers,
    running_sketches,
    write_registers,
)
from statelib.operators.aggregation.accumulators.inputs import Updates, has_numbers, numbers_of
from statelib.serdes import serde_for

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from statelib.operators.aggregation.accumulators.inputs import Inputs

FORMAT_VERSION, _FAMILY = 1, 7
_COMPACT, _OUT_OF_ORDER = 8, 16
_OF_8_BITS = 8
_LIST, _SET, _REGISTERS = 0, 1, 2
_MOST_OF_A_LIST = 7
_HEADERS = np.array([8, 12, 40])
"""Bytes before the coupons, or registers, by mode."""
_COUNT_AT, _SUMS_AT, _EMPTY_AT = 8, 16, 32
_NOTHING = np.empty(0, dtype=np.int64)


def coupons(column: pa.Array) -> NDArray[np.int64]:
    """int64: what sketches know of values; 0 of nulls."""
    made = np.empty(len(column), dtype=np.int64)
    first, second = (np.empty(len(column), dtype=np.uint64) for _ in range(2))
    murmur3(*_bytes_of(column), first, second)
    coupons_of(first, second, made)
    if column.null_count:
        made[~valid_of(column)] = 0
    return made


def _bytes_of(column: pa.Array) -> tuple[NDArray[np.uint8], NDArray[np.signedinteger]]:
    """The bytes that are hashed, and where each value's begin and end."""
    if pa.types.is_floating(column.type):
        numbers = numbers_of(column)[0] + 0.0  # no -0.0
        numbers[np.isnan(numbers)] = np.nan
    elif pa.types.is_boolean(column.type) or pa.types.is_uint64(column.type):
        numbers = np.ascontiguousarray(column.cast(pa.int64(), safe=False).fill_null(0))
    elif has_numbers(column.type):
        numbers = numbers_of(column)[0]
    else:
        is_bytes = pa.types.is_binary(column.type) or pa.types.is_large_binary(column.type)
        is_text = pa.types.is_string(column.type) or pa.types.is_large_string(column.type)
        data, spans, _ = byte_buffers(column if is_bytes or is_text else serde_for(column.type).serialize(column))
        return data, spans
    return numbers.view(np.uint8), np.arange(0, 8 * len(column) + 1, 8)


class SketchAccumulator:
    """About how many distinct values there are.

    Args:
        of: The type of the values.
    """

    types: Sequence[pa.DataType] = (pa.int64(), pa.binary())

    def __init__(self, of: pa.DataType) -> None:
        self._of = of
        self._blocks = Blocks()
        self._estimate = np.empty(0, dtype=np.int64)
        self._walked: tuple[NDArray[np.int64], ...] = ()

    @property
    def initial(self) -> Sequence[object]:
        """See `Accumulator`."""
        return [0, None]

    def reserve(self, slots: int) -> None:
        """See `Accumulator`."""
        self._blocks.reserve(slots)
        self._estimate = grown(self._estimate, slots)

    def keep(self, slots: NDArray[np.int64]) -> None:
        """See `Accumulator`."""
        self._blocks.keep(slots)
        self._estimate = shrunk(self._estimate, slots)

    def set(self, slots: NDArray[np.int64], states: Sequence[pa.Array]) -> None:
        """See `Accumulator`.

        Raises:
            InputError: They are no sketches that this version has written.
        """
        blocks = self._blocks
        blocks.room[slots] = blocks.count[slots] = self._estimate[slots] = 0
        data, start, length = spans_of(states[1])
        there = np.flatnonzero(length)
        slots, start = slots[there], start[there]
        mode = data[start + 7].astype(np.int64) - _OF_8_BITS
        known = [(0, np.array([2, 3, 10])[np.clip(mode, 0, 2)]), (1, FORMAT_VERSION), (2, _FAMILY), (3, LOG_REGISTERS)]
        if not np.isin(mode, (_LIST, _SET, _REGISTERS)).all() or any(
            (data[start + at] != of).any() for at, of in known
        ):
            raise InputError(
                "a state of approx_count_distinct() is no sketch of 4,096 registers of 8 bits",
                next_step="let the store begin empty: --set reset_stores=NAME",
            )
        begin, counts = start + _HEADERS[mode], (length[there] - _HEADERS[mode]) // 4
        counts[mode == _REGISTERS] = 0
        first = from_zero(counts)
        at = np.repeat(begin - 4 * first[:-1], counts) + 4 * np.arange(first[-1])
        found = data[at[:, np.newaxis] + np.arange(4)].view("<u4").astype(np.int64).ravel()
        self._run(Updates(np.arange(len(found)), np.repeat(slots, counts)), found, _NOTHING)
        dense = mode == _REGISTERS
        blocks.grow(DENSE * int(np.count_nonzero(dense)))
        read_registers(slots[dense], begin[dense], data, *blocks.all)
        self._estimate[slots] = NOT_ESTIMATED

    def get(self, slots: NDArray[np.int64]) -> list[pa.Array]:
        """See `Accumulator`."""
        return self._states(*(of[slots] for of in self._blocks.all[:3]))

    def shown(self, slots: NDArray[np.int64]) -> list[pa.Array]:
        """See `Accumulator`."""
        return [pa.array(self._estimates(*(of[slots] for of in self._blocks.all[:3])))]

    def walk(self, updates: Updates, inputs: Inputs) -> list[pa.Array]:
        """See `Accumulator`."""
        found, *blocks = (np.empty(len(updates.rows), dtype=np.int64) for _ in range(4))
        self._run(updates, coupons(inputs.column.cast(self._of)), found, *(blocks if updates.remembers else ()))
        self._walked = tuple(blocks)
        return [pa.array(found)]

    def walked(self) -> list[pa.Array]:
        """See `Accumulator`."""
        return self._states(*self._walked)

    def add(self, updates: Updates, inputs: Inputs) -> None:
        """See `Accumulator`."""
        self._run(updates, coupons(inputs.column.cast(self._of)), _NOTHING)

    def _run(
        self,
        updates: Updates,
        found: NDArray[np.int64],
        out_estimate: NDArray[np.int64],
        out_offset: NDArray[np.int64] = _NOTHING,
        out_room: NDArray[np.int64] = _NOTHING,
        out_count: NDArray[np.int64] = _NOTHING,
    ) -> None:
        blocks, outs = self._blocks, (out_estimate, out_offset, out_room, out_count)
        blocks.drop_garbage()
        done = 0
        while done < len(updates.rows):
            blocks.grow(MOST_WORDS)
            done = running_sketches(
                done, *updates.walked, found, len(out_offset) > 0, *blocks.all, self._estimate, *outs
            )

    def _estimates(
        self, offset: NDArray[np.int64], room: NDArray[np.int64], count: NDArray[np.int64]
    ) -> NDArray[np.int64]:
        made = np.empty(len(offset), dtype=np.int64)
        estimates(offset, room, count, self._blocks.words, made)
        return made

    def _states(self, offset: NDArray[np.int64], room: NDArray[np.int64], count: NDArray[np.int64]) -> list[pa.Array]:
        words = self._blocks.words
        dense = room == DENSE
        of_coupons = np.where(dense, 0, count)
        mode = np.where(dense, _REGISTERS, np.where(count > _MOST_OF_A_LIST, _SET, _LIST))
        there = room > 0
        offsets = from_zero(np.where(there, _HEADERS[mode] + 4 * of_coupons + REGISTERS * dense, 0))
        at, data = offsets[:-1], np.zeros(offsets[-1], dtype=np.uint8)
        begin = at + _HEADERS[mode]
        is_set = mode == _SET
        log_size = np.where(is_set, np.ceil(np.log2(np.maximum(4 * of_coupons / 3, 32))), 3)
        header = [
            np.array([2, 3, 10])[mode], FORMAT_VERSION, _FAMILY, LOG_REGISTERS, np.where(dense, 0, log_size),
            _COMPACT + _OUT_OF_ORDER * dense, np.where(mode == _LIST, count, 0), _OF_8_BITS + mode,
        ]  # fmt: skip
        for byte, of in enumerate(header):
            data[at[there] + byte] = np.broadcast_to(of, len(at))[there]
        _put(data, at[is_set] + _COUNT_AT, count[is_set].astype("<u4"))

        found = np.empty(int(of_coupons.sum()), dtype=np.int64)
        coupons_by_sketch(offset, room, words, found)
        found.sort()
        _put(data, np.repeat(begin - 4 * from_zero(of_coupons)[:-1], of_coupons) + 4 * np.arange(len(found)),
             found.astype("<u4"))  # fmt: skip

        histograms = np.empty(64 * np.count_nonzero(dense), dtype=np.int64)
        write_registers(offset[dense], begin[dense], words, histograms, data)
        of_number = histograms.reshape(-1, 64)
        shares = of_number * 0.5 ** np.arange(64)
        _put(data, at[dense] + _SUMS_AT, shares[:, :32].sum(axis=1))
        _put(data, at[dense] + _SUMS_AT + 8, shares[:, 32:].sum(axis=1))
        _put(data, at[dense] + _EMPTY_AT, of_number[:, 0].astype("<u4"))
        sketches = pc.if_else(pa.array(there), any_binary_array(offsets, data), None)
        return [pa.array(self._estimates(offset, room, count)), sketches]

    def memory_bytes(self) -> int:
        """See `Accumulator`."""
        return self._blocks.memory_bytes() + self._estimate.nbytes


def _put(data: NDArray[np.uint8], at: NDArray[np.int64], numbers: NDArray[np.generic]) -> None:
    """Writes numbers into ``data``."""
    width = numbers.dtype.itemsize
    data[at[:, np.newaxis] + np.arange(width)] = numbers.view(np.uint8).reshape(-1, width)
