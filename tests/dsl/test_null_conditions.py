"""Conditions that are null: no record is lost to both a filter and its opposite, however the condition is written."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from statelib import Materialized, Stores, StreamsBuilder, TimeWindows, max_, per_record
from tests.operators.flow import Fed, Flow

if TYPE_CHECKING:
    from collections.abc import Mapping

    from statelib.operators.mappers.mapping import MapperLike
    from statelib.settings.semantics import Semantics

VALUE = pa.struct([("n", pa.int64())])
FIELD = pc.field("value", "n")


def numbers(columns: pa.RecordBatch) -> pa.Array:
    return pc.struct_field(columns["value"], "n")


def in_numpy(columns: pa.RecordBatch) -> Any:
    return np.array([None if n is None else n > 3 for n in numbers(columns).to_pylist()], dtype=object)


CONDITIONS: Mapping[str, MapperLike] = {
    "expression": FIELD > 3,
    "function": lambda columns: pc.greater(numbers(columns), 3),
    "numpy": in_numpy,
    "per-record": per_record(lambda n: None if n is None else n > 3, pa.bool_(), "n"),
}
NULL: Mapping[str, MapperLike] = {
    "expression": pc.equal(FIELD, pa.scalar(None, pa.int64())),
    "function": lambda columns: pa.nulls(len(columns), pa.bool_()),
    "no-type": lambda columns: pa.nulls(len(columns)),
    "numpy": lambda columns: np.array([None] * len(columns), dtype=object),
    "per-record": per_record(lambda _: None, pa.bool_(), "n"),
}
VERSIONED = Stores.persistent_versioned_key_value_store


@pytest.mark.parametrize("how", CONDITIONS)
def test_streams(how: str) -> None:
    """A tombstone has no value to compare: the filter leaves it out, too, and its opposite keeps it."""
    builder = StreamsBuilder("app")
    stream = builder.stream("in")
    stream.filter(CONDITIONS[how]).to("true")
    stream.filter_not(CONDITIONS[how]).to("others")
    first, rest = stream.split().branch(CONDITIONS[how]).default_branch().values()
    first.to("first")
    rest.to("rest")
    values = [{"n": 5}, {"n": None}, {"n": 1}, None, {"n": 9}]
    out = Flow(builder.build(), {"in": (pa.string(), VALUE)}).run(
        [Fed("in", str(row), value, row) for row, value in enumerate(values)], [2, 3], flush_every=1
    )
    assert [row.key for row in out["true"]] == [row.key for row in out["first"]] == ["0", "4"]
    assert [row.key for row in out["others"]] == [row.key for row in out["rest"]] == ["1", "2", "3"]


@pytest.mark.parametrize("how", NULL)
def test_nothing_but_null(how: str) -> None:
    builder = StreamsBuilder("app")
    stream, table = builder.stream("in"), builder.table("of")
    stream.filter(NULL[how]).to("true")
    stream.filter_not(NULL[how]).to("others")
    first, second = stream.split().branch(NULL[how]).branch(pc.is_valid(FIELD)).no_default_branch().values()
    first.to("first")
    second.to("second")
    table.filter(NULL[how]).to_stream().filter(pc.is_valid(pc.field("value"))).to("true-rows")
    table.filter_not(NULL[how]).to_stream().to("other-rows")
    fed = [Fed(topic, "k", {"n": n}, n) for n in (4, 2) for topic in ("in", "of")]
    out = Flow(builder.build(), dict.fromkeys(("in", "of"), (pa.string(), VALUE))).run(fed)
    found = {topic: [row.value["n"] for row in rows] for topic, rows in out.items() if rows}
    assert found == {"others": [4, 2], "second": [4, 2], "other-rows": [4, 2]}


ROWS = st.lists(
    st.tuples(st.sampled_from("abc"), st.none() | st.fixed_dictionaries({"n": st.none() | st.integers(1, 6)})),
    max_size=12,
)


@pytest.mark.parametrize("semantics", ["kip", "kafka-4.3"])
@given(ROWS, st.sampled_from(sorted(CONDITIONS)), st.lists(st.integers(1, 11), max_size=3))
def test_every_row_of_a_table_is_in_one_of_two(
    semantics: Semantics, rows: list[tuple[str, Any]], how: str, cuts: list[int]
) -> None:
    """Plain and versioned, with stores and without, and over windows."""
    condition, hour = CONDITIONS[how], timedelta(hours=1)
    builder = StreamsBuilder("app")
    plain, versioned = (
        builder.table("in"),
        builder.stream("in").to_table(materialized=Materialized.as_(VERSIONED("versions", hour))),
    )
    maxima = (
        builder.stream("in")
        .group_by_key()
        .windowed_by(TimeWindows.of_size_with_no_grace(hour))
        .aggregate({"n": max_("n")})
    )
    two = {
        "plain": (plain.filter(condition), plain.filter_not(condition)),
        "stored": tuple(
            keep(condition, materialized=Materialized.as_(name))
            for keep, name in ((plain.filter, "true"), (plain.filter_not, "others"))
        ),
        "versioned": (versioned.filter(condition), versioned.filter_not(condition)),
        "versioned-stored": tuple(
            keep(condition, materialized=Materialized.as_(VERSIONED(name, hour)))
            for keep, name in ((versioned.filter, "true-versions"), (versioned.filter_not, "other-versions"))
        ),
        "windowed": (maxima.filter(condition), maxima.filter_not(condition)),
    }
    for name, tables in two.items():
        for which, table in zip(("true", "others"), tables, strict=True):
            table.to_stream().to(f"{name}-{which}")
    maxima.to_stream().to("maxima")
    fed = [Fed("in", key, value, at) for at, (key, value) in enumerate(rows)]
    out = Flow(builder.build(), {"in": (pa.string(), VALUE)}, semantics).run(fed, cuts, flush_every=1)

    def content(topic: str) -> dict[str, Any]:
        held: dict[str, Any] = {}
        for row in out.get(topic, []):
            held[str(row.key)] = row.value
        return {key: value for key, value in held.items() if value is not None}

    given_rows = {key: value for key, value in dict(rows).items() if value is not None}
    for name in two:
        expected = content("maxima") if name == "windowed" else given_rows
        true, others = content(f"{name}-true"), content(f"{name}-others")
        assert true == {key: value for key, value in expected.items() if (value["n"] or 0) > 3}, name
        assert others == {key: value for key, value in expected.items() if key not in true}, name
