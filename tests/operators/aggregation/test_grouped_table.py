"""Aggregation of regrouped tables against the model of one change at a time, in every cut of the input."""

from __future__ import annotations

import json
from collections import Counter
from datetime import timedelta
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from statelib import (
    BufferConfig,
    ConfigurationError,
    Grouped,
    InputError,
    Materialized,
    Named,
    Stores,
    StreamsBuilder,
    Suppressed,
    count,
    count_distinct,
    max_,
    mean_,
    min_,
    quantiles,
    sum_,
    variance,
)
from statelib.operators.aggregation.table_definition import TableAggregate, TableAggregations, TableReduce
from statelib.operators.aggregation.table_select import TableSelect
from statelib.operators.mappers.mapping import mapper
from tests.operators.flow import Fed, Flow
from tests.operators.tables.examples import CUTS, HOW, changes_of, updates
from tests.reference.key_aggregate import Aggregates
from tests.reference.sql_functions import Near
from tests.reference.sql_functions import quantiles as quantiles_of
from tests.reference.table import Change, HistoryTable, PlainTable
from tests.reference.table_select import regrouped

if TYPE_CHECKING:
    from collections.abc import Callable

    from statelib import KGroupedTable, KTable
    from statelib.settings.semantics import Semantics
    from tests.operators.task import Record

ROW = pa.struct([("g", pa.string()), ("x", pa.int64())])
TYPES = {"rows": (pa.string(), ROW)}
VALUES = st.none() | st.fixed_dictionaries(
    {"g": st.sampled_from(["one", "one", "two", None]), "x": st.none() | st.integers(-5, 5)}
)
ROWS = updates(VALUES)
RETENTION = st.sampled_from([None, None, None, 0, 10, 100])
"""None: a plain table, or a plain store of the aggregates."""
POSITIVE = pc.field("value", "x") > 0  # null of a null
SQL = {
    "rows": count(), "xs": count("x"), "total": sum_("x"), "mean": mean_("x"), "positive_rows": count(where=POSITIVE),
    "positive_xs": count("x", where=POSITIVE), "positive_total": sum_("x", where=POSITIVE),
    "positive_mean": mean_("x", where=POSITIVE), "variance": variance("x"),
    "variance_of_all": variance("x", population=True), "positive_variance": variance("x", where=POSITIVE),
    "positive_variance_of_all": variance("x", population=True, where=POSITIVE), "distinct": count_distinct("x"),
    "spread": quantiles("x", [0.7, 0.2]),
    "positive_distinct": count_distinct("x", where=POSITIVE),
    "positive_spread": quantiles("x", [0.7, 0.2], where=POSITIVE),
}  # fmt: skip


def stored(name: str, retention_ms: int | None) -> Materialized:
    if retention_ms is None:
        return Materialized.as_(name)
    return Materialized.as_(Stores.persistent_versioned_key_value_store(name, timedelta(milliseconds=retention_ms)))


def flow(
    aggregate: Callable[[KGroupedTable, Materialized, Named], KTable],
    table_ms: int | None = None,
    result_ms: int | None = None,
    value: Any = "value",
    semantics: Semantics = "kip",
) -> Flow:
    builder = StreamsBuilder("app")
    grouped = builder.table("rows", stored("rows", table_ms)).group_by("value.g", value)
    table = aggregate(grouped, stored("groups", result_ms), Named.as_("agg"))
    builder._builder.request_prior_values(table.node)
    table.to_stream().to("out")
    return Flow(builder.build(), TYPES, semantics, watched="agg")


def model(
    records: list[Record], aggregates: Aggregates, table_ms: int | None, value: Callable[[Any], Any]
) -> list[Change]:
    table = PlainTable() if table_ms is None else HistoryTable(table_ms)
    return [
        change
        for record in records
        for made in table.put(record.key, record.value, record.timestamp)
        for group, new, old in regrouped(made, lambda row: row["g"], value)
        for change in aggregates.change(group, new, old, made.timestamp)
    ]


def table_of(retention_ms: int | None) -> PlainTable | HistoryTable:
    return PlainTable() if retention_ms is None else HistoryTable(retention_ms)


def plus(rows: list[Any], row: Any) -> list[Any]:
    return [*rows, row]


def minus(rows: list[Any], row: Any) -> list[Any]:
    """Without the row, or, if it was refused when it came, with a debt."""
    return [*rows, ("taken", row)]


def sql(rows: list[Any] | None) -> dict[str, Any] | None:
    if rows is None:
        return None
    signed = [(-1, row[1]) if isinstance(row, tuple) else (1, row) for row in rows]
    xs = [(sign, row["x"]) for sign, row in signed if row["x"] is not None]
    positive = [(sign, x) for sign, x in xs if x > 0]
    return {
        "rows": sum(sign for sign, _ in signed), **of_numbers(xs), "positive_rows": sum(sign for sign, _ in positive),
        **{f"positive_{name}": result for name, result in of_numbers(positive).items()},
    }  # fmt: skip


def spread_of(rows_of: Counter[int]) -> list[float] | None:
    """Values that were taken back before they were added count for nothing."""
    return quantiles_of(sorted(x for x, rows in rows_of.items() for _ in range(rows)), [0.7, 0.2])


def of_numbers(signed: list[tuple[int, int]]) -> dict[str, Any]:
    count_ = total = squares = 0
    for sign, x in signed:
        count_, total, squares = count_ + sign, total + sign * x, squares + sign * x * x
        total, squares = (total, squares) if count_ else (0, 0)  # the sum of nothing, also after a debt
    rows_of: Counter[int] = Counter()
    for sign, x in signed:
        rows_of[x] += sign
    m2 = Fraction(squares) - Fraction(total * total, count_ or 1)
    return {
        "xs": count_, "total": total if count_ else None, "mean": total / count_ if count_ else None,
        "variance": Near(m2 / (count_ - 1)) if count_ > 1 else None,
        "variance_of_all": Near(m2 / count_) if count_ > 0 else None,
        "distinct": sum(rows > 0 for rows in rows_of.values()), "spread": spread_of(rows_of),
    }  # fmt: skip


@given(ROWS, CUTS, HOW, RETENTION, RETENTION, st.sampled_from(["kip", "kafka-4.3"]))
def test_functions_of_sql(
    records: list[Record], cuts: list[int], flush_every: int, table_ms: int | None, result_ms: int | None,
    semantics: Semantics,
) -> None:  # fmt: skip
    if table_ms is not None or result_ms is not None:
        semantics = "kip"
    expected = model(records, Aggregates(list, plus, minus, table_of(result_ms)), table_ms, lambda row: row)
    run = flow(
        lambda grouped, store, name: grouped.aggregate(SQL, store, name), table_ms, result_ms, "value", semantics
    )
    run.run([Fed("rows", r.key, r.value, r.timestamp) for r in records], cuts, flush_every=flush_every)
    assert changes_of(run.seen) == [c._replace(new=sql(c.new), old=sql(c.old)) for c in expected]
    assert run.by_node["agg"].accounts.get("aggregated", 0) == len(expected)


SINGLE: dict[str, tuple[Callable[..., KTable], Any]] = {
    "count": (lambda g, m, n: g.count(m, n), "rows"),
    "sum": (lambda g, m, n: g.sum("value", m, n), "total"),
    "mean": (lambda g, m, n: g.mean("value", m, n), "mean"),
}


@given(ROWS, CUTS, HOW, RETENTION, st.sampled_from(sorted(SINGLE)))
def test_one_function(
    records: list[Record], cuts: list[int], flush_every: int, table_ms: int | None, which: str
) -> None:
    """A sum or mean of nothing is a deletion; a count of nothing is 0."""
    aggregate, name = SINGLE[which]

    def emptied(rows: list[Any]) -> list[Any] | None:
        found = sql([("taken", {"x": r[1]}) if isinstance(r, tuple) else {"x": r} for r in rows])
        return rows if found and found[name] is not None else None

    aggregates = Aggregates(
        list, lambda rows, x: emptied(plus(rows, x)), lambda rows, x: emptied(minus(rows, x)), PlainTable()
    )

    def result(rows: list[Any] | None) -> Any:
        found = (
            None if rows is None else sql([("taken", {"x": r[1]}) if isinstance(r, tuple) else {"x": r} for r in rows])
        )
        return found and found[name]

    expected = model(records, aggregates, table_ms, lambda row: row["x"])
    run = flow(aggregate, table_ms, None, "value.x")
    run.run([Fed("rows", r.key, r.value, r.timestamp) for r in records], cuts, flush_every=flush_every)
    assert changes_of(run.seen) == [c._replace(new=result(c.new), old=result(c.old)) for c in expected]


@given(ROWS, CUTS, HOW, RETENTION, RETENTION)
def test_python_functions(
    records: list[Record], cuts: list[int], flush_every: int, table_ms: int | None, result_ms: int | None
) -> None:
    """Which may delete: here at 3 and 4."""

    def add(total: int, x: int) -> int | None:
        return None if total + x == 3 else total + x

    def take(total: int, x: int) -> int | None:
        return None if total - x == 4 else total - x

    fed = [Fed("rows", r.key, r.value, r.timestamp) for r in records]
    reduced = flow(lambda g, m, n: g.reduce(add, take, m, n), table_ms, result_ms, "value.x")
    reduced.run(fed, cuts, flush_every=flush_every)
    reduction = Aggregates(lambda: None, lambda agg, x: x if agg is None else add(agg, x), take, table_of(result_ms))
    assert changes_of(reduced.seen) == model(records, reduction, table_ms, lambda row: row["x"])

    made = flow(
        lambda g, m, n: g.aggregate_with(
            lambda: 100, lambda key, x, agg: add(agg, x), lambda key, x, agg: take(agg, x), pa.int64(), m, n
        ), table_ms, result_ms, "value.x",
    )  # fmt: skip
    made.run(fed, cuts, flush_every=flush_every)
    aggregation = Aggregates(lambda: 100, add, take, table_of(result_ms))
    assert changes_of(made.seen) == model(records, aggregation, table_ms, lambda row: row["x"])


@given(ROWS, CUTS, CUTS, HOW, RETENTION, RETENTION)
def test_the_same_bytes_in_every_cut(
    records: list[Record], one: list[int], other: list[int], flush_every: int, table_ms: int | None,
    result_ms: int | None,
) -> None:  # fmt: skip
    contents = []
    for cuts, every in ((one, 0), (other, flush_every)):
        run = flow(lambda grouped, store, name: grouped.aggregate(SQL, store, name), table_ms, result_ms)
        run.run([Fed("rows", r.key, r.value, r.timestamp) for r in records], cuts, flush_every=every)
        contents.append((run.content(), {name: of.accounts for name, of in run.by_node.items()}))
    assert contents[0] == contents[1]


def out(run: Flow, *rows: tuple[str | None, Any, int]) -> list[tuple[Any, Any, int]]:
    emitted = run.run([Fed("rows", *row) for row in rows]).get("out", [])
    return [(row.key, row.value, row.timestamp) for row in emitted]


def row(g: str | None, x: int | None) -> dict[str, Any]:
    return {"g": g, "x": x}


def test_a_row_that_moves_leaves_first() -> None:
    run = flow(SINGLE["count"][0])
    moves = out(run, ("a", row("one", 1), 5), ("b", row("one", 1), 4), ("a", row("two", 1), 6), ("a", row("two", 2), 7))
    assert moves == [("one", 1, 5), ("one", 2, 5), ("one", 1, 6), ("two", 1, 6), ("two", 1, 7)]
    select = next(of for name, of in run.by_node.items() if name.startswith("KTABLE-SELECT"))
    assert (select.accounts, select.records_out) == ({"forwarded": 4}, 5)


def test_rows_without_a_group_are_in_none() -> None:
    run = flow(SINGLE["count"][0], 100)
    assert out(
        run, ("a", row(None, 1), 5), ("a", row("one", 1), 6), ("a", row("two", 1), 1), ("a", None, 7), ("a", None, 8)
    ) == [("one", 1, 6), ("one", 0, 7)]  # fmt: skip
    select = next(of for name, of in run.by_node.items() if name.startswith("KTABLE-SELECT"))
    assert select.accounts == {"filtered": 2, "forwarded": 2, "out-of-order": 1}
    assert run.dropped() == 0


def test_what_rounding_leaves_behind_is_gone_with_the_last_value() -> None:
    builder = StreamsBuilder("app")
    builder.table("rows").group_by("value.g", "value.x").aggregate({"sum": sum_("value")}).to_stream().to("out")
    floats = {"rows": (pa.string(), pa.struct([("g", pa.string()), ("x", pa.float64())]))}
    rows = [("a", 0.1), ("b", 0.2), ("a", None), ("b", None), ("c", 0.5), ("c", float("inf")), ("c", None), ("d", 1.0)]
    fed = [Fed("rows", key, None if x is None else {"g": "one", "x": x}, at) for at, (key, x) in enumerate(rows)]
    values = [r.value["sum"] for r in Flow(builder.build(), floats).run(fed)["out"]]
    assert values[3:] == [None, 0.5, float("inf"), None, 1.0]


def test_the_repartition_topic() -> None:
    """Named after the store, or by Grouped; then all aggregations share it."""
    builder = StreamsBuilder("app")
    table = builder.table("rows")
    table.group_by("value.g").count(Materialized.as_("counts"))
    table.group_by("value.g").count(named=Named.as_("counting"))
    grouped = table.group_by("value.g", grouped=Grouped.as_("by-g"))
    grouped.count(Materialized.as_("again"))
    grouped.sum("x", Materialized.as_("sums"))
    topology = builder.build()
    assert [topic for sub in topology.sub_topologies for topic in sub.repartition_sources] == [
        "app-counts-repartition", "app-KTABLE-AGGREGATE-STATE-STORE-0000000008-repartition", "app-by-g-repartition",
    ]  # fmt: skip
    described = topology.describe()
    assert "Processor: by-g (stores: [])" in described
    assert "Processor: counting (stores: [KTABLE-AGGREGATE-STATE-STORE-0000000008])" in described
    assert "KTABLE-SELECT-0000000003" in described


def test_a_grouped_table_can_be_suppressed_and_regrouped() -> None:
    builder = StreamsBuilder("app")
    counts = builder.table("rows").group_by("value.g").count()
    limit = Suppressed.until_time_limit(timedelta(0), BufferConfig.unbounded())
    counts.suppress(limit).to_stream().to("suppressed")
    by_count = counts.group_by(lambda columns: pc.cast(columns["value"], pa.string()), "key")
    by_count.count().to_stream().map_values({"n": "value"}).to("out")
    found = Flow(builder.build(), TYPES).run(
        [Fed("rows", key, row(g, 1), 5) for key, g in (("a", "one"), ("b", "two"), ("c", "one"))]
    )
    assert [(r.key, r.value["n"]) for r in found["out"]] == [("1", 1), ("1", 2), ("1", 1), ("2", 1)]
    assert [(r.key, r.value) for r in found["suppressed"]] == [("one", 1), ("two", 1), ("one", 2)]


def test_a_count_has_the_bytes_of_the_live_application() -> None:
    run = flow(SINGLE["count"][0])
    out(run, ("a", row("one", 1), 5), ("b", row("one", 1), 4))
    assert run.content()[1]["groups"] == [(b"one", bytes.fromhex("0000000000000005 0000000000000002"))]


def test_what_cannot_be_is_refused() -> None:
    grouped = StreamsBuilder("app").table("rows").group_by("value.g")
    for function in (min_("x"), max_("x")):
        with pytest.raises(ConfigurationError, match=r"cannot take a value back.*to_stream\(\)\.group_by"):
            grouped.aggregate({"n": count(), "x": function})
    with pytest.raises(ConfigurationError, match="nothing to aggregate"):
        grouped.aggregate({})
    with pytest.raises(ConfigurationError, match="no sum of string"):
        flow(lambda g, m, n: g.sum("g", m, n))
    with pytest.raises(InputError, match="64 bits"):
        out(flow(SINGLE["sum"][0], value="value.x"), ("a", row("one", 2**62), 1), ("b", row("one", 2**62), 1))
    run = flow(SINGLE["sum"][0], value="value.x")
    with pytest.raises(InputError, match="64 bits"):
        out(run, ("b", row("one", -1), 1), ("a", row("one", 2**63 - 1), 1), ("b", row("one", 1), 1))


def test_the_fingerprint_covers_the_parameters() -> None:
    one, other = mapper("value"), mapper("key")
    described = [
        TableSelect(one, other), TableSelect(other, one), TableAggregations(((None, count()),)),
        TableAggregations((("n", count()),)), TableReduce(plus, minus), TableReduce(minus, plus),
        TableAggregate(list, max, min, pa.int64()), TableAggregate(list, min, max, pa.int64()),
        TableAggregate(list, max, min, pa.int32()),
    ]  # fmt: skip
    assert len({json.dumps(dict(spec.describe())) for spec in described}) == len(described)
