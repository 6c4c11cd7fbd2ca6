"""Accumulators by themselves: values in, states out, in any order and by any detour."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from statelib.operators.aggregation.accumulators.inputs import Inputs, Updates

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa

    from statelib.operators.aggregation.accumulators.numbers import Accumulator

NOBODY = -1


def inputs(column: pa.Array) -> Inputs:
    """Of records that have only a value."""
    numbers = np.arange(len(column))
    return Inputs(column, None, numbers, numbers)


def added(accumulator: Accumulator, column: pa.Array, slots: Sequence[int]) -> list[Any]:
    """Adds each value to its slot; gives the results after each."""
    accumulator.reserve(max(slots, default=0) + 1)
    (result, *_) = accumulator.walk(Updates(np.arange(len(column)), np.array(slots, dtype=np.int64)), inputs(column))
    return list(result.to_pylist())


def merged(accumulator: Accumulator, column: pa.Array, into: int, other: int) -> None:
    """Adds a slot's state to another's; ``column``: of any values, none of which is added."""
    update = Updates(*(np.array([number]) for number in (NOBODY, into, other)))
    accumulator.add(update, inputs(column))


def states(accumulator: Accumulator, slots: Sequence[int]) -> list[tuple[Any, ...]]:
    """The states of slots."""
    columns = [column.to_pylist() for column in accumulator.get(np.array(slots, dtype=np.int64))]
    return list(zip(*columns, strict=True))
