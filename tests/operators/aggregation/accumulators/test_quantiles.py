"""Quantiles: off by one part in 256 at most, whatever the numbers; the same bytes by every detour."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from statelib import ConfigurationError, quantiles
from statelib.errors.kinds import InputError
from statelib.operators.aggregation.accumulators.inputs import Updates
from statelib.operators.aggregation.accumulators.quantiles import QuantilesAccumulator
from tests.operators.aggregation.accumulating import added, inputs, merged, states

AT = st.lists(st.floats(0, 1), min_size=1, max_size=4)
FLOATS = st.floats(allow_nan=True) | st.floats(-10, 10)
MOST = 1 / 256


def order(x: float) -> tuple[bool, float]:
    return (True, 0.0) if math.isnan(x) else (False, x)


def exact(numbers: list[float], at: list[float]) -> list[float]:
    ascending = sorted(numbers, key=order)
    return [ascending[math.floor(one * (len(numbers) - 1))] for one in at]


def is_near(given_: float, true: float) -> bool:
    if not math.isfinite(true):
        return given_ == true or (math.isnan(given_) and math.isnan(true))
    if abs(true) < 2.0**-1022:
        return given_ == 0
    return abs(given_ - true) <= abs(true) * MOST


@given(st.lists(FLOATS, min_size=1, max_size=60), AT)
@example([1.7976931348623157e308, -1e-320, 5e-324, 2.2250738585072014e-308], [0, 0.3, 0.7, 1])
@example([-0.0, 0.0, float("-inf")], [0.5, 0])
def test_how_far_off_they_are(numbers: list[float], at: list[float]) -> None:
    results = added(QuantilesAccumulator(pa.float64(), at), pa.array(numbers), [0] * len(numbers))
    for n, result in enumerate(results, 1):
        assert all(map(is_near, result, exact(numbers[:n], at)))


@given(st.lists(st.integers(-256, 256) | st.integers(-(2**63), 2**63 - 1), min_size=1, max_size=60), AT)
def test_whole_numbers(numbers: list[int], at: list[float]) -> None:
    results = added(QuantilesAccumulator(pa.int64(), at), pa.array(numbers, pa.int64()), [0] * len(numbers))
    for n, result in enumerate(results, 1):
        for given_, true in zip(result, exact([*map(float, numbers[:n])], at), strict=True):
            assert given_ == true if abs(true) < 256 else is_near(given_, true)


def test_where_the_bound_is_met() -> None:
    for number in (512.0, 513.99999, -1.0, 0.001):
        ((result,),) = added(QuantilesAccumulator(pa.float64(), [0.5]), pa.array([number]), [0])
        assert is_near(result, number)
    ((result,),) = added(QuantilesAccumulator(pa.float64(), [0.5]), pa.array([1024.0]), [0])
    assert result == 1024 * (1 + MOST)


@given(st.lists(st.tuples(st.integers(0, 1), FLOATS), max_size=80), st.randoms(use_true_random=False), st.booleans())
def test_order_and_detours_leave_no_trace(values: list[tuple[int, float]], random: Any, copied: bool) -> None:
    ordered = QuantilesAccumulator(pa.float64(), [0.5])
    numbers = pa.array([number for _, number in values], pa.float64())
    ordered.reserve(2)
    added(ordered, numbers, [0] * len(values))
    shuffled = random.sample(values, len(values))
    detour = QuantilesAccumulator(pa.float64(), [0.5])
    detour.reserve(2)
    added(detour, pa.array([number for _, number in shuffled], pa.float64()), [slot for slot, _ in shuffled])
    if copied:  # as a store gives them back
        saved = detour.get(np.array([0, 1]))
        detour = QuantilesAccumulator(pa.float64(), [0.5])
        detour.reserve(2)
        detour.set(np.array([0, 1]), saved)
    merged(detour, numbers, 1, 0)
    detour.keep(np.array([1]))
    assert str(states(detour, [0])) == str(states(ordered, [0]))  # a NaN is not equal to itself


@given(st.lists(st.none() | st.integers(-400, 400), max_size=60), st.integers(0, 300))
def test_the_state_after_each_update(values: list[int | None], before: int) -> None:
    column = pa.array([*range(before), *values], pa.int64())
    both = [QuantilesAccumulator(pa.int64(), [0.1, 0.9]) for _ in range(2)]
    for accumulator in both:
        added(accumulator, column.slice(0, before), [0] * before)
        accumulator.reserve(1)
    rows, slots = np.arange(before, len(column)), np.zeros(len(values), np.int64)
    both[0].walk(Updates(rows, slots, remembers=True), inputs(column))
    walked = [*zip(*(part.to_pylist() for part in both[0].walked()), strict=True)]
    one_by_one = []
    for row in rows:
        both[1].add(Updates(np.array([row]), np.array([0])), inputs(column))
        one_by_one += states(both[1], [0])
    assert walked == one_by_one


def test_the_bytes() -> None:
    accumulator = QuantilesAccumulator(pa.float64(), [0.5])
    added(accumulator, pa.array([1.0, 1.0, -2.0, 0.0, None]), [0] * 5)
    ((median, data),) = states(accumulator, [0])
    assert median == [0.0]
    assert data.hex() == "01 ffff0f 02 808010 02 80fe0f 04".replace(" ", "")  # the exponents 1024, 0 and 1023


def test_what_cannot_be_is_refused() -> None:
    for at in ([], [0.5, 1.1], [float("nan")]):
        with pytest.raises(ConfigurationError, match=r"quantiles\(\) at .*from 0 to 1"):
            quantiles("x", at)
    accumulator = QuantilesAccumulator(pa.float64(), [0.5])
    accumulator.reserve(1)
    with pytest.raises(InputError, match="another version"):
        accumulator.set(np.array([0]), [pa.nulls(1, pa.list_(pa.float64())), pa.array([b"\2"])])


def test_many_groups() -> None:
    random = np.random.default_rng(3)
    numbers, slots = random.lognormal(3, 2, 40_000), random.integers(0, 50, 40_000)
    accumulator = QuantilesAccumulator(pa.float64(), [0.01, 0.5, 0.99])
    accumulator.reserve(50)
    for part in np.array_split(np.arange(40_000), 7):
        accumulator.add(Updates(part, slots[part]), inputs(pa.array(numbers)))
    for slot, result in enumerate(accumulator.shown(np.arange(50))[0].to_pylist()):
        of = np.sort(numbers[slots == slot])
        true = of[np.floor(np.array([0.01, 0.5, 0.99]) * (len(of) - 1)).astype(int)]
        assert np.all(np.abs(result / true - 1) <= MOST)
    assert max(len(data) for _, data in states(accumulator, range(50))) < 2_500
