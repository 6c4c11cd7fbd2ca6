"""Windows whose updates pass through the buffer, and which it leaves to their aggregation: nothing may change by it."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from statelib.columns.times import LAST_TIME_MS
from statelib.operators.aggregation.definition import Aggregate, Reduce, several, single
from statelib.operators.aggregation.sql_functions import arg_max, collect_list, count, max_, sum_
from statelib.operators.sessions.operator import SessionAggregate
from statelib.operators.sliding.operator import SlidingAggregate
from statelib.operators.suppress import waiting_windows
from statelib.operators.suppress.definition import BufferConfig, Suppressed
from statelib.operators.suppress.operator import Suppress
from statelib.operators.suppress.store import SuppressionBufferStore, resolve_references
from statelib.operators.suppress.waiting_windows import index_keys, referred_windows
from statelib.operators.windows.definition import SessionWindows, SlidingWindows, TimeWindows
from statelib.operators.windows.operator import WindowAggregate
from statelib.stores import backend
from statelib.stores.backend import WriteBatch
from tests.operators.chain import Chain, Record, rows_of
from tests.operators.suppress.test_closing_windows import VALUES, histories, time_windows

if TYPE_CHECKING:
    from statelib.operators.windows.windowed_aggregate import WindowedAggregateSpec

BUFFERS = st.sampled_from(
    [
        BufferConfig.unbounded(),
        BufferConfig.max_records(1).spill_to_disk_when_full(),
        BufferConfig.max_bytes(90).spill_to_disk_when_full(),
        BufferConfig.max_records(10_000).shut_down_when_full(),
    ]
)
BETWEEN = st.lists(st.sampled_from(["nothing", "flush", "spill", "restart"]), max_size=5)


def rest(key: Any, value: Any, aggregate: int | None) -> int | None:
    """Removes the window at every fifth number or so."""
    total = (aggregate or 0) + (value["x"] or 0) + len(key)
    return None if total % 5 == 4 else total


def merged(_key: Any, one: int | None, other: int | None) -> int | None:
    """Removes the session where the sum is seven; it may be one of several that become one."""
    total = (one or 0) + (other or 0)
    return None if total == 7 else total


AGGREGATORS = st.sampled_from(
    [
        several(n=count(), xs=sum_("x")),
        single(max_("y")),
        several(text=arg_max("text", by="x"), list=collect_list("text", limit=3)),
        Aggregate(lambda: 0, rest, pa.int64(), merged),
        Reduce(lambda one, other: None if other["x"] == 3 else {**other, "x": (one["x"] or 0) + 1}),
    ]
)


@st.composite
def aggregations(draw: st.DrawFn) -> WindowedAggregateSpec:
    aggregator, asks = draw(AGGREGATORS), draw(st.booleans())
    kind = draw(st.sampled_from(["time", "sliding", "session"]))
    length, grace = draw(st.integers(1, 15)), draw(st.integers(0, 15))
    if kind == "time":
        return WindowAggregate("w", draw(time_windows()), aggregator, needs_prior=asks)
    if kind == "sliding":
        return SlidingAggregate("w", SlidingWindows(length, grace), aggregator, needs_prior=asks)
    return SessionAggregate("w", SessionWindows(length, grace), aggregator, needs_prior=asks)


def chain_of(aggregation: WindowedAggregateSpec, buffer: Any, **more: Any) -> Chain:
    closes = Suppress("s", Suppressed.until_window_closes(buffer), aggregation.windows)
    return Chain([aggregation, closes], VALUES, **more)


def held(chain: Chain) -> list[Any]:
    """What waits, as readers of the stores have it; the stores then have rows for all of it."""
    words = chain.specs[0].windows.key_suffix_words  # type: ignore[attr-defined]

    def read() -> tuple[SuppressionBufferStore, list[Any]]:
        store = SuppressionBufferStore(chain.backend, "s", suffix_words=words)
        wait_ms = chain.specs[1].wait_ms("kip")  # type: ignore[attr-defined]
        horizon_ms = chain.clocks[1].get("stream_time", -1) - wait_ms
        return store, [row for rows in store.everything(max(horizon_ms, -1)) for row in rows]

    store, before = read()
    assert before == sorted(before, key=lambda row: (row.time_ms, row.key + _suffix(row, words)))
    resolve_references(chain.backend, ["s"])
    store, after = read()
    assert after == before
    assert store.reference is None
    assert store.totals()[0] == len(before)
    return before


def _suffix(row: Any, words: int) -> bytes:
    bounds = [row.start_ms] if words == 1 else [row.end_ms, row.start_ms]
    return b"".join(bound.to_bytes(8, "big") for bound in bounds)


@given(
    histories(), aggregations(), BUFFERS, st.integers(1, 25), BETWEEN, st.booleans(), st.booleans(),
    st.booleans(), st.sampled_from([1, 2, 1 << 14]),
)  # fmt: skip
def test_results_state_and_figures_are_the_same(
    records, aggregation, buffer, size, between, headers, seals, logs, at_once
) -> None:
    """However few entries the stores are read at a time (``at_once``)."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(backend, "_LISTED_ENTRIES", at_once)
        patch.setattr(waiting_windows, "_AT_ONCE", at_once)
        check_the_same(records, aggregation, buffer, size, between, headers=headers, seals=seals, logs=logs)


def check_the_same(
    records: list[Record],
    aggregation: WindowedAggregateSpec,
    buffer: Any,
    size: int,
    between: list[str],
    *,
    headers: bool,
    seals: bool,
    logs: bool,
) -> None:
    chains = []
    for refers in (False, True):
        chain = chain_of(aggregation, buffer, headers=headers, refers=refers, logged=["s"] if logs else [])
        rows = chain.run(records, size, *between)
        oldest = chain.operators[1].oldest_buffer_time
        if seals:
            rows.append(rows_of(chain.operators[1].seal([chain.forwarded([])[0]])))
        chain.restart()
        figures = [[asdict(metrics) for metrics in finished] for finished in chain.finished]
        logged = [changelog.drain().to_pylist() for changelog in chain.changelogs.values()]
        chains.append((rows, oldest, held(chain), chain.content(), chain.clocks, figures, logged))
    assert chains[0] == chains[1]


@given(
    histories(), aggregations(), BUFFERS, st.integers(1, 25), st.booleans(), st.booleans(),
    st.lists(
        st.sampled_from(["nothing", "flush", "spill", "restart", "turn", "seal", "reset"]), min_size=1, max_size=6
    ),
)  # fmt: skip
def test_a_run_may_go_on_with_what_a_run_of_the_other_way_has_left(
    records, aggregation, buffer, size, headers, logs, between
) -> None:
    """And where the store of the aggregation was given up because the topology has changed: it begins anew."""
    chains = []
    for turns in (False, True):
        logged = ["s"] if logs else []
        chain, rows = chain_of(aggregation, buffer, headers=headers, refers=turns, logged=logged), []
        for number, begin in enumerate(range(0, len(records), size)):
            rows += chain.process(records[begin : begin + size])[1]
            then = between[number % len(between)]
            if then == "seal":
                rows += rows_of(chain.operators[1].seal([chain.forwarded([])[0]]))
            chain.refers ^= turns and then in {"turn", "seal"}
            if then == "reset":
                chain.flush()
                resolve_references(chain.backend, ["s"])
                for family, content in chain.content().items():
                    if family.startswith("w"):
                        chain.backend.write(WriteBatch([(family, key, None) for key, _ in content]))
                chain.clocks[0].clear()
                chain._start()
            elif then != "nothing":
                {"flush": chain.flush, "spill": chain.spill}.get(then, chain.restart)()
        chain.flush()
        changes = [changelog.drain().to_pylist() for changelog in chain.changelogs.values()]
        chains.append((rows, held(chain), chain.content(), chain.clocks, changes))
    assert chains[0] == chains[1]


@given(histories(), time_windows(), st.integers(1, 25), st.lists(st.sampled_from(["flush", "restart"]), max_size=3))
def test_condensed_runs_and_those_with_updates_follow_one_another(records, windows, size, between) -> None:
    aggregation = WindowAggregate("w", windows, several(n=count(), most=max_("y")))
    chains = []
    for turns in (False, True):
        chain, rows = chain_of(aggregation, BufferConfig.unbounded()), []
        for number, begin in enumerate(range(0, len(records), size)):
            if turns:
                chain.condensed, chain.refers = [(True, False), (False, True), (False, False)][number % 3]
                chain.restart()
            rows += chain.process(records[begin : begin + size])[1]
            for then in between:
                getattr(chain, then)()
        chain.flush()
        chains.append((rows, held(chain), chain.content(), chain.clocks))
    assert chains[0] == chains[1]


@given(histories(), histories(), aggregations(), st.integers(1, 25), st.sampled_from(["nothing", "spill", "restart"]))
def test_a_buffer_that_begins_when_the_aggregation_has_windows(before, after, aggregation, size, between) -> None:
    latest = max((record.timestamp for record in before), default=0)
    after = [replace(record, timestamp=record.timestamp + latest) for record in after]
    chains = []
    for refers in (False, True):
        old = Chain([aggregation], VALUES)
        old.run(before, size)
        old.flush()
        chain = chain_of(aggregation, BufferConfig.unbounded(), backend=old.backend, sequence=old.sequence)
        chain.clocks[0], chain.refers = old.clocks[0], refers
        chain._start()
        rows = chain.run(after, size, between)
        chains.append((rows, chain.restart(), held(chain), chain.content(), chain.clocks, chain.finished))
    assert chains[0] == chains[1]


def test_what_memory_was_too_small_for_is_stored_once_too() -> None:
    """The buffer has written it before it was flushed, and one of the windows changes afterwards."""
    aggregation = SlidingAggregate("w", SlidingWindows(10, 500), single(count()))
    chains = []
    for refers in (False, True):
        chain = chain_of(aggregation, BufferConfig.max_records(2).spill_to_disk_when_full(), refers=refers)
        for records in ([(0, "a"), (20, "b"), (40, "c"), (60, "d")], [(0, "a")], []):
            for time, key in records:
                chain.process([Record(key, {"x": 0, "y": 0.0, "text": ""}, time)])
            assert chain.finished[1] or chain.metrics[1].counters["suppression-spill"] > 0
            chain.restart()
            assert not refers or len(chain.content()["s.by-time"]) == 3
        chains.append((held(chain), chain.content()))
    assert chains[0] == chains[1]


SIZES = [
    (WindowAggregate("w", TimeWindows(10, 10, 500), Aggregate(lambda: 0, rest, pa.int64())), 3),
    (SlidingAggregate("w", SlidingWindows(10, 500), single(count())), 3),
    (SessionAggregate("w", SessionWindows(10, 500), single(count())), 3),
]


@pytest.mark.parametrize(("aggregation", "entries"), SIZES, ids=["python", "sliding", "sessions"])
@pytest.mark.parametrize("between", ["flush", "spill", "restart"])
def test_what_waits_is_stored_once(aggregation, entries, between) -> None:
    """The buffer has a header, its totals and the reference."""
    value = {"x": 0, "y": 0.0, "text": ""}
    chain = chain_of(aggregation, BufferConfig.unbounded(), refers=True)
    chain.process([Record("a", value, 20 * n) for n in range(20)])
    getattr(chain, between)()
    assert len(chain.content()["s.by-time"]) == entries
    chain.process([Record("b", value, 20 * n) for n in range(20)])
    chain.restart()
    assert len(chain.content()["s.by-time"]) == entries
    assert len(held(chain)) == chain.operators[1].buffered_records == 40


def test_sessions_that_end_together_are_put_in_order_once_and_given_some_at_a_time(monkeypatch) -> None:
    """However many they are: days as timestamps let all sessions end so."""
    chain = chain_of(
        SessionAggregate("w", SessionWindows(10, 500), single(count())), BufferConfig.unbounded(), refers=True
    )
    value = {"x": 0, "y": 0.0, "text": ""}
    chain.process([Record("a" * (n % 9) + str(n), value, time) for time in (0, 100, 200) for n in range(150)])
    chain.restart()
    asked: list[int] = []
    monkeypatch.setattr(backend, "_LISTED_ENTRIES", 1)
    monkeypatch.setattr(waiting_windows, "_AT_ONCE", 7)
    monkeypatch.setattr(
        waiting_windows, "index_keys", lambda rows, words: asked.append(len(rows)) or index_keys(rows, words)
    )
    store = SuppressionBufferStore(chain.backend, "s", suffix_words=2)
    parts = list(referred_windows(chain.backend, store.reference, store.header.schema))  # type: ignore[arg-type]
    keys = [key for part in parts for key in index_keys(part, 2).to_pylist()]
    assert keys == sorted(keys)
    assert len(keys) == 450
    assert max(map(len, parts)) == 7
    assert sum(asked) < 2 * len(keys)


@pytest.mark.parametrize("between", ["nothing", "flush", "restart"])
@pytest.mark.parametrize("grace", [0, 3])
@pytest.mark.parametrize("kind", ["time", "sliding", "session"])
def test_at_the_end_of_time_all_leave_once(kind, grace, between) -> None:
    """Ends are cut off there, so that windows end together that have not started so."""
    aggregation = {
        "time": WindowAggregate("w", TimeWindows(10, 5, grace), single(count())),
        "sliding": SlidingAggregate("w", SlidingWindows(10, grace), single(count())),
        "session": SessionAggregate("w", SessionWindows(10, grace), single(count())),
    }[kind]
    value = {"x": 0, "y": 0.0, "text": ""}
    chains = []
    for refers in (False, True):
        chain = chain_of(aggregation, BufferConfig.unbounded(), refers=refers)
        records = [
            Record(key, value, LAST_TIME_MS - before) for before in (60, 9, 4, 1, 0) for key in ("b", "a\x00", "a")
        ]
        rows = chain.run(records, 3, between)[1]
        if between != "nothing":
            chain.flush()
        rows += chain.process([Record("a", value, LAST_TIME_MS - 1), Record("c", value, LAST_TIME_MS)])[1]
        rows += rows_of(chain.operators[1].seal([chain.forwarded([])[0]]))
        chain.restart()
        waits = chain.operators[1].buffered_records, chain.operators[1].oldest_buffer_time
        assert rows_of(chain.operators[1].seal([chain.forwarded([])[0]])) == []
        chains.append((rows, waits, held(chain), chain.content(), chain.clocks))
    assert chains[0] == chains[1]
