"""The versioned join and the table behind it, against the record-at-a-time model, in every cut of the input."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from statelib.operators.joins.stream_table.operator import StreamTableJoin
from statelib.operators.mappers.mapping import mapper
from statelib.operators.tables.source import TableSource
from statelib.operators.versioned.store import VersionedKeyValueStore
from statelib.serdes import serde_for
from statelib.stores.memory import MemoryBackend
from statelib.stores.spec import families_of
from tests.operators.joined_table import STREAM, TABLE, JoinedTable
from tests.operators.task import Record, Task
from tests.reference.stream_table_join import VersionedTable, joined

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from statelib.metrics.node_metrics import NodeMetrics
    from statelib.operators.base import OperatorSpec
    from statelib.records.batch import Batch
    from statelib.settings.semantics import Semantics

pytestmark = pytest.mark.thorough

LEFT = pa.struct([("n", pa.int64())])
RIGHT = pa.struct([("wind", pa.int64())])
JOINER = mapper({"n": "left.n", "wind": "right.wind", "key": "key", "at": "timestamp"})


def task(retention_ms: int, *, left: bool = False, semantics: Semantics = "kip") -> Task:
    return Task(JoinedTable(JOINER, retention_ms, left=left), pa.string(), [LEFT, RIGHT], semantics=semantics)


@st.composite
def histories(draw: st.DrawFn) -> list[Record]:
    """Updates and stream records out of order, with equal times, nulls and tombstones; mostly one hot key."""
    base = draw(st.sampled_from([0, 1_700_000_000_000]))
    now = base + 20
    records = []
    for row in range(draw(st.integers(0, 40))):
        now += draw(st.sampled_from([0, 0, 1, 1, 5, 30]))
        timestamp = max(0, now - draw(st.sampled_from([0, 0, 0, 1, 5, 10, 11, 40])))
        key = draw(st.sampled_from(["a", "a", "a", "b", "c", None]))
        parent = draw(st.sampled_from([STREAM, TABLE, TABLE, None]))
        field = "wind" if parent == TABLE else "n"
        value = draw(st.sampled_from([{field: row}, {field: row}, {field: None}, None]))
        records.append(Record(key, value, timestamp, row, parent))
    return records


def model(retention_ms: int, records: list[Record], *, left: bool) -> list[dict[str, object]]:
    table = VersionedTable(retention_ms)
    out: list[dict[str, object]] = []
    for record in records:
        if record.parent == TABLE and record.key is not None:
            table.put(record.key, record.value, record.timestamp)
        elif record.parent == STREAM:
            for right in joined(table, record.key, record.value, record.timestamp, left=left):
                wind = None if right is None else right["wind"]
                n = record.value["n"]
                out.append({"n": n, "wind": wind, "key": record.key, "at": record.timestamp})
    return out


def values(results: Iterable[Batch]) -> list[dict[str, object]]:
    return [value for result in results for value in result.value.to_pylist()]


@pytest.mark.parametrize("left", [False, True])
@given(records=histories(), retention_ms=st.sampled_from([0, 1, 10, 100]), cuts=st.lists(st.integers(1, 39)))
def test_the_models_answer_in_every_cut(left: bool, records: list[Record], retention_ms: int, cuts: list[int]) -> None:
    expected = model(retention_ms, records, left=left)
    for where, flush_every in [([], 0), (cuts, 0), (cuts, 1), (range(40), 1), (range(40), 3)]:
        run = task(retention_ms, left=left)
        results = run.run(records, list(where), flush_every=flush_every)
        assert values(results) == expected
        assert [int(time) for result in results for time in result.timestamp] == [value["at"] for value in expected]
        assert run.metrics.unaccounted == 0


@pytest.mark.parametrize("semantics", ["kip", "kafka-4.3"])
@given(records=histories(), retention_ms=st.sampled_from([0, 1, 10, 100]), cuts=st.lists(st.integers(1, 39)))
def test_batches_and_single_puts_lead_to_the_same_bytes(
    semantics: Semantics, records: list[Record], retention_ms: int, cuts: list[int]
) -> None:
    updates = [record for record in records if record.parent == TABLE]
    store = VersionedKeyValueStore(
        backend := MemoryBackend(), "t", history_retention_ms=retention_ms, semantics=semantics
    )
    serialized = serde_for(RIGHT).serialize(pa.array([record.value for record in updates], RIGHT)).to_pylist()
    for record, value in zip(updates, serialized, strict=True):
        if record.key is not None:
            store.put(record.key.encode(), value, record.timestamp)
    store.flush()
    run = task(retention_ms, semantics=semantics)
    run.run(records, cuts, flush_every=1)
    for family in families_of(run.spec.state_stores()):
        assert list(run.backend.scan(family)) == list(backend.scan(family))


@pytest.mark.parametrize("semantics", ["kip", "kafka-4.3"])
@given(
    records=histories(),
    retention_ms=st.sampled_from([1, 10, 100]),
    interval_ms=st.sampled_from([1, 4, 1000]),
    first=st.integers(1, 39),
    cuts=st.lists(st.integers(1, 39)),
)
def test_what_was_stored_is_read_as_far_back_as_it_is_asked_for(
    semantics: Semantics, records: list[Record], retention_ms: int, interval_ms: int, first: int, cuts: list[int]
) -> None:
    """Batches that ask for earlier and earlier times, over state that was written by a slice before."""
    spec = JoinedTable(JOINER, retention_ms, interval_ms, left=True)
    whole = Task(spec, pa.string(), [LEFT, RIGHT], semantics=semantics)
    expected = values(whole.run(records))
    run = Task(spec, pa.string(), [LEFT, RIGHT], semantics=semantics)
    results = run.run(records[:first], flush_every=1)
    results += run.run(records[first:], [cut - first for cut in cuts])
    assert values(results) == expected
    assert run.content() == whole.content()


def test_a_join_reads_only_the_history_that_it_is_asked_for() -> None:
    backend = CountingBackend()
    spec = JoinedTable(JOINER, 1000, 1, left=True)
    updates = rows(*((TABLE, key, at, at) for at in range(10, 60, 10) for key in ("a", "b")))
    Task(spec, pa.string(), [LEFT, RIGHT], backend).run(updates)
    run = Task(spec, pa.string(), [LEFT, RIGHT], backend)
    run.stream_time = 50
    # Nothing for the latest version; what ended since the time asked for; for an earlier time the rest, once.
    for key, at, read in (("a", 55, 0), ("b", 45, 1), ("a", 45, 4), ("a", 15, 0), ("b", 25, 4), ("b", 15, 0)):
        backend.rows = 0
        (found,) = values([run.process(rows((STREAM, key, 1, at)))])
        assert (found["wind"], backend.rows) == (at // 10 * 10, read)


class CountingBackend(MemoryBackend):
    """Counts the rows of segments that are found."""

    rows = 0

    def multi_get(self, family: str, keys: Sequence[bytes]) -> list[bytes | None]:
        found = super().multi_get(family, keys)
        if family.endswith(".segments"):
            self.rows += sum(raw is not None for raw in found)
        return found


def rows(*updates_and_records: tuple[int, str | None, Any, int]) -> list[Record]:
    return [
        Record(key, value and {"wind" if parent == TABLE else "n": value}, at, row, parent)
        for row, (parent, key, value, at) in enumerate(updates_and_records)
    ]


def ledger(left: bool) -> NodeMetrics:
    records = rows(
        (TABLE, "a", 1, 10), (TABLE, None, 1, 10), (STREAM, "a", 1, 10), (STREAM, "a", 1, 9), (STREAM, None, 1, 10),
        (STREAM, "a", None, 10), (STREAM, None, None, 10), (TABLE, "a", 1, 200), (TABLE, "a", 1, 99),
    )  # fmt: skip
    run = task(100, left=left)
    run.run(records)
    assert run.metrics.unaccounted == 0
    return run.metrics


@pytest.mark.parametrize(("left", "out"), [(False, 1), (True, 3)])
def test_accounts(left: bool, out: int) -> None:
    metrics = ledger(left)
    assert metrics.accounts == {
        "stored": 2, "refused": 1, "null-key": 2, "joined": 1, "unmatched": 1, "null-value": 2,
    }  # fmt: skip
    assert metrics.records_out == out + 2


def test_an_update_of_the_same_source_record_comes_first() -> None:
    run = task(100)
    both = rows((TABLE, "a", 1, 5)) + rows((STREAM, "a", 2, 5))
    stream, table = run.input_of(both[1:], STREAM), run.input_of(both[:1], TABLE)
    result = run.operator.process([stream, table], run.uptake_of(both[:1]))
    assert result.value.to_pylist() == [{"n": 2, "wind": 1, "key": "a", "at": 5}]


def test_many_versions_in_any_order() -> None:
    """Versions by the thousand, of few keys, so that timelines move and chunks merge."""
    random = np.random.default_rng(3)
    records = [
        Record(f"k{random.integers(3)}", {"n" if parent == STREAM else "wind": row}, int(at), row, int(parent))
        for row, (at, parent) in enumerate(
            zip(random.integers(0, 5_000, 6_000), random.integers(0, 2, 6_000), strict=True)
        )
    ]
    expected = model(2_000, records, left=True)
    for every, flush_every in ((6_000, 0), (700, 0), (900, 1), (300, 4)):
        assert values(task(2_000, left=True).run(records, range(0, 6_000, every), flush_every=flush_every)) == expected


def test_the_working_set_is_forgotten() -> None:
    run = task(100)
    run.process(rows((TABLE, "a", 1, 5), (STREAM, "a", 2, 5)))
    assert run.operator.memory_bytes() > 0
    run.flush()
    assert run.operator.memory_bytes() == 0


def test_the_table_passes_on_what_it_put() -> None:
    run = Task(TableSource("t", 10), pa.string(), [RIGHT])
    (result,) = run.run([Record(r.key, r.value, r.timestamp, r.offset) for r in rows(
        (TABLE, "a", 1, 20), (TABLE, "a", None, 30), (TABLE, "a", 2, 19), (TABLE, "a", 3, 20),
    )])  # fmt: skip
    assert result.value.to_pylist() == [{"wind": 1}, None, {"wind": 3}]


def test_the_fingerprint_covers_the_parameters() -> None:
    specs: list[OperatorSpec] = [
        StreamTableJoin(JOINER, "t", 1), StreamTableJoin(JOINER, "t", 1, left=True), StreamTableJoin(JOINER, "u", 1),
        StreamTableJoin(mapper("left"), "t", 1), TableSource("t", 1), TableSource("t", 2), TableSource("t", 1, 7),
    ]  # fmt: skip
    assert len({json.dumps(dict(spec.describe())) for spec in specs}) == len(specs)
    assert StreamTableJoin(JOINER, "t", 1).state_stores() == ()
    assert set(families_of(TableSource("t", 1).state_stores())) == {"t.latest", "t.segments"}
