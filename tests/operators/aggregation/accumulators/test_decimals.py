"""Sums and means of decimals against Python's own, in every cut of the input; and where they end."""

from __future__ import annotations

from decimal import ROUND_HALF_UP, Context, Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from statelib import (
    ConfigurationError,
    Grouped,
    InputError,
    Materialized,
    Named,
    StreamsBuilder,
    arg_max,
    max_,
    mean_,
    min_,
    stddev,
    sum_,
)
from statelib.operators.aggregation.accumulators.decimals import column_of_halves, halves
from statelib.operators.aggregation.definition import several, single
from statelib.operators.aggregation.operator import KeyAggregate
from statelib.operators.sessions.operator import SessionAggregate
from statelib.operators.tables.writer import PlainStore
from statelib.operators.windows.definition import SessionWindows
from tests.operators import chain
from tests.operators.flow import Fed, Flow
from tests.operators.tables.examples import CUTS, HOW, changes_of
from tests.operators.task import Record, Task
from tests.reference.session_aggregate import all_values
from tests.reference.sql_functions import stddev as exact_stddev

PRICE = pa.decimal128(30, 2)
SUM = pa.decimal128(38, 2)
ROW = pa.struct([("x", PRICE), ("y", pa.string())])
SQL = several(
    total=sum_("x"), least=min_("x"), most=max_("x"), mean=mean_("x"), deviation=stddev("x"), y=arg_max("y", by="x")
)
CENTS = st.integers(-(10**4), 10**4) | st.integers(-(10**30) + 1, 10**30 - 1)
PRICES = st.none() | CENTS.map(lambda cents: Decimal(cents).scaleb(-2, Context(60)))
EXACT = Context(prec=100)


def model(values: list[Any]) -> dict[str, Any]:
    """What `SQL` gives of values."""
    there = [value for value in values if value is not None and value["x"] is not None]
    xs = [value["x"] for value in there]
    total = Decimal(0)
    for x in xs:
        total = EXACT.add(total, x)
    return {
        "total": total if xs else None,
        "least": min(xs, default=None),
        "most": max(xs, default=None),
        "mean": EXACT.divide(total, len(xs)).quantize(Decimal("1e-6"), ROUND_HALF_UP, EXACT) if xs else None,
        "deviation": exact_stddev(xs) if all(abs(x) < 10**4 for x in xs) else None,
        "y": max(there, key=lambda value: value["x"])["y"] if there else None,
    }


def near(result: Any, expected: Any) -> bool:
    """Whether results are the same; deviations of numbers that a float64 does not have are not looked at."""
    if result is None or expected is None or expected["deviation"] is None:
        result, expected = ({**of, "deviation": None} if of else of for of in (result, expected))
    return bool(result == expected)


RECORDS = st.lists(st.tuples(st.sampled_from("aab"), PRICES, st.sampled_from([None, "p", "q"])), max_size=25)


@given(RECORDS, CUTS, HOW)
def test_decimals_by_key(given_: list[tuple[str, Any, Any]], cuts: list[int], flush_every: int) -> None:
    records = [Record(key, {"x": x, "y": y}, n, n) for n, (key, x, y) in enumerate(given_)]
    seen: dict[str, list[Any]] = {}
    run = Task(KeyAggregate(PlainStore("s"), SQL), pa.string(), [ROW])
    changes = changes_of(run.run(records, cuts, flush_every=flush_every))
    for record, change in zip(records, changes, strict=True):
        seen.setdefault(record.key, []).append(record.value)
        assert near(change.new, model(seen[record.key]))


@given(RECORDS, st.integers(1, 10), st.sampled_from(["nothing", "restart"]))
def test_decimals_in_sessions_that_merge(given_: list[tuple[str, Any, Any]], size: int, between: str) -> None:
    times = [(7 * n) % 23 for n in range(len(given_))]
    records = [chain.Record(key, {"x": x, "y": y}, time) for (key, x, y), time in zip(given_, times, strict=True)]
    reference = all_values(2, 100)
    expected = [
        None if values is None else model(values)
        for record in records
        for _, _, values, _ in reference.process(record.key, record.value, record.timestamp)
    ]
    run = chain.Chain([SessionAggregate("s", SessionWindows(2, 100), SQL)], ROW)
    (rows,) = run.run(records, size, between)
    assert len(rows) == len(expected)
    assert all(near(row.value, one) for row, one in zip(rows, expected, strict=True))


@given(
    st.lists(st.tuples(st.sampled_from("abc"), st.none() | st.tuples(st.sampled_from("gh"), PRICES)), max_size=25),
    CUTS, HOW,
)  # fmt: skip
def test_decimals_of_a_table(given_: list[tuple[str, Any]], cuts: list[int], flush_every: int) -> None:
    builder = StreamsBuilder("app")
    grouped = builder.table("rows", Materialized.as_("rows")).group_by("value.g", "value", Grouped.as_("by"))
    functions = {"total": sum_("x"), "mean": mean_("x")}
    grouped.aggregate(functions, Materialized.as_("groups"), Named.as_("agg")).to_stream().to("out")
    row = pa.struct([("g", pa.string()), ("x", PRICE)])
    run = Flow(builder.build(), {"rows": (pa.string(), row)}, "kip", watched="agg")
    fed = [Fed("rows", key, value and {"g": value[0], "x": value[1]}, n) for n, (key, value) in enumerate(given_)]
    run.run(fed, cuts, flush_every=flush_every)
    rows = dict(given_)
    last = {change.key: change.new for change in changes_of(run.seen)}
    for group, result in last.items():
        expected = model([{"x": value[1], "y": None} for value in rows.values() if value and value[0] == group])
        assert result == {"total": expected["total"], "mean": expected["mean"]}


@given(st.lists(st.none() | st.integers(-(10**38) + 1, 10**38 - 1)), st.integers(0, 3))
def test_halves_are_of_decimals(numbers: list[int | None], skipped: int) -> None:
    values = [None if number is None else Decimal(number).scaleb(-2, Context(60)) for number in numbers]
    column = pa.array(values, SUM).slice(skipped)
    there = np.asarray(column.is_valid())
    assert column_of_halves(*halves(column), SUM, there) == column


MOST = Decimal(10**38 - 1)


@given(st.lists(st.integers(-(10**38) + 1, 10**38 - 1), min_size=1, max_size=6))
@example([10**38 - 1, 1])
@example([-(10**38) + 1, -1])
@example([10**38 - 1, -1, 1])
@example([10**38 - 1, 10**38 - 1])
def test_a_sum_of_more_than_38_digits_is_an_error_that_says_where(numbers: list[int]) -> None:
    of = pa.decimal128(38, 0)
    sums = [sum(numbers[: n + 1]) for n in range(len(numbers))]
    too_large = [n for n, total in enumerate(sums) if abs(total) > MOST]
    run = Task(KeyAggregate(PlainStore("s"), single(sum_("value"))), pa.string(), [of])
    records = [Record("a", Decimal(number), n, n) for n, number in enumerate(numbers)]
    if not too_large:
        assert [change.new for change in changes_of(run.run(records))] == sums
        return
    with pytest.raises(InputError, match="a sum does not fit into 38 digits") as raised:
        run.run(records)
    assert raised.value.sequence == too_large[0]


def test_what_has_no_sum_or_mean_is_refused() -> None:
    for function, of in ((sum_, pa.decimal256(50, 2)), (mean_, pa.decimal128(38, 36)), (mean_, pa.string())):
        run = Task(KeyAggregate(PlainStore("s"), single(function("value"))), pa.string(), [of])
        with pytest.raises(ConfigurationError, match=f"there is no {function.__name__.strip('_')} of"):
            run.run([Record("a", None, 0, 0)])
    of = pa.decimal128(38, 2)
    run = Task(KeyAggregate(PlainStore("s"), single(mean_("value"))), pa.string(), [of])
    with pytest.raises(InputError, match="a mean does not fit into 38 digits, 6 of them after the point"):
        run.run([Record("a", Decimal(10**35), 0, 0)])


def test_stored_bytes() -> None:
    run = Task(KeyAggregate(PlainStore("s"), single(sum_("value"))), pa.string(), [pa.decimal128(9, 2)])
    run.run([Record("a", Decimal("1.28"), 0, 0), Record("a", Decimal("-3.84"), 1, 1)])
    assert run.content()["s"] == [(b"a", (1).to_bytes(8, "big") + (-256).to_bytes(16, "big", signed=True))]
