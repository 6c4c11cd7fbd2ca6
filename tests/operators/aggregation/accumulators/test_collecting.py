"""Lists and sets of values, and how many distinct ones there are, against a list of Python's."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from statelib import ConfigurationError, collect_list, collect_set, count_distinct, top_n
from statelib.operators.aggregation.accumulators.collecting import CollectAccumulator, Collections, DistinctAccumulator
from statelib.operators.aggregation.accumulators.inputs import Updates
from statelib.operators.aggregation.definition import several
from statelib.operators.aggregation.operator import KeyAggregate
from statelib.operators.tables.writer import PlainStore
from tests.operators.aggregation.accumulating import added, inputs, merged, states
from tests.operators.task import Record, Task

TYPES: dict[str, tuple[pa.DataType, list[Any]]] = {
    "integers": (pa.int32(), [0, -1, 7, 2**31 - 1]),
    "large integers": (pa.uint64(), [0, 2**64 - 1, 5]),
    "floats": (pa.float64(), [0.0, -0.0, math.nan, -math.inf, 1.5]),
    "texts": (pa.string(), ["", "a", "b", "a longer text"]),
    "decimals": (pa.decimal128(9, 2), [Decimal("1.50"), Decimal("-1.50"), Decimal(0)]),
    "structs": (pa.struct([("a", pa.int64())]), [{"a": 1}, {"a": None}]),
    "times": (pa.timestamp("ms", "UTC"), [0, 1, -1]),
    "booleans": (pa.bool_(), [True, False]),
}
KINDS = st.sampled_from(sorted(TYPES))
PICKS = st.lists(st.tuples(st.integers(0, 2), st.none() | st.integers(0, 4)), max_size=40)
LIMITS = st.sampled_from([1, 2, 3, 100])


def column_of(kind: str, picks: list[tuple[int, int | None]]) -> pa.Array:
    of, choices = TYPES[kind]
    return pa.array([None if pick is None else choices[pick % len(choices)] for _, pick in picks], of)


def same(value: Any) -> Any:
    """Equal for equal values of SQL."""
    if isinstance(value, float):
        return "NaN" if math.isnan(value) else value + 0.0
    return str(value)


def collected(values: list[Any], limit: int, *, once: bool) -> tuple[list[Any], int]:
    """The first of all values, or of those that differ, and how many did not fit."""
    there: list[Any] = []
    left_out = 0
    for value in values:
        if value is None or (once and same(value) in map(same, there)):
            continue
        if len(there) < limit:
            there.append(value)
        else:
            left_out += 1
    return there, left_out


@given(KINDS, PICKS, LIMITS, st.booleans(), st.booleans())
def test_collections(kind: str, picks: list[tuple[int, int | None]], limit: int, once: bool, copied: bool) -> None:
    column, slots = column_of(kind, picks), [slot for slot, _ in picks]
    made = CollectAccumulator(column.type, once=once, limit=limit)
    made.reserve(3)
    values, seen, expected, left_out = column.to_pylist(), [], [], 0
    for n, slot in enumerate(slots):
        seen.append(values[n])
        there, _ = collected([value for value, of in zip(seen, slots, strict=False) if of == slot], limit, once=once)
        expected.append(there or None)
    assert str([*map(in_form, added(made, column, slots))]) == str([*map(in_form, expected)])
    of_slots = [[value for value, of in zip(values, slots, strict=True) if of == slot] for slot in range(3)]
    left_out = sum(collected(of, limit, once=once)[1] for of in of_slots)
    assert made.left_out == left_out
    if copied:  # as a store gives them back
        saved = made.get(np.arange(3))
        made = CollectAccumulator(column.type, once=once, limit=limit)
        made.reserve(3)
        made.set(np.arange(3), saved)
        made.set(np.arange(3), saved)  # and again, over what is there
    merged(made, column_of(kind, [(0, None)]), 0, 2)
    made.keep(np.array([1, 0]))
    both = [collected(of, limit, once=once)[0] or None for of in (of_slots[1], of_slots[0] + of_slots[2])]
    assert str([in_form(state) for (state,) in states(made, [0, 1])]) == str([*map(in_form, both)])


def in_form(values: list[Any] | None) -> Any:
    return values and [*map(same, values)]


@given(KINDS, PICKS)
def test_distinct_values(kind: str, picks: list[tuple[int, int | None]]) -> None:
    column, slots = column_of(kind, picks), [slot for slot, _ in picks]
    whole, halves, other_way = (DistinctAccumulator(column.type) for _ in range(3))
    for made in (whole, halves, other_way):
        made.reserve(3)
    rows = np.arange(len(picks))
    (counts,) = whole.walk(Updates(rows, np.array(slots, np.int64), remembers=True), inputs(column))
    of = [[value for value, slot in zip(column.to_pylist(), slots, strict=True) if slot == one] for one in range(3)]
    assert [count for count, _ in states(whole, range(3))] == [len(collected(some, 100, once=True)[0]) for some in of]
    walked = [*zip(*(part.to_pylist() for part in whole.walked()), strict=True)]
    assert [count for count, _ in walked] == counts.to_pylist()
    one_by_one = []
    for row, slot in zip(rows, slots, strict=True):
        halves.add(Updates(np.array([row]), np.array([slot])), inputs(column))
        one_by_one += states(halves, [slot])
    assert walked == one_by_one
    added(other_way, column.take(pa.array(rows[::-1])), slots[::-1])
    assert states(other_way, range(3)) == states(whole, range(3))


def test_what_is_left_out_is_counted() -> None:
    value = pa.struct([("x", pa.int64())])
    spec = several(all=collect_list("x", limit=2), some=collect_set("x", limit=2))
    run = Task(KeyAggregate(PlainStore("s"), spec), pa.string(), [value])
    made = run.run([Record("a", {"x": x}, n, n) for n, x in enumerate([5, 5, None, 3, 3, 4])], [2, 4], flush_every=1)
    assert [row for batch in made for row in batch.value.to_pylist()][-1] == {"all": [5, 5], "some": [5, 3]}
    assert run.metrics.counters == {"collection-limit-drop": 4}


@pytest.mark.parametrize("limit", [0, 10_001])
def test_limits(limit: int) -> None:
    for function in (collect_list, collect_set):
        with pytest.raises(ConfigurationError, match=rf"\(\) of {limit} values.*from 1 to 10,000"):
            function("x", limit=limit)


def test_many_values_are_forgotten() -> None:
    made = DistinctAccumulator(pa.string())
    for start in range(0, 50_000, 10_000):
        texts = pa.array([f"text {n}" for n in range(start, start + 10_000)])
        added(made, texts, [0] * 5_000 + [1] * 5_000)
        made.keep(np.array([1]))
    assert [count for count, _ in states(made, [0])] == [5_000]
    assert made.memory_bytes() < 2_000_000
    made.keep(np.empty(0, dtype=np.int64))
    assert made.memory_bytes() == 0


def test_what_is_left_out_is_forgotten() -> None:
    for once in (False, True):
        made = CollectAccumulator(pa.string(), once=once, limit=3)
        for start in range(0, 60_000, 5_000):
            added(
                made, pa.array([f"a text, which has the number {n}" for n in range(start, start + 5_000)]), [0] * 5_000
            )
        assert made.left_out == 59_997
        assert made.memory_bytes() < 500_000
        assert states(made, [0]) == [([f"a text, which has the number {n}" for n in range(3)],)]


def test_results_are_given_without_a_look_at_the_sets(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else each record would cost as much as there are values."""
    spec = KeyAggregate(PlainStore("s"), several(n=count_distinct("x"), top=top_n("x", "x", 1)), needs_prior=True)
    run = Task(spec, pa.string(), [pa.struct([("x", pa.int64())])])
    looks: list[int] = []
    first = Collections.first
    monkeypatch.setattr(Collections, "first", lambda *given: looks.append(1) or first(*given))
    made = run.process([Record("a", {"x": x}, x, x) for x in range(50)])
    made = run.process([Record("a", {"x": x}, x, x) for x in range(25, 75)])
    assert made.value.to_pylist()[-1] == {"n": 75, "top": [74]}
    assert not looks
    run.flush()
    assert looks
