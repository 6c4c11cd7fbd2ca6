"""`KeyTable` against a plain dictionary, over every Arrow layout of byte strings."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from statelib.errors.kinds import InternalError
from statelib.records.batch import NULL_KEY
from statelib.records.key_table import KeyTable
from statelib.records.key_table_kernel import ABSENT

KEYS = st.lists(st.one_of(st.none(), st.binary(max_size=40), st.sampled_from([b"", b"a", b"b", b"a" * 16])))
LAYOUTS = [pa.binary(), pa.large_binary(), pa.binary_view(), pa.dictionary(pa.int32(), pa.binary())]


def model_codes(known: dict[bytes, int], keys: list[bytes | None]) -> list[int]:
    return [NULL_KEY if key is None else known.setdefault(key, len(known)) for key in keys]


@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
@given(batches=st.lists(KEYS, max_size=4), cut=st.integers(0, 3))
def test_codes_follow_first_appearance(layout: pa.DataType, batches: list[list[bytes | None]], cut: int) -> None:
    table, known = KeyTable(), dict[bytes, int]()
    for keys in batches:
        array = pa.array(keys, pa.binary()).cast(layout)[cut:]
        codes = table.encode(array)
        assert codes.dtype == np.int64
        assert codes.tolist() == model_codes(known, keys[cut:])
        assert table.find(array).tolist() == codes.tolist()
        assert table.take(codes).to_pylist() == keys[cut:]
    assert len(table) == len(known)
    assert [table.bytes_of(code) for code in range(len(table))] == list(known)
    assert table.data.tobytes() == b"".join(known)
    assert np.diff(table.offsets).tolist() == [len(key) for key in known]


SCOPED = st.lists(st.tuples(st.integers(NULL_KEY, 2), st.sampled_from([None, b"", b"a", b"b", b"a" * 16])))


@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
@given(batches=st.lists(SCOPED, max_size=4), data=st.data())
def test_the_same_bytes_in_two_scopes_are_two_keys(
    layout: pa.DataType, batches: list[list[tuple[int, bytes | None]]], data: st.DataObject
) -> None:
    table, known = KeyTable(scoped=True), dict[tuple[int, bytes], int]()
    for rows in batches:
        keys = pa.array([key for _, key in rows], pa.binary()).cast(layout)
        scopes = np.array([scope for scope, _ in rows], np.int64)
        expected = [
            NULL_KEY if key is None or scope == NULL_KEY else known.setdefault((scope, key), len(known))
            for scope, key in rows
        ]
        assert table.encode(keys, scopes).tolist() == table.find(keys, scopes).tolist() == expected
        assert table.take(np.arange(len(known))).to_pylist() == [key for _, key in known]
        assert table.scopes.tolist() == [scope for scope, _ in known]
        kept = sorted(data.draw(st.sets(st.sampled_from(range(len(known)))) if known else st.just(set())))
        table.keep(np.array(kept, np.int64))
        known = {scoped: kept.index(code) for scoped, code in known.items() if code in kept}
        assert table.scopes.tolist() == [scope for scope, _ in known]


def test_scopes_go_with_a_table_that_has_them() -> None:
    for table, scopes in ((KeyTable(), np.array([0])), (KeyTable(scoped=True), None)):
        with pytest.raises(InternalError, match="if and only if"):
            table.encode(pa.array([b"a"]), scopes)


def test_growth_keeps_every_scope() -> None:
    scopes = np.random.default_rng(7).permutation(20_000)
    table = KeyTable(scoped=True)
    table.encode(pa.array([b"always the same"] * len(scopes)), scopes)
    assert table.scopes.tolist() == scopes.tolist()
    asked = np.array([scopes[9], 20_000, scopes[0]])
    assert table.find(pa.array([b"always the same"] * 3), asked).tolist() == [9, ABSENT, 0]


def test_growth_keeps_every_key() -> None:
    numbers = np.random.default_rng(7).permutation(200_000)
    keys = pa.array([f"{number:x}." * (1 + number % 5) for number in numbers])
    table = KeyTable()
    for start in range(0, len(keys), 30_000):
        table.encode(keys[start : start + 30_000])
    assert table.find(keys).tolist() == list(range(len(keys)))
    assert table.take(np.arange(len(keys))).cast(pa.string()).equals(keys)
    assert table.memory_bytes() > sum(len(key) for key in keys.to_pylist())


def test_one_key_longer_than_the_first_arena() -> None:
    table = KeyTable()
    keys = pa.array([b"x" * 1_000_000, b"", b"x" * 999_999])
    assert table.encode(keys).tolist() == [0, 1, 2]
    assert table.encode(keys).tolist() == [0, 1, 2]


def test_strings_and_fixed_size_keys_are_their_bytes() -> None:
    table = KeyTable()
    assert table.encode(pa.array(["é", None, "ab"])).tolist() == [0, NULL_KEY, 1]
    assert table.encode(pa.array(["ab", "é"], pa.large_string())).tolist() == [1, 0]
    assert table.encode(pa.array([b"ab"], pa.binary(2))).tolist() == [1]
    assert table.bytes_of(0) == "é".encode()


def test_find_adds_nothing() -> None:
    table = KeyTable()
    table.encode(pa.array([b"a"]))
    assert table.find(pa.array([b"b", b"a", None])).tolist() == [ABSENT, 0, NULL_KEY]
    assert len(table) == 1
    assert table.find(pa.array([b"b"]).dictionary_encode()).tolist() == [ABSENT]


def test_dictionary_order_does_not_matter() -> None:
    table = KeyTable()
    array = pa.DictionaryArray.from_arrays(pa.array([2, None, 0, 2]), pa.array(["never", "unused", "first"]))
    assert table.encode(array).tolist() == [0, NULL_KEY, 1, 0]
    assert table.encode(pa.array([None, None], pa.dictionary(pa.int8(), pa.string()))).tolist() == [-1, -1]


def test_clear_starts_over() -> None:
    table = KeyTable()
    table.encode(pa.array([f"{i}" for i in range(10_000)]))
    table.clear()
    assert len(table) == 0
    assert table.memory_bytes() < 100_000
    assert table.encode(pa.array(["9"])).tolist() == [0]


@given(st.lists(st.binary(max_size=9), unique=True), st.data())
def test_kept_keys_get_new_codes_and_others_are_forgotten(keys: list[bytes], data: st.DataObject) -> None:
    table = KeyTable()
    table.encode(pa.array(keys, pa.binary()))
    kept = sorted(data.draw(st.sets(st.sampled_from(range(len(keys)))) if keys else st.just(set())))
    table.keep(np.array(kept, np.int64))
    assert len(table) == len(kept)
    assert table.take(np.arange(len(kept))).to_pylist() == [keys[code] for code in kept]
    expected = [kept.index(code) if code in kept else ABSENT for code in range(len(keys))]
    assert table.find(pa.array(keys, pa.binary())).tolist() == expected
    again = table.encode(pa.array(keys, pa.binary()))
    assert table.take(again).to_pylist() == keys


def test_keys_are_found_where_they_lie() -> None:
    table = KeyTable()
    table.encode(pa.array([b"one", b"", b"three"], pa.binary()))
    data, start, length = table.spans(np.array([2, NULL_KEY, 1, 0, 2]))
    found = [data[at : at + size].tobytes() for at, size in zip(start, length, strict=True)]
    assert found == [b"three", b"", b"", b"one", b"three"]
    with pytest.raises(InternalError, match="not in the key table"):
        table.spans(np.array([3]))


def test_a_code_of_another_table_is_refused() -> None:
    table = KeyTable()
    table.encode(pa.array([b"a"]))
    for codes in ([1], [-2]):
        with pytest.raises(InternalError, match="not in the key table"):
            table.take(np.array(codes))
    with pytest.raises(InternalError, match="not in the key table"):
        table.bytes_of(NULL_KEY)
