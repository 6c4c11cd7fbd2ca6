from __future__ import annotations

import struct
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from statelib.errors.kinds import ConfigurationError
from statelib.metrics.node_metrics import Mean
from statelib.operators.aggregation.definition import Reduce, single
from statelib.operators.aggregation.sql_functions import count
from statelib.operators.suppress.definition import BufferConfig, EagerBufferConfig, StrictBufferConfig, Suppressed
from statelib.operators.suppress.operator import Suppress
from statelib.operators.windows.definition import TimeWindows
from statelib.operators.windows.operator import WindowAggregate
from statelib.stores.rocksdb import RocksDbBackend
from tests.operators.chain import Chain, Record, Row
from tests.reference.suppress import Buffer, FullError
from tests.reference.window_aggregate import TimeWindowed

if TYPE_CHECKING:
    from pathlib import Path

KEYS = st.sampled_from(["", "a", "ab", "abcdefgh", "abcdefghi", "abcdefghj", "b", "a\0", "é"])
VALUES = st.none() | st.text("xy", max_size=4)
BETWEEN = st.sampled_from(["nothing", "flush", "restart"])
LIMITS = st.none() | st.integers(0, 5)
CLOCKS = st.sampled_from(["first", "record", "last"])


def ms(duration: int) -> timedelta:
    return timedelta(milliseconds=duration)


@st.composite
def table_updates(draw: st.DrawFn) -> list[Record]:
    """Updates of a table, each with the value that it replaces."""
    table: dict[str, str | None] = {}
    updates = []
    for key, value, timestamp in draw(st.lists(st.tuples(KEYS, VALUES, st.integers(0, 40)), max_size=40)):
        updates.append(Record(key, value, timestamp, table.get(key)))
        table[key] = value
    return updates


def config(max_records: int | None, max_bytes: int | None) -> BufferConfig:
    buffer: BufferConfig = BufferConfig.unbounded().emit_early_when_full()
    if max_records is not None:
        buffer = buffer.with_max_records(max_records)
    return buffer if max_bytes is None else buffer.with_max_bytes(max_bytes)


def bound(limit: int | None) -> float:
    return float("inf") if limit is None else limit


@given(
    table_updates(), st.integers(0, 20), LIMITS, st.none() | st.integers(0, 30), CLOCKS, st.integers(1, 10), BETWEEN,
)  # fmt: skip
def test_time_limit_like_the_reference(
    records: list[Record],
    wait: int,
    max_records: int | None,
    max_bytes: int | None,
    clock: Any,
    size: int,
    between: str,
) -> None:
    reference = Buffer(wait, bound(max_records), bound(max_bytes), clock=clock)
    expected = [
        Row(i, key.decode(), value, timestamp, None, prior)
        for i, record in enumerate(records)
        for key, value, timestamp, prior in reference.process(
            str(record.key).encode(),
            record.value,
            record.timestamp,
            prior=record.prior,
            size=len(str(record.key).encode()) + len(str(record.value or "")),
        )
    ]
    suppressed = Suppressed.until_time_limit(ms(wait), config(max_records, max_bytes), clock=clock)
    chain = Chain([Suppress("s", suppressed)], pa.string(), table=True)
    assert chain.run(records, size, between) == [expected]
    chain.restart()
    assert chain.metrics[0].held_before == len(reference.held)
    assert chain.metrics[0].gauges["suppression-buffer-size"] == sum(h["size"] for h in reference.held.values())


@given(
    table_updates(), st.integers(0, 20), LIMITS, CLOCKS, st.sampled_from(["kip", "kafka-4.3"]), st.integers(1, 10),
    st.integers(1, 10),
)  # fmt: skip
def test_state_does_not_depend_on_batches_or_restarts(
    records: list[Record], wait: int, max_records: int | None, clock: Any, semantics: Any, one: int, other: int
) -> None:
    suppressed = Suppressed.until_time_limit(ms(wait), config(max_records, 150), clock=clock)
    results = []
    for size, between in ((one, "nothing"), (other, "flush"), (other, "restart")):
        chain = Chain([Suppress("s", suppressed)], pa.string(), table=True, semantics=semantics)
        rows = chain.run(records, size, between)
        chain.restart()
        results.append((rows, chain.content(), chain.clocks))
    assert results[1] == results[0]
    assert results[2] == results[0]


@given(
    st.lists(st.builds(Record, st.none() | KEYS, st.none() | st.integers(0, 9), st.integers(0, 80)), max_size=50),
    st.integers(1, 20),
    st.integers(1, 4),
    st.integers(0, 10),
    st.integers(1, 10),
    BETWEEN,
)
def test_final_results_like_the_reference(
    records: list[Record], size: int, hops: int, grace: int, batch_size: int, between: str
) -> None:
    windows = TimeWindows(size, max(1, size // hops), grace)
    reference = TimeWindowed(size, windows.advance_ms, grace)
    buffer = Buffer(grace, final=True)
    expected = []
    for i, record in enumerate(records):
        for start, values, timestamp in reference.process(record.key, record.value, record.timestamp):
            key = record.key.encode() + struct.pack(">q", start)  # type: ignore[attr-defined]
            for out, value, time, _ in buffer.process(key, len(values), timestamp, time=start + size):
                begin = struct.unpack(">q", out[-8:])[0]
                expected.append(Row(i, out[:-8].decode(), value, time, (begin, begin + size)))
    suppressed = Suppressed.until_window_closes(BufferConfig.unbounded())
    specs = [WindowAggregate("w", windows, single(count())), Suppress("s", suppressed, windows)]
    assert Chain(specs, pa.int64()).run(records, batch_size, between)[1] == expected
    finals = [(row.key, row.window) for row in expected]
    assert len(finals) == len(set(finals))  # exactly one a key and window


def test_window_close_drops_tombstones_and_time_limit_forwards_them() -> None:
    suppressed = Suppressed.until_time_limit(ms(5), BufferConfig.unbounded())
    chain = Chain([Suppress("s", suppressed)], pa.string())
    records = [Record("a", None, 0), Record("b", "x", 9)]
    assert chain.run(records, 2) == [[Row(1, "a", None, 0)]]

    windows = TimeWindows(10, 10, 0)
    closes = Suppress("s", Suppressed.until_window_closes(BufferConfig.unbounded()), windows)
    reduce = WindowAggregate("w", windows, Reduce(lambda a, b: a + b))
    chain = Chain([reduce, closes], pa.int64())
    _, final = chain.run([Record("a", None, 0), Record("b", 1, 1), Record("c", 1, 30)], 3)
    assert final == [Row(2, "b", 1, 1, (0, 10))]
    assert chain.metrics[1].accounts == {"tombstone": 1, "emitted": 1}
    assert chain.metrics[1].held_after == 1
    assert chain.metrics[1].unaccounted == 0


@given(table_updates(), st.integers(0, 20), st.integers(0, 4), st.integers(1, 10))
def test_a_strict_buffer_fails_where_the_reference_does(
    records: list[Record], wait: int, limit: int, size: int
) -> None:
    reference = Buffer(wait, limit, strict=True)
    failed = None
    for i, record in enumerate(records):
        try:
            reference.process(str(record.key).encode(), record.value, record.timestamp)
        except FullError:
            failed = i
            break
    suppressed = Suppressed.until_time_limit(ms(wait), BufferConfig.max_records(limit).shut_down_when_full())
    chain = Chain([Suppress("s", suppressed)], pa.string())
    if failed is None:
        chain.run(records, size, "restart")
        return
    with pytest.raises(ConfigurationError, match="more than its bounds") as error:
        chain.run(records, size, "restart")
    place = error.value.place
    assert (place["topic"], place["partition"], place["offset"], place["node"]) == ("in", 0, failed, "NODE-0")


def test_prior_is_what_is_known_downstream_or_as_shipped_the_last_old_value() -> None:
    records = [Record("a", "2", 0, "1"), Record("a", "3", 1, "2"), Record("a", "4", 2, "3"), Record("b", "", 9)]
    suppressed = Suppressed.until_time_limit(ms(5), BufferConfig.unbounded())
    for semantics, prior in (("kip", "1"), ("kafka-4.3", "3")):
        for size, between in ((4, "nothing"), (1, "restart")):
            chain = Chain([Suppress("s", suppressed)], pa.string(), table=True, semantics=semantics)  # type: ignore[arg-type]
            assert chain.run(records, size, between) == [[Row(3, "a", "4", 2, None, prior)]]


@given(table_updates(), LIMITS, st.integers(1, 10), BETWEEN)
def test_a_limit_of_zero_lets_everything_pass(
    records: list[Record], max_records: int | None, size: int, between: str
) -> None:
    chain = Chain(
        [Suppress("s", Suppressed.until_time_limit(ms(0), config(max_records, None)))], pa.string(), table=True
    )
    passed = [Row(i, r.key, r.value, r.timestamp, None, r.prior) for i, r in enumerate(records)]
    assert chain.run(records, size, between) == [passed]


@pytest.mark.parametrize(("clock", "leaves_at"), [("first", 10), ("record", 12), ("last", 14)])
def test_what_an_update_does_to_the_timer(clock: Any, leaves_at: int) -> None:
    chain = Chain(
        [Suppress("s", Suppressed.until_time_limit(ms(10), BufferConfig.unbounded(), clock=clock))], pa.string()
    )
    chain.process([Record("a", "1", 0), Record("a", "2", 4), Record("a", "3", 2)])
    for time in range(5, 20):
        (rows,) = chain.process([Record(f"t{time}", "", time)])
        if rows:
            assert (time, rows[0].key, rows[0].value) == (leaves_at, "a", "3")
            return
    pytest.fail("it never left")


def test_overtime_is_what_a_shorter_limit_would_save() -> None:
    suppressed = Suppressed.until_time_limit(ms(10), BufferConfig.unbounded())
    # a: buffered at 0, last updated at stream time 7 by a late record, due at 10; b: updated at 9, due at 18
    records = [Record("a", "1", 0), Record("c", "", 7), Record("a", "2", 1), Record("b", "", 8), Record("b", "", 9)]
    for size, between in ((9, "nothing"), (1, "flush"), (1, "restart")):
        chain = Chain([Suppress("s", suppressed)], pa.string())
        chain.run([*records, Record("d", "", 30)], size, between)
        means = [
            metrics.means.get("intermediate-result-suppression-overtime")
            for metrics in (*chain.finished[0], *chain.metrics)
        ]
        saved = [(mean.count, mean.total, mean.least) for mean in means if mean]
        assert saved == [(3, 3 + 10 + 9, 3)]


def test_metrics() -> None:
    suppressed = Suppressed.until_time_limit(ms(5), BufferConfig.max_records(2))
    chain = Chain([Suppress("s", suppressed)], pa.string())
    keys = [("a", 0), ("a", 1), (None, 1), ("b", 1), ("c", 2), ("d", 9)]
    chain.process([Record(key, "xx", time) for key, time in keys])
    (metrics,) = chain.metrics
    assert metrics.accounts == {"replaced": 1, "null-key": 1, "emitted": 3}
    assert metrics.counters == {"suppression-emit": 3}
    assert metrics.gauges == {
        "suppression-buffer-count": 1,
        "suppression-buffer-size": 3,
        "suppression-buffer-count_max": 3,
        "suppression-buffer-size_max": 9,
    }
    assert metrics.means["suppression-buffer-count"] == Mean(5, 1 + 1 + 2 + 2 + 1)
    assert metrics.means["suppression-buffer-size"] == Mean(5, 3 + 3 + 6 + 6 + 3)
    assert metrics.means["intermediate-result-suppression-overtime"] == Mean(3, 1 + 5 + 5, 1)
    assert (metrics.records_in, metrics.records_out, metrics.held_after, metrics.unaccounted) == (6, 3, 1, 0)


def test_state_in_rocksdb_outlives_the_process(tmp_path: Path) -> None:
    windows = TimeWindows(10, 5, 5)
    closes = Suppress("s", Suppressed.until_window_closes(BufferConfig.unbounded()), windows)
    by_window = [WindowAggregate("w", windows, single(count())), closes]
    by_key = [Suppress("s", Suppressed.until_time_limit(ms(20), BufferConfig.unbounded()))]
    records = [Record(["", "a", "ab"][i % 3], str(i), i) for i in range(60)]
    for name, specs in (("windows", by_window), ("keys", by_key)):
        expected = Chain(specs, pa.string())
        rows = expected.run(records, 60)
        expected.flush()
        chain = Chain(specs, pa.string(), backend=RocksDbBackend(tmp_path / name))
        assert chain.run(records, 11, "restart") == rows
        assert chain.content() == expected.content()
        chain.backend.close()


def test_rows_nobody_waits_for_leave_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    records = [Record(f"k{i % 5}", f"v{i}", i, f"v{i - 5}" if i > 4 else None) for i in range(300)]
    suppressed = Suppressed.until_time_limit(ms(20), BufferConfig.unbounded())
    for semantics in ("kip", "kafka-4.3"):
        specs = [Suppress("s", suppressed)]
        expected = Chain(specs, pa.string(), table=True, semantics=semantics).run(records, 300)  # type: ignore[arg-type]
        with monkeypatch.context() as patch:
            patch.setattr("statelib.operators.suppress.buffer._FEW_ROWS", 4)
            chain = Chain(specs, pa.string(), table=True, semantics=semantics)  # type: ignore[arg-type]
            assert chain.run(records, 4) == expected
            assert len(chain.operators[0]._buffer._held.pool) < 30


def test_changed_types_are_refused() -> None:
    suppressed = Suppressed.until_time_limit(ms(20), BufferConfig.unbounded())
    for between in ("nothing", "flush", "restart"):
        chain = Chain([Suppress("s", suppressed)], pa.string())
        chain.run([Record("a", "x", 0)], 1, between)
        chain.value_type = pa.int64()
        with pytest.raises(ConfigurationError, match=r"value: string.*value: int64"):
            chain.process([Record("a", 1, 0)])


def test_only_a_strict_buffer_gives_final_results() -> None:
    with pytest.raises(ConfigurationError, match=r"never emits early.*spill_to_disk_when_full\(\) or"):
        Suppressed.until_window_closes(BufferConfig.max_records(1))  # type: ignore[arg-type]
    with pytest.raises(ConfigurationError, match="windowed table"):
        Suppress("s", Suppressed.until_window_closes(BufferConfig.unbounded())).check("NODE")
    with pytest.raises(ConfigurationError, match="negative"):
        BufferConfig.max_bytes(-1)
    with pytest.raises(ConfigurationError, match="as clock"):
        Suppressed.until_time_limit(ms(1), BufferConfig.unbounded(), clock="wall")  # type: ignore[arg-type]
    with pytest.raises(ConfigurationError, match="takes a buffer as buffer"):
        Suppressed.until_time_limit(ms(1), BufferConfig(3))


def test_buffers_are_what_the_api_says() -> None:
    both = BufferConfig.max_records(3).with_max_bytes(9)
    assert both == EagerBufferConfig(3, 9)
    assert both.shut_down_when_full() == StrictBufferConfig(3, 9)
    assert both.shut_down_when_full().emit_early_when_full() == both
    assert both.spill_to_disk_when_full() == StrictBufferConfig(3, 9, spills=True)
    assert both.spill_to_disk_when_full().with_max_bytes(5) == StrictBufferConfig(3, 5, spills=True)
    assert both.spill_to_disk_when_full().shut_down_when_full() == StrictBufferConfig(3, 9)
    assert both.with_no_bound() == BufferConfig.unbounded() == StrictBufferConfig()
    assert Suppressed.until_time_limit(ms(7), both).with_name("slow") == Suppressed(both, 7, "first", "slow")


def test_bounds_that_do_not_decide_the_results_are_not_in_the_fingerprint() -> None:
    both = BufferConfig.max_records(3).with_max_bytes(9)
    strict = [BufferConfig.unbounded(), both.shut_down_when_full(), both.spill_to_disk_when_full()]
    assert [buffer.describe() for buffer in strict] == [{"emits_early": False}] * 3
    assert both.describe() != BufferConfig.max_records(4).with_max_bytes(9).describe()
