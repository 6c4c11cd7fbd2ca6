"""Columns of any type that Parquet holds, at any depth: their values are in the topic as the module of types says."""

from __future__ import annotations

import datetime as dt
import decimal
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import given
from hypothesis import strategies as st

from statelib.job.lake_topic import LakeTopic
from tests.ingest.lake import load, records_of

if TYPE_CHECKING:
    import pytest

FIRST_MS = 1_356_998_400_000
EPOCH = dt.datetime(1970, 1, 1)  # noqa: DTZ001
Kind = tuple[pa.DataType, st.SearchStrategy[Any], Any]
"""A type, values of it, and what of a value is in the topic."""


def same(value: Any) -> Any:
    return value


def _midnight(unit: int) -> Any:
    return lambda time: (
        ((time.hour * 60 + time.minute) * 60 + time.second) * unit + time.microsecond * unit // 1_000_000
    )


TIMES = st.times().map(lambda time: time.replace(microsecond=time.microsecond // 1000 * 1000))
CLOCKS = st.datetimes(dt.datetime(1700, 1, 1), dt.datetime(2200, 1, 1))  # noqa: DTZ001
SCALARS: list[Kind] = [
    (pa.bool_(), st.booleans(), same),
    *((pa.int8(), st.integers(-(2**7), 2**7 - 1), same), (pa.int64(), st.integers(-(2**63), 2**63 - 1), same)),
    *((pa.uint8(), st.integers(0, 2**8 - 1), same), (pa.uint32(), st.integers(0, 2**32 - 1), same)),
    (pa.uint64(), st.integers(0, 2**64 - 1), decimal.Decimal),
    (pa.float32(), st.floats(width=32, allow_nan=False), same),
    (pa.float64(), st.floats(allow_nan=False), same),
    (pa.decimal128(12, 3), st.decimals(-(10**8), 10**8, places=3), same),
    (pa.string(), st.text(max_size=4), same),
    (pa.large_string(), st.text(max_size=4), same),
    (pa.string_view(), st.text(max_size=4), same),
    (pa.dictionary(pa.int8(), pa.string()), st.sampled_from(["a", "ü", ""]), same),
    (pa.binary(), st.binary(max_size=4), same),
    (pa.binary(3), st.binary(min_size=3, max_size=3), same),
    (pa.date32(), st.dates(), same),
    (pa.date64(), st.dates(), same),
    (pa.time32("ms"), TIMES, _midnight(1000)),
    (pa.time64("us"), TIMES, _midnight(1_000_000)),
    (pa.timestamp("us"), CLOCKS, same),
    (pa.timestamp("ns"), CLOCKS, same),
    (pa.timestamp("us", "Asia/Tokyo"), CLOCKS.map(lambda time: time.replace(tzinfo=dt.UTC)), same),
]


@st.composite
def kinds(draw: st.DrawFn, depth: int = 0) -> Kind:
    which = draw(st.sampled_from(["scalar", "scalar", "list", "large list", "fixed list", "struct", "map"]))
    if which == "scalar" or depth > 2:
        return draw(st.sampled_from(SCALARS))
    if which == "struct":
        inner = {
            name: draw(kinds(depth + 1)) for name in draw(st.sets(st.sampled_from(["a", "b c", "{d}"]), min_size=1))
        }
        type_ = pa.struct([(name, kind[0]) for name, kind in inner.items()])
        values = st.fixed_dictionaries({name: st.one_of(st.none(), kind[1]) for name, kind in inner.items()})
        return type_, values, lambda row: {name: _or_none(inner[name][2], value) for name, value in row.items()}
    if which == "map":
        type_, values, to = draw(st.sampled_from(SCALARS))
        entries = st.lists(st.tuples(st.text(max_size=3), st.one_of(st.none(), values)), max_size=3)
        return pa.map_(pa.string(), type_), entries, lambda row: [(key, _or_none(to, value)) for key, value in row]
    type_, values, to = draw(kinds(depth + 1))
    sizes = {"min_size": 2, "max_size": 2} if which == "fixed list" else {"max_size": 3}
    made = {"list": pa.list_(type_), "large list": pa.large_list(type_), "fixed list": pa.list_(type_, 2)}[which]
    items = st.lists(st.one_of(st.none(), values), **sizes)  # type: ignore[arg-type]
    return made, items, lambda row: [_or_none(to, value) for value in row]


def _or_none(to: Any, value: Any) -> Any:
    return None if value is None else to(value)


@given(data=st.data(), budget_bytes=st.sampled_from([1, 1 << 26]))
def test_every_value_is_in_the_topic(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject, budget_bytes: int
) -> None:
    folder = tmp_path_factory.mktemp("lake")
    (folder / "lake").mkdir()
    type_, values, to = data.draw(kinds())
    files = data.draw(st.lists(st.lists(st.one_of(st.none(), values), min_size=1, max_size=5), min_size=1, max_size=3))
    loads = data.draw(st.booleans())
    topic = LakeTopic("t", f"{folder}/lake", timestamp="at", partitions=1, order="arrival", value=("n", "x"))
    wanted: list[Any] = []
    for n, rows in enumerate(files):
        at = pa.array([FIRST_MS] * len(rows), pa.timestamp("ms"))
        numbers = pa.array(range(len(wanted), len(wanted) + len(rows)))
        table = pa.table({"at": at, "n": numbers, "x": pa.array(rows, type_)})
        pq.write_table(table, folder / f"lake/{n}.parquet", row_group_size=2)
        wanted += [_or_none(to, value) for value in rows]
        if loads:
            load(topic, folder / "w", budget_bytes=budget_bytes)
    load(topic, folder / "w", budget_bytes=budget_bytes)
    found = [record["value"] for record in records_of(folder / "w", "t")]
    assert [row["n"] for row in found] == list(range(len(wanted)))
    assert [row.get("x") for row in found] == wanted
