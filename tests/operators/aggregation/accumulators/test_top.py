"""The records with the largest and smallest keys against Python's sort, by every detour."""

from __future__ import annotations

import math
from decimal import Decimal
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from statelib.operators.aggregation.accumulators.inputs import Inputs, Updates
from statelib.operators.aggregation.accumulators.top import TopAccumulator
from tests.operators.aggregation.accumulating import states

TYPES: dict[str, tuple[pa.DataType, list[Any]]] = {
    "integers": (pa.int64(), [0, -1, 7, -(2**63), 2**63 - 1]),
    "floats": (pa.float64(), [0.0, -0.0, math.nan, -math.inf, math.inf, -1.5, -2.5]),
    "texts": (pa.string(), ["", "a", "b", "a longer text"]),
    "decimals": (pa.decimal128(9, 2), [Decimal("1.50"), Decimal("-1.50"), Decimal(0)]),
    "times": (pa.timestamp("ms"), [0, 1, -1]),
    "booleans": (pa.bool_(), [True, False]),
}
KINDS = st.sampled_from(sorted(TYPES))
PICKS = st.lists(st.tuples(st.integers(0, 2), st.none() | st.integers(0, 6)), max_size=40)
LIMITS = st.sampled_from([1, 2, 3, 30])
CUTS = st.lists(st.integers(0, 40), max_size=3)


def order(key: Any) -> Any:
    """The order of SQL."""
    return (1, 0.0) if isinstance(key, float) and math.isnan(key) else (0, key)


def model(rows: list[tuple[int, Any]], limit: int, *, largest: bool) -> list[int] | None:
    """The names of the best; of equal ones the first first."""
    there = sorted((row for row in rows if row[1] is not None), key=lambda row: order(row[1]), reverse=largest)
    return [name for name, _ in there[:limit]] or None


@given(KINDS, PICKS, LIMITS, CUTS, st.booleans(), st.booleans())
def test_the_best(
    kind: str, picks: list[tuple[int, int | None]], limit: int, cuts: list[int], largest: bool, copied: bool
) -> None:
    of, choices = TYPES[kind]
    keys = pa.array([None if pick is None else choices[pick % len(choices)] for _, pick in picks], of)
    slots = np.array([slot for slot, _ in picks], dtype=np.int64)
    names = pa.array(range(len(picks)), pa.int64())
    made = TopAccumulator(pa.int64(), of, limit, largest=largest)
    made.reserve(3)
    rows = [*zip(range(len(picks)), keys.to_pylist(), slots.tolist(), strict=True)]

    def best(slot: int, until: int | None = None) -> list[int] | None:
        return model([(name, key) for name, key, of_slot in rows[:until] if of_slot == slot], limit, largest=largest)

    bounds = sorted({0, len(picks), *(cut for cut in cuts if cut < len(picks))})
    for start, end in pairwise(bounds):
        inputs = Inputs(names.slice(start, end - start), keys.slice(start, end - start), slots, slots)
        updates = Updates(np.arange(end - start), slots[start:end], remembers=copied)
        if start % 2:
            made.add(updates, inputs)
            continue
        (results,) = made.walk(updates, inputs)
        assert results.to_pylist() == [best(int(slots[row]), row + 1) for row in range(start, end)]
        if copied:  # as a store gives them back
            assert made.walked()[0] == results
            saved = made.get(np.arange(3))
            made = TopAccumulator(pa.int64(), of, limit, largest=largest)
            made.reserve(3)
            made.set(np.array([2, 0, 1]), [column.take(pa.array([2, 0, 1])) for column in saved])
            made.set(np.arange(3), saved)  # and again, over what is there
    nothing = np.array([-1])
    merging = Updates(nothing, np.array([0]), np.array([2]))
    made.add(merging, Inputs(pa.nulls(1, pa.int64()), pa.nulls(1, of), nothing, nothing))
    merged = [row for one in (0, 2) for row in rows if row[2] == one]
    expected = [best(1), model([row[:2] for row in merged], limit, largest=largest)]
    made.keep(np.array([1, 0]))
    assert [value for value, _ in states(made, [0, 1])] == expected


def test_garbage_is_dropped() -> None:
    made = TopAccumulator(pa.int64(), pa.int64(), 3, largest=True)
    made.reserve(2)
    for start in range(0, 50_000, 1_000):  # each record is better than those before
        column, rows = pa.array(np.arange(start, start + 1_000)), np.arange(1_000)
        made.walk(Updates(rows, rows % 2), Inputs(column, column, rows, rows))
    assert made.memory_bytes() < 3_000_000
    assert [value for value, _ in states(made, [0, 1])] == [[49_998, 49_996, 49_994], [49_999, 49_997, 49_995]]
    made.keep(np.empty(0, dtype=np.int64))
    assert made.memory_bytes() == 0
