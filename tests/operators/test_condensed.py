"""A windowed aggregation that passes on only what its suppression needs: nothing else may change by it."""

from __future__ import annotations

from dataclasses import asdict

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from statelib.operators.aggregations import count, max_, named, single, sum_
from statelib.operators.suppress import Suppress
from statelib.operators.window_aggregate import WindowAggregate
from statelib.suppressed import BufferConfig, Suppressed
from statelib.windows import TimeWindows
from tests.operators.chain import Chain, Record

KEYS = st.sampled_from([None, "", "a", "ab", "abcdefghi", "abcdefghj"])
VALUES = pa.struct([("x", pa.int64()), ("y", pa.float64())])
UNBOUNDED = BufferConfig.unbounded()
BUFFERS = st.sampled_from(
    [
        UNBOUNDED,
        BufferConfig.max_records(1).spill_to_disk_when_full(),
        BufferConfig.max_bytes(90).spill_to_disk_when_full(),
    ]
)
AGGREGATORS = st.sampled_from([named(n=count(), xs=sum_("x")), named(xs=sum_("x"), most=max_("y")), single(count("x"))])


@st.composite
def histories(draw: st.DrawFn) -> list[Record]:
    """Time goes on in steps, some records are late; half of the histories have no null."""
    numbers = st.integers(-9, 9) if draw(st.booleans()) else st.none() | st.integers(-9, 9)
    values = st.fixed_dictionaries({"x": numbers, "y": numbers.map(lambda x: x if x is None else x / 4)})
    now, records = 0, []
    for _ in range(draw(st.integers(0, 50))):
        now += draw(st.sampled_from([0, 0, 1, 3, 20]))
        late = draw(st.sampled_from([0, 0, 0, 2, 9, 25]))
        records.append(Record(draw(KEYS), draw(values), max(0, now - late)))
    return records


@st.composite
def time_windows(draw: st.DrawFn) -> TimeWindows:
    size = draw(st.integers(1, 20))
    return TimeWindows(size, draw(st.integers(1, size)), draw(st.integers(0, 15)))


@given(
    histories(), time_windows(), AGGREGATORS, BUFFERS, st.integers(1, 25),
    st.sampled_from(["nothing", "flush", "restart"]),
)  # fmt: skip
def test_results_state_and_figures_are_the_same(records, windows, aggregator, buffer, size, between) -> None:
    chains = []
    for condensed in (False, True):
        closes = Suppress("s", Suppressed.until_window_closes(buffer), windows)
        chain = Chain([WindowAggregate("w", windows, aggregator), closes], VALUES, condensed=condensed)
        _, rows = chain.run(records, size, between)
        chain.restart()
        figures = [[asdict(metrics) for metrics in finished] for finished in chain.finished]
        for metrics in figures[1]:
            metrics["counters"].pop("suppression-spill", None)  # how often memory was short is not a result
        chains.append((rows, chain.content(), chain.clocks, figures))
    assert chains[0] == chains[1]


def test_only_the_last_update_of_a_window_is_passed_on() -> None:
    windows = TimeWindows(10, 10, 0)
    closes = Suppress("s", Suppressed.until_window_closes(UNBOUNDED), windows)
    chain = Chain([WindowAggregate("w", windows, single(count())), closes], pa.string(), condensed=True)
    updates, results = chain.process([Record("a", "", 1), Record("b", "", 2), Record("a", "", 9), Record("c", "", 11)])
    assert [(row.sequence, row.key, row.value) for row in updates] == [(1, "b", 1), (2, "a", 2), (3, "c", 1)]
    assert [(row.sequence, row.key, row.value) for row in results] == [(3, "a", 2), (3, "b", 1)]


def test_a_result_of_another_size_is_not_left_out() -> None:
    windows = TimeWindows(10, 10, 0)
    closes = Suppress("s", Suppressed.until_window_closes(UNBOUNDED), windows)
    chain = Chain([WindowAggregate("w", windows, named(xs=sum_("x"))), closes], VALUES, condensed=True)
    updates, _ = chain.process([Record("a", {"x": x, "y": None}, 1) for x in (None, 1)])
    assert [row.value for row in updates] == [{"xs": None}, {"xs": 1}]


@given(st.sampled_from(["nothing", "flush", "restart"]), st.sampled_from([None, 1, 3]))
def test_windows_that_pass_through_leave_in_order_with_those_that_were_held(between, bound) -> None:
    """Half of each batch's windows open and close within it, the others wait, in memory or on disk, for the next."""
    buffer = BufferConfig.max_records(bound).spill_to_disk_when_full() if bound else UNBOUNDED
    windows = TimeWindows(10, 10, 5)
    closes = Suppress("s", Suppressed.until_window_closes(buffer), windows)
    chain = Chain([WindowAggregate("w", windows, single(count())), closes], pa.string(), condensed=True)
    chain.run([Record(key, "", time) for time in (0, 1, 20) for key in "dbca"], 12, between)
    _, left = chain.process([Record(key, "", time) for time in (21, 30, 60) for key in "badc"])
    assert [(row.window[0], row.key, row.value) for row in left if row.window] == [
        *((20, key, 2) for key in "abcd"),
        *((30, key, 1) for key in "abcd"),
    ]
    assert {row.sequence for row in left} == {20}, "the first record at 60 lets all go"
    assert chain.metrics[1].held_after == 4
    assert chain.metrics[1].gauges["suppression-buffer-count_max"] == 9
    assert chain.metrics[1].unaccounted == 0


def test_what_waits_on_disk_leaves_past_the_memory() -> None:
    """Forty windows are due, of which one has changed; another stays on disk, and two new ones come."""
    windows = TimeWindows(10, 10, 500)
    closes = Suppress("s", Suppressed.until_window_closes(UNBOUNDED), windows)
    chains = []
    for condensed in (False, True):
        chain = Chain([WindowAggregate("w", windows, single(count())), closes], pa.string(), condensed=condensed)
        chain.process([Record(f"{n:02}", "", 5 * n) for n in range(41)])
        chain.flush()
        _, left = chain.process([Record("00", "", 9), Record("b", "", 300), Record("a", "", 700)])
        assert [(row.key, row.value, row.sequence) for row in left] == [
            (f"{n:02}", 2 if n == 0 else 1, 43) for n in range(40)
        ]
        assert chain.metrics[1].held_after == 3
        assert chain.metrics[1].unaccounted == 0
        chain.flush()
        assert len(chain.content()["s.by-time"]) == 3 + 2  # and header and totals
        chains.append((left, chain.content(), asdict(chain.metrics[1])))
    assert chains[0] == chains[1]


def test_windows_that_are_new_are_not_looked_for_on_disk() -> None:
    windows = TimeWindows(10, 10, 500)
    closes = Suppress("s", Suppressed.until_window_closes(UNBOUNDED), windows)
    chain = Chain([WindowAggregate("w", windows, single(count())), closes], pa.string(), condensed=True)
    chain.process([Record(f"{n:02}", "", 5 * n) for n in range(41)])
    chain.flush()
    asked: list[bytes] = []
    multi_get = chain.backend.multi_get
    chain.backend.multi_get = lambda family, keys: asked.extend(keys) or multi_get(family, keys)
    chain.process([Record(key, "", time) for key, time in (("00", 9), ("new", 9), ("new", 8), ("01", 5))])
    known = [(0).to_bytes(8, "big") + b"00", (0).to_bytes(8, "big") + b"01"]
    assert [key for key in asked if key[8:] in {b"00", b"01"}] == known
    assert len(asked) == 4, "two windows, in each of the two stores"
    assert chain.metrics[1].held_after == 42
