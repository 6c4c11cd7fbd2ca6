from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from statelib.columns.lateness import count_beyond


@given(st.lists(st.integers(0, 9), max_size=30), st.sets(st.integers(0, 12), max_size=5), st.sampled_from([1, 500]))
def test_values_are_held_against_each_bound(values: list[int], bounds: set[int], times: int) -> None:
    """Some at a time, where there are many."""
    beyond = np.ones(len(bounds), np.int64)
    found = count_beyond(np.array(values * times, np.int64), np.array(sorted(bounds), np.int64), beyond)
    assert found == (sum(values) * times, max(values, default=0))
    assert beyond.tolist() == [1 + times * sum(value > bound for value in values) for bound in sorted(bounds)]
