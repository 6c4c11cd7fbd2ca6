"""Aggregation of a stream by key against the record-at-a-time model, in every cut of the input."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from statelib.errors.kinds import ConfigurationError, InputError
from statelib.operators.aggregation.definition import Aggregate, Reduce, several, single
from statelib.operators.aggregation.operator import KeyAggregate
from statelib.operators.aggregation.sql_functions import count, mean_, sum_
from statelib.operators.tables.store import KeyValueStore
from statelib.operators.tables.writer import PlainStore, VersionedStore
from statelib.operators.versioned.store import VersionedKeyValueStore
from statelib.serdes import serde_for
from statelib.stores.memory import MemoryBackend
from statelib.stores.spec import families_of
from tests.operators.aggregation.functions import KINDS, SQL, SUMS, row, values
from tests.operators.tables.examples import CUTS, HOW, changes_of, updates
from tests.operators.task import Record, Task
from tests.reference.key_aggregate import Aggregates
from tests.reference.sql_functions import MODELS, sql, timed
from tests.reference.sql_functions import SUMS as MODELS_OF_SUMS
from tests.reference.table import Change, HistoryTable, PlainTable

if TYPE_CHECKING:
    from statelib.operators.aggregation.definition import AggregatorSpec
    from statelib.operators.base import OperatorSpec
    from statelib.settings.semantics import Semantics

ROW = row(pa.int64())
ROWS = updates(values(st.integers(-9, 9)))
RETENTION = st.sampled_from([None, None, 0, 5, 10, 100])
"""None: a plain store."""


def aggregate(aggregator: AggregatorSpec, retention_ms: int | None, *, needs_prior: bool = True) -> KeyAggregate:
    store = PlainStore("s") if retention_ms is None else VersionedStore("s", retention_ms)
    return KeyAggregate(store, aggregator, needs_prior=needs_prior)


def task(aggregator: AggregatorSpec, retention_ms: int | None = None, *, value: pa.DataType = ROW, **rest: Any) -> Task:
    return Task(aggregate(aggregator, retention_ms), pa.string(), [value], **rest)


def table_of(retention_ms: int | None) -> PlainTable | HistoryTable:
    return PlainTable() if retention_ms is None else HistoryTable(retention_ms)


def all_values(retention_ms: int | None, semantics: Semantics = "kip") -> Aggregates:
    table = table_of(retention_ms)
    return Aggregates(list, lambda seen, value: [*seen, value], None, table, semantics == "kafka-4.3")


def shown(change: Change, models: Any = MODELS) -> Change:
    new, old = (None if values is None else sql(values, models) for values in (change.new, change.old))
    return change._replace(new=new, old=old)


@given(ROWS, CUTS, HOW, RETENTION, st.sampled_from(["kip", "kafka-4.3"]))
def test_functions_of_sql(
    records: list[Record], cuts: list[int], flush_every: int, retention_ms: int | None, semantics: Semantics
) -> None:
    model = all_values(retention_ms, semantics)
    expected = [shown(c) for r in records for c in model.process(r.key, timed(r.value, r.timestamp), r.timestamp)]
    run = task(SQL, retention_ms, semantics=semantics)
    assert changes_of(run.run(records, cuts, flush_every=flush_every)) == expected
    assert run.metrics.unaccounted == 0
    assert run.metrics.accounts.get("aggregated", 0) == len(expected)


def fold(_: str, value: int, values: list[int]) -> list[int] | None:
    """Remembers all values; a 9 deletes the aggregate."""
    return None if value == 9 else [*values, value]


@given(updates(), CUTS, HOW, RETENTION)
def test_python_functions_that_may_delete(
    records: list[Record], cuts: list[int], flush_every: int, retention_ms: int | None
) -> None:
    model = Aggregates(list, lambda seen, value: fold("", value, seen), None, table_of(retention_ms))
    expected = [change for r in records for change in model.process(r.key, r.value, r.timestamp)]
    run = task(Aggregate(list, fold, pa.list_(pa.int64())), retention_ms, value=pa.int64())
    assert changes_of(run.run(records, cuts, flush_every=flush_every)) == expected


@given(updates(), CUTS, HOW, RETENTION)
def test_reductions(records: list[Record], cuts: list[int], flush_every: int, retention_ms: int | None) -> None:
    def mix(one: int, other: int) -> int | None:
        return None if other == 9 else (one * 31 + other) % 1_003

    model = Aggregates(
        lambda: None, lambda seen, value: value if seen is None else mix(seen, value), None, table_of(retention_ms)
    )
    expected = [change for r in records for change in model.process(r.key, r.value, r.timestamp)]
    run = task(Reduce(mix), retention_ms, value=pa.int64())
    assert changes_of(run.run(records, cuts, flush_every=flush_every)) == expected


@given(ROWS, CUTS, HOW)
def test_a_sum_of_nothing_is_no_value(records: list[Record], cuts: list[int], flush_every: int) -> None:
    """SQL's null is a table's deletion; the key then starts over, with the timestamp of its next record."""

    def add(seen: int | None, value: dict[str, int | None]) -> int | None:
        return seen if value["x"] is None else (seen or 0) + value["x"]

    model = Aggregates(lambda: None, add)
    expected = [change for r in records for change in model.process(r.key, r.value, r.timestamp)]
    assert changes_of(task(single(sum_("x"))).run(records, cuts, flush_every=flush_every)) == expected


@given(ROWS, CUTS, CUTS, HOW, RETENTION, st.sampled_from([KINDS, single(mean_("x")), single(count())]))
def test_the_same_bytes_in_every_cut(
    records: list[Record], one: list[int], other: list[int], flush_every: int, retention_ms: int | None, spec: Any
) -> None:
    contents = []
    for cuts, every in ((one, 0), (other, flush_every)):
        run = task(spec, retention_ms)
        run.run(records, cuts, flush_every=every)
        contents.append((run.content(), run.metrics.accounts))
    assert contents[0] == contents[1]


def at(*given: tuple[str | None, Any, int]) -> list[Record]:
    return [Record(key, value, time, row) for row, (key, value, time) in enumerate(given)]


def test_a_count_has_the_bytes_of_the_live_application() -> None:
    run = task(single(count()), value=pa.int64())
    run.run(at(("a", 1, 5), ("a", 1, 4)))
    assert run.content()["s"] == [(b"a", bytes.fromhex("0000000000000005 0000000000000002"))]


def test_the_stores_can_be_read_by_themselves() -> None:
    run = task(SQL, value=ROW)
    run.run(at(("a", {"x": 1}, 5), ("a", {"x": 2}, 4)))
    schema = KeyValueStore(run.backend, "s").header.schema
    assert schema is not None
    store = KeyValueStore(run.backend, "s", value_serde=serde_for(pa.struct(list(schema))))
    (found,) = [found for _, found in store.all()]
    assert (found.value["total"], found.value["mean.count"], found.timestamp) == (3, 2, 5)
    versioned = task(single(count()), 100, value=ROW)
    versioned.run(at(("a", {"x": 1}, 5), ("a", {"x": 2}, 4), ("a", {"x": 2}, 9)))
    history = VersionedKeyValueStore(
        versioned.backend, "s", history_retention_ms=100, value_serde=serde_for(pa.int64())
    ).history(b"a", order="ascending")
    assert [(version.value, version.timestamp) for version in history] == [(2, 5), (3, 9)]


def test_results_are_found_in_what_is_stored() -> None:
    for spec in (SQL, single(count()), single(mean_("x")), several(value=count()), several(value=mean_("x"))):
        run = task(spec)
        (result,) = run.run(at(("a", {"x": 1}, 5), ("a", {"x": 4}, 5)))
        loaded = KeyValueStore(run.backend, "s")
        schema = loaded.header.schema
        assert schema is not None
        stored = run.operator._aggregator.dump(np.array([], dtype=np.int64))  # type: ignore[attr-defined]
        assert [field.name for field in stored.type] == schema.names
        single_value = schema.names == ["value"]
        serde = serde_for(schema.field(0).type if single_value else pa.struct(list(schema)))
        values = serde.deserialize(loaded.load([b"a"]).rows)
        assert spec.results_of(values).to_pylist() == result.value.to_pylist()[-1:]


def test_late_records_are_refused_by_a_versioned_store_alone() -> None:
    records = at(("a", 1, 100), ("b", 1, 85), ("a", 1, 85), ("b", 1, 95), (None, 1, 0), ("a", None, 0), ("b", 1, 1))
    for retention_ms, aggregated in ((None, 5), (10, 4)):
        run = task(single(count()), retention_ms, value=pa.int64())
        changes = changes_of(run.run(records, [3], flush_every=1))
        assert len(changes) == aggregated
        # What is late itself counts if the aggregate is younger: the update has the later of both timestamps.
        assert [change.new for change in changes if change.key == "a"] == [1, 2]
        assert run.metrics.accounts.get("refused", 0) == 5 - aggregated
        assert run.metrics.dropped == {"null-key": 1, "null-value": 1} | ({"refused": 1} if retention_ms else {})


@pytest.mark.thorough
def test_many_keys_and_restarts() -> None:
    random = np.random.default_rng(5)
    records = [
        Record(f"k{key}", {"x": int(x)}, int(time), row)
        for row, (key, x, time) in enumerate(
            zip(
                random.integers(0, 300, 1_200),
                random.integers(0, 99, 1_200),
                random.integers(0, 999, 1_200),
                strict=True,
            )
        )
    ]
    for retention_ms in (None, 300):
        model = all_values(retention_ms)
        expected = [
            shown(c, MODELS_OF_SUMS)
            for r in records
            for c in model.process(r.key, timed(r.value, r.timestamp), r.timestamp)
        ]
        for every, flush_every in ((1_200, 0), (300, 1)):
            run = task(SUMS, retention_ms)
            assert changes_of(run.run(records, range(0, 1_200, every), flush_every=flush_every)) == expected


def test_what_cannot_be_is_refused() -> None:
    with pytest.raises(InputError, match="64 bits"):
        task(single(sum_("value")), value=pa.int64()).run(at(("a", 2**62, 1), ("a", 2**62, 1)))
    with pytest.raises(ConfigurationError, match="no sum of string"):
        task(single(sum_("value")), value=pa.string()).run(at(("a", "x", 1)))
    backend = MemoryBackend()
    task(single(count()), backend=backend).run(at(("a", {"x": 1}, 1)))
    with pytest.raises(ConfigurationError, match="types of a store's rows have changed"):
        task(single(mean_("x")), backend=backend).run(at(("a", {"x": 1}, 1)))
    with pytest.raises(ConfigurationError, match="a predicate gave int64, not bool"):
        task(single(count(where="x"))).run(at(("a", {"x": 1}, 1)))


def test_the_working_set_is_forgotten() -> None:
    run = task(SQL, 100)
    run.process(at(("a", {"x": 1}, 5)))
    before = run.operator.memory_bytes()
    run.flush()
    assert 0 == run.operator.memory_bytes() < before


def test_the_fingerprint_covers_the_parameters() -> None:
    count_, plain = single(count()), PlainStore("s")
    specs: list[OperatorSpec] = [
        KeyAggregate(plain, count_), KeyAggregate(plain, count_, of_table=True), KeyAggregate(PlainStore("t"), count_),
        KeyAggregate(plain, SQL), KeyAggregate(VersionedStore("s", 1), count_),
        KeyAggregate(plain, single(count("x"))), KeyAggregate(plain, single(count(where="x"))),
        KeyAggregate(VersionedStore("s", 2), count_),
    ]  # fmt: skip
    assert len({json.dumps(dict(spec.describe())) for spec in specs}) == len(specs)
    assert set(families_of(specs[0].state_stores())) == {"s", "s.header"}
    assert set(families_of(specs[4].state_stores())) == {"s.latest", "s.segments"}
