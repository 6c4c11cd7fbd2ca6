"""None, one or many results of a record: order, columns, ledger, and what is refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from statelib.columns.windowed_type import KeyWindows
from statelib.errors.kinds import ConfigurationError
from statelib.metrics.node_metrics import NodeMetrics
from statelib.operators.base import OperatorContext
from statelib.operators.mappers.mapping import MapperLike, mapper, per_record
from statelib.operators.stateless.flat_map import FlatMap, FlatMapValues
from statelib.records.batch import Batch, Uptake
from statelib.records.key_column import KeyColumn, WindowedKeys, Windows
from statelib.records.key_table import KeyTable
from statelib.stores.backend import WriteBatch
from statelib.stores.memory import MemoryBackend

ONE_MS = KeyWindows("time", 1)
RECORD = pa.struct([("key", pa.string()), ("value", pa.int64())])
LISTS: tuple[Callable[[pa.DataType], pa.DataType], ...] = (pa.list_, pa.large_list)


def batch_of(values: pa.Array) -> Batch:
    count = len(values)
    numbers = np.arange(count, dtype=np.int64)
    header = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
    return Batch(
        WindowedKeys(
            KeyColumn(pa.array([f"k{n}" for n in range(count)], pa.string())), Windows(numbers, numbers + 1), ONE_MS
        ),
        numbers,
        values,
        numbers * 10,
        numbers + 5,
        headers=pa.array([[("n", str(n).encode())] for n in range(count)], header),
    )


def run(spec: FlatMap | FlatMapValues, batch: Batch) -> tuple[Batch, NodeMetrics]:
    metrics = NodeMetrics()
    operator = spec.build(OperatorContext("NODE", MemoryBackend(), KeyTable(), metrics))
    none = np.empty(0, dtype=np.int64)
    result = operator.process([batch], Uptake(0, none, none.astype(np.int16), none.astype(np.int32), none))
    write = WriteBatch()
    operator.flush(write)
    assert (len(write), operator.memory_bytes(), metrics.unaccounted, spec.state_stores()) == (0, 0, 0, ())
    assert (metrics.records_in, metrics.records_out) == (len(batch), len(result))
    return result, metrics


@pytest.mark.parametrize("list_of", LISTS)
@given(st.lists(st.none() | st.lists(st.none() | st.integers(0, 9), max_size=3), max_size=8), st.integers(0, 3))
def test_values(list_of: Callable[[pa.DataType], pa.DataType], values: list[list[int | None] | None], cut: int) -> None:
    batch = batch_of(pa.array(values, list_of(pa.int64()))).slice(cut, len(values))
    result, metrics = run(FlatMapValues(mapper("value")), batch)
    expected = [(n, item) for n, items in enumerate(values[cut:], start=cut) for item in items or []]
    assert list(zip(result.timestamp // 10, result.value.to_pylist(), strict=True)) == expected
    assert result.sequence.tolist() == [n + 5 for n, _ in expected]
    assert result.key.to_pylist() == [f"k{n}" for n, _ in expected]
    assert result.key_code is not None
    assert result.key_code.tolist() == [n for n, _ in expected]
    assert result.windows is not None
    assert result.windows.end.tolist() == [n + 1 for n, _ in expected]
    assert result.headers is not None
    assert [headers[0]["value"] for headers in result.headers.to_pylist()] == [b"%d" % n for n, _ in expected]
    assert metrics.accounts.get("forwarded", 0) == sum(bool(items) for items in values[cut:])
    assert metrics.accounts.get("empty-list", 0) == sum(not items for items in values[cut:])


def test_lists_of_one_length() -> None:
    values = pa.array([[1, 2], None, [3, 4]], pa.list_(pa.int64(), 2))
    result, metrics = run(FlatMapValues(mapper("value")), batch_of(values))
    assert (result.value.to_pylist(), result.timestamp.tolist()) == ([1, 2, 3, 4], [0, 0, 20, 20])
    assert metrics.accounts == {"forwarded": 2, "empty-list": 1}


def words(text: str | None) -> list[Any]:
    return [] if text is None else [(word, len(word)) for word in text.split()]


@pytest.mark.parametrize(
    "records",
    [
        per_record(words, pa.list_(RECORD), "value"),
        per_record(lambda text: [dict(zip(("key", "value"), word, strict=True)) for word in words(text)],
                   pa.list_(RECORD), "value"),
        lambda columns: pa.array([words(text) for text in columns["value"].to_pylist()], pa.list_(RECORD)),
    ],
)  # fmt: skip
def test_records(records: MapperLike) -> None:
    result, metrics = run(FlatMap(mapper(records)), batch_of(pa.array(["a bcd", None, "", "ef"])))
    assert result.key.to_pylist() == ["a", "bcd", "ef"]
    assert result.value.to_pylist() == [1, 3, 2]
    assert result.timestamp.tolist() == [0, 0, 30]
    assert (result.key_code, result.windows) == (None, None)
    assert metrics.accounts == {"forwarded": 2, "empty-list": 2}


def test_a_result_may_have_a_null_key_or_value() -> None:
    lists = pa.array([[{"key": None, "value": 1}, {"key": "a", "value": None}]], pa.list_(RECORD))
    result, _ = run(FlatMap(mapper("value")), batch_of(lists))
    assert (result.key.to_pylist(), result.value.to_pylist()) == ([None, "a"], [1, None])


def test_the_types_are_known_without_records() -> None:
    result, _ = run(FlatMap(mapper("value")), batch_of(pa.array([], pa.list_(RECORD))))
    assert (result.key.type, result.value.type) == (pa.string(), pa.int64())


@pytest.mark.parametrize(
    ("spec", "values", "message"),
    [
        (FlatMapValues(mapper("value")), pa.array([1]), r"gave int64, not lists.*node NODE.*pa\.list_"),
        (FlatMap(mapper("value")), pa.array([[1]]), r"lists of int64, not of records.*fields key and value"),
        (FlatMap(mapper("value")), pa.array([[{"key": 1}]]), "not of records"),
        (FlatMap(mapper("value")), pa.array([[None, {"key": "a", "value": 1}]]), "a null in place of a record"),
        (FlatMapValues(per_record(lambda text: text.split(), pa.list_(pa.string()), "value")), pa.array([1]), "failed"),
    ],
)
def test_what_cannot_be_unfolded_names_the_node(spec: FlatMap | FlatMapValues, values: pa.Array, message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        run(spec, batch_of(values))


def test_changes_of_a_table_are_plain_records_behind_it() -> None:
    values = pa.array([["a", "b"]])
    changes = replace(batch_of(values), prior=values, is_latest=np.array([True]))
    result, _ = run(FlatMapValues(mapper("value")), changes)
    assert (result.prior, result.is_latest) == (None, None)


def test_the_fingerprint_tells_them_apart() -> None:
    specs = [FlatMap(mapper("value")), FlatMapValues(mapper("value")), FlatMapValues(mapper("tags"))]
    assert len({json.dumps(dict(spec.describe())) for spec in specs}) == 3
