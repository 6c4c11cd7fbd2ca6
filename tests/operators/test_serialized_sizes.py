from __future__ import annotations

import datetime as dt
from decimal import Decimal

import pyarrow as pa
import pytest

from statelib.operators.serialized_sizes import kafka_header_sizes, serialized_bytes


@pytest.mark.parametrize(
    ("column", "expected"),
    [
        (pa.array([1, None], pa.int32()), [4, 0]),
        (pa.array([True, None]), [1, 0]),
        (pa.array(["é", None, ""]), [2, 0, 0]),
        (pa.array([b"abc"], pa.large_binary()), [3]),
        (pa.array([b"abc", None], pa.binary(3)), [3, 0]),
        (pa.array([None, None]), [0, 0]),
        (pa.array([dt.date(2020, 1, 1)]), [4]),
        (pa.array([Decimal("1.5")], pa.decimal128(5, 2)), [16]),
        (pa.array([{"a": 1, "b": "xy"}, {"a": None, "b": "z"}, None]), [10, 1, 0]),
        (pa.array([["ab", "c"], [], None]), [3, 0, 0]),
        (pa.array([[("k", 1), ("l", 2)], None], pa.map_(pa.string(), pa.int64())), [18, 0]),
        (pa.array(["x", "yy", None]).dictionary_encode(), [1, 2, 0]),
    ],
    ids=lambda given: str(getattr(given, "type", "")),
)
def test_sizes(column: pa.Array, expected: list[int]) -> None:
    assert serialized_bytes(column).tolist() == expected
    assert serialized_bytes(column.slice(1)).tolist() == expected[1:]


def test_elements_behind_a_null_do_not_count() -> None:
    pairs = pa.array([[1.0, 2.0], None, [3.0, None]], pa.list_(pa.float64(), 2))
    assert serialized_bytes(pairs).tolist() == [16, 0, 8]
    assert serialized_bytes(pairs[1:]).tolist() == [0, 8]
    assert serialized_bytes(pairs.cast(pa.list_(pa.float64()))).tolist() == [16, 0, 8]


def test_headers_count_as_the_context_of_a_record_that_waits_in_kafka() -> None:
    kind = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
    headers = [None, [], [("ab", b"123"), ("\u00fc\U0001f600", None)], [("c", b"")]]
    column = pa.array([each and [{"key": name, "value": value} for name, value in each] for each in headers], kind)
    assert kafka_header_sizes(column).tolist() == [0, 0, 8, 1]
    assert kafka_header_sizes(column[2:]).tolist() == [8, 1]
    assert kafka_header_sizes(column[:0]).tolist() == []
