"""Hashes of rows: equal for what is equal, and only for that."""

from __future__ import annotations

from decimal import Decimal
from itertools import product
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from statelib.columns.row_hash import hash_rows


@pytest.mark.parametrize(
    ("a", "b", "equal"),
    [
        (0.0, -0.0, True),
        (float("nan"), -float("nan"), True),
        (None, None, True),
        (None, float("nan"), False),
        (None, 0.0, False),
        (1.0, 2.0, False),
    ],
)
def test_numbers_that_are_equal_have_equal_hashes(a: float | None, b: float | None, equal: bool) -> None:
    one, other = hash_rows([pa.array([a, b], pa.float64())])
    assert bool(one == other) is equal


@given(rows=st.lists(st.tuples(st.sampled_from(["", "a", "ab", None]), st.sampled_from([0, 1, None])), max_size=20))
def test_rows_are_equal_when_their_hashes_are(rows: list[tuple[Any, Any]]) -> None:
    columns = [pa.array([row[0] for row in rows], pa.string()), pa.array([row[1] for row in rows], pa.int64())]
    found = [int(value) for value in hash_rows(columns)]
    assert [[a == b for a in found] for b in found] == [[a == b for a in rows] for b in rows]


def test_text_does_not_run_over_the_border_of_its_column() -> None:
    one, other = hash_rows([pa.array(["ab", "a"]), pa.array(["c", "bc"])])
    assert one != other


VALUES = [
    (pa.bool_(), [False, True]),
    (pa.int8(), [0, 1, -1, -128]),
    (pa.uint16(), [0, 1, 2**16 - 1]),
    (pa.float32(), [0.0, 1.0, -1.0, float("inf"), float("nan")]),
    (pa.date32(), [0, 1, -1]),
    (pa.timestamp("ms", "UTC"), [0, 1, -1, 2**40]),
    (pa.decimal128(20, 2), [Decimal(0), Decimal("0.01"), Decimal("-0.01")]),
    (pa.binary(3), [b"\0\0\0", b"\0\0\1", b"\1\0\0"]),
    (pa.binary(), [b"", b"\0", b"\0" * 8, b"\0" * 9]),
    (pa.large_string(), ["", "a"]),
    (pa.list_(pa.int64()), [[], [0], [0, 0], [None]]),
    (pa.struct([("a", pa.int64()), ("b", pa.string())]), [{"a": 0, "b": None}, {"a": None, "b": ""}]),
]


@pytest.mark.parametrize(("type_", "values"), VALUES, ids=[str(type_) for type_, _ in VALUES])
def test_values_of_all_types(type_: pa.DataType, values: list[Any]) -> None:
    column = pa.array([*values, None], type_)
    hashes = hash_rows([column])
    assert len(set(hashes.tolist())) == len(column)
    twice = pa.concat_arrays([column, column])
    assert list(hash_rows([twice.slice(1, len(column))])) == [*hashes[1:], hashes[0]]


def test_the_order_of_columns_counts_and_nulls_have_a_place() -> None:
    numbers = pa.array([0, 1, None], pa.int64())
    pairs = [pa.array([pair[n] for pair in product(numbers.to_pylist(), repeat=2)], pa.int64()) for n in range(2)]
    assert len(set(hash_rows(pairs).tolist())) == 9


def test_all_bits_are_spread() -> None:
    a, b = (pa.array(values) for values in np.divmod(np.arange(1 << 18), 512))
    hashes = hash_rows([a, b])
    assert len(np.unique(hashes)) == len(hashes)
    for shift in range(0, 64, 8):
        counts = np.bincount((hashes >> np.uint64(shift)).astype(np.uint8), minlength=256)
        assert np.abs(counts / 1024 - 1).max() < 0.2  # a standard deviation is 0.03


@given(st.lists(st.none() | st.sampled_from(["", "a", "b"])), st.integers(0, 2))
def test_a_dictionary_stands_for_its_values(values: list[str | None], start: int) -> None:
    plain = pa.array(values, pa.string()).slice(start)
    with_null = pa.DictionaryArray.from_arrays(
        pa.array([["", "a", "b", None].index(value) for value in values], pa.int32()), pa.array(["", "a", "b", None])
    ).slice(start)
    for encoded in (plain.dictionary_encode(), with_null):
        assert hash_rows([encoded]).tolist() == hash_rows([plain]).tolist()


def test_no_rows_have_no_hashes() -> None:
    assert len(hash_rows([pa.array([], pa.string()), pa.array([], pa.int64())])) == 0
