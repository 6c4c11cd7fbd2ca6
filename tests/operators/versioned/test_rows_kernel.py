"""Rows found among others, against a dictionary."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from statelib.operators.versioned.rows_kernel import NOT_FOUND, match_rows

rows = st.sets(st.tuples(st.integers(0, 5), st.integers(0, 5))).map(sorted)


@given(rows, rows)
def test_rows_are_found_among_others(wanted: list[tuple[int, int]], others: list[tuple[int, int]]) -> None:
    key, segment = np.array(wanted, np.int64).reshape(-1, 2).T.copy()
    among_key, among_segment = np.array(others, np.int64).reshape(-1, 2).T.copy()
    places = {row: place for place, row in enumerate(others)}
    assert match_rows(key, segment, among_key, among_segment).tolist() == [places.get(row, NOT_FOUND) for row in wanted]
