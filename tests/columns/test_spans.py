"""Copied pieces against slices of bytes."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from statelib.columns.spans import copy_spans


@given(st.lists(st.tuples(st.binary(max_size=3), st.binary(max_size=40))))
def test_pieces_are_copied_and_nothing_beside_them(pieces: list[tuple[bytes, bytes]]) -> None:
    """Each piece lies behind some bytes that are left out, in the source and in the target."""
    gaps, lengths = np.array([[len(gap), len(piece)] for gap, piece in pieces], np.int64).reshape(-1, 2).T
    start = np.cumsum(gaps + lengths) - lengths
    source = np.frombuffer(b"".join(gap + piece for gap, piece in pieces), np.uint8)
    target = np.full(len(source) + 1, 7, np.uint8)
    copy_spans(source, start, np.ascontiguousarray(lengths), target, start)
    assert target.tobytes() == b"".join(b"\7" * len(gap) + piece for gap, piece in pieces) + b"\7"
