from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from statelib.columns.stream_time import keyed_stream_time, running_stream_time


@given(st.lists(st.tuples(st.integers(-1, 1), st.integers(-5, 50)), max_size=30), st.integers(-1, 60))
def test_it_is_the_largest_so_far(records: list[tuple[int, int]], before: int) -> None:
    codes, times = (np.array([record[i] for record in records], np.int64) for i in (0, 1))
    for moves, found in (
        (lambda _: True, running_stream_time(times, before)),
        (lambda code: code >= 0, keyed_stream_time(codes, times, before)),
    ):
        now, expected = before, []
        for code, time in records:
            now = max(now, time) if moves(code) else now
            expected.append(now)
        assert found.tolist() == expected
    assert running_stream_time(times[::-1], before).tolist() == running_stream_time(times[::-1].copy(), before).tolist()
