"""Filtered, mapped and transformed tables against the record-at-a-time model, in every cut of the input."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from statelib.columns.windowed_type import KeyWindows
from statelib.errors.kinds import ConfigurationError
from statelib.operators.asking import Asking
from statelib.operators.mappers.mapping import mapper, per_record
from statelib.operators.tables.derived import DerivedTable, ToStream
from statelib.operators.tables.source import PlainTableSource, TableSource
from statelib.operators.tables.steps import FilterStep, MapStep, TransformStep, columns_of
from statelib.operators.tables.store import KeyValueStore
from statelib.operators.tables.writer import PlainStore, VersionedStore
from statelib.records.batch import Batch
from statelib.records.key_column import KeyColumn, WindowedKeys, Windows
from statelib.serdes import serde_for
from tests.operators.joined_table import Both
from tests.operators.tables.examples import CUTS, HOW, changes_of, updates
from tests.operators.task import Record, Task
from tests.reference.table import Change, HistoryTable, PlainTable, filtered, mapped

if TYPE_CHECKING:
    from collections.abc import Sequence

    from statelib.operators.base import Operator, OperatorContext, OperatorSpec
    from statelib.operators.tables.steps import TableStep
    from statelib.records.batch import Uptake
    from statelib.stores.backend import WriteBatch
    from statelib.stores.spec import StoreSpec

EVEN = FilterStep(mapper(lambda columns: pc.equal(pc.bit_wise_and(columns["value"], 1), 0)))
ODD = FilterStep(EVEN.predicate, negated=True)
TENFOLD = MapStep(per_record(lambda value: value * 10, pa.int64(), "value"))
OR_EIGHT = TransformStep(mapper(pc.coalesce(pc.field("value"), 8)))
RETENTION = st.sampled_from([0, 10, 100])


@dataclass(frozen=True)
class Chained:
    """A table source and what is made of it, as one operator."""

    source: PlainTableSource | TableSource
    derived: DerivedTable

    def build(self, context: OperatorContext) -> Chain:
        return Chain(self.source.build(context), self.derived.build(context))

    def describe(self) -> dict[str, object]:
        return {}

    def state_stores(self) -> Sequence[StoreSpec]:
        return (*self.source.state_stores(), *self.derived.state_stores())


class Chain(Both):
    def __init__(self, *operators: Operator) -> None:
        self.operators = operators

    def process(self, inputs: Sequence[Batch], uptake: Uptake) -> Batch:
        (batch,) = inputs
        for operator in self.operators:
            batch = operator.process([batch], uptake)
        return batch

    def flush(self, write: WriteBatch) -> None:
        for operator in self.operators:
            operator.flush(write)


def run(source: Any, derived: DerivedTable, records: list[Record], cuts: list[int], flush_every: int) -> Task:
    task = Task(Chained(source, derived), pa.string(), [pa.int64()])
    task.forwarded = changes_of(task.run(records, cuts, flush_every=flush_every))  # type: ignore[attr-defined]
    assert task.metrics.unaccounted == 0
    return task


def changes(table: PlainTable | HistoryTable, records: list[Record]) -> list[Change]:
    return [change for record in records for change in table.put(record.key, record.value, record.timestamp)]


def is_even(value: int) -> bool:
    return value % 2 == 0


@given(updates(), CUTS, HOW, st.booleans(), st.booleans())
def test_a_filtered_plain_table(
    records: list[Record], cuts: list[int], flush_every: int, knows_old: bool, stored: bool
) -> None:
    expected = [
        after
        for change in changes(PlainTable(), records)
        for after in filtered(change, is_even, knows_old=knows_old, versioned=False)
    ]
    store = PlainStore("even") if stored else None
    source = PlainTableSource("t", needs_prior=knows_old and not stored)
    task = run(source, DerivedTable(EVEN, store, needs_prior=knows_old), records, cuts, flush_every)
    assert task.forwarded == expected  # type: ignore[attr-defined]
    if stored:
        kept = KeyValueStore(task.backend, "even", key_serde=serde_for(pa.string()), value_serde=serde_for(pa.int64()))
        model = PlainTable()
        changes(model, [Record(c.key, c.new, c.timestamp, 0) for c in expected])
        assert dict(kept.all()) == model.values


@given(updates(), CUTS, HOW, RETENTION, st.sampled_from(["nowhere", "plain", "versioned"]))
def test_a_filtered_versioned_table_lets_everything_go_on(
    records: list[Record], cuts: list[int], flush_every: int, retention_ms: int, kept: str
) -> None:
    of_source = changes(HistoryTable(retention_ms), records)
    expected = [after for change in of_source for after in filtered(change, is_even, knows_old=True, versioned=True)]
    if kept != "nowhere":  # then the old value, and what is the latest, is what the filtered table has
        own: Any = PlainTable() if kept == "plain" else HistoryTable(retention_ms)
        expected = changes(own, [Record(c.key, c.new, c.timestamp, 0) for c in expected])
    store = {"nowhere": None, "plain": PlainStore("own"), "versioned": VersionedStore("own", retention_ms)}[kept]
    source = TableSource("t", retention_ms, needs_prior=kept == "nowhere")
    derived = DerivedTable(EVEN, store, needs_prior=True, versioned_parent=True)
    assert run(source, derived, records, cuts, flush_every).forwarded == expected  # type: ignore[attr-defined]


@given(updates(), CUTS, HOW, RETENTION, st.booleans())
def test_mapped_values(
    records: list[Record], cuts: list[int], flush_every: int, retention_ms: int, versioned: bool
) -> None:
    table = HistoryTable(retention_ms) if versioned else PlainTable()
    expected = [mapped(change, lambda value: value * 10) for change in changes(table, records)]
    source: Any = TableSource("t", retention_ms, needs_prior=True)
    if not versioned:
        source = PlainTableSource("t", needs_prior=True)
    derived = DerivedTable(TENFOLD, needs_prior=True, versioned_parent=versioned)
    assert run(source, derived, records, cuts, flush_every).forwarded == expected  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("step", "values"),
    [
        (EVEN, [2, None, None, None]),
        (ODD, [None, 3, None, None]),
        (FilterStep(mapper(pc.field("value") > 2)), [None, 3, None, None]),
        (FilterStep(mapper(lambda columns: pa.nulls(len(columns), pa.bool_()))), [None] * 4),
        (TENFOLD, [20, 30, None, None]),
        (OR_EIGHT, [2, 3, 8, 8]),
    ],
)
def test_steps(step: TableStep, values: list[int | None]) -> None:
    columns = columns_of(KeyColumn(pa.array(["a", "b", "c", "a"])), pa.array([2, 3, None, None], pa.int64()))
    assert step.apply(columns, Asking("NODE", np.arange(4))).to_pylist() == values
    assert step.apply(columns.slice(2), Asking("NODE", np.arange(2))).to_pylist() == values[2:]
    assert step.apply(columns.slice(0, 0), Asking("NODE", np.arange(0))).type == pa.int64()


def test_steps_see_keys_and_windows_and_name_the_node() -> None:
    windows = Windows(np.array([0, 10]), np.array([10, 20]))
    keys = WindowedKeys(KeyColumn(pa.array(["a", "b"])), windows, KeyWindows("time", 10))
    columns = columns_of(keys, pa.array([1, 2]))
    late = FilterStep(mapper(pc.field("window_start") > 5))
    assert late.apply(columns, Asking("NODE", np.arange(2))).to_pylist() == [None, 2]
    assert MapStep(mapper("key")).apply(columns, Asking("NODE", np.arange(2))).to_pylist() == ["a", "b"]
    with pytest.raises(ConfigurationError, match="no field 'timestamp'.*NODE"):
        FilterStep(mapper("timestamp")).apply(columns, Asking("NODE", np.arange(2)))


def test_without_old_values_every_deletion_goes_on() -> None:
    records = [Record("a", 1, 5, 0), Record("a", 2, 6, 1), Record("a", 3, 7, 2), Record("a", None, 8, 3)]
    for knows_old, expected in ((False, [None, 2, None, None]), (True, [2, None])):
        source = PlainTableSource("t", needs_prior=knows_old)
        task = run(source, DerivedTable(EVEN, needs_prior=knows_old), records, [], 0)
        assert [change.new for change in task.forwarded] == expected  # type: ignore[attr-defined]
    assert task.metrics.accounts["filtered"] == 2


def test_to_stream_forgets_the_past() -> None:
    task = Task(ToStream(), pa.string(), [pa.int64()])
    batch = task.input_of([Record("a", 1, 5, 0)], 0)
    batch = Batch(
        batch.keys, batch.key_code, batch.value, batch.timestamp, batch.sequence,
        prior=pa.array([7]), is_latest=np.array([False]),
    )  # fmt: skip
    result = task.operator.process([batch], task.uptake_of([Record("a", 1, 5, 0)]))
    assert (result.prior, result.is_latest) == (None, None)
    assert task.metrics.accounts == {"forwarded": 1}
    assert ToStream().state_stores() == ()


def test_the_fingerprint_covers_what_decides_the_answer() -> None:
    specs: list[OperatorSpec] = [
        DerivedTable(EVEN), DerivedTable(ODD), DerivedTable(TENFOLD), DerivedTable(OR_EIGHT),
        DerivedTable(EVEN, PlainStore("s")), DerivedTable(EVEN, VersionedStore("s", 1)),
        DerivedTable(EVEN, needs_prior=True), ToStream(),
    ]  # fmt: skip
    assert len({json.dumps(dict(spec.describe())) for spec in specs}) == len(specs)
    same = DerivedTable(EVEN, needs_prior=True, versioned_parent=True)
    assert same.describe() == DerivedTable(EVEN).describe()
