from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from statelib.columns.stream_time import keyed_stream_time
from statelib.operators.windows.kernel import accept


def test_accept() -> None:
    first_window, accepted, lateness, late = (np.empty(4, dtype=np.int64) for _ in range(4))
    keys, times = np.array([0, -1, 0, 0]), np.array([12, 99, 25, 12])
    clock = np.array([12, 12, 25, 25])
    assert accept(keys, times, clock, 10, 5, 4, 0, first_window, accepted, lateness, late) == (4, 2, 3, 0, 1)
    assert accepted.tolist() == [2, 0, 2, 0]
    assert first_window[[0, 2]].tolist() == [1, 4]
    assert late[0] == 3
    assert lateness.tolist() == [0, 0, 0, 13]


@given(
    st.lists(st.tuples(st.integers(-1, 1), st.integers(0, 90)), max_size=20),
    st.integers(1, 12), st.integers(0, 11), st.integers(0, 9), st.integers(0, 30), st.integers(-1, 60),
)  # fmt: skip
def test_accept_takes_the_windows_that_are_open(
    records: list[tuple[int, int]], advance: int, more: int, grace: int, origin: int, before: int
) -> None:
    """Every window that there is, one by one: the size is up to twelve times the advance."""
    size = advance + more
    key, time = (np.array(column, dtype=np.int64) for column in (zip(*records, strict=True) if records else ([], [])))
    first_window, accepted, lateness, late = (np.empty(len(records), dtype=np.int64) for _ in range(4))
    clock = keyed_stream_time(key, time, before)
    counts = accept(key, time, clock, size, advance, grace, origin, first_window, accepted, lateness, late)
    taken, expired, closed = [], 0, []
    for row, (code, at) in enumerate(records):
        seen = [timestamp for keyed, timestamp in records[: row + 1] if keyed >= 0]
        assert clock[row] == max([before, *seen])
        assert lateness[row] == (clock[row] - at if code >= 0 else 0)
        starts = [start for start in range(origin, at + 1, advance) if code >= 0 and at < start + size]
        open_ones = [start for start in starts if start + size > clock[row] - grace]
        taken += [(row, start) for start in open_ones]
        expired += len(starts) - len(open_ones)
        closed += [row] if starts and not open_ones else []
    found = zip(first_window.tolist(), accepted.tolist(), strict=True)
    starts_of = [
        (row, origin + (first + i) * advance) for row, (first, count) in enumerate(found) for i in range(count)
    ]
    assert starts_of == taken
    keyed, early = (sum(code >= 0 and at < end for code, at in records) for end in (1 << 62, origin))
    assert counts == (len(taken), expired, keyed, early, len(closed))
    assert late[: len(closed)].tolist() == closed
