from __future__ import annotations

import datetime as dt
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hindstream.spark.screening.ascent import keys_of_ascending_rows, numbers_that_ascend
from statelib.columns.row_hash import hash_rows

ROWS = st.lists(st.tuples(st.integers(-3, 3), st.sampled_from(["", "a", "aa", "b", "é", "\U0001f600"])), max_size=12)


def tables(rows: list[tuple[Any, Any]], at_once: int, number: pa.DataType, key: pa.DataType) -> list[pa.Table]:
    made = []
    for first in range(0, len(rows), at_once):
        numbers, keys = zip(*rows[first : first + at_once], strict=True)
        made.append(pa.table({"n": pa.array(numbers, number), "k": pa.array(keys, key).dictionary_encode()}))
    return made


def keys_of(rows: list[tuple[Any, Any]], at_once: int = 3, key: pa.DataType | None = None) -> list[int] | None:
    found = keys_of_ascending_rows(tables(rows, at_once, pa.int64(), key or pa.string()), "n", "k")
    return None if found is None else found.tolist()


@given(ROWS, st.booleans(), st.integers(1, 5), st.sampled_from([pa.int64(), pa.timestamp("us", "UTC")]), st.booleans())
def test_rows_ascend_if_each_is_greater_than_the_one_before(
    rows: list[tuple[int, str]], in_order: bool, at_once: int, number: pa.DataType, as_bytes: bool
) -> None:
    given_rows: list[tuple[Any, Any]] = sorted(set(rows)) if in_order else list(rows)
    if as_bytes:
        given_rows = [(n, key.encode()) for n, key in given_rows]
    kind = pa.binary() if as_bytes else pa.string()
    found = keys_of_ascending_rows(tables(given_rows, at_once, number, kind), "n", "k")
    ascend = all(row < after for row, after in pairwise(given_rows))
    assert (found is not None) == ascend
    if found is not None:
        keys = pa.array(sorted({key for _, key in given_rows}), kind)
        assert found.tolist() == sorted(hash_rows([keys]).tolist())


@pytest.mark.parametrize("row", [(None, "c"), (9, None)])
def test_a_missing_value_is_in_no_order(row: tuple[Any, Any]) -> None:
    assert keys_of([(1, "a"), row]) is None


def test_keys_that_are_no_dictionary_tell_nothing() -> None:
    plain = pa.table({"n": pa.array([1, 2]), "k": pa.array(["a", "b"])})
    twice = pa.DictionaryArray.from_arrays(pa.array([0, 1], pa.int32()), pa.array(["a", "a"]))
    with_null = pa.DictionaryArray.from_arrays(pa.array([0, 1], pa.int32()), pa.array(["a", None]))
    for keys in (plain["k"], twice, with_null):
        assert keys_of_ascending_rows([pa.table({"n": pa.array([1, 1]), "k": keys})], "n", "k") is None


def test_other_numbers_than_whole_ones_tell_nothing() -> None:
    (table,) = tables([(1, "a"), (2, "b")], 9, pa.int64(), pa.string())
    floats = table.set_column(0, "n", pa.array([1.0, 2.0]))
    assert keys_of_ascending_rows([floats], "n", "k") is None
    assert numbers_that_ascend([floats.select(["n"])]) == []


def test_numbers_ascend_from_table_to_table() -> None:
    def table(*numbers: int | None) -> pa.Table:
        big = np.array([n or 0 for n in numbers], np.uint64) + np.uint64(1 << 63)
        times = [n and dt.datetime(2020, 1, n, tzinfo=dt.UTC) for n in numbers]
        return pa.table({"n": pa.array(numbers, pa.int64()), "big": pa.array(big), "at": pa.array(times)})

    assert numbers_that_ascend([table(1, 2), table(3, 9)]) == ["n", "big", "at"]
    assert numbers_that_ascend([table(1, 2), table(2, 9)]) == []
    assert numbers_that_ascend([table(1, None)]) == []
    assert numbers_that_ascend([]) == []
    mixed = [table(1, 2), table(1, 2).set_column(0, "n", pa.array([3, 4]))]
    assert numbers_that_ascend(mixed) == ["n"]
