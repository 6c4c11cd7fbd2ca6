from __future__ import annotations

import math
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from statelib.errors.kinds import ConfigurationError, InputError
from statelib.operators.aggregation.definition import Aggregate, Reduce, several, single
from statelib.operators.aggregation.sql_functions import count, max_, min_, sum_
from statelib.operators.mappers.mapping import mapper
from statelib.operators.sessions import keyed_slots_kernel
from statelib.operators.sessions import operator as session_aggregate
from statelib.operators.sessions.operator import SessionAggregate
from statelib.operators.sessions.store import SessionStore
from statelib.operators.stateless.operator import Filter
from statelib.operators.windows.definition import SessionWindows
from statelib.stores.rocksdb import RocksDbBackend
from tests.effort import examples
from tests.operators.aggregation.functions import KINDS, SQL, row, values
from tests.operators.chain import Chain, Record, Row
from tests.operators.sessions.examples import WINDOWS, session_records
from tests.reference.session_aggregate import Sessions, all_values
from tests.reference.sql_functions import sql, timed

if TYPE_CHECKING:
    from pathlib import Path

    from statelib.settings.semantics import Semantics

INTEGERS = row(pa.int32())
FLOATS = row(pa.float64())
SEMANTICS = st.sampled_from(["kip", "kafka-4.3"])
BETWEEN = st.sampled_from(["nothing", "flush", "restart"])
SIZES = st.integers(1, 10)


def records_of(numbers: st.SearchStrategy[Any]) -> st.SearchStrategy[list[Record]]:
    return session_records(values(numbers))


RECORDS = records_of(st.integers(-9, 9))


def reference_of(windows: SessionWindows, semantics: Semantics = "kip") -> Sessions:
    retention_ms = windows.gap_ms + windows.grace_period_ms if semantics == "kafka-4.3" else None
    return all_values(windows.gap_ms, windows.grace_period_ms, retention_ms)


def rows_of(reference: Sessions, records: list[Record], semantics: Semantics, show: Any) -> list[Row]:
    """The updates of the table; the shipped library does not say what is replaced in place."""
    rows = []
    for i, record in enumerate(records):
        updates = reference.process(record.key, timed(record.value, record.timestamp), record.timestamp)
        for n, (start, end, *aggregates) in enumerate(updates, start=1):
            value, prior = (None if aggregate is None else show(aggregate) for aggregate in aggregates)
            told = None if semantics == "kafka-4.3" and n == len(updates) else prior
            rows.append(Row(i, record.key, value, end, (start, end), told))
    return rows


def session_chain(
    windows: SessionWindows, aggregator: Any = SQL, value_type: pa.DataType = INTEGERS, **rest: Any
) -> Chain:
    return Chain([SessionAggregate("s", windows, aggregator, needs_prior=True)], value_type, **rest)


def at(*times: int, value: Any = None) -> list[Record]:
    return [Record("k", value, time) for time in times]


def bounds(rows: list[Row]) -> list[tuple[int, int, Any]]:
    return [(*row.window, row.value) for row in rows if row.window]


@given(WINDOWS, RECORDS, SEMANTICS, SIZES, BETWEEN)
def test_integers_like_the_reference(
    windows: SessionWindows, records: list[Record], semantics: Semantics, size: int, between: str
) -> None:
    reference = reference_of(windows, semantics)
    expected = rows_of(reference, records, semantics, sql)
    chain = session_chain(windows, semantics=semantics)
    assert chain.run(records, size, between) == [expected]
    chain.restart()
    late = sum(metrics.counters.get("late-record-drop", 0) for (metrics,) in zip(*chain.finished, strict=True))
    assert late == reference.late


@pytest.mark.thorough
@given(WINDOWS, records_of(st.integers(-99, 99).map(lambda quarters: quarters / 4)), SIZES)
@examples(15)
def test_floats_like_the_reference(windows: SessionWindows, records: list[Record], size: int) -> None:
    chain = session_chain(windows, value_type=FLOATS)
    assert chain.run(records, size, "restart") == [rows_of(reference_of(windows), records, "kip", sql)]


@pytest.mark.thorough
@given(WINDOWS, RECORDS, SEMANTICS, SIZES, SIZES, st.sampled_from([1, 4, 1 << 14]))
@example(SessionWindows(1, 0), at(0, 2, 9, 1), "kip", 1, 4, 1)
@examples(20)
def test_state_does_not_depend_on_batches_flushes_or_restarts(
    windows: SessionWindows, records: list[Record], semantics: Semantics, one: int, other: int, compact_from: int
) -> None:
    results = []
    for size, between in ((one, "nothing"), (other, "nothing"), (other, "flush"), (one, "restart")):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(keyed_slots_kernel, "_COMPACT_FROM_SLOTS", compact_from)
            chain = session_chain(windows, KINDS, semantics=semantics)
            rows = chain.run(records, size, between)
            chain.restart()
        results.append((rows, chain.content(), chain.clocks))
    assert all(result == results[0] for result in results[1:])


@given(WINDOWS, RECORDS, SEMANTICS, SIZES)
def test_the_store_has_what_the_next_record_may_see(
    windows: SessionWindows, records: list[Record], semantics: Semantics, size: int
) -> None:
    reference = reference_of(windows, semantics)
    rows_of(reference, records, semantics, sql)
    chain = session_chain(windows, semantics=semantics)
    chain.run(records, size)
    chain.restart()
    seen_ms = chain.specs[0].seen_ms(semantics)  # type: ignore[attr-defined]
    store = SessionStore(chain.backend, "s", retention_ms=seen_ms, stream_time=chain.contexts[0].clock("store_time"))
    expected = {(key.encode(), *ends) for key, sessions in reference.seen().items() for ends in sessions}
    assert {(row.key, row.end_ms, row.start_ms) for row in store.all()} == expected
    assert len(chain.content()["s"]) == len(expected)
    header = 1 if expected or reference.stream_time >= 0 else 0
    assert len(chain.content()["s.by-end"]) == len(expected) + header


def append(_: str, value: dict[str, int] | None, values: list[int | None]) -> list[int | None] | None:
    """Remembers all values; a 9 removes the session."""
    x = None if value is None else value["x"]
    return None if x == 9 else [*values, x]


def concatenate(_: str, one: list[int | None], other: list[int | None]) -> list[int | None]:
    return one + other


@given(WINDOWS, records_of(st.integers(7, 9)), SEMANTICS, SIZES, BETWEEN, st.sampled_from([1, 3, 256]))
def test_python_functions_that_may_remove_sessions(
    windows: SessionWindows, records: list[Record], semantics: Semantics, size: int, between: str, at_once: int
) -> None:
    reference = reference_of(windows, semantics)
    reference.aggregator, reference.merger = append, concatenate
    expected = rows_of(reference, records, semantics, list)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(session_aggregate, "_SLOW_RECORDS", at_once)
        aggregator = Aggregate(list, append, pa.list_(pa.int64()), concatenate)
        assert session_chain(windows, aggregator, semantics=semantics).run(records, size, between) == [expected]


@given(WINDOWS, session_records(st.none() | st.integers(0, 9)), SIZES)
def test_reduce_merges_by_the_reducer(windows: SessionWindows, records: list[Record], size: int) -> None:
    def mix(one: int, other: int | None) -> int:
        return (one * 10 + (other or 0)) % 1_000_003

    reference = reference_of(windows)
    reference.initializer = lambda: None
    reference.aggregator = lambda _, value, aggregate: value if aggregate is None else mix(aggregate, value)
    reference.merger = lambda _, one, other: other if one is None else mix(one, other)
    expected = rows_of(reference, records, "kip", lambda value: value)
    assert session_chain(windows, Reduce(mix), pa.int64()).run(records, size, "restart") == [expected]


def test_a_record_between_two_sessions_joins_them() -> None:
    (rows,) = session_chain(SessionWindows(5, 20)).run(at(0, 10, 5, value={"x": 2}), 3)
    assert [(row.window, row.value and row.value["total"], row.prior and row.prior["total"]) for row in rows] == [
        ((0, 0), 2, None),
        ((10, 10), 2, None),
        ((0, 0), None, 2),
        ((10, 10), None, 2),
        ((0, 10), 6, None),
    ]
    assert [row.timestamp for row in rows] == [0, 10, 0, 10, 10]


def test_the_same_bounds_are_taken_back_and_forwarded_again_but_a_single_point_is_updated_in_place() -> None:
    (rows,) = session_chain(SessionWindows(5, 20), single(count())).run(at(0, 0, 4, 2), 1, "restart")
    assert bounds(rows) == [(0, 0, 1), (0, 0, 2), (0, 0, None), (0, 4, 3), (0, 4, None), (0, 4, 4)]
    assert [row.prior for row in rows] == [None, 1, 2, None, 3, None]


def test_a_session_that_may_still_be_extended_is_seen_unless_the_shipped_library_does_not_see_it() -> None:
    records = [*at(0, 21), *at(15)]  # at stream time 21 a session is accepted from 21 - 10 on
    for semantics, expected in (("kip", [(0, 0, None), (0, 10, 2)]), ("kafka-4.3", [(10, 10, 1)])):
        chain = session_chain(SessionWindows(10, 0), single(count()), semantics=semantics)  # type: ignore[arg-type]
        chain.run([*at(0), Record("other", None, 20)], 2, "restart")
        (rows,) = chain.run(at(10), 1)
        assert bounds(rows) == expected
    chain = session_chain(SessionWindows(10, 0), single(count()))
    assert bounds(chain.run(records, 1, "restart")[0])[-2:] == [(21, 21, None), (15, 21, 2)]


def test_longer_retention_shows_more_as_shipped_too() -> None:
    spec = SessionAggregate("s", SessionWindows(10, 0), single(count()), retention_ms=50)
    chain = Chain([spec], pa.int64(), semantics="kafka-4.3")
    chain.run([*at(0), Record("other", None, 20)], 1, "restart")
    assert bounds(chain.run(at(10), 1)[0]) == [(0, 0, None), (0, 10, 2)]


def test_what_cannot_work_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="retention"):
        SessionAggregate("s", SessionWindows(10, 5), single(count()), retention_ms=14).check("NODE")
    add = Aggregate(int, lambda _, value, sum_: sum_ + value, pa.int64())
    with pytest.raises(ConfigurationError, match="needs a merger"):
        SessionAggregate("s", SessionWindows(10, 5), add).check("NODE")
    for gap, grace in ((timedelta(seconds=-1), timedelta(0)), (timedelta(0), timedelta(microseconds=1))):
        with pytest.raises(ConfigurationError):
            SessionWindows.of_inactivity_gap_and_grace(gap, grace)


def test_windows_are_what_the_api_says() -> None:
    windows = SessionWindows.of_inactivity_gap_and_grace(timedelta(minutes=1), timedelta(seconds=5))
    assert windows == SessionWindows(60_000, 5_000)
    assert windows.retention_ms == windows.final_after_ms("kafka-4.3") == windows.final_after_ms("kip") - 1 == 65_000
    assert SessionWindows.of_inactivity_gap_with_no_grace(timedelta(0)) == SessionWindows(0, 0)
    assert windows.describe() == {"windows": "session", "gap_ms": 60_000, "grace_period_ms": 5_000}


def test_sums_that_overflow_when_sessions_merge_are_an_error() -> None:
    records = [Record("k", value, time) for value, time in ((2**62, 0), (2**62, 10), (0, 5))]
    chain = session_chain(SessionWindows(5, 20), single(sum_("value")), pa.int64())
    chain.process(records[:2])
    with pytest.raises(InputError, match="64 bits"):
        chain.process(records[2:])


@pytest.mark.parametrize("value", [math.nan, 1.0, -math.inf, None])
def test_extremes_of_merged_sessions(value: float | None) -> None:
    records = [Record("k", one, time) for one, time in ((value, 0), (0.5, 10), (math.inf, 5))]
    extremes = several(least=min_("value"), most=max_("value"))
    merged = session_chain(SessionWindows(5, 20), extremes, pa.float64()).run(records, 3)[0][-1].value
    in_order = session_chain(SessionWindows(50, 20), extremes, pa.float64()).run(records, 3)[0][-1].value
    assert repr(merged) == repr(in_order)


def test_a_flush_before_the_first_session() -> None:
    specs = [Filter(mapper(pc.field("value") > 0)), SessionAggregate("s", SessionWindows(5, 0), single(count()))]
    records = [Record("a", 0, 1), Record("b", 0, 1), Record("c", 1, 1)]
    assert [row.key for row in Chain(specs, pa.int64()).run(records, 2, "flush")[1]] == ["c"]


def test_late_and_null_keyed_records_are_counted() -> None:
    chain = session_chain(SessionWindows(5, 3), single(count()), pa.int64())
    times = [("a", 4), ("a", 20), (None, 99), ("a", 11), ("a", 12), ("b", 0)]
    chain.process([Record(key, 1, time) for key, time in times])
    (metrics,) = chain.metrics
    assert metrics.accounts == {"aggregated": 3, "late": 2, "null-key": 1}
    assert metrics.counters == {"late-record-drop": 2}
    assert metrics.records_in == len(times)
    assert metrics.unaccounted == 0
    assert (metrics.lateness.max_ms, sum(metrics.lateness.counts)) == (20, 5)


def test_only_sessions_within_reach_are_looked_up(monkeypatch: pytest.MonkeyPatch) -> None:
    chain = session_chain(SessionWindows(5, 100), single(count()))
    chain.run([Record(key, None, time) for key in "abc" for time in (0, 50)], 6, "restart")
    asked: list[list[bytes]] = []
    load = SessionStore.load
    monkeypatch.setattr(SessionStore, "load", lambda store, keys: asked.append(keys) or load(store, keys))
    records = [Record("a", None, 56), Record("b", None, 55), Record("a", None, 60), Record(None, None, 0)]
    chain.process(records)
    (rows,) = chain.process([Record("a", None, 54), Record("b", None, 60)])
    assert asked == [[b"b"], [b"a"]]
    assert bounds(rows) == [(50, 50, None), (56, 60, None), (50, 60, 4), (50, 55, None), (50, 60, 3)]


def test_a_restart_over_rocksdb(tmp_path: Path) -> None:
    records = [Record(f"k{i % 7}", {"x": i}, i * 3 + (i % 5) * 20) for i in range(300)]
    (expected,) = session_chain(SessionWindows(10, 30)).run(records, 300)
    path = tmp_path / "state"
    chain = session_chain(SessionWindows(10, 30), backend=RocksDbBackend(path))
    (rows,) = chain.run(records[:150], 20, "restart")
    chain.backend.close()
    chain.backend = RocksDbBackend(path)
    chain._start()
    rows += chain.run(records[150:], 30, "restart")[0]
    assert rows == expected
    chain.backend.close()
