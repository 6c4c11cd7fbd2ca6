"""Hashes of rows: equal for what is equal, and only for that."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from statelib.row_hash import hash_rows


@pytest.mark.parametrize(
    ("a", "b", "equal"),
    [
        (0.0, -0.0, True),
        (float("nan"), -float("nan"), True),
        (None, None, True),
        (None, float("nan"), False),
        (None, 0.0, False),
        (1.0, 2.0, False),
    ],
)
def test_numbers_that_are_equal_have_equal_hashes(a: float | None, b: float | None, equal: bool) -> None:
    one, other = hash_rows([pa.array([a, b], pa.float64())])
    assert bool(one == other) is equal


@given(rows=st.lists(st.tuples(st.sampled_from(["", "a", "ab", None]), st.sampled_from([0, 1, None])), max_size=20))
def test_rows_are_equal_when_their_hashes_are(rows: list[tuple[Any, Any]]) -> None:
    columns = [pa.array([row[0] for row in rows], pa.string()), pa.array([row[1] for row in rows], pa.int64())]
    found = [int(value) for value in hash_rows(columns)]
    assert [[a == b for a in found] for b in found] == [[a == b for a in rows] for b in rows]


def test_text_does_not_run_over_the_border_of_its_column() -> None:
    one, other = hash_rows([pa.array(["ab", "a"]), pa.array(["c", "bc"])])
    assert one != other
