from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from statelib.operators.aggregation.accumulators.kernel import latest_timestamp, touch
from statelib.records.batch import NO_TIMESTAMP

UPDATES = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 50)), max_size=40)


@given(UPDATES)
def test_touch_is_the_latest_timestamp(updates: list[tuple[int, int]]) -> None:
    """Each update is of a record of its own."""
    slots, timestamp = (np.array([update[i] for update in updates], np.int64) for i in range(2))
    rows = np.arange(len(updates))
    latest, expected = np.full(10, NO_TIMESTAMP), np.full(10, NO_TIMESTAMP)
    touch(rows, slots, timestamp, latest)
    latest_timestamp(rows, slots, timestamp, np.empty(0, np.bool_), expected, np.empty(0, np.int64))
    assert latest.tolist() == expected.tolist()
