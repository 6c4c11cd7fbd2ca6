"""Tables against the record-at-a-time model, in every cut of the input."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from statelib.errors.kinds import ConfigurationError
from statelib.operators.tables import working_set as latest_values
from statelib.operators.tables.source import PlainTableSource, TableSource
from statelib.operators.tables.store import KeyValueStore
from statelib.serdes import serde_for
from statelib.stores.memory import MemoryBackend
from statelib.stores.spec import families_of
from tests.operators.tables.examples import CUTS, HOW, changes_of, updates
from tests.operators.task import Record, Task
from tests.reference.table import Change, HistoryTable, PlainTable

if TYPE_CHECKING:
    from statelib.operators.base import OperatorSpec

NUMBER = pa.int64()


def task(spec: OperatorSpec, value_type: pa.DataType = NUMBER) -> Task:
    return Task(spec, pa.string(), [value_type])


def expected(table: PlainTable | HistoryTable, records: list[Record], *, old: bool = True) -> list[Change]:
    changes = [change for record in records for change in table.put(record.key, record.value, record.timestamp)]
    return changes if old else [change._replace(old=None, is_latest=True) for change in changes]


@given(updates(), CUTS, HOW, st.booleans(), st.sampled_from([1, 1 << 14]))
def test_a_plain_table_is_what_arrived_last(
    records: list[Record], cuts: list[int], flush_every: int, needs_prior: bool, compact_from: int
) -> None:
    model = PlainTable()
    changes = expected(model, records, old=needs_prior)
    run = task(PlainTableSource("t", needs_prior=needs_prior))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(latest_values, "_COMPACT_FROM_ROWS", compact_from)
        assert changes_of(run.run(records, cuts, flush_every=flush_every)) == changes
    assert run.metrics.unaccounted == 0
    store = KeyValueStore(run.backend, "t", key_serde=serde_for(pa.string()), value_serde=serde_for(NUMBER))
    assert dict(store.all()) == model.values


@given(updates(), CUTS, HOW, st.sampled_from([0, 1, 10, 100]))
def test_a_versioned_table_knows_what_is_the_latest(
    records: list[Record], cuts: list[int], flush_every: int, retention_ms: int
) -> None:
    changes = expected(HistoryTable(retention_ms), records)
    run = task(TableSource("t", retention_ms, needs_prior=True))
    assert changes_of(run.run(records, cuts, flush_every=flush_every)) == changes
    assert run.metrics.unaccounted == 0
    unasked = task(TableSource("t", retention_ms))
    assert changes_of(unasked.run(records, cuts)) == [c._replace(old=None, is_latest=True) for c in changes]
    assert unasked.content() == run.content()


@given(updates(), CUTS, CUTS, HOW)
def test_the_same_bytes_in_every_cut(records: list[Record], one: list[int], other: list[int], flush_every: int) -> None:
    contents = []
    for cuts, every, needs_prior in ((one, 0, False), (other, flush_every, True)):
        run = task(PlainTableSource("t", needs_prior=needs_prior))
        run.run(records, cuts, flush_every=every)
        contents.append(run.content())
    assert contents[0] == contents[1]


def test_a_tombstone_at_the_time_of_the_latest_version_leaves_no_trace_as_shipped() -> None:
    records = [Record("a", value, at, row) for row, (value, at) in enumerate([(1, 50), (None, 50), (2, 40), (3, 45)])]
    for semantics, latest in (("kip", [True, True, False, False]), ("kafka-4.3", [True, True, True, True])):
        for flush_every in (0, 1):
            run = Task(TableSource("t", 100, needs_prior=True), pa.string(), [NUMBER], semantics=semantics)  # type: ignore[arg-type]
            changes = changes_of(run.run(records, range(4), flush_every=flush_every))
            assert [change.is_latest for change in changes] == latest
            assert [change.old for change in changes] == [None, 1, None, None if semantics == "kip" else 2]


def test_a_table_that_nobody_looks_into_has_no_store() -> None:
    spec = PlainTableSource("t", materialized=False)
    run = task(spec)
    (result,) = run.run([Record("a", 1, 5, 0), Record(None, 1, 5, 1), Record("a", None, 4, 2)])
    assert changes_of([result]) == [Change("a", 1, None, 5), Change("a", None, None, 4)]
    assert run.metrics.accounts == {"forwarded": 2, "null-key": 1}
    assert (spec.state_stores(), run.content()) == ((), {})
    assert run.backend.is_empty("t")


def test_accounts_and_memory() -> None:
    run = task(PlainTableSource("t", needs_prior=True))
    run.process([Record("a", 1, 5, 0), Record(None, 1, 5, 1), Record("a", None, 4, 2)])
    assert run.metrics.accounts == {"stored": 2, "null-key": 1}
    assert run.metrics.dropped == {"null-key": 1}
    assert run.operator.memory_bytes() > 0
    run.flush()
    assert run.operator.memory_bytes() == 0


def test_values_of_another_type_are_refused() -> None:
    backend = MemoryBackend()
    Task(PlainTableSource("t"), pa.string(), [NUMBER], backend=backend).run([Record("a", 1, 5, 0)])
    with pytest.raises(ConfigurationError, match="types of a store's rows have changed"):
        Task(PlainTableSource("t"), pa.string(), [pa.string()], backend=backend).run([Record("a", "1", 5, 0)])


@pytest.mark.thorough
def test_many_updates_of_structs_in_any_order() -> None:
    random = np.random.default_rng(7)
    shape = pa.struct([("n", pa.int64()), ("s", pa.string())])
    records = [
        Record(f"k{key}", None if key % 5 == 0 else {"n": row, "s": f"s{row}"}, int(at), row)
        for row, (key, at) in enumerate(
            zip(random.integers(0, 3_000, 40_000), random.integers(0, 99, 40_000), strict=True)
        )
    ]
    changes = expected(PlainTable(), records)
    for every, flush_every in ((40_000, 0), (9_000, 1), (7_000, 0)):
        run = task(PlainTableSource("t", needs_prior=True), shape)
        assert changes_of(run.run(records, range(0, 40_000, every), flush_every=flush_every)) == changes


def test_the_fingerprint_covers_the_parameters() -> None:
    specs: list[OperatorSpec] = [
        PlainTableSource("t"), PlainTableSource("u"), PlainTableSource("t", materialized=False), TableSource("t", 1),
    ]  # fmt: skip
    assert len({json.dumps(dict(spec.describe())) for spec in specs}) == len(specs)
    assert set(families_of(PlainTableSource("t").state_stores())) == {"t", "t.header"}
