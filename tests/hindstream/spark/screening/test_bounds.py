"""What a footer says of a column holds for all rows of the file."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hindstream.spark.expectations.flat_tables import PARTITION, Column, flat_columns, flat_row_group
from hindstream.spark.screening.bounds import bounds_of, presence_of
from statelib.topics.parquet.missing_counts import KEY

INNER = pa.struct([("x", pa.float64()), ("s", pa.string())])
VALUE = pa.struct([("n", pa.int64()), ("in", INNER), ("raw", pa.binary()), ("tags", pa.list_(pa.int64()))])
SCHEMA = pa.schema([("offset", pa.int64()), ("timestamp", pa.timestamp("ms", "UTC")), ("value", VALUE)])
N, X, S = Column(("value", "n"), pa.int64()), Column(("value", "in", "x"), pa.float64()), ("value", "in", "s")


def parquet_of(table: pa.Table, **options: Any) -> pq.ParquetFile:
    """As `PartitionWriter` writes it."""
    output = pa.BufferOutputStream()
    pq.write_table(table, output, **({"version": "2.6", "store_schema": False} | options))
    return pq.ParquetFile(output.getvalue())


def parquet_that_says(missing: bytes, table: pa.Table) -> pq.ParquetFile:
    """Without statistics, and with what is said of missing values instead."""
    output = pa.BufferOutputStream()
    with pq.ParquetWriter(output, table.schema, write_statistics=False, store_schema=False) as writer:
        writer.write_table(table)
        writer.add_key_value_metadata({KEY: missing})
    return pq.ParquetFile(output.getvalue())


def bounds(parquet: pq.ParquetFile, column: Column) -> list[Any] | None:
    found = bounds_of(parquet, column, partition=3)
    if found is None:
        return None
    assert found.schema == pa.schema([(column.name, column.type)])
    values: list[Any] = found.column(0).to_pylist()
    return values


def values_of(*values: Any) -> pa.Table:
    return pa.table({"value": pa.array(values, VALUE)})


NUMBERS = st.none() | st.sampled_from([float("nan"), -math.inf, -1.5, -0.0, 0.0, 2.5])
ROWS = st.none() | st.fixed_dictionaries({
    "n": st.none() | st.integers(-(2**63), 2**63 - 1),
    "in": st.none() | st.fixed_dictionaries({"x": NUMBERS, "s": st.none() | st.text(max_size=3)}),
    "raw": st.none() | st.binary(max_size=2),
    "tags": st.none() | st.lists(st.integers(0, 9), max_size=2),
})  # fmt: skip


@given(rows=st.lists(ROWS, min_size=1, max_size=8), group_rows=st.integers(1, 8))
def test_no_row_is_out_of_bounds(rows: list[Any], group_rows: int) -> None:
    offsets = pa.array(range(len(rows)), pa.int64())
    times = offsets.cast(SCHEMA.field("timestamp").type)
    table = pa.table([offsets, times, pa.array(rows, VALUE)], schema=SCHEMA)
    parquet = parquet_of(table, row_group_size=group_rows)
    columns = flat_columns(SCHEMA)
    groups = [flat_row_group(parquet, group, SCHEMA, columns, 3) for group in range(parquet.num_row_groups)]
    for column in columns:
        said = bounds(parquet, column)
        there = [value for group in groups for value in group.column(column.name).to_pylist()]
        if said is None:  # a writer says nothing of a row group in which all numbers are NaN
            assert column == X
            assert any(math.isnan(value) for value in there if value is not None)
            continue
        assert (None in there) == (None in said)
        assert _extremes(said) == _extremes(there)


def _extremes(values: list[Any]) -> list[Any]:
    numbers = [value for value in values if value is not None and str(value) != "nan"]
    return [min(numbers), max(numbers)] if numbers else []


def test_each_row_group_has_its_own() -> None:
    parquet = parquet_of(values_of({"n": 5}, {"n": 3}, {"n": 7}, None, {"n": None}), row_group_size=2)
    assert bounds(parquet, N) == [3, 5, None, 7, 7, None]


def test_not_a_number_may_be_among_numbers() -> None:
    said = bounds(parquet_of(values_of({"in": {"x": 1.0}}, {"in": {"x": 2.0}})), X)
    assert said is not None
    assert [str(value) for value in said] == ["nan", "1.0", "2.0"]


@pytest.mark.parametrize(
    ("type_", "least", "greatest"),
    [
        (pa.bool_(), False, True),
        (pa.int8(), -128, 127),
        (pa.int64(), -(2**63), 2**63 - 1),
        (pa.float32(), -0.5, 0.5),
        (pa.string(), "", "\U0001f600"),
        (pa.binary(), b"\x01", b"\xff"),
        (pa.date32(), date(1, 1, 1), date(9999, 12, 31)),
        (pa.timestamp("us", "UTC"), datetime(1, 1, 1, tzinfo=UTC), datetime(9999, 12, 31, tzinfo=UTC)),
        (pa.timestamp("ms", "UTC"), datetime(1969, 12, 31, tzinfo=UTC), datetime(1970, 1, 2, tzinfo=UTC)),
    ],
)
def test_values_of_all_ordered_types(type_: pa.DataType, least: Any, greatest: Any) -> None:
    table = pa.table({"key": pa.array([greatest, least], type_)})
    said = bounds(parquet_of(table), Column(("key",), type_))
    assert said is not None
    assert said[-2:] == [least, greatest]


def test_times_that_python_does_not_have() -> None:
    times = pa.array([-(2**62), 2**62], pa.int64()).cast(pa.timestamp("ms", "UTC"))
    found = bounds_of(parquet_of(pa.table({"timestamp": times})), Column(("timestamp",), times.type), 0)
    assert found is not None
    assert found.column(0).combine_chunks() == times


def test_the_partition_is_not_in_the_file() -> None:
    assert bounds(parquet_of(values_of({"n": 5})), PARTITION) == [3]


@pytest.mark.parametrize(
    ("table", "column", "options"),
    [
        pytest.param(values_of({"n": 5}), N, {"write_statistics": False}, id="no statistics"),
        pytest.param(values_of({"n": 5}), Column(("value", "m"), pa.int64()), {}, id="absent"),
        pytest.param(values_of({"n": 5}), Column(("other", "n"), pa.int64()), {}, id="absent with its struct"),
        pytest.param(values_of({"n": 5}), Column(("value",), pa.int64()), {}, id="a struct instead"),
        pytest.param(values_of({"n": 5}), Column(("value", "n", "n"), pa.int64()), {}, id="no struct"),
        pytest.param(values_of({"n": 5}), Column(("value", "n"), pa.int32()), {}, id="another type"),
        pytest.param(values_of({"in": {"s": "s" * 5000}}), Column(S, pa.string()), {}, id="too long for statistics"),
        pytest.param(
            pa.table({"key": pa.array([Decimal(1), Decimal(-1)], pa.decimal128(5, 2))}),
            Column(("key",), pa.decimal128(5, 2)),
            {},
            id="bytes whose order is not that of the values",
        ),
        pytest.param(
            pa.table({"value": pa.array([{"a.b": 1, "a": {"b": 2}}])}),
            Column(("value", "a", "b"), pa.int64()),
            {},
            id="two columns that Parquet calls the same",
        ),
    ],
)
def test_sometimes_a_footer_says_nothing(table: pa.Table, column: Column, options: dict[str, Any]) -> None:
    assert bounds(parquet_of(table, **options), column) is None


TEXTS = pa.struct([("s", pa.string()), ("in", pa.struct([("s", pa.string())])), ("in.s", pa.string())])


@pytest.mark.parametrize(
    ("missing", "said"), [(b'{"value.s": 0}', [""]), (b'{"value.s": 1}', [None, ""]), (b'{"value.s": 2}', [None])]
)
def test_whether_texts_are_missing(missing: bytes, said: list[Any]) -> None:
    parquet = parquet_that_says(missing, pa.table({"value": pa.array([{}, {}], TEXTS)}))
    found = presence_of(parquet, Column(("value", "s"), pa.string()))
    assert found is not None
    assert found.to_pydict() == {"value__s": said}
    assert presence_of(parquet, Column(("value", "s"), pa.binary())) is None


def test_of_two_columns_with_one_name_nothing_is_said() -> None:
    parquet = parquet_that_says(b'{"value.s": 2, "value.in.s": 2}', pa.table({"value": pa.array([{}, {}], TEXTS)}))
    assert presence_of(parquet, Column(("value", "s"), pa.string())) is not None
    for path in (("value", "in", "s"), ("value", "in.s")):
        assert presence_of(parquet, Column(path, pa.string())) is None
