"""The native row format: its bytes, and that rows survive the round trip whatever their type."""

from __future__ import annotations

import decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from statelib.columns.row_format import decode_rows, encode_rows
from statelib.errors.kinds import ConfigurationError, CorruptedDataError
from tests.effort import examples

NESTED = pa.struct([("a", pa.int64()), ("b", pa.string()), ("c", pa.struct([("d", pa.bool_())]))])


def test_golden_bytes() -> None:
    rows = pa.array([{"a": 258, "b": "xy", "c": {"d": True}}, None, {"a": None, "b": "", "c": None}], NESTED)
    assert encode_rows(rows).to_pylist() == [
        bytes.fromhex("01 0f 0201000000000000 02000000 01") + b"xy",
        None,
        bytes.fromhex("01 02 0000000000000000 00000000 00"),
    ]


def test_golden_bytes_of_a_list() -> None:
    rows = pa.array([{"l": [7, None]}, {"l": []}, {"l": None}], pa.struct([("l", pa.list_(pa.int16()))]))
    assert encode_rows(rows).to_pylist() == [
        bytes.fromhex("01 01 14000000")
        + bytes.fromhex("02000000 04000000 04000000")
        + bytes.fromhex("01010700 01000000"),
        bytes.fromhex("01 01 04000000 00000000"),
        bytes.fromhex("01 00 00000000"),
    ]


def leaf(kind: pa.DataType, values: st.SearchStrategy[Any]) -> st.SearchStrategy[tuple[pa.DataType, Any]]:
    return st.just((kind, values))


def signed(bits: int) -> st.SearchStrategy[int]:
    return st.integers(-(1 << (bits - 1)), (1 << (bits - 1)) - 1)


LEAVES = st.one_of(
    leaf(pa.int8(), signed(8)),
    leaf(pa.int32(), signed(32)),
    leaf(pa.int64(), signed(64)),
    leaf(pa.uint16(), st.integers(0, 65535)),
    leaf(pa.float32(), st.floats(width=32, allow_nan=False)),
    leaf(pa.float64(), st.floats(allow_nan=False)),
    leaf(pa.bool_(), st.booleans()),
    leaf(pa.string(), st.text(max_size=5)),
    leaf(pa.large_string(), st.text(max_size=5)),
    leaf(pa.binary(), st.binary(max_size=5)),
    leaf(pa.binary(3), st.binary(min_size=3, max_size=3)),
    leaf(pa.date32(), signed(16)),
    leaf(pa.timestamp("ms", "UTC"), signed(40)),
    leaf(pa.decimal128(7, 2), st.integers(-(10**7) + 1, 10**7 - 1).map(lambda n: decimal.Decimal(n).scaleb(-2))),
    leaf(pa.dictionary(pa.int32(), pa.string()), st.text(max_size=3)),
)


def nested(inner: st.SearchStrategy[tuple[pa.DataType, Any]]) -> st.SearchStrategy[tuple[pa.DataType, Any]]:
    return st.one_of(
        structs(inner), inner.map(lambda item: (pa.list_(item[0]), st.lists(nullable(item[1]), max_size=3)))
    )


def nullable(values: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.none() | values


def structs(inner: st.SearchStrategy[tuple[pa.DataType, Any]]) -> st.SearchStrategy[tuple[pa.DataType, Any]]:
    return st.lists(inner, max_size=10).map(
        lambda fields: (
            pa.struct([(f"f{i}", kind) for i, (kind, _) in enumerate(fields)]),
            st.fixed_dictionaries({f"f{i}": nullable(values) for i, (_, values) in enumerate(fields)}),
        )
    )


@st.composite
def struct_arrays(draw: st.DrawFn) -> pa.StructArray:
    kind, values = draw(structs(st.recursive(LEAVES, nested, max_leaves=4)))
    return pa.array(draw(st.lists(nullable(values), max_size=8)), kind)


@given(struct_arrays(), st.integers(0, 8), st.integers(0, 8))
def test_rows_survive_slices_and_the_round_trip(rows: pa.StructArray, start: int, length: int) -> None:
    encoded = encode_rows(rows)
    decoded = decode_rows(encoded, rows.type)
    decoded.validate(full=True)
    assert decoded.type == rows.type
    assert decoded.to_pylist() == rows.to_pylist()
    piece = rows.slice(start, length)
    assert encode_rows(piece).to_pylist() == encoded.to_pylist()[start : start + length]
    assert decode_rows(encoded.slice(start, length), rows.type).to_pylist() == piece.to_pylist()


@given(struct_arrays())
@examples(50)
def test_a_rows_bytes_do_not_depend_on_its_neighbours(rows: pa.StructArray) -> None:
    alone = [encode_rows(rows.slice(i, 1))[0].as_py() for i in range(len(rows))]
    assert encode_rows(rows).to_pylist() == alone


def test_what_lies_below_a_null_does_not_show_in_the_bytes() -> None:
    child = pa.array([1, 2])
    hidden = pa.StructArray.from_arrays([child], ["d"], mask=pa.array([False, True]))
    rows = pa.StructArray.from_arrays([hidden], ["c"])
    clean = pa.array([{"c": {"d": 1}}, {"c": None}], rows.type)
    assert encode_rows(rows).equals(encode_rows(clean))
    number = pa.Array.from_buffers(pa.int64(), 2, [pa.py_buffer(b"\x01"), pa.py_buffer(np.array([1, 99]))])
    assert encode_rows(pa.StructArray.from_arrays([number], ["a"]))[1].as_py() == b"\x01\x00" + bytes(8)


def test_fields_that_are_always_null() -> None:
    rows = pa.array([{"n": None, "a": 1}, None], pa.struct([("n", pa.null()), ("a", pa.int8())]))
    encoded = encode_rows(rows)
    assert encoded.to_pylist() == [b"\x01\x02\x01", None]
    assert decode_rows(encoded, rows.type).equals(rows)


def test_maps() -> None:
    kind = pa.struct([("m", pa.map_(pa.string(), pa.int32()))])
    rows = pa.array([{"m": [("a", 1), ("b", None)]}, {"m": []}, {"m": None}], kind)
    assert decode_rows(encode_rows(rows), kind).equals(rows)


@pytest.mark.parametrize("kind", [pa.large_list(pa.int32()), pa.list_(pa.int32(), 2)], ids=str)
def test_other_lists(kind: pa.DataType) -> None:
    rows = pa.array([{"l": [1, 2]}, {"l": None}], pa.struct([("l", kind)]))
    assert decode_rows(encode_rows(rows), rows.type).equals(rows)


def test_a_type_that_cannot_be_kept_is_a_clear_error() -> None:
    union = pa.UnionArray.from_sparse(pa.array([0], pa.int8()), [pa.array([1])])
    with pytest.raises(ConfigurationError, match="cannot be kept in state"):
        encode_rows(pa.StructArray.from_arrays([union], ["u"]))


def test_another_format_is_refused() -> None:
    row = encode_rows(pa.array([{"a": 1}]))[0].as_py()
    with pytest.raises(ConfigurationError, match="format 2, and this release reads format 1"):
        decode_rows(pa.array([b"\x02" + row[1:]]), pa.struct([("a", pa.int64())]))


@pytest.mark.parametrize("change", [lambda row: row[:-1], lambda row: row + b"x", lambda row: b"", lambda row: row[:9]],
                         ids=["shorter", "longer", "empty", "cut head"])  # fmt: skip
def test_damage_is_noticed(change: Any) -> None:
    rows = pa.array([{"a": 1, "b": "xyz", "c": None}] * 3, NESTED)
    raw = encode_rows(rows).to_pylist()
    with pytest.raises(CorruptedDataError):
        decode_rows(pa.array([raw[0], change(raw[1]), raw[2]]), NESTED)


def test_damage_inside_a_list_is_noticed() -> None:
    kind = pa.struct([("l", pa.list_(pa.int16()))])
    row = bytearray(encode_rows(pa.array([{"l": [7, 8]}], kind))[0].as_py())
    row[6] = 9  # the count of items
    with pytest.raises(CorruptedDataError, match="list of 9 items"):
        decode_rows(pa.array([bytes(row)]), kind)
