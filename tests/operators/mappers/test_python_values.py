"""Values as Python has them; and what goes wrong in a user's Python function says so, and what to do."""

from __future__ import annotations

import copy
from datetime import datetime
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from statelib import ConfigurationError, InputError
from statelib.operators.aggregation.definition import Aggregate, Reduce
from statelib.operators.aggregation.operator import KeyAggregate
from statelib.operators.mappers.function_errors import calling
from statelib.operators.mappers.python_values import column_of, copier_of, items_of, own
from statelib.operators.tables.writer import PlainStore
from tests.columns.test_row_format import struct_arrays
from tests.operators.task import Record, Task


def summed(aggregator: Aggregate | Reduce, *values: int) -> None:
    task = Task(KeyAggregate(PlainStore("s"), aggregator), pa.string(), [pa.int64()])
    task.process([Record("k", value, 1, row) for row, value in enumerate(values)])


def test_a_function_that_fails() -> None:
    with pytest.raises(ConfigurationError, match="a function that aggregates failed: ZeroDivisionError.*fix"):
        summed(Reduce(lambda old, new: old // new), 1, 0)


@pytest.mark.parametrize("made", [1 << 70, "text"])
def test_a_value_of_another_type(made: object) -> None:
    with pytest.raises(ConfigurationError, match="come to .* which is not of type int64.*declare the type"):
        summed(Aggregate(int, lambda key, value, sum_: made, pa.int64()), 1)


def test_an_error_of_ours_stays_what_it_is() -> None:
    with pytest.raises(InputError, match="mine"), calling("a function"):
        raise InputError("mine")
    assert column_of([1, None], pa.int64(), who="x", next_step="y").to_pylist() == [1, None]


@given(struct_arrays(), st.integers(0, 8), st.integers(0, 8))
def test_values_are_those_of_arrow(rows: pa.StructArray, start: int, length: int) -> None:
    for column in (piece := rows.slice(start, length), *piece.flatten()):
        items, expected = items_of(column), column.to_pylist()
        assert items == expected
        assert types_in(items) == types_in(expected)


@given(
    st.sampled_from(["s", "ms", "us", "ns"]),
    st.sampled_from([None, "UTC", "Europe/Paris"]),
    st.lists(st.none() | st.datetimes(), max_size=5),
)
def test_times_are_those_of_arrow(unit: str, zone: str | None, times: list[datetime | None]) -> None:
    within = [None if time is None or (unit == "ns" and not 1700 < time.year < 2200) else time for time in times]
    column = pa.array(within, pa.timestamp("us")).cast(pa.timestamp(unit), safe=False).cast(pa.timestamp(unit, zone))
    if zone == "Europe/Paris":  # whose offset may lead out of the years
        column = column.filter(pa.array([time is None or 2 < time.year < 9998 for time in within], pa.bool_()))
    for kind in (column, pa.StructArray.from_arrays([column], ["t"])):
        items, expected = items_of(kind), kind.to_pylist()
        assert items == expected
        assert repr(items) == repr(expected)


@pytest.mark.parametrize("seconds", [-62_135_596_801, 253_402_300_800])
def test_a_time_beyond_pythons_years_is_refused(seconds: int) -> None:
    with pytest.raises(InputError, match="year 9999"):
        items_of(pa.array([seconds], pa.timestamp("s")))
    inside = seconds + (1 if seconds < 0 else -1)
    assert items_of(pa.array([inside], pa.timestamp("s"))) == pa.array([inside], pa.timestamp("s")).to_pylist()


def test_what_lies_below_a_null_is_no_value() -> None:
    times = pa.array([1, 2, 3], pa.timestamp("s"))
    lists = pa.ListArray.from_arrays(pa.array([0, 2, 3]), times, mask=pa.array([True, False]))
    rows = pa.StructArray.from_arrays([times.slice(0, 2)], ["a"], mask=pa.array([False, True]))
    first, third = times[0].as_py(), times[2].as_py()
    assert items_of(lists) == [None, [third]]
    assert items_of(rows) == [{"a": first}, None]
    assert items_of(pa.StructArray.from_arrays([rows], ["r"])) == [{"r": {"a": first}}, {"r": None}]


@given(struct_arrays())
def test_a_copy_by_its_type_shares_nothing_that_can_change(rows: pa.StructArray) -> None:
    for column in (rows, *rows.flatten()):
        items, copied = items_of(column), copier_of(column.type)
        assert [copied(item) for item in items] == items
        assert changeable([copied(item) for item in items]).isdisjoint(changeable(items))


def test_a_copy_of_what_arrow_takes_for_a_type_though_it_is_another() -> None:
    for kind, value in (
        (pa.list_(pa.int64()), (1, 2)),
        (pa.list_(pa.list_(pa.int64())), ([1], [2])),
        (pa.struct([("a", pa.list_(pa.int64()))]), [("a", [1])]),
        (pa.struct([("a", pa.int64())]), [("a", 1)]),
        (pa.struct([("a", pa.binary())]), {"a": bytearray(b"1")}),
        (pa.binary(), bytearray(b"1")),
    ):
        copied = copier_of(kind)(value)
        assert pa.array([copied], kind) == pa.array([value], kind)
        assert changeable(copied).isdisjoint(changeable(value))


VALUES = st.recursive(
    st.none() | st.integers() | st.text() | st.binary().map(bytearray) | st.datetimes(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner) | st.tuples(inner) | st.sets(st.integers()),
)


@given(VALUES)
def test_a_value_of_ones_own_shares_nothing_that_can_change(value: Any) -> None:
    copied = own(value)
    assert copied == value
    assert types_in([copied]) == types_in([value])
    assert changeable(copied).isdisjoint(changeable(value))
    assert copied == copy.deepcopy(value)


def types_in(item: Any) -> Any:
    if isinstance(item, dict):
        return {name: types_in(part) for name, part in item.items()}
    return [types_in(part) for part in item] if isinstance(item, (list, tuple)) else type(item)


def changeable(item: Any) -> set[int]:
    parts = item.values() if isinstance(item, dict) else item if isinstance(item, (list, tuple)) else ()
    mine = {id(item)} if isinstance(item, (list, dict, set, bytearray)) else set()
    return mine.union(*map(changeable, parts))
