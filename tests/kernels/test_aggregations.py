from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from statelib.kernels.aggregations import first_and_last_updates


@given(st.lists(st.integers(0, 9), max_size=40), st.integers(-1, 40))
def test_first_and_last_updates_whatever_the_room_holds(slots: list[int], content: int) -> None:
    rooms = (np.full(10, content) for _ in range(2))
    first, last = (np.empty(len(slots), dtype=np.int64) for _ in range(2))
    found = first_and_last_updates(np.array(slots, dtype=np.int64), *rooms, first, last)
    expected = sorted((len(slots) - 1 - slots[::-1].index(slot), slots.index(slot)) for slot in set(slots))
    assert list(zip(last[:found].tolist(), first[:found].tolist(), strict=True)) == expected
