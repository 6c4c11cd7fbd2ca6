from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from statelib.columns.merge_ranks import merge_ranks

EXTREMES = [np.iinfo(np.int64).min, np.iinfo(np.int64).max]
TIMES = st.integers(0, 12) | st.sampled_from(EXTREMES)


@given(st.lists(st.lists(TIMES, max_size=20).map(sorted), min_size=1, max_size=5))
def test_ranks_are_places_of_a_stable_sort(columns: list[list[int]]) -> None:
    arrays = [np.array(column, np.int64) for column in columns]
    ranks = merge_ranks(arrays)
    assert [len(rank) for rank in ranks] == [len(column) for column in columns]
    order = np.argsort(np.concatenate(arrays), kind="stable")
    assert np.concatenate(ranks)[order].tolist() == list(range(len(order)))
