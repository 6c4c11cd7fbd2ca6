"""Sketches of distinct values: the bytes of Apache DataSketches, whatever the order, and how far off they are."""

from __future__ import annotations

import hashlib
import struct
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from statelib.errors.kinds import InputError
from statelib.operators.aggregation.accumulators.hyperloglog import SketchAccumulator
from statelib.operators.aggregation.accumulators.inputs import Updates
from tests.operators.aggregation.accumulating import added, inputs, merged, states

_MASK = (1 << 64) - 1


def _rotated(word: int, bits: int) -> int:
    return ((word << bits) | (word >> (64 - bits))) & _MASK


def _final(word: int) -> int:
    for factor in (0xFF51AFD7ED558CCD, 0xC4CEB9FE1A85EC53):
        word = ((word ^ (word >> 33)) * factor) & _MASK
    return word ^ (word >> 33)


def murmur3(data: bytes) -> tuple[int, int]:
    """MurmurHash3_x64_128 with the seed 9001."""
    h1 = h2 = 9001
    padded = data + bytes(-len(data) % 16 or 16)
    for at in range(0, len(padded), 16):
        k1, k2 = struct.unpack_from("<QQ", padded, at)
        h1 ^= (_rotated(k1 * 0x87C37B91114253D5 & _MASK, 31) * 0x4CF5AD432745937F) & _MASK
        if at + 16 <= len(data):
            h1 = ((_rotated(h1, 27) + h2) * 5 + 0x52DCE729) & _MASK
        h2 ^= (_rotated(k2 * 0x4CF5AD432745937F & _MASK, 33) * 0x87C37B91114253D5) & _MASK
        if at + 16 <= len(data):
            h2 = ((_rotated(h2, 31) + h1) * 5 + 0x38495AB5) & _MASK
    h1, h2 = h1 ^ len(data), h2 ^ len(data)
    h1 = (h1 + h2) & _MASK
    h1, h2 = _final(h1), _final((h2 + h1) & _MASK)
    h1 = (h1 + h2) & _MASK
    return h1, (h2 + h1) & _MASK


def model(values: set[bytes]) -> bytes | None:
    """The sketch of values, given their bytes."""
    coupons = set()
    for value in values:
        first, second = murmur3(value)
        zeros = min(64 - second.bit_length(), 62)
        coupons.add(((zeros + 1) << 26) | (first & ((1 << 26) - 1)))
    if not coupons:
        return None
    if len(coupons) <= 384:
        packed = b"".join(struct.pack("<I", coupon) for coupon in sorted(coupons))
        if len(coupons) <= 7:
            return bytes([2, 1, 7, 12, 3, 8, len(coupons), 8]) + packed
        size = next(bits for bits in range(5, 10) if 4 * len(coupons) <= 3 << bits)
        return bytes([3, 1, 7, 12, size, 8, 0, 9]) + struct.pack("<I", len(coupons)) + packed
    registers = [0] * 4096
    for coupon in coupons:
        registers[coupon & 4095] = max(registers[coupon & 4095], coupon >> 26)
    sums = [sum(2.0**-r for r in registers if (r >= 32) == is_large) for is_large in (False, True)]
    head = bytes([10, 1, 7, 12, 0, 24, 0, 10]) + struct.pack("<dddII", 0, *sums, registers.count(0), 0)
    return head + bytes(registers)


def of_int(value: int) -> bytes:
    return value.to_bytes(8, "little", signed=True)


def sketch(values: list[Any], of: pa.DataType) -> Any:
    accumulator = SketchAccumulator(of)
    added(accumulator, pa.array(values, of), [0] * len(values))
    ((_, made),) = states(accumulator, [0])
    return made


SEEDS = st.integers(0, 9)
SIZES = st.sampled_from([0, 1, 7, 8, 60, 384, 385, 900])


@given(SIZES, SIZES, SEEDS, st.booleans())
@example(300, 300, 1, True)
def test_order_and_detours_leave_no_trace(one: int, other: int, seed: int, copied: bool) -> None:
    random = np.random.default_rng(seed)
    numbers = [random.integers(-500, 5_000, size) for size in (one, other)]
    column = pa.array(np.concatenate(numbers))
    accumulator = SketchAccumulator(pa.int64())
    slots = [0] * one + [1] * other
    order = random.permutation(len(column))
    added(accumulator, column.take(pa.array(order)), [slots[place] for place in order])
    accumulator.reserve(2)
    saved = accumulator.get(np.array([0, 1]))
    if copied:  # as a store gives them back
        accumulator = SketchAccumulator(pa.int64())
        accumulator.reserve(2)
        accumulator.set(np.array([0, 1]), saved)
    merged(accumulator, column, 0, 1)
    accumulator.keep(np.array([1, 0]))
    sets = [{of_int(int(number)) for number in some} for some in (numbers[1], np.concatenate(numbers))]
    assert [made for _, made in states(accumulator, [0, 1])] == [model(values) for values in sets]


@given(st.lists(st.none() | st.integers(-400, 400), max_size=40), SIZES, SEEDS)
def test_the_state_after_each_update(values: list[int | None], before: int, seed: int) -> None:
    there = np.random.default_rng(seed).integers(-500, 5_000, before)
    accumulator = SketchAccumulator(pa.int64())
    added(accumulator, pa.array(there, pa.int64()), [0] * before)
    column = pa.array(values, pa.int64())
    rows = np.arange(len(values))
    (counts,) = accumulator.walk(Updates(rows, np.zeros(len(rows), np.int64), remembers=True), inputs(column))
    made = accumulator.walked()
    seen = {of_int(int(number)) for number in there}
    for value, count, sketch_ in zip(values, counts.to_pylist(), made[1].to_pylist(), strict=True):
        seen |= set() if value is None else {of_int(value)}
        assert sketch_ == model(seen)
        assert count == len(seen) or len(seen) > 384
    assert made[0] == counts


GOLDEN: dict[str, tuple[list[Any], pa.DataType, str]] = {
    "list": ([1, 2, 3], pa.int64(), "0201070c03080308 2bf2fb06 75816607 862ff90d"),
    "small integers": ([1, 2, 3], pa.int8(), "0201070c03080308 2bf2fb06 75816607 862ff90d"),
    "texts": (["a", "a longer text than 16 bytes"], pa.string(), "0201070c03080208 2f823b04 36cb270e"),
    "floats": ([-0.0, 0.0, -1.5, float("nan")], pa.float64(), "0201070c03080308 cbd7c204 c8b0d407 eb31bd18"),
}
"""By datasketches 5.2.0: ``hll_sketch(12, HLL_8)``, coupons sorted."""


@pytest.mark.parametrize("name", GOLDEN)
def test_the_bytes_of_datasketches(name: str) -> None:
    values, of, expected = GOLDEN[name]
    assert sketch(values, of).hex() == expected.replace(" ", "")


def test_the_registers_of_datasketches() -> None:
    made = sketch(list(range(100)), pa.int64())
    assert made[:12].hex() == "0301070c0808000964000000"
    digest = hashlib.sha256(made[12:]).hexdigest()
    assert digest == "bc84bc60d1a1e5871b80d51e6cd6400392a9247e60ae8449cce2c20d2715c31a"
    made = sketch(list(range(100_000)), pa.int64())
    assert made[16:40].hex() == "00000050a6665d4000000000000000000000000000000000"
    digest = hashlib.sha256(made[40:]).hexdigest()
    assert digest == "3cd732b089fba84abf1927343e513de035cd674c8b4b1c831496abccb88b1893"


def test_how_far_off_they_are() -> None:
    """1.6% is one standard deviation: of 200 sketches of each size, the root of the mean square is below 1.8%."""
    for size in (385, 1_000, 3_000, 10_000, 60_000):
        sketches = 200 if size <= 10_000 else 40
        accumulator = SketchAccumulator(pa.int64())
        accumulator.reserve(sketches)
        numbers = np.random.default_rng(size).permutation(sketches * size)
        slots = np.arange(len(numbers)) // size
        accumulator.add(Updates(np.arange(len(numbers)), slots), inputs(pa.array(numbers)))
        counts = np.asarray(accumulator.shown(np.arange(sketches))[0])
        errors = counts / size - 1
        assert np.sqrt(np.mean(errors**2)) < (0.018 if sketches == 200 else 0.022)
        assert abs(errors.mean()) < 0.005


@pytest.mark.parametrize("damaged", [bytes(12), bytes.fromhex("0202070c03080008"), bytes.fromhex("0201070b03080008")])
def test_other_sketches_are_refused(damaged: bytes) -> None:
    accumulator = SketchAccumulator(pa.int64())
    accumulator.reserve(1)
    with pytest.raises(InputError, match=r"no sketch of 4,096 registers.*reset_stores"):
        accumulator.set(np.array([0]), [pa.array([1]), pa.array([damaged])])


def test_garbage_is_dropped() -> None:
    accumulator = SketchAccumulator(pa.int64())
    for start in range(0, 60_000, 3_000):
        column = pa.array(np.arange(start, start + 3_000))
        accumulator.reserve(1)
        accumulator.walk(Updates(np.arange(3_000), np.zeros(3_000, np.int64), remembers=True), inputs(column))
        added(accumulator, column, [0] * 3_000)
    assert accumulator.memory_bytes() < 100_000
    accumulator.keep(np.empty(0, dtype=np.int64))
    assert accumulator.memory_bytes() == 0
