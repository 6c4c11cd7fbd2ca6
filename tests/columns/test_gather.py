from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from statelib.columns.gather import compress, gather


@given(st.lists(st.integers(-(1 << 63), (1 << 63) - 1), min_size=1, max_size=9), st.data())
def test_values_are_gathered_by_their_places(values: list[int], data: st.DataObject) -> None:
    places = data.draw(st.lists(st.integers(0, len(values) - 1), max_size=20))
    found = gather(np.array(values, np.int64), np.array(places, np.int32))
    assert found.tolist() == [values[place] for place in places]


@given(st.lists(st.tuples(st.integers(-(1 << 63), (1 << 63) - 1), st.booleans()), max_size=20))
def test_values_that_are_kept(values: list[tuple[int, bool]]) -> None:
    found = compress(
        np.array([value for value, _ in values], np.int64), np.array([keep for _, keep in values], np.bool_)
    )
    assert found.tolist() == [value for value, keep in values if keep]
