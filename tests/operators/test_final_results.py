"""Suppress behind sessions: until they close, and for a time."""

from __future__ import annotations

import struct
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from statelib.errors import InternalError
from statelib.operators.aggregations import Aggregate, count, single
from statelib.operators.session_aggregate import SessionAggregate
from statelib.operators.suppress import Suppress
from statelib.suppressed import BufferConfig, Suppressed
from statelib.windows import SessionWindows
from tests.operators.chain import Chain, Record, Row
from tests.operators.sessions import WINDOWS, session_records
from tests.reference.session_aggregate import all_values
from tests.reference.suppress import Buffer

if TYPE_CHECKING:
    from statelib.semantics import Semantics

RECORDS = session_records(st.none() | st.integers(0, 9))
FINAL = Suppressed.until_window_closes(BufferConfig.unbounded())
VALUES = Aggregate(
    list, lambda _, value, values: [*values, value], pa.list_(pa.int64()), lambda _, one, other: one + other
)
BETWEEN = st.sampled_from(["nothing", "flush", "restart"])


def chain_of(
    windows: SessionWindows, suppressed: Suppressed, aggregator: Any = VALUES, semantics: Semantics = "kip"
) -> Chain:
    aggregate = SessionAggregate("s", windows, aggregator, needs_prior=True)
    return Chain([aggregate, Suppress("b", suppressed, windows)], pa.int64(), semantics=semantics)


def expected_rows(windows: SessionWindows, records: list[Record], limit: int | None) -> tuple[list[Row], int]:
    """The two models in a row; after its final result a window's updates are late."""
    sessions = all_values(windows.gap_ms, windows.grace_period_ms)
    wait = windows.gap_ms + windows.grace_period_ms if limit is None else limit
    buffer = Buffer(wait, final=limit is None)
    rows, late = [], 0
    finished: set[bytes] = set()
    for i, record in enumerate(records):
        for start, end, value, prior in sessions.process(record.key, record.value, record.timestamp):
            window = record.key.encode() + struct.pack(">qq", end, start)
            if window in finished and value is not None:
                late += 1
                continue
            time = end if limit is None else None
            for raw, left, timestamp, old in buffer.process(window, value, end, prior=prior, time=time):
                ends = struct.unpack(">qq", raw[-16:])
                rows.append(Row(i, raw[:-16].decode(), left, timestamp, ends[::-1], old))
                if limit is None:
                    finished.add(raw)
    return rows, late


@given(WINDOWS, RECORDS, st.integers(1, 10), BETWEEN)
def test_final_results_like_the_reference(
    windows: SessionWindows, records: list[Record], size: int, between: str
) -> None:
    expected, late = expected_rows(windows, records, None)
    chain = chain_of(windows, FINAL)
    final = chain.run(records, size, between)[1]
    assert final == expected
    chain.restart()
    assert sum(metrics.accounts.get("late", 0) for metrics in chain.finished[1]) == late
    assert len({(row.key, row.window) for row in final}) == len(final)


@given(WINDOWS, RECORDS, st.integers(0, 30), st.integers(1, 10), BETWEEN)
def test_time_limit_like_the_reference(
    windows: SessionWindows, records: list[Record], limit: int, size: int, between: str
) -> None:
    suppressed = Suppressed.until_time_limit(timedelta(milliseconds=limit), BufferConfig.unbounded())
    assert chain_of(windows, suppressed).run(records, size, between)[1] == expected_rows(windows, records, limit)[0]


@given(WINDOWS, RECORDS, st.integers(0, 30), st.integers(1, 10), BETWEEN)
def test_a_final_result_behind_a_time_limit_comes_once(
    windows: SessionWindows, records: list[Record], limit: int, size: int, between: str
) -> None:
    hold = Suppressed.until_time_limit(timedelta(milliseconds=limit), BufferConfig.unbounded())
    specs = [*chain_of(windows, hold).specs, Suppress("final", FINAL, windows)]
    final = Chain(specs, pa.int64()).run(records, size, between)[2]
    assert len({(row.key, row.window) for row in final}) == len(final)


@pytest.mark.parametrize(("semantics", "times"), [("kip", [10]), ("kafka-4.3", [10, 10])])
def test_a_session_that_changes_as_it_closes_has_one_final_result(semantics: Semantics, times: list[int]) -> None:
    chain = chain_of(SessionWindows(5, 0), FINAL, single(count()), semantics)
    records = [Record("other", 0, 15), Record("k", 0, 10), Record("k", 0, 10)]
    final = chain.run(records, 1, "restart")[1]
    assert [row.window for row in final] == [(time, time) for time in times]
    late = sum(metrics.counters.get("late-record-drop", 0) for metrics in chain.finished[1])
    assert late == (1 if semantics == "kip" else 0)


def test_what_is_grown_as_it_closes_is_not_taken_back() -> None:
    chain = chain_of(SessionWindows(5, 0), FINAL, single(count()))
    records = [Record("k", 0, 8), Record("other", 0, 15), Record("k", 0, 10), Record("k", 0, 9)]
    final = chain.run(records, 4)[1]
    assert [(row.window, row.value) for row in final] == [((8, 8), 1), ((8, 10), 2)]
    (_, metrics) = chain.metrics
    assert metrics.accounts == {"emitted": 2, "tombstone": 2, "late": 1}
    assert metrics.unaccounted == 0


def test_prior_values_are_needed() -> None:
    windows = SessionWindows(5, 0)
    specs = [SessionAggregate("s", windows, single(count())), Suppress("b", FINAL, windows)]
    with pytest.raises(InternalError, match="prior values"):
        Chain(specs, pa.int64()).process([Record("k", 0, 8)])
