"""Encoded keys are stored as plain ones are."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from statelib.topics.stored_keys import concat_records, with_encoded_keys, with_plain_keys

KEYS = st.lists(st.none() | st.sampled_from(["", "a", "b", "c"]), min_size=1)


def records(keys: pa.Array) -> pa.Table:
    return pa.table({"offset": range(len(keys)), "key": keys})


def encoded(keys: list[str | None], order: list[str], kind: pa.DataType) -> pa.Array:
    indices = pa.array([None if key is None else order.index(key) for key in keys], pa.int32())
    return pa.DictionaryArray.from_arrays(indices, pa.array(order).cast(kind))


@given(KEYS, st.permutations(["", "a", "b", "c", "d"]), st.sampled_from([pa.string(), pa.binary()]))
def test_the_dictionary_depends_on_the_keys_alone(keys: list[str | None], order: list[str], kind: pa.DataType) -> None:
    plain = records(pa.array(keys).cast(kind))
    of_plain, of_encoded = with_encoded_keys(plain), with_encoded_keys(records(encoded(keys, order, kind)))
    assert of_encoded.equals(of_plain)
    (chunk,) = of_encoded["key"].chunks
    assert chunk.dictionary.cast(pa.string()).to_pylist() == list(dict.fromkeys(key for key in keys if key is not None))
    assert with_plain_keys(of_encoded).equals(plain)


@given(st.lists(st.tuples(KEYS, st.permutations(["", "a", "b", "c"]), st.booleans()), min_size=1, max_size=4))
def test_parts_are_joined_whatever_they_are(parts: list[tuple[list[str | None], list[str], bool]]) -> None:
    tables = [
        records(encoded(keys, order, pa.string()) if is_encoded else pa.array(keys, pa.string()))
        for keys, order, is_encoded in parts
    ]
    joined = concat_records([tables[0].slice(0, 0), *tables])
    assert joined["key"].to_pylist() == [key for keys, _, _ in parts for key in keys]
    assert pa.types.is_dictionary(joined["key"].type) == all(is_encoded for _, _, is_encoded in parts)
    in_one_chunk = joined.combine_chunks()
    plain = with_plain_keys(in_one_chunk)
    assert with_encoded_keys(in_one_chunk).equals(with_encoded_keys(plain))


@pytest.mark.parametrize("keys", [pa.array([1, 1]), pa.array([{"key": "a"}] * 2)])
def test_other_keys_stay_as_they_are(keys: pa.Array) -> None:
    assert with_encoded_keys(records(keys)).equals(records(keys))
