"""What goes wrong in a user's Python function says so, and what to do."""

from __future__ import annotations

import pyarrow as pa
import pytest

from statelib import ConfigurationError, InputError
from statelib.operators.aggregation.definition import Aggregate, Reduce
from statelib.operators.aggregation.operator import KeyAggregate
from statelib.operators.mappers.function_errors import calling
from statelib.operators.mappers.python_values import column_of
from statelib.operators.tables.writer import PlainStore
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
