"""What numpy finds by comparing."""

from __future__ import annotations

import random

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from statelib.columns.counting import distinct, renumber, repeated_numbers, sort_by, sort_pairs

NUMBERS = st.one_of(
    st.integers(-3, 3), st.integers(-(1 << 63), (1 << 63) - 1), st.integers(0, 40).map(lambda n: n << 40)
)


@given(st.lists(NUMBERS, max_size=80))
def test_distinct_numbers_values_as_they_first_come(values: list[int]) -> None:
    found, number = distinct(np.array(values, np.int64))
    assert found.tolist() == list(dict.fromkeys(values))
    assert found[number].tolist() == values


@given(st.lists(st.integers(0, 20), max_size=80), st.integers(21, 100))
def test_renumber_does_the_same_for_small_numbers(numbers: list[int], bound: int) -> None:
    found, number = renumber(np.array(numbers, np.int32), bound)
    assert found.tolist() == list(dict.fromkeys(numbers))
    assert found[number].tolist() == numbers
    assert (found.dtype, number.dtype) == (np.int32, np.int32)


@given(st.lists(NUMBERS, max_size=80))
def test_repeated_numbers_are_those_that_come_again(values: list[int]) -> None:
    again = sorted({value for value in values if values.count(value) > 1})
    assert repeated_numbers(np.array(values, np.int64)).tolist() == again


@given(st.lists(st.integers(0, 9), max_size=60), st.randoms())
def test_sort_by_is_a_stable_sort(number: list[int], chance: random.Random) -> None:
    given_order = list(range(len(number)))
    assert sort_by(np.array(number, np.int64), 10).tolist() == sorted(given_order, key=number.__getitem__)
    chance.shuffle(given_order)
    ordered = sort_by(np.array(number, np.int64), 10, np.array(given_order, np.int64))
    assert ordered.tolist() == sorted(given_order, key=number.__getitem__)


@given(
    st.sets(st.tuples(st.integers(0, 19), st.integers(0, 19)), max_size=60), st.sampled_from([20, 1_000]), st.randoms()
)
def test_sort_pairs_sorts_by_the_first_and_then_by_the_second(
    pairs: set[tuple[int, int]], bound: int, chance: random.Random
) -> None:
    """By a grid or, if that were mostly empty, by sorting twice."""
    shuffled = sorted(pairs)
    chance.shuffle(shuffled)
    major, minor = (np.array([pair[i] for pair in shuffled], np.int64) for i in (0, 1))
    order = sort_pairs(major, bound, minor, bound)
    assert [shuffled[i] for i in order] == sorted(pairs)
