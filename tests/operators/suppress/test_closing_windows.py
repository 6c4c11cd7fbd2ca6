"""Windows that wait where their aggregation has them: nothing may change by it."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from statelib.columns.times import LAST_TIME_MS
from statelib.operators.aggregation.definition import several, single
from statelib.operators.aggregation.sql_functions import (
    approx_count_distinct,
    arg_max,
    collect_list,
    collect_set,
    count,
    count_distinct,
    first,
    last,
    max_,
    quantiles,
    stddev,
    sum_,
    top_n,
)
from statelib.operators.suppress.definition import BufferConfig, Suppressed
from statelib.operators.suppress.operator import Suppress
from statelib.operators.suppress.store import SuppressionBufferStore, resolve_references
from statelib.operators.windows import operator as window_aggregate
from statelib.operators.windows.definition import TimeWindows
from statelib.operators.windows.operator import WindowAggregate
from statelib.operators.windows.store import WindowStore
from statelib.stores import backend
from statelib.stores.backend import WriteBatch
from tests.operators.chain import Chain, Record, rows_of

KEYS = st.sampled_from([None, "", "a", "a\x00", "a\x00\x00b", "ab", "abcdefghi", "abcdefghj"])
VALUES = pa.struct([("x", pa.int64()), ("y", pa.float64()), ("text", pa.string())])
TEXTS = st.sampled_from(["", "p", "a text that is longer"])
UNBOUNDED = BufferConfig.unbounded()
HEADERS = st.sampled_from([None, None, b"x", b"y"])
BUFFERS = st.sampled_from(
    [
        UNBOUNDED,
        BufferConfig.max_records(1).spill_to_disk_when_full(),
        BufferConfig.max_bytes(90).spill_to_disk_when_full(),
    ]
)
AGGREGATORS = st.sampled_from(
    [
        several(n=count(), xs=sum_("x")),
        several(xs=sum_("x"), most=max_("y")),
        single(count("x")),
        several(text=arg_max("text", by="x"), last=last("x"), n=count(where=pc.field("value", "x") > 3)),
        several(latest=last("text", by_time=True), deviation=stddev("y"), texts=count_distinct("text")),
        single(first("text")),
        several(top=top_n("text", "y", 2)),
        several(about=approx_count_distinct("x"), n=count()),
        several(spread=quantiles("y", [1, 0.5])),
        several(list=collect_list("text", limit=3), set=collect_set("y")),
        single(max_("text")),
    ]
)


@st.composite
def histories(draw: st.DrawFn) -> list[Record]:
    """Time goes on in steps, some records are late; half of the histories have no null."""
    numbers = st.integers(-9, 9) if draw(st.booleans()) else st.none() | st.integers(-9, 9)
    values = st.fixed_dictionaries({"x": numbers, "y": numbers.map(lambda x: x if x is None else x / 4), "text": TEXTS})
    now, records = 0, []
    for _ in range(draw(st.integers(0, 50))):
        now += draw(st.sampled_from([0, 0, 1, 3, 20]))
        late = draw(st.sampled_from([0, 0, 0, 2, 9, 25]))
        records.append(Record(draw(KEYS), draw(values), max(0, now - late), header=draw(HEADERS)))
    return records


@st.composite
def time_windows(draw: st.DrawFn) -> TimeWindows:
    size = draw(st.integers(1, 20))
    return TimeWindows(size, draw(st.integers(1, size)), draw(st.integers(0, 15)), draw(st.sampled_from([0, 0, 3, -5])))


def waiting(chain: Chain) -> dict[str, list[tuple[bytes, bytes]]]:
    """What the stores have once the buffer has got all that it refers to; read before and after, that is the same."""
    store = SuppressionBufferStore(chain.backend, "s", suffix_words=1)
    horizon_ms = -1 if store.reference is None else store.reference.ended_after_ms
    before = [row for rows in store.everything(horizon_ms) for row in rows]
    resolve_references(chain.backend, ["s"])
    store = SuppressionBufferStore(chain.backend, "s", suffix_words=1)
    assert [row for rows in store.everything(horizon_ms) for row in rows] == before
    assert store.reference is None
    return chain.content()


@given(
    histories(), time_windows(), AGGREGATORS, BUFFERS, st.integers(1, 25),
    st.lists(st.sampled_from(["nothing", "flush", "spill", "restart"]), max_size=5), st.booleans(), st.booleans(),
)  # fmt: skip
def test_results_state_and_figures_are_the_same(
    records, windows, aggregator, buffer, size, between, headers, seals
) -> None:
    chains = []
    for condensed in (False, True):
        closes = Suppress("s", Suppressed.until_window_closes(buffer), windows)
        specs = [WindowAggregate("w", windows, aggregator), closes]
        chain = Chain(specs, VALUES, headers=headers, condensed=condensed)
        _, rows = chain.run(records, size, *between)
        oldest = chain.operators[1].oldest_buffer_time
        if seals:
            rows += rows_of(chain.operators[1].seal([chain.forwarded([])[0]]))
        chain.restart()
        figures = [[asdict(metrics) for metrics in finished] for finished in chain.finished]
        for metrics in figures[1]:
            metrics["counters"].pop("suppression-spill", None)  # how often memory was short is not a result
        chains.append((rows, oldest, waiting(chain), chain.clocks, figures))
    assert chains[0] == chains[1]


@given(histories(), histories(), time_windows(), AGGREGATORS, st.integers(1, 25), st.sampled_from(["nothing", "spill"]))
def test_a_buffer_that_begins_when_the_aggregation_has_windows(
    before, after, windows, aggregator, size, between
) -> None:
    latest = max((record.timestamp for record in before), default=0)
    after = [replace(record, timestamp=record.timestamp + latest) for record in after]
    chains = []
    for condensed in (False, True):
        aggregate = WindowAggregate("w", windows, aggregator)
        old = Chain([aggregate], VALUES)
        old.run(before, size)
        old.flush()
        closes = Suppress("s", Suppressed.until_window_closes(UNBOUNDED), windows)
        chain = Chain([aggregate, closes], VALUES, condensed=condensed, backend=old.backend, sequence=old.sequence)
        chain.clocks[0] = old.clocks[0]
        chain._start()
        _, rows = chain.run(after, size, between)
        chains.append((rows, chain.restart(), waiting(chain), chain.clocks, asdict(chain.finished[1][0])))
    assert chains[0] == chains[1]


@given(
    histories(), time_windows(), AGGREGATORS, st.integers(1, 25), st.booleans(),
    st.lists(
        st.sampled_from(["nothing", "flush", "spill", "restart", "turn", "seal", "reset"]), min_size=1, max_size=5
    ),
)  # fmt: skip
def test_a_run_may_go_on_with_what_a_run_of_the_other_way_has_left(
    records, windows, aggregator, size, headers, between
) -> None:
    """A run is condensed or not as its readers and settings want it; some begin when all that waited has left.

    And some with a changed topology, for which the store of the aggregation is given up: it begins anew.
    """
    specs = [
        WindowAggregate("w", windows, aggregator),
        Suppress("s", Suppressed.until_window_closes(UNBOUNDED), windows),
    ]
    chains = []
    for turns in (False, True):
        chain, rows = Chain(specs, VALUES, headers=headers, condensed=turns), []
        for number, begin in enumerate(range(0, len(records), size)):
            rows += chain.process(records[begin : begin + size])[1]
            then = between[number % len(between)]
            if then == "seal":
                rows += rows_of(chain.operators[1].seal([chain.forwarded([])[0]]))
            chain.condensed ^= turns and then in {"turn", "seal"}
            if then == "reset":
                chain.flush()
                content = waiting(chain)
                for family in ("w", "w.by-start"):
                    chain.backend.write(WriteBatch([(family, key, None) for key, _ in content[family]]))
                chain.clocks[0].clear()
                chain._start()
            elif then != "nothing":
                {"flush": chain.flush, "spill": chain.spill}.get(then, chain.restart)()
        chain.flush()
        chains.append((rows, waiting(chain), chain.clocks))
    assert chains[0] == chains[1]


@pytest.mark.parametrize("between", ["nothing", "flush", "restart"])
@pytest.mark.parametrize("keys", [["b", "a"], ["b", "a\x00", "a"]], ids=["two keys", "one begins with another"])
def test_sealed_at_the_end_of_time_all_leave_once(monkeypatch, keys, between) -> None:
    """Ends are cut off there, so that windows end together that have not started so. They are read one at a time."""
    monkeypatch.setattr(backend, "_LISTED_ENTRIES", 1)
    windows = TimeWindows(10, 5, 3)
    specs = [
        WindowAggregate("w", windows, single(count())),
        Suppress("s", Suppressed.until_window_closes(UNBOUNDED), windows),
    ]
    records = [Record(key, "", LAST_TIME_MS - before) for before in (40, 9, 4, 1) for key in keys]
    chains = []
    for condensed in (False, True):
        chain = Chain(specs, pa.string(), condensed=condensed)
        _, rows = chain.run(records, len(keys), between)
        if between != "nothing":
            chain.flush()
        store = SuppressionBufferStore(chain.backend, "s", suffix_words=1)
        held = [row for some in store.everything(LAST_TIME_MS - 20) for row in some]
        _, more = chain.process([Record("a", "", LAST_TIME_MS - 1)])
        rows += [*more, *rows_of(chain.operators[1].seal([chain.forwarded([])[0]]))]
        chain.restart()
        assert rows_of(chain.operators[1].seal([chain.forwarded([])[0]])) == []
        chains.append((rows, held, waiting(chain), chain.clocks))
    assert chains[0] == chains[1]
    assert between == "nothing" or sum(row.end_ms == LAST_TIME_MS for row in chains[0][1]) > 3


def test_no_update_is_passed_on() -> None:
    windows = TimeWindows(10, 10, 0)
    closes = Suppress("s", Suppressed.until_window_closes(UNBOUNDED), windows)
    chain = Chain([WindowAggregate("w", windows, single(count())), closes], pa.string(), condensed=True)
    updates, results = chain.process([Record("a", "", 1), Record("b", "", 2), Record("a", "", 9), Record("c", "", 11)])
    assert updates == []
    assert [(row.sequence, row.key, row.value) for row in results] == [(3, "a", 2), (3, "b", 1)]
    assert [metrics.records_in for metrics in chain.metrics] == [4, 4]


@given(st.sampled_from(["nothing", "flush", "spill", "restart"]), st.sampled_from([None, 1, 3]))
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
        assert len(chain.content()["s.by-time"]) == (3 if condensed else 3 + 2)  # header, totals, and what waits
        content = waiting(chain)
        assert len(content["s.by-time"]) == 3 + 2
        chains.append((left, content, asdict(chain.metrics[1])))
    assert chains[0] == chains[1]


@pytest.mark.parametrize("headers", [False, True])
def test_where_memory_is_short_windows_are_written_once(headers) -> None:
    """They leave from the aggregation's store, and wait there; it has no headers, so with some they are in both."""
    windows = TimeWindows(10, 10, 500)
    closes = Suppress("s", Suppressed.until_window_closes(UNBOUNDED), windows)
    aggregate = WindowAggregate("w", windows, single(count()))
    chain = Chain([aggregate, closes], pa.string(), condensed=True, headers=headers)
    header = b"x" if headers else None
    chain.process([Record(f"{n:02}", "", 5 * n, header=header) for n in range(41)])
    chain.spill()
    assert [len(chain.content()[family]) for family in ("w.by-start", "s.by-time")] == [
        1 + 41,
        2 + 41 if headers else 3,
    ]
    _, left = chain.process([Record("a", "", 700)])
    assert [(row.key, row.value) for row in left] == [(f"{n:02}", 1) for n in range(40)]
    assert {row.headers and row.headers[0]["value"] for row in left} == {header}
    chain.flush()
    assert len(chain.content()["s.by-time"]) == (2 + 2 if headers else 3)
    assert [key[8:10] for key, _ in waiting(chain)["s.by-time"][2:]] == [b"40", b"a\x00"]


def test_a_window_store_of_the_first_format_is_not_searched_for_what_is_due(monkeypatch) -> None:
    """It is in order of the keys: where memory is short, what waits is written to the buffer's own store."""

    class ByKey(WindowStore):
        def __init__(self, *args: Any, **settings: Any) -> None:
            super().__init__(*args, **{**settings, "on_grid": False})

    monkeypatch.setattr(window_aggregate, "WindowStore", ByKey)
    windows = TimeWindows(10, 10, 500)
    closes = Suppress("s", Suppressed.until_window_closes(UNBOUNDED), windows)
    aggregate = WindowAggregate("w", windows, single(count()))
    chain = Chain([aggregate, closes], pa.string(), condensed=True)
    chain.process([Record(f"{n:02}", "", 5 * n) for n in range(41)])
    chain.spill()
    assert [len(chain.content()[family]) for family in ("w", "s.by-time")] == [41, 43]
    _, left = chain.process([Record("a", "", 700)])
    assert [(row.key, row.value) for row in left] == [(f"{n:02}", 1) for n in range(40)]


def test_nothing_is_written_when_nothing_has_come() -> None:
    windows = TimeWindows(10, 10, 0)
    closes = Suppress("s", Suppressed.until_window_closes(UNBOUNDED), windows)
    chain = Chain([WindowAggregate("w", windows, single(count())), closes], pa.string(), condensed=True)
    chain.process([Record("a", "", 1)])
    chain.restart()
    chain.process([])
    write = WriteBatch()
    chain.operators[1].flush(write)
    assert len(write) == 0


@pytest.mark.parametrize("between", ["flush", "restart"])
def test_windows_are_looked_for_on_disk_only_where_their_aggregates_are(between) -> None:
    """And new ones in a new run alone, which knows only when the last one began."""
    windows = TimeWindows(10, 10, 500)
    closes = Suppress("s", Suppressed.until_window_closes(UNBOUNDED), windows)
    chain = Chain([WindowAggregate("w", windows, single(count())), closes], pa.string(), condensed=True)
    chain.process([Record(f"{n:02}", "", 5 * n) for n in range(41)])
    getattr(chain, between)()
    asked: list[bytes] = []
    multi_get = chain.backend.multi_get
    chain.backend.multi_get = lambda family, keys: asked.extend(keys) or multi_get(family, keys)
    chain.process([Record(key, "", time) for key, time in (("00", 9), ("new", 9), ("new", 8), ("01", 5))])
    known = [(0).to_bytes(8, "big") + b"00", (0).to_bytes(8, "big") + b"01"]
    assert [key for key in asked if key[8:] in {b"00", b"01"}] == known
    assert len(asked) == (2 if between == "flush" else 3)
    assert chain.metrics[1].held_after == 42
