"""The join with a plain table against the record-at-a-time model, in every cut of the input."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from statelib.operators.joins.stream_table.latest import StreamLatestJoin
from statelib.operators.joins.stream_table.operator import StreamTableJoin
from statelib.operators.mappers.mapping import mapper, per_record
from statelib.operators.tables.steps import FilterStep, MapStep, TransformStep
from statelib.operators.tables.view import TableView
from statelib.operators.tables.writer import PlainStore
from tests.operators.joined_table import STREAM, TABLE, JoinedTable
from tests.operators.tables.examples import CUTS, HOW, updates
from tests.operators.task import Record, Task
from tests.reference.stream_table_join import VersionedTable
from tests.reference.table import PlainTable

if TYPE_CHECKING:
    from statelib.operators.base import OperatorSpec
    from statelib.operators.tables.steps import TableStep
    from statelib.settings.semantics import Semantics

JOINER = mapper({"left": "left", "right": "right", "at": "timestamp"})
RECORDS = updates(parents=(STREAM, TABLE, TABLE))
EVEN = FilterStep(mapper(lambda columns: pc.equal(pc.bit_wise_and(columns["value"], 1), 0)))
TENFOLD = MapStep(per_record(lambda value: value * 10, pa.int64(), "value"))  # fails for what is not there
OR_EIGHT = TransformStep(mapper(pc.coalesce(pc.field("value"), 8)))
STEPS: dict[str, tuple[TableStep, ...]] = {
    "none": (), "even": (EVEN,), "even tenfold": (EVEN, TENFOLD), "or eight": (TENFOLD, OR_EIGHT, EVEN),
}  # fmt: skip


def stepped(value: Any, how: str) -> Any:
    """The steps, a value at a time."""
    if how == "or eight":
        value = 8 if value is None else value * 10
    if "even" in how or how == "or eight":
        value = None if value is None or value % 2 else value
    return value * 10 if value is not None and "tenfold" in how else value


def task(retention_ms: int | None = None, semantics: Semantics = "kip", **rest: Any) -> Task:
    return Task(JoinedTable(JOINER, retention_ms, **rest), pa.string(), [pa.int64(), pa.int64()], semantics=semantics)


def values(results: list[Any]) -> list[dict[str, Any]]:
    return [value for result in results for value in result.value.to_pylist()]


def model(records: list[Record], how: str, *, left: bool, retention_ms: int | None = None) -> list[dict[str, Any]]:
    table: Any = PlainTable() if retention_ms is None else VersionedTable(retention_ms)
    out = []
    for record in records:
        if record.parent == TABLE:
            if record.key is not None:
                table.put(record.key, record.value, record.timestamp)
        elif record.value is not None:
            as_of = () if retention_ms is None else (record.timestamp,)
            found = None if record.key is None else stepped(table.get(record.key, *as_of), how)
            if left or found is not None:
                out.append({"left": record.value, "right": found, "at": record.timestamp})
    return out


@pytest.mark.parametrize("left", [False, True])
@given(RECORDS, CUTS, HOW, st.sampled_from(sorted(STEPS)), st.sampled_from([None, 10, 100]))
def test_the_models_answer_in_every_cut(
    left: bool, records: list[Record], cuts: list[int], flush_every: int, how: str, retention_ms: int | None
) -> None:
    """Over a plain table and over a versioned one, also where the joined table is made of it in steps."""
    run = task(retention_ms, left=left, steps=STEPS[how])
    expected = model(records, how, left=left, retention_ms=retention_ms)
    assert values(run.run(records, cuts, flush_every=flush_every)) == expected
    assert run.metrics.unaccounted == 0


def rows(*given: tuple[int, str | None, Any, int]) -> list[Record]:
    return [Record(key, value, at, row, parent) for row, (parent, key, value, at) in enumerate(given)]


@pytest.mark.parametrize(("left", "out"), [(False, 1), (True, 3)])
def test_accounts(left: bool, out: int) -> None:
    run = task(left=left)
    run.run(
        rows(
            (TABLE, "a", 1, 10), (TABLE, None, 1, 10), (STREAM, "a", 1, 10), (STREAM, "b", 1, 9), (STREAM, None, 1, 10),
            (STREAM, "a", None, 10), (STREAM, None, None, 10),
        )
    )  # fmt: skip
    assert run.metrics.accounts == {"stored": 1, "null-key": 2, "joined": 1, "unmatched": 1, "null-value": 2}
    assert run.metrics.dropped == {"null-key": 1 if left else 2, "null-value": 2}
    assert run.metrics.records_out == out + 1


def test_an_older_timestamp_that_comes_later_wins() -> None:
    records = rows(
        (TABLE, "a", 1, 50), (TABLE, "a", 2, 40), (STREAM, "a", 0, 60), (TABLE, "a", None, 1), (STREAM, "a", 0, 60)
    )
    assert [row["right"] for row in values(task(left=True).run(records, [3], flush_every=1))] == [2, None]


def test_an_update_of_the_same_source_record_comes_first() -> None:
    run = task()
    both = rows((TABLE, "a", 1, 5)) + rows((STREAM, "a", 2, 5))
    stream, table = run.input_of(both[1:], STREAM), run.input_of(both[:1], TABLE)
    result = run.operator.process([stream, table], run.uptake_of(both[:1]))
    assert values([result]) == [{"left": 2, "right": 1, "at": 5}]


KEY_OF = per_record(lambda value: None if value == 0 else f"k{value}", pa.string(), "value")


@pytest.mark.parametrize("retention_ms", [None, 100])
@pytest.mark.parametrize("semantics", ["kip", "kafka-4.3"])
@pytest.mark.parametrize(("left", "rights"), [(False, [3]), (True, [3, None, None, None])])
def test_another_key_for_the_lookup(
    semantics: Semantics, left: bool, rights: list[int | None], retention_ms: int | None
) -> None:
    """A null one is joined with null by a left join (KIP-962), whether the record itself has a key or not."""
    records = rows(
        (TABLE, "k1", 3, 5), (STREAM, "a", 1, 6), (STREAM, "a", 2, 6), (STREAM, None, 0, 6), (STREAM, "a", 0, 6)
    )
    run = task(retention_ms, semantics, left=left, key=KEY_OF)
    assert [row["right"] for row in values(run.run(records, [2], flush_every=1))] == rights
    assert run.metrics.unaccounted == 0


LETTER = per_record(lambda value: None if value % 4 == 0 else "abc"[value % 3], pa.string(), "value")


@pytest.mark.parametrize("semantics", ["kip", "kafka-4.3"])
@pytest.mark.parametrize("left", [False, True])
@given(RECORDS, CUTS, HOW, st.sampled_from([None, 10, 100]))
def test_the_models_answer_under_another_key(
    left: bool, semantics: Semantics, records: list[Record], cuts: list[int], flush_every: int, retention_ms: int | None
) -> None:
    """``KStreamKTableJoinProcessor`` with a key mapper, a record at a time; null values do not reach the mapper."""
    records = [record for record in records if record.value is not None or record.parent == TABLE]
    if semantics == "kafka-4.3":  # there a versioned store answers otherwise in places: see its own tests
        retention_ms = None
    table: Any = PlainTable() if retention_ms is None else VersionedTable(retention_ms)
    expected = []
    for record in records:
        if record.parent == TABLE:
            if record.key is not None:
                table.put(record.key, record.value, record.timestamp)
            continue
        wanted = None if record.value % 4 == 0 else "abc"[record.value % 3]
        found = None if wanted is None else table.get(wanted, *([] if retention_ms is None else [record.timestamp]))
        if left or found is not None:
            expected.append({"left": record.value, "right": found, "at": record.timestamp})
    run = task(retention_ms, semantics, left=left, key=LETTER)
    assert values(run.run(records, cuts, flush_every=flush_every)) == expected
    assert run.metrics.unaccounted == 0


def test_the_working_set_is_forgotten() -> None:
    run = task()
    run.process(rows((TABLE, "a", 1, 5), (STREAM, "a", 2, 5)))
    assert run.operator.memory_bytes() > 0
    run.flush()
    assert run.operator.memory_bytes() == 0


def test_the_fingerprint_covers_the_parameters() -> None:
    view = TableView(PlainStore("t"))
    specs: list[OperatorSpec] = [
        StreamLatestJoin(JOINER, view), StreamLatestJoin(JOINER, view, left=True),
        StreamLatestJoin(JOINER, view, key=KEY_OF), StreamLatestJoin(mapper("left"), view),
        StreamLatestJoin(JOINER, TableView(PlainStore("u"))),
        StreamLatestJoin(JOINER, TableView(PlainStore("t"), (EVEN,))),
        StreamLatestJoin(JOINER, TableView(PlainStore("t"), (FilterStep(EVEN.predicate, negated=True),))),
        StreamLatestJoin(JOINER, TableView(PlainStore("t"), (TENFOLD,))),
        StreamTableJoin(JOINER, "t", 1), StreamTableJoin(JOINER, "t", 1, steps=(OR_EIGHT,)),
        StreamTableJoin(JOINER, "t", 1, key=KEY_OF),
    ]  # fmt: skip
    assert len({json.dumps(dict(spec.describe())) for spec in specs}) == len(specs)
    assert specs[0].state_stores() == ()
