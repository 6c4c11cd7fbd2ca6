"""A suppression that spills to disk gives what one without bounds gives, at any bound, and holds its memory."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from statelib.operators.aggregation.definition import Reduce, single
from statelib.operators.aggregation.sql_functions import count
from statelib.operators.sessions.operator import SessionAggregate
from statelib.operators.sliding.operator import SlidingAggregate
from statelib.operators.suppress.definition import BufferConfig, StrictBufferConfig, Suppressed
from statelib.operators.suppress.operator import Suppress
from statelib.operators.windows.definition import SessionWindows, SlidingWindows, TimeWindows
from statelib.operators.windows.operator import WindowAggregate
from statelib.records.batch import Batch
from statelib.records.key_column import KeyColumn
from statelib.stores.rocksdb import RocksDbBackend
from tests.operators.chain import Chain, Record, Row, rows_of

if TYPE_CHECKING:
    from pathlib import Path

    from statelib.operators.base import OperatorSpec

KEYS = st.sampled_from(["", "a", "ab", "abcdefgh", "abcdefghi", "abcdefghj", "b", "a\0", "é"])
TIMES = st.integers(0, 60)
MODES = st.sampled_from(["kip", "kafka-4.3"])
CONSTANT = 256 << 10
"""What an empty buffer takes."""


NO_RECORDS = Batch(
    KeyColumn(pa.array([], pa.string())), np.empty(0, np.int64), pa.array([], pa.string()), np.empty(0, np.int64),
    np.empty(0, np.int64), prior=pa.array([], pa.string()),
)  # fmt: skip


@st.composite
def bounds(draw: st.DrawFn) -> StrictBufferConfig:
    """Bounds on records, on bytes, or both; those on bytes let through nothing, some or everything of a few records."""
    buffer: Any = BufferConfig.unbounded().spill_to_disk_when_full()
    kind = draw(st.sampled_from(["records", "bytes", "both"]))
    if kind != "bytes":
        buffer = buffer.with_max_records(draw(st.integers(0, 6)))
    if kind != "records":
        buffer = buffer.with_max_bytes(draw(st.just(0) | st.integers(CONSTANT - 70_000, CONSTANT)))
    return buffer


@st.composite
def cuts(draw: st.DrawFn) -> list[tuple[int, str]]:
    """Batch sizes, and what happens after each batch."""
    return draw(
        st.lists(
            st.tuples(st.integers(1, 12), st.sampled_from(["nothing", "flush", "restart"])), min_size=1, max_size=8
        )
    )


@st.composite
def table_updates(draw: st.DrawFn) -> list[Record]:
    """Updates of a table, each with the value that it replaces."""
    table: dict[str, str | None] = {}
    updates = []
    values = st.none() | st.text("xy", max_size=4)
    for key, value, timestamp in draw(st.lists(st.tuples(KEYS, values, TIMES), max_size=50)):
        updates.append(Record(key, value, timestamp, table.get(key)))
        table[key] = value
    return updates


def ms(duration: int) -> timedelta:
    return timedelta(milliseconds=duration)


def outcome(chain: Chain, records: list[Record], cuts: list[tuple[int, str]]) -> tuple[object, ...]:
    """All that can be seen from outside: records, state, clocks, ledger, figures of the buffer."""
    rows: list[Row] = []
    first = number = 0
    while first < len(records):
        size, then = cuts[number % len(cuts)]
        rows += chain.process(records[first : first + size])[-1]
        first, number = first + size, number + 1
        if then != "nothing":
            getattr(chain, then)()
    gauges = {name: value for name, value in chain.metrics[-1].gauges.items() if not name.endswith("_max")}
    chain.restart()
    accounts: dict[str, int] = {}
    for metrics in chain.finished[-1]:
        for name, amount in metrics.accounts.items():
            accounts[name] = accounts.get(name, 0) + amount
    return rows, chain.content(), chain.clocks, accounts, gauges


def check(specs: list[OperatorSpec], buffer: StrictBufferConfig, records: list[Record], cuts: Any, **kind: Any) -> None:
    """Compares with no bounds, one batch, no restart."""
    *upstream, suppress = specs
    value_type = kind.pop("value_type", pa.string())
    expected = outcome(Chain(specs, value_type, **kind), records, [(max(len(records), 1), "nothing")])
    suppressed = Suppressed(buffer, suppress.suppressed.time_limit_ms, suppress.suppressed.clock)  # type: ignore[attr-defined]
    spilling = [*upstream, Suppress("s", suppressed, suppress.windows)]  # type: ignore[attr-defined]
    assert outcome(Chain(spilling, value_type, **kind), records, cuts) == expected


@given(
    table_updates(), bounds(), cuts(), st.integers(0, 30), st.sampled_from(["first", "record", "last"]), MODES,
    st.booleans(),
)  # fmt: skip
def test_time_limit(
    records: list[Record], buffer: Any, cuts: Any, wait: int, clock: Any, mode: Any, table: bool
) -> None:
    suppressed = Suppressed.until_time_limit(ms(wait), BufferConfig.unbounded(), clock=clock)
    check([Suppress("s", suppressed)], buffer, records, cuts, semantics=mode, table=table)


@given(
    st.lists(st.builds(Record, st.none() | KEYS, st.none() | st.integers(0, 9), TIMES), max_size=50),
    bounds(),
    cuts(),
    st.integers(1, 20),
    st.integers(0, 15),
    st.sampled_from(["tumbling", "hopping", "sliding", "session"]),
    st.none() | st.integers(0, 30),
    MODES,
)
def test_behind_windows(
    records: list[Record], buffer: Any, cuts: Any, size: int, grace: int, kind: str, limit: int | None, mode: Any
) -> None:
    upstream: OperatorSpec
    windows: Any
    if kind == "session":
        windows = SessionWindows(size, grace)
        upstream = SessionAggregate("w", windows, single(count()), needs_prior=True)
    elif kind == "sliding":
        windows = SlidingWindows(size, grace)
        upstream = SlidingAggregate("w", windows, single(count()), needs_prior=True)
    else:
        windows = TimeWindows(size, size if kind == "tumbling" else max(1, size // 3), grace)
        upstream = WindowAggregate("w", windows, Reduce(lambda a, b: (a * 31 + (b or 7)) % 1009), needs_prior=True)
    unbounded = BufferConfig.unbounded()
    suppressed = (
        Suppressed.until_window_closes(unbounded)
        if limit is None
        else Suppressed.until_time_limit(ms(limit), unbounded)
    )
    specs = [upstream, Suppress("s", suppressed, windows)]
    check(specs, buffer, records, cuts, semantics=mode, value_type=pa.int64())


@given(table_updates(), bounds(), cuts(), st.integers(0, 30))
def test_at_the_end_of_the_input(records: list[Record], buffer: Any, cuts: Any, wait: int) -> None:
    sealed = []
    for config, sizes in ((BufferConfig.unbounded(), [(50, "nothing")]), (buffer, cuts)):
        chain = Chain([Suppress("s", Suppressed.until_time_limit(ms(wait), config))], pa.string(), table=True)
        outcome(chain, records, sizes)
        sealed.append(rows_of(chain.operators[0].seal([NO_RECORDS])))  # type: ignore[attr-defined]
        chain.flush()
        assert chain.content()["s"] == []
        assert chain.metrics[0].unaccounted == 0
    assert sealed[0] == sealed[1]


def test_what_counts_is_memory_after_the_next_batch(tmp_path: Path) -> None:
    windows = TimeWindows(10, 10, 0)
    closes = Suppress("s", Suppressed.until_window_closes(BufferConfig.unbounded()), windows)
    chain = Chain(
        [WindowAggregate("w", windows, single(count())), closes],
        pa.string(),
        condensed=True,
        backend=RocksDbBackend(tmp_path),
    )

    def taken(keys: range, time: int) -> list[int]:
        chain.process([Record(f"key-{key}", "", time) for key in keys])
        return [operator.memory_bytes() for operator in chain.operators]

    opened, _ = taken(range(3_000), 1)
    assert opened > taken(range(3_000), 2)[0]  # the second batch has opened no window
    chain.flush()
    empty = chain.operators[1].memory_bytes()
    taken(range(1), 10)  # all of the store leaves at once
    chain.flush()
    assert chain.operators[1].memory_bytes() > empty + 3_000 * len("key-0000")


def wide_updates(keys: int, updates: int) -> list[Record]:
    """``keys`` keys that are all buffered at a time, each updated some times."""
    return [
        Record(f"key-{(i * 7919) % keys:06}", f"value {i} ".ljust(100, "."), i)
        for i in range(keys * updates)
    ]  # fmt: skip


@pytest.mark.thorough
@pytest.mark.parametrize(
    "bound",
    [
        BufferConfig.max_bytes(1 << 20),
        BufferConfig.max_records(3_000),
        BufferConfig.max_records(3_000).with_max_bytes(1 << 20),
    ],
    ids=["bytes", "records", "both"],
)
def test_memory_is_held(tmp_path: Path, bound: BufferConfig) -> None:
    keys, updates, batch = 20_000, 3, 1_000
    records = wide_updates(keys, updates)
    wait = ms(keys * 2)
    free = Chain([Suppress("s", Suppressed.until_time_limit(wait, BufferConfig.unbounded()))], pa.string())
    suppressed = Suppressed.until_time_limit(wait, bound.spill_to_disk_when_full())
    held = Chain([Suppress("s", suppressed)], pa.string(), backend=RocksDbBackend(tmp_path))
    largest = 0
    for first in range(0, len(records), batch):
        assert held.process(records[first : first + batch]) == free.process(records[first : first + batch])
        taken = held.operators[0].memory_bytes()
        largest = max(largest, free.operators[0].memory_bytes())
        if bound.byte_limit is not None:
            assert taken <= bound.byte_limit + CONSTANT
        assert taken < 3 << 20
        assert held.operators[0].buffered_records == free.operators[0].buffered_records  # type: ignore[attr-defined]
    assert largest > 5 << 20
    assert held.metrics[0].counters["suppression-spill"] > keys
    for chain in (held, free):
        chain.flush()
    assert held.content() == free.content()
    held.backend.close()


def test_what_is_due_at_once_passes_and_leaves_no_memory_behind() -> None:
    windows = TimeWindows(10_000, 10_000, 0)
    suppressed = Suppressed.until_window_closes(BufferConfig.max_records(100).spill_to_disk_when_full())
    chain = Chain([WindowAggregate("w", windows, single(count())), Suppress("s", suppressed, windows)], pa.int64())
    for first in range(0, 10_000, 500):
        chain.process([Record(f"{i}", 1, i) for i in range(first, first + 500)])
    suppress: Any = chain.operators[1]
    assert suppress.buffered_records == 10_000
    assert suppress.memory_bytes() < CONSTANT
    _, final = chain.process([Record("x", 1, 10_000)])
    assert [row.key for row in final] == sorted(str(i) for i in range(10_000))
    assert suppress.buffered_records == 1
    assert suppress.memory_bytes() < CONSTANT


def test_a_bound_may_change_when_the_job_goes_on() -> None:
    records = [Record(f"{i % 40}", f"{i}", i) for i in range(200)]
    free = Chain([Suppress("s", Suppressed.until_time_limit(ms(30), BufferConfig.unbounded()))], pa.string())
    expected = free.run(records, 200)[0]
    chain = Chain([], pa.string())
    rows: list[Row] = []
    for number, first in enumerate(range(0, 200, 20)):
        bound = [BufferConfig.max_records(5).spill_to_disk_when_full(), BufferConfig.unbounded(),
                 BufferConfig.max_records(60).shut_down_when_full()][number % 3]  # fmt: skip
        chain.specs = [Suppress("s", Suppressed.until_time_limit(ms(30), bound))]
        chain.clocks = chain.clocks or [{}]
        chain.finished = [[]]
        chain._start()
        rows += chain.process(records[first : first + 20])[0]
        chain.flush()
    assert rows == expected
