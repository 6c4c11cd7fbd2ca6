"""The codes that come for the first time, against a set. (Deduplication itself: see the operator's tests.)"""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from statelib.operators.deduplication.kernel import first_seen
from statelib.records.batch import NULL_KEY


@given(st.lists(st.lists(st.integers(NULL_KEY, 9))))
def test_each_code_is_new_once(batches: list[list[int]]) -> None:
    seen, known = np.zeros(10, np.bool_), {NULL_KEY}
    for batch in batches:
        codes = np.array(batch, np.int64)
        first = np.empty_like(codes)
        assert first[: first_seen(codes, seen, first)].tolist() == list(
            dict.fromkeys(c for c in batch if c not in known)
        )
        known.update(batch)
        assert set(np.flatnonzero(seen).tolist()) == known - {NULL_KEY}
