"""`KeyFilter`: every key that was added is found, and few others are."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from statelib.columns.key_filter import KeyFilter, hashes_of


@given(added=st.lists(st.lists(st.binary(max_size=20), max_size=8)), asked=st.lists(st.binary(max_size=20)))
def test_what_was_added_is_found(added: list[list[bytes]], asked: list[bytes]) -> None:
    known = KeyFilter()
    for keys in added:
        known.add(hashes_of(pa.array(keys, pa.binary())))
    everything = [key for keys in added for key in keys]
    answers = known.may_have(hashes_of(pa.array([*asked, *everything], pa.large_binary())))
    assert answers[len(asked) :].all()
    if not everything:
        assert not answers.any()


def test_few_others_are_found_however_it_grew() -> None:
    hashes = np.random.default_rng(1).integers(0, 1 << 64, 300_000, dtype=np.uint64)
    added, others = hashes[:200_000], hashes[200_000:]
    at_once, grown = KeyFilter(len(added)), KeyFilter()
    at_once.add(added)
    for first in range(0, len(added), 1_500):
        grown.add(added[first : first + 1_500])
    for known, wrong in ((at_once, 0.002), (grown, 0.01)):
        assert known.may_have(added).all()
        assert known.may_have(others).mean() < wrong
    assert at_once.memory_bytes() == 400_000  # sixteen bits each
    assert grown.memory_bytes() < 2.1 * at_once.memory_bytes()
    assert KeyFilter().memory_bytes() == 0


def test_what_is_expected_has_room_in_one_part() -> None:
    hashes = np.random.default_rng(1).integers(0, 1 << 64, 50_000, dtype=np.uint64)
    at_once, expected = KeyFilter(len(hashes)), KeyFilter()
    expected.expect(len(hashes))
    at_once.add(hashes)
    for first in range(0, len(hashes), 1_500):
        expected.add(hashes[first : first + 1_500])
    assert expected.memory_bytes() == at_once.memory_bytes()
    assert expected.may_have(hashes).all()
