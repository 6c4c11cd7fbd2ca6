"""Encoded keys are stored as plain ones are."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from statelib.topics.parquet.stored_keys import concat_records, type_to_write, with_encoded_keys, with_plain_keys

KEYS = st.lists(st.none() | st.sampled_from(["", "a", "b", "c"]), min_size=1)
ARE_WINDOWED = st.booleans()
START = ("window_start", pa.timestamp("us", "UTC"))
ENCODED = pa.dictionary(pa.int32(), pa.string())


def records(keys: pa.Array, *, windowed: bool = False) -> pa.Table:
    if windowed:
        keys = pa.StructArray.from_arrays([keys, pa.array(range(len(keys)), START[1])], ["key", START[0]])
    return pa.table({"offset": range(len(keys)), "key": keys})


def keys_of(chunk: pa.Array) -> pa.Array:
    return chunk.field("key") if pa.types.is_struct(chunk.type) else chunk


def encoded(keys: list[str | None], order: list[str], kind: pa.DataType) -> pa.Array:
    indices = pa.array([None if key is None else order.index(key) for key in keys], pa.int32())
    return pa.DictionaryArray.from_arrays(indices, pa.array(order).cast(kind))


@given(KEYS, st.permutations(["", "a", "b", "c", "d"]), st.sampled_from([pa.string(), pa.binary()]), ARE_WINDOWED)
def test_the_dictionary_depends_on_the_keys_alone(
    keys: list[str | None], order: list[str], kind: pa.DataType, windowed: bool
) -> None:
    plain = records(pa.array(keys).cast(kind), windowed=windowed)
    of_plain = with_encoded_keys(plain)
    of_encoded = with_encoded_keys(records(encoded(keys, order, kind), windowed=windowed))
    assert of_encoded.equals(of_plain)
    (chunk,) = of_encoded["key"].chunks
    assert keys_of(chunk).dictionary.cast(pa.string()).to_pylist() == list(
        dict.fromkeys(key for key in keys if key is not None)
    )
    assert with_plain_keys(of_encoded).equals(plain)


@given(
    st.lists(st.tuples(KEYS, st.permutations(["", "a", "b", "c"]), st.booleans()), min_size=1, max_size=4), ARE_WINDOWED
)
def test_parts_are_joined_whatever_they_are(
    parts: list[tuple[list[str | None], list[str], bool]], windowed: bool
) -> None:
    tables = [
        records(encoded(keys, order, pa.string()) if is_encoded else pa.array(keys, pa.string()), windowed=windowed)
        for keys, order, is_encoded in parts
    ]
    joined = concat_records([tables[0].slice(0, 0), *tables])
    found = keys_of(joined["key"].combine_chunks())
    assert found.to_pylist() == [key for keys, _, _ in parts for key in keys]
    assert pa.types.is_dictionary(found.type) == all(is_encoded for _, _, is_encoded in parts)
    in_one_chunk = joined.combine_chunks()
    plain = with_plain_keys(in_one_chunk)
    assert with_encoded_keys(in_one_chunk).equals(with_encoded_keys(plain))


def test_a_key_of_no_record_is_in_no_dictionary() -> None:
    under_null = pa.StructArray.from_arrays([pa.array(["hidden", "a"])], ["key"], mask=pa.array([True, False]))
    (chunk,) = with_encoded_keys(records(under_null))["key"].chunks
    assert chunk.to_pylist() == [None, {"key": "a"}]
    assert chunk.field("key").dictionary.to_pylist() == ["a"]


@pytest.mark.parametrize(
    ("found", "key", "written"),
    [
        (ENCODED, pa.string(), ENCODED),
        (pa.dictionary(pa.int64(), pa.string()), pa.string(), pa.string()),
        (pa.dictionary(pa.int32(), pa.int64()), pa.int64(), pa.int64()),
        (
            pa.struct([("key", ENCODED), ("window_start", pa.timestamp("ms", "UTC"))]),
            pa.struct([("key", pa.string()), START]),
            pa.struct([("key", ENCODED), START]),
        ),
        (pa.struct([("id", ENCODED)]), pa.struct([("id", pa.string())]), pa.struct([("id", pa.string())])),
        (pa.string(), pa.struct([("key", pa.string())]), pa.struct([("key", pa.string())])),
        (
            pa.struct([("key", pa.struct([("key", ENCODED)]))]),
            pa.struct([("key", pa.struct([("key", pa.string())]))]),
            pa.struct([("key", pa.struct([("key", pa.string())]))]),
        ),
    ],
)
def test_dictionaries_are_taken_over_where_keys_are(found: pa.DataType, key: pa.DataType, written: pa.DataType) -> None:
    assert type_to_write(found, key) == written


@pytest.mark.parametrize("keys", [pa.array([1, 1]), pa.array([{"id": "a"}] * 2), pa.array([{"key": {"key": "a"}}] * 2)])
def test_other_keys_stay_as_they_are(keys: pa.Array) -> None:
    assert with_encoded_keys(records(keys)).equals(records(keys))
