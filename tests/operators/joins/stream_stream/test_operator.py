"""Joins of two streams against the model of one record at a time, in every cut of the input."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from statelib import ConfigurationError
from statelib.columns.windowed_type import SESSIONS
from statelib.operators.joins.stream_stream import working_set as join_rows
from statelib.operators.joins.stream_stream.definition import JoinWindows
from statelib.operators.joins.stream_stream.operator import RunningStreamStreamJoin
from statelib.operators.late_records import LateRecords
from statelib.records.key_column import KeyColumn, WindowedKeys, Windows
from tests.effort import examples
from tests.operators.joins.stream_stream.stream_joins import LEFT, RIGHT, SIDES, Case, records_of, shown
from tests.operators.tables.examples import CUTS, HOW, KEYS, NUMBERS
from tests.operators.task import Record, Task
from tests.reference.stream_stream_join import Result

if TYPE_CHECKING:
    from statelib.settings.semantics import Semantics
    from tests.reference.stream_stream_join import StreamStreamJoin as Model

SEMANTICS = st.sampled_from(["kip", "kafka-4.3"])


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """Windows of all shapes, sometimes longer than a store's least segment."""
    unit = draw(st.sampled_from([1, 1, 1, 10_000]))
    before, after = (draw(st.sampled_from([0, 1, 5, 10, 20])) * unit for _ in range(2))
    shifted = draw(st.sampled_from(["no", "no", "before", "after"]))
    if shifted != "no":
        shift = draw(st.integers(0, before if shifted == "before" else after))
        before, after = (-shift, after + shift) if shifted == "before" else (before + shift, -shift)
    grace = draw(st.sampled_from([0, 0, 1, 15, 40])) * unit
    windows = JoinWindows(before, after, grace, draw(st.sampled_from([False, False, False, True])))
    return Case(draw(st.sampled_from(["inner", "left", "outer"])), windows, draw(st.sampled_from([0, 0, 7])) * unit)


@st.composite
def runs(draw: st.DrawFn, most: int = 30) -> tuple[Case, list[Record]]:
    """A join and its records: out of order, at the bounds of its windows, equal times, nulls, a hot key.

    Now and then comes something that only moves the task's clock.
    """
    case = draw(cases())
    windows = case.windows
    back, ahead, grace = abs(windows.before_ms), abs(windows.after_ms), windows.grace_period_ms
    bounds = [back, ahead, back + grace, ahead + grace, windows.size_ms, windows.retention_ms]
    moves = st.sampled_from([0, 0, 1, 1, *bounds, *(bound + 1 for bound in bounds)])
    late = st.sampled_from([0, 0, 0, 0, 1, 11, *bounds, *(bound + 1 for bound in bounds), 70_000])
    now = draw(st.sampled_from([0, 40, 1_700_000_000_000]))
    records = []
    for row in range(draw(st.integers(0, most))):
        now += draw(moves)
        timestamp = max(0, now - draw(late))
        parent = draw(st.sampled_from([LEFT, LEFT, RIGHT, RIGHT, None]))
        value = draw(NUMBERS)
        if parent == RIGHT and value is not None:
            value = f"r{value}"
        records.append(Record(draw(KEYS), value, timestamp, row, parent))
    return case, records


def expected(model: Model, records: list[Record]) -> list[tuple[int, Result]]:
    """Each result with the record that causes it."""
    results, wall_clock = [], -1
    for row, record in enumerate(records):
        wall_clock = max(wall_clock, record.timestamp)
        if record.parent is not None:
            made = model.process(SIDES[record.parent], record.key, record.value, record.timestamp, wall_clock)
            results += [(row, result) for result in made]
    return results


@examples(600)
@given(runs(), CUTS, HOW, SEMANTICS)
def test_the_models_results_in_every_cut(
    run: tuple[Case, list[Record]], cuts: list[int], flush_every: int, semantics: Semantics
) -> None:
    case, records = run
    task, model = case.task(semantics), case.model(semantics)
    task.process([])  # finds out about types, as a task does
    results = shown(task.run(records, cuts, flush_every=flush_every))
    assert results == expected(model, records)
    figures = task.metrics
    held = sum(len(rows) for rows in model.held.values())
    assert figures.held_after == held
    assert figures.records_in == figures.held_after + sum(figures.accounts.values())
    assert figures.records_out == len(results)
    assert figures.accounts.get("late", 0) == figures.counters.get("late-record-drop", 0) == model.late
    assert figures.counters.get("expired-window-record-drop", 0) == model.expired
    assert figures.accounts.get("null-value", 0) == sum(r.value is None and r.parent is not None for r in records)


@examples(400)
@given(runs(), CUTS, CUTS, HOW, SEMANTICS)
def test_the_same_bytes_in_every_cut(
    run: tuple[Case, list[Record]], one: list[int], other: list[int], flush_every: int, semantics: Semantics
) -> None:
    case, records = run
    tasks = [case.task(semantics), case.task(semantics)]
    tasks[0].run(records, one)
    tasks[1].run(records, other, flush_every=flush_every)
    assert tasks[0].content() == tasks[1].content()
    assert tasks[0].clocks == tasks[1].clocks
    assert tasks[0].metrics.accounts == tasks[1].metrics.accounts


@given(runs(), st.integers(1, 4), SEMANTICS)
def test_what_nobody_needs_is_dropped_from_memory(
    run: tuple[Case, list[Record]], size: int, semantics: Semantics
) -> None:
    case, records = run
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(join_rows, "_COMPACT_FROM_ROWS", size)
        task = case.task(semantics)
        results = shown(task.run(records, range(len(records)), flush_every=11))
    assert results == expected(case.model(semantics), records)
    whole = case.task(semantics)
    whole.run(records)
    assert task.content() == whole.content()


@given(runs(), CUTS, HOW, SEMANTICS)
def test_a_seal_gives_what_is_held(
    run: tuple[Case, list[Record]], cuts: list[int], flush_every: int, semantics: Semantics
) -> None:
    case, records = run
    task, model = case.task(semantics), case.model(semantics)
    task.run(records, cuts, flush_every=flush_every)
    operator = task.operator
    assert isinstance(operator, RunningStreamStreamJoin)
    expected(model, records)
    sealed = operator.seal([task.input_of([], parent) for parent in (LEFT, RIGHT)])
    assert [result for _, result in shown([sealed])] == model.seal()
    assert list(sealed.sequence) == sorted(sealed.sequence)
    assert task.metrics.held_after == 0
    assert task.metrics.records_in == sum(task.metrics.accounts.values())


@examples(300)
@given(runs(), CUTS, HOW)
def test_all_pairs_of_the_shipped_library_and_lone_results_of_the_others(
    run: tuple[Case, list[Record]], cuts: list[int], flush_every: int
) -> None:
    """No lone result of a record that is joined before or after, and none is missing."""
    case, records = run
    records = [replace(record, value=row if record.parent == LEFT else f"r{row}") for row, record in enumerate(records)]
    task = case.task()
    results = [result for _, result in shown(task.run(records, cuts, flush_every=flush_every))]
    pairs = [result for result in results if None not in (result.left, result.right)]
    shipped = [result for _, result in expected(case.model("kafka-4.3"), records)]
    assert pairs == [result for result in shipped if None not in (result.left, result.right)]
    if case.windows.unmatched_at_once:
        return
    sealed = task.operator.seal([task.input_of([], n) for n in (LEFT, RIGHT)])  # type: ignore[attr-defined]
    lone = [result for result in results if result not in pairs] + [result for _, result in shown([sealed])]
    for side, keeps in ((LEFT, case.kind != "inner"), (RIGHT, case.kind == "outer")):
        own = [record.value for record in records if record.parent == side]
        joined = {result[1 + side] for result in pairs}
        given_up = [result[1 + side] for result in lone if result[1 + side] is not None]
        assert sorted(given_up) == sorted(value for value in own if keeps and value not in joined)


def results_of(case: Case, *rows: tuple[int, str | None, Any, int], semantics: Semantics = "kip") -> list[Any]:
    records = records_of(*rows)
    at_once = shown(case.task(semantics).run(records))
    assert at_once == shown(case.task(semantics).run(records, range(len(rows)), flush_every=1))
    return [(row, tuple(result)) for row, result in at_once]


def test_a_shipped_lone_result_may_be_joined_later_and_a_promised_one_not() -> None:
    case = Case("left", JoinWindows(10, 10, 15))
    rows = ((LEFT, "a", 1, 100), (LEFT, "b", 2, 111), (LEFT, "a", 3, 100), (RIGHT, "a", "r", 101))
    assert results_of(case, *rows, semantics="kafka-4.3") == [
        (2, ("a", 3, None, 100)), (3, ("a", 1, "r", 101)), (3, ("a", 3, "r", 101)),
    ]  # fmt: skip
    assert results_of(case, *rows) == [(3, ("a", 1, "r", 101)), (3, ("a", 3, "r", 101))]


@pytest.mark.parametrize(
    ("windows", "gone_at"),
    [
        (JoinWindows(100, 0, 0), 1_100), (JoinWindows(100, 0, 7), 1_107), (JoinWindows(100, 20, 0), 1_120),
        (JoinWindows(0, 100, 0), 1_101), (JoinWindows(0, 100, 7), 1_108), (JoinWindows(-5, 10, 0), 1_011),
        (JoinWindows(10, -5, 0), 1_005), (JoinWindows(0, 0, 0), 1_001), (JoinWindows(0, 0, 5), 1_006),
    ],
)  # fmt: skip
def test_a_record_waits_while_its_store_keeps_it_or_its_window_is_open(windows: JoinWindows, gone_at: int) -> None:
    """The clock is that of its own side: the other may be far ahead, and late records of it still come."""
    before = (LEFT, "a", 1, 1_000), (RIGHT, "z", "r", 5_000)
    rest = (LEFT, "b", 2, gone_at - 1), (LEFT, "b", 3, gone_at)
    case = Case("left", windows)
    if windows.before_ms <= 0:  # the store would let it go before its window is over, by the stream time of both sides
        before = before[:1]
    lone = (len(before) + 1, ("a", 1, None, 1_000))
    assert [result for result in results_of(case, *before, *rest) if result[1][0] == "a"] == [lone]
    meets = (RIGHT, "a", "r", max(0, 1_000 - windows.before_ms))
    visible = gone_at - 1 < 1_000 + windows.retention_ms
    met = results_of(case, *before, rest[0], meets)[-1:] == [(len(before) + 1, ("a", 1, "r", max(1_000, meets[3])))]
    assert met == visible


def test_kafkas_own_records_that_come_before_those_they_join() -> None:
    rows = ((LEFT, "0", 0, 1_000), (LEFT, "1", 1, 1_001), (RIGHT, "0", "a0", 999))
    assert results_of(Case("left", JoinWindows(100, 0, 0)), *rows) == [(2, ("0", 0, "a0", 1_000))]


def test_lone_results_come_by_time_right_before_left_key_and_arrival() -> None:
    case = Case("outer", JoinWindows(10, 10, 0))
    rows = (
        (LEFT, "b", 1, 100), (LEFT, "ab", 2, 100), (RIGHT, "c", "r1", 100), (LEFT, "a", 3, 100), (LEFT, "b", 4, 100),
        (RIGHT, "d", "r2", 99), (LEFT, "z", 5, 119), (LEFT, "z", 6, 120), (RIGHT, "z", "r3", 121),
    )  # fmt: skip
    of_left = [("a", 3), ("ab", 2), ("b", 1), ("b", 4)]
    assert results_of(case, *rows) == [
        *((7, (key, value, None, 100)) for key, value in of_left),
        (8, ("d", None, "r2", 99)), (8, ("c", None, "r1", 100)),
        (8, ("z", 5, "r3", 121)), (8, ("z", 6, "r3", 121)),
    ]  # fmt: skip
    together = (
        (LEFT, "b", 1, 100), (RIGHT, "d", "r1", 100), (LEFT, "ab", 2, 100), (RIGHT, "c", "r2", 100),
        (RIGHT, "z", "r3", 110), (LEFT, "y", 3, 111),
    )  # fmt: skip
    assert results_of(Case("outer", JoinWindows(10, 0, 0)), *together) == [
        (5, ("c", None, "r2", 100)), (5, ("d", None, "r1", 100)), (5, ("ab", 2, None, 100)), (5, ("b", 1, None, 100)),
    ]  # fmt: skip


@pytest.mark.parametrize("semantics", ["kip", "kafka-4.3"])
def test_a_record_is_there_for_the_windows_and_the_grace_period(semantics: Semantics) -> None:
    case = Case("inner", JoinWindows(10, 20, 5))
    for clock, matches in ((134, 1), (135, 0)):
        rows = ((LEFT, "a", 1, 100), (LEFT, "b", 2, clock), (RIGHT, "a", "r", 90))
        assert len(results_of(case, *rows, semantics=semantics)) == matches


def test_there_is_no_time_before_zero() -> None:
    """A left record's window of -4 to -2 is that of 0 in Kafka Streams."""
    case = Case("inner", JoinWindows(7, -5, 0))
    assert results_of(case, (RIGHT, "a", "r", 0), (LEFT, "a", 1, 3)) == [(1, ("a", 1, "r", 3))]


def test_a_record_that_has_given_its_lone_result_leaves_the_stores() -> None:
    case = Case("left", JoinWindows(10, 10, 0))
    task = case.task()
    task.run(records_of((LEFT, "a", 1, 100)))
    assert [len(task.content()[family]) for family in ("left", "left.by-time", "held")] == [1, 2, 2]
    task.restart()
    task.run(records_of((RIGHT, "b", "r", 999)))
    assert [len(task.content()[family]) for family in ("left", "left.by-time", "held")] == [1, 2, 2]
    task.restart()
    task.run(records_of((LEFT, "b", 2, 120)))
    assert [len(task.content()[family]) for family in ("left", "left.by-time", "held")] == [1, 2, 2]
    assert task.metrics.accounts == {"stored": 1, "unmatched": 1}


def test_a_record_that_comes_to_both_sides_comes_first_to_the_first_parent() -> None:
    for left_first in (True, False):
        spec = replace(Case("inner", JoinWindows(10, 10, 0)).spec, left_first=left_first)
        task = Task(spec, pa.string(), (pa.int64(), pa.int64()))
        inputs = [task.input_of(records_of((0, "a", 1, 5), (0, "a", 2, 6)), 0)] * 2
        batch = task.operator.process(inputs, task.uptake_of(records_of((0, "a", 1, 5), (0, "a", 2, 6))))
        first, second = ("l", "r") if left_first else ("r", "l")
        pairs = [(value[first], value[second]) for value in batch.value.to_pylist()]
        assert pairs == [(1, 1), (2, 1), (1, 2), (2, 2)]


def test_a_late_record_goes_to_the_late_topic_if_it_gives_nothing() -> None:
    case = Case("left", JoinWindows(10, 10, 0))
    task = case.task()
    late = LateRecords(["left", "right"])
    task.context.late = late
    rows = (
        (LEFT, "a", 1, 1_000), (RIGHT, "b", "r1", 200_000), (RIGHT, "b", "r2", 7), (LEFT, "c", 2, 1_020),
        (RIGHT, "a", "r3", 1_000),
    )  # fmt: skip
    records = [replace(record, source=record.parent) for record in records_of(*rows)]
    assert shown(task.run(records, [2])) == [(3, Result("a", 1, None, 1_000))]
    collected = late.drain()
    assert collected is not None
    shown_late = collected.to_pylist()
    assert [(row["timestamp"], row["value"]["topic"], row["value"]["offset"]) for row in shown_late] == [
        (7, "right", 2), (1_000, "right", 4),
    ]  # fmt: skip
    assert shown_late[0]["value"] == {
        "node": "NODE", "reason": "older than the join's retention", "lateness_ms": 199_993, "clock": "store_time",
        "clock_ms": 200_000, "topic": "right", "partition": 0, "offset": 2, "key": '"b"', "window_start": None,
        "window_end": None, "value": '"r2"',
    }  # fmt: skip
    assert task.metrics.dropped == {"late": 2}


def test_results_have_the_headers_of_the_record_that_causes_them() -> None:
    kind = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
    task = Case("left", JoinWindows(1, 1, 0)).task()
    records = records_of((LEFT, "a", 1, 100), (RIGHT, "b", "r", 105), (LEFT, "b", 2, 105), (RIGHT, "b", "s", 106))
    left, right = (task.input_of(records, side) for side in (LEFT, RIGHT))
    headers = pa.array([[("h", b"1")], [("h", b"2")]], kind)
    batch = task.operator.process([replace(left, headers=headers), right], task.uptake_of(records))
    assert batch.value.to_pylist() == [{"l": 1, "r": None}, {"l": 2, "r": "r"}, {"l": 2, "r": "s"}]
    assert batch.headers.to_pylist() == [*[[{"key": "h", "value": b"2"}]] * 2, None]
    sealed = task.operator.seal([replace(task.input_of([], n), headers=headers[:0]) for n in (LEFT, RIGHT)])  # type: ignore[attr-defined]
    assert sealed.headers.type == kind


def test_keys_of_two_types_are_refused() -> None:
    task = Case("inner", JoinWindows(1, 1, 0)).task()
    left, right = (task.input_of([], side) for side in (LEFT, RIGHT))
    numbers = replace(right, keys=KeyColumn(pa.array([], pa.int64())))
    with pytest.raises(ConfigurationError, match=r"differ in type .* string and int64.*NODE.*select_key"):
        task.operator.process([left, numbers], task.uptake_of([]))
    nothing = np.empty(0, dtype=np.int64)
    windowed = replace(right, keys=WindowedKeys(right.keys, Windows(nothing, nothing), SESSIONS))
    with pytest.raises(ConfigurationError, match=r"differ in type .* windowed<string, sessions>.*select_key"):
        task.operator.process([left, windowed], task.uptake_of([]))


def test_other_types_than_those_stored_are_refused() -> None:
    case = Case("outer", JoinWindows(1, 1, 0))
    task = case.task()
    task.run(records_of((LEFT, "a", 1, 100)))
    other = Task(case.spec, pa.string(), (pa.string(), pa.string()), backend=task.backend)
    with pytest.raises(ConfigurationError, match="types of a store's rows have changed"):
        other.process([])
