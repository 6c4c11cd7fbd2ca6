"""Encoded keys are the same keys."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from statelib.records.key_column import KeyColumn, concat_keys
from statelib.records.key_table import KeyTable
from statelib.topics.partitioner import partition_for

keys = st.lists(st.none() | st.sampled_from(["", "a", "b", "a long key that fills more than a word", "ü"]))


def encoded(values: list[str | None], kind: pa.DataType) -> KeyColumn:
    plain = pa.array(values, pa.string()).cast(kind)
    return KeyColumn(plain.dictionary_encode())


@given(keys, st.sampled_from([pa.string(), pa.binary()]), st.randoms())
def test_an_encoded_column_is_as_a_plain_one(values, kind, random):
    column, plain = encoded(values, kind), KeyColumn(pa.array(values, pa.string()).cast(kind))
    chosen = [random.randrange(len(values)) for _ in values]
    assert (column.type, len(column)) == (kind, len(values))
    for a, b in [
        (column, plain),
        (column.take(pa.array(chosen, pa.int64())), plain.take(pa.array(chosen, pa.int64()))),
    ]:
        assert a.plain.equals(b.plain)
        assert a.valid().tolist() == b.valid().tolist()
        assert a.serialized().to_pylist() == b.serialized().to_pylist()
        assert partition_for(a.serialized(), 5).tolist() == partition_for(b.serialized(), 5).tolist()
        assert KeyTable().encode(a.serialized()).tolist() == KeyTable().encode(b.serialized()).tolist()
    assert column.slice(1, 3).plain.equals(plain.slice(1, 3).plain)


def test_a_few_keys_out_of_many_are_plain() -> None:
    many = encoded([f"k{n}" for n in range(10)] * 2, pa.string())
    assert many.compact.equals(many.plain.dictionary_encode())
    few = many.slice(0, 9)
    assert few.compact.to_pylist() == [f"k{n}" for n in range(9)]
    assert few.compact.type == pa.string()


@given(st.lists(keys, min_size=1), st.data())
def test_columns_are_joined_whatever_they_are(parts, data):
    columns = [
        encoded(part, pa.string()) if data.draw(st.booleans()) else KeyColumn(pa.array(part, pa.string()))
        for part in parts
    ]
    joined = concat_keys(columns)
    assert joined.plain.to_pylist() == [key for part in parts for key in part]
    assert joined.type == pa.string()


@given(st.lists(keys, min_size=1))
def test_codes_follow_first_appearance_from_batch_to_batch(batches):
    from_encoded, from_plain = KeyTable(), KeyTable()
    for batch in batches:
        plain = pa.array(batch, pa.string())
        dictionary = pa.array(sorted({key for key in batch if key is not None}, reverse=True), pa.string())
        indices = [None if key is None else dictionary.to_pylist().index(key) for key in batch]
        column = KeyColumn(pa.DictionaryArray.from_arrays(pa.array(indices, pa.int32()), dictionary))
        assert from_encoded.encode(column.serialized()).tolist() == from_plain.encode(plain).tolist()


def test_a_null_in_the_dictionary_is_a_null():
    column = KeyColumn(pa.DictionaryArray.from_arrays(pa.array([0, 1, None], pa.int32()), pa.array([None, "a"])))
    assert column.valid().tolist() == [False, True, False]
    assert column.serialized().to_pylist() == [None, b"a", None]


def test_numbers_stay_plain():
    assert KeyColumn(pa.array([3, None])).serialized().to_pylist() == [(3).to_bytes(8, "big"), None]
    with pytest.raises(pa.ArrowInvalid):
        concat_keys([])
