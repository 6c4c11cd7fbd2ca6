"""The bytes that stores have of functions of SQL: they do not change."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from statelib import ConfigurationError, arg_max, count_distinct, first, last, stddev, top_n
from statelib.operators.aggregation.accumulators.tagged_bytes import tagged, untagged
from statelib.operators.aggregation.definition import several, single
from statelib.operators.aggregation.operator import KeyAggregate
from statelib.operators.tables.writer import PlainStore
from tests.operators.task import Record, Task

VALUE = pa.struct([("x", pa.int64()), ("y", pa.string())])
RECORDS = [Record("a", {"x": x, "y": y}, 5 + n, n) for n, (x, y) in enumerate([(1, "p"), (3, "q"), (3, "r")])]


LIST_OF_1_AND_3 = (
    "6c6973743c6974656d3a20696e7436343e00 0101 20000000 02000000 0a000000 0a000000 "
    "0101 0100000000000000 0101 0300000000000000"
)
TOP = (
    "0103 1a000000 38000000 02000000 07000000 07000000 0101 01000000 71 0101 01000000 72 "
    "6c6973743c6974656d3a20696e7436343e00 0101 20000000 02000000 0a000000 0a000000 "
    "0101 0300000000000000 0101 0300000000000000"
)
STORED: dict[str, tuple[Any, str]] = {
    "first": (single(first("y")), "70"),
    "last": (single(last("x")), "0000000000000003"),
    "arg_max": (single(arg_max("y", by="x")), "010301000000 0e000000 71 696e74363400 0000000000000003"),
    "last-by-time": (single(last("y", by_time=True)), "010301000000 0700000000000000 72"),
    "count_distinct": (single(count_distinct("x")), f"0103 0200000000000000 38000000 {LIST_OF_1_AND_3}"),
    "top_n": (single(top_n("y", "x", 2)), TOP),
    "stddev": (single(stddev("x")), "010703000000 00000000 abaaaaaaaaaa0240 5555555555550540"),
}


@pytest.mark.parametrize("name", STORED)
def test_stored_bytes(name: str) -> None:
    of, expected = STORED[name]
    run = Task(KeyAggregate(PlainStore("s"), of), pa.string(), [VALUE])
    run.run(RECORDS)
    ((_, row),) = run.content()["s"]
    assert row[8:].hex() == expected.replace(" ", "")


def test_the_columns_of_a_state() -> None:
    spec = several(spread=stddev("x"), y=arg_max("y", by="x"), when=first("y", by_time=True))
    run = Task(KeyAggregate(PlainStore("s"), spec), pa.string(), [VALUE])
    (made,) = run.run(RECORDS)
    assert spec.stored_columns(made.value.type) == pa.schema(
        [
            ("spread.count", pa.int64()), ("spread.mean", pa.float64()), ("spread.m2", pa.float64()),
            ("y.value", pa.string()), ("y.by", pa.binary()), ("when.value", pa.string()), ("when.time", pa.int64()),
        ]
    )  # fmt: skip


@pytest.mark.parametrize(
    "values",
    [
        pa.array([1, None, -(2**63)]), pa.array([1.5, None]), pa.array(["", None, "a"]), pa.array([None], pa.int32()),
        pa.array([5, None], pa.timestamp("ms", "UTC")), pa.array(["1.50", None]).cast(pa.decimal128(9, 2)),
        pa.array([True, None]), pa.array([], pa.large_string()), pa.array([b"x", b""]).slice(1),
    ],
    ids=lambda values: str(values.type).split("[")[0],
)  # fmt: skip
def test_bytes_that_say_their_type(values: pa.Array) -> None:
    data = tagged(values)
    assert untagged(data, values.type) == values
    if values.drop_null():
        with pytest.raises(ConfigurationError, match=r"has changed from .* to uint8"):
            untagged(data, pa.uint8())


def test_their_layout() -> None:
    assert tagged(pa.array([258])).to_pylist() == [b"int64\0" + bytes(6) + b"\1\2"]
