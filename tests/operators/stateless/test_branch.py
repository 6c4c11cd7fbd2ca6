"""Streams that are split and merged, against the model that passes one record at a time."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from statelib.columns.windowed_type import SESSIONS
from statelib.errors.kinds import ConfigurationError, InternalError
from statelib.metrics.node_metrics import NodeMetrics
from statelib.operators.base import OperatorContext
from statelib.operators.mappers.mapping import mapper
from statelib.operators.stateless.branch import Branch, Split
from statelib.operators.stateless.merge import Merge
from statelib.operators.stateless.operator import ForEach, Peek
from statelib.records.batch import Batch, Uptake
from statelib.records.key_column import KeyColumn, WindowedKeys, Windows
from statelib.records.key_table import KeyTable
from statelib.stores.memory import MemoryBackend
from tests.reference.streams import Stream

if TYPE_CHECKING:
    from statelib.operators.base import OperatorSpec

NONE = np.empty(0, dtype=np.int64)
UPTAKE = Uptake(0, NONE, NONE.astype(np.int16), NONE.astype(np.int32), NONE)
VALUE = pc.field("value")
HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))


def batch_of(values: list[int | None], sequence: list[int] | None = None, key: pa.DataType | None = None) -> Batch:
    count = len(values)
    numbers = np.array(range(count) if sequence is None else sequence, dtype=np.int64)
    keys = KeyColumn(pa.nulls(count, key or pa.string()))
    return Batch(keys, None, pa.array(values, pa.int64()), numbers * 10, numbers)


def run(spec: OperatorSpec, *inputs: Batch) -> tuple[Batch, NodeMetrics]:
    metrics = NodeMetrics()
    result = spec.build(OperatorContext("NODE", MemoryBackend(), KeyTable(), metrics)).process(inputs, UPTAKE)
    assert metrics.unaccounted == 0
    return result, metrics


@given(st.lists(st.none() | st.integers(0, 9), max_size=12), st.booleans())
def test_the_first_predicate_that_is_true_takes_a_record(values: list[int | None], has_default: bool) -> None:
    spec = Split((mapper(VALUE > 6), mapper(VALUE > 3), mapper(VALUE > 5)), has_default)
    split, metrics = run(spec, batch_of(values))
    model = Stream()
    expected = model.split(*(lambda _, value, n=n: value is not None and value > n for n in (6, 3, 5)))
    for row, value in enumerate(values):
        model.send((None, value, row * 10))
    branches = [run(Branch(number), split) for number in range(4)]
    for number, (branch, ledger) in enumerate(branches):
        sent = expected[number].sent if number < 3 or has_default else []
        assert list(zip(branch.value.to_pylist(), branch.timestamp.tolist(), strict=True)) == [row[1:] for row in sent]
        assert ledger.records_in == ledger.records_out == len(sent)
        assert type(branch) is Batch
    unmatched = 0 if has_default else len(expected[3].sent)
    assert metrics.accounts.get("unmatched", 0) == unmatched
    assert metrics.records_out == len(values) - unmatched


def test_a_later_predicate_does_not_see_what_is_taken() -> None:
    def cautious(columns: pa.RecordBatch) -> pa.Array:
        assert None not in columns["value"].to_pylist()
        return pc.greater(columns["value"], 1)

    split, _ = run(Split((mapper(pc.is_null(VALUE)), mapper(cautious))), batch_of([None, 1, 2]))
    assert [run(Branch(n), split)[0].value.to_pylist() for n in range(2)] == [[None], [2]]


def test_a_predicate_must_give_booleans() -> None:
    with pytest.raises(ConfigurationError, match=r"not bool.*node NODE"):
        run(Split((mapper("value"),)), batch_of([1]))


def test_a_branch_belongs_below_a_split() -> None:
    with pytest.raises(InternalError, match="no child of a split"):
        run(Branch(0), batch_of([1]))


def windowed(batch: Batch, start: int, end: int) -> Batch:
    """The batch under keys of one session."""
    bounds = (np.full(len(batch), time) for time in (start, end))
    return replace(batch, keys=WindowedKeys(batch.keys, Windows(*bounds), SESSIONS), key_code=None)


@given(st.lists(st.integers(0, 2), max_size=12), st.integers(1, 3))
def test_merged_records_come_in_order_of_sequence_then_of_parents(parents: list[int], count: int) -> None:
    batches = [batch_of([row for row, p in enumerate(parents) if p == n], [row // 2 for row, p in enumerate(parents)
                        if p == n]) for n in range(count)]  # fmt: skip
    merged, metrics = run(Merge(), *batches)
    rows = [(row // 2, p, row) for row, p in enumerate(parents) if p < count]
    assert merged.value.to_pylist() == [row for *_, row in sorted(rows)]
    assert metrics.accounts.get("forwarded", 0) == metrics.records_in == metrics.records_out == len(rows)


def test_merged_records_keep_what_they_have() -> None:
    headers = pa.array([[("a", b"1")]], HEADERS)
    one = replace(windowed(batch_of([1], [1]), 5, 9), headers=headers)
    other = windowed(batch_of([2], [0]), 6, 8)
    merged, _ = run(Merge(), one, other)
    assert merged.headers is not None
    assert merged.headers.to_pylist() == [None, [{"key": "a", "value": b"1"}]]
    assert merged.windows is not None
    assert (merged.windows.start.tolist(), merged.windows.end.tolist()) == ([6, 5], [8, 9])


@pytest.mark.parametrize(
    ("other", "message"),
    [
        (replace(batch_of([1]), value=pa.array(["x"])), r"values differ in type.*int64 and string.*node NODE.*map"),
        (batch_of([1], key=pa.int32()), "keys differ in type.*string and int32"),
        (windowed(batch_of([1]), 5, 9), "windowed keys.*select_key"),
    ],
)
def test_streams_that_cannot_be_merged_are_refused(other: Batch, message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        run(Merge(), batch_of([1]), other)


def test_foreach_ends_the_stream_and_sees_every_record_once() -> None:
    seen: list[Any] = []
    ends = ForEach(lambda columns: seen.extend(columns["value"].to_pylist()))
    result, metrics = run(ends, batch_of([1, 2]))
    assert (seen, len(result), metrics.accounts) == ([1, 2], 0, {"consumed": 2})
    assert ends.state_stores() == ()


@pytest.mark.parametrize("spec", [ForEach, Peek])
def test_an_action_is_not_called_for_nothing(spec: type[ForEach | Peek]) -> None:
    seen: list[pa.RecordBatch] = []
    run(spec(seen.append), batch_of([]))
    assert seen == []


def test_the_fingerprint_tells_them_apart() -> None:
    low, high = mapper(VALUE < 1), mapper(VALUE > 1)
    specs: list[OperatorSpec] = [
        Split((low, high)), Split((high, low)), Split((low,)), Split((low,), has_default=True), Branch(0), Branch(1),
        Merge(), ForEach(print),
    ]  # fmt: skip
    assert len({json.dumps(dict(spec.describe())) for spec in specs}) == len(specs)
    assert all(spec.state_stores() == () for spec in specs)
