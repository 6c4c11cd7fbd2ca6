from __future__ import annotations

from bisect import bisect_right

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from statelib.columns.arrow_buffers import spans_of
from statelib.columns.bytes_order import places_among, sort_order

PIECES = st.sampled_from([b"", b"\x00", b"\xff", b"a", b"campaign", b"12345678", b"\x00\x00\x00\x00\x00\x00\x00\x00"])
KEYS = st.lists(PIECES, max_size=5).map(b"".join)


@given(st.lists(KEYS | st.binary(max_size=20)))
def test_sorts_as_python_does(keys) -> None:
    order = sort_order(*spans_of(pa.array(keys, pa.binary())))
    assert sorted(order.tolist()) == list(range(len(keys)))
    assert [keys[i] for i in order] == sorted(keys)


def of_one_length(size: int) -> st.SearchStrategy[list[bytes]]:
    ends = st.sampled_from([b"\x00", b"\x01", b"\xff"])
    return st.lists(ends.map(lambda end: bytes(size - 1) + end) | st.binary(min_size=size, max_size=size))


@given(st.integers(1, 20).flatmap(of_one_length))
def test_sorts_strings_of_one_length(keys) -> None:
    assert [keys[i] for i in sort_order(*spans_of(pa.array(keys, pa.binary())))] == sorted(keys)


def test_a_slice_and_large_binary() -> None:
    keys = pa.array([b"x", b"b", b"a", b"ab"], pa.large_binary())[1:]
    assert sort_order(*spans_of(keys)).tolist() == [1, 2, 0]


@given(st.lists(KEYS | st.binary(max_size=20)), st.lists(KEYS | st.binary(max_size=20)))
def test_places_are_those_of_bisect(keys, bounds) -> None:
    bounds = sorted(bounds)
    places = np.full(len(keys), -1)
    columns = (spans_of(pa.array(column, pa.binary())) for column in (keys, bounds))
    places_among(*next(columns), *next(columns), places)
    assert places.tolist() == [bisect_right(bounds, key) for key in keys]
