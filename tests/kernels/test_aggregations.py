from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from statelib.batch import NO_TIMESTAMP
from statelib.kernels.aggregations import latest_timestamp, touch

UPDATES = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 9), st.integers(0, 50)), max_size=40)


@given(UPDATES)
def test_touch_is_the_latest_timestamp_and_the_last_stream_time(updates: list[tuple[int, int, int]]) -> None:
    """Each update is of a record of its own, with steps of the stream time between them."""
    steps, slots, timestamp = (np.array([update[i] for update in updates], np.int64) for i in range(3))
    rows, stream_time = np.arange(len(updates)), np.cumsum(steps)
    latest, updated, expected = np.full(10, NO_TIMESTAMP), np.full(10, -1), np.full(10, NO_TIMESTAMP)
    touch(rows, slots, timestamp, stream_time, latest, updated)
    latest_timestamp(rows, slots, timestamp, np.empty(0, np.bool_), expected, np.empty(0, np.int64))
    assert latest.tolist() == expected.tolist()
    last = dict(zip(slots.tolist(), stream_time.tolist(), strict=True))
    assert updated.tolist() == [last.get(slot, -1) for slot in range(10)]
