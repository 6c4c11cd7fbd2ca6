"""Places of keys in the order of their bytes."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from statelib.records.key_ranks import AllKeys, bytes_behind_decide, bytes_ranks, key_ranks
from statelib.records.key_table import KeyTable


@given(st.lists(st.binary(max_size=10), max_size=40))
def test_ranks_are_those_of_the_bytes(keys: list[bytes]) -> None:
    ranks = bytes_ranks(pa.array(keys, pa.binary()))
    assert sorted(ranks.tolist()) == list(range(len(keys)))
    assert [keys[i] for i in np.argsort(ranks)] == sorted(keys)


@given(st.lists(st.binary(max_size=10), max_size=40), st.data())
def test_keys_are_ranked_among_those_that_are_named(keys: list[bytes], data: st.DataObject) -> None:
    table = KeyTable()
    codes = table.encode(pa.array(keys, pa.binary()))
    some = data.draw(st.lists(st.sampled_from(range(len(keys))), max_size=40)) if keys else []
    places = {key: place for place, key in enumerate(sorted({keys[i] for i in some}))}
    assert key_ranks(codes[some] if some else codes[:0], table).tolist() == [places[keys[i]] for i in some]


@given(st.lists(st.lists(st.binary(max_size=10), max_size=10), max_size=5))
def test_all_keys_of_a_table_that_grows(batches: list[list[bytes]]) -> None:
    table = KeyTable()
    everything = AllKeys(table)
    for keys in batches:
        table.encode(pa.array(keys, pa.binary()))
        known = table.take(np.arange(len(table)))
        assert everything.serialized.equals(known)
        assert everything.ranks.tolist() == bytes_ranks(known).tolist()
        assert everything.bytes_behind_decide == bytes_behind_decide(known)


@given(st.lists(st.lists(st.sampled_from(b"\0\1b"), max_size=4).map(bytes), max_size=8), st.binary(max_size=7))
def test_bytes_behind_keys_that_hardly_ever_decide(keys: list[bytes], behind: bytes) -> None:
    column = pa.array([b"\0", *keys], pa.binary())[1:]  # what a view leaves out does not count
    suffixed = pa.array([key + b"\0" + behind for key in keys], pa.binary())
    if not bytes_behind_decide(column):
        assert sorted(keys) == [keys[i] for i in np.argsort(bytes_ranks(suffixed), kind="stable")]


def test_bytes_behind_keys_that_decide() -> None:
    assert bytes_behind_decide(pa.array([b"a", b"a\0"]))
    assert not bytes_behind_decide(pa.array([b"a\0", b"b\0"]))
    assert not bytes_behind_decide(pa.array([b"a", b"ab"]))
