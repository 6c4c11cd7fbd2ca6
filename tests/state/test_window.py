from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from statelib import (
    ConfigurationError,
    InputError,
    Materialized,
    Stores,
    ValueAndTimestamp,
    Windowed,
)
from statelib.metrics.node_metrics import NodeMetrics
from statelib.stores.memory import MemoryBackend

if TYPE_CHECKING:
    from pathlib import Path

    from statelib.state import WindowBytesStoreSupplier, WindowStore

RETENTION, SIZE = timedelta(milliseconds=100), timedelta(milliseconds=10)


def supplier(where: Path | None) -> WindowBytesStoreSupplier:
    make = Stores.in_memory_window_store if where is None else Stores.persistent_window_store
    return make("views", RETENTION, SIZE)


def opened(where: Path | None, metrics: NodeMetrics | None = None) -> WindowStore:
    return Stores.window_store_builder(supplier(where), pa.string(), pa.int64()).build().init(where, metrics=metrics)


def test_fetch(where: Path | None) -> None:
    with opened(where) as store:
        for key, start in (("a", 10), ("b", 10), ("a", 30), ("a\x00", 20), ("a", 20)):
            store.put(key, start, start)
        assert store.fetch("a", 20) == 20
        assert store.fetch("a", 21) is None
        assert list(store.fetch("a", 10, 20)) == [(10, 10), (20, 20)]
        assert list(store.backward_fetch("a", 0, 1 << 62)) == [(30, 30), (20, 20), (10, 10)]
        in_order = [
            (Windowed(key, t, t + 10), t) for key, t in (("a", 10), ("b", 10), ("a", 20), ("a\x00", 20), ("a", 30))
        ]
        assert list(store.all()) == in_order
        assert list(store.backward_all()) == in_order[::-1]
        assert list(store.fetch_all(20, 30)) == in_order[2:]
        assert list(store.backward_fetch_all(10, 10)) == in_order[1::-1]
        assert [window for window, _ in store.fetch_range("a\x00", "b", 0, 100)] == [("b", 10, 20), ("a\x00", 20, 30)]
        assert [window.key for window, _ in store.backward_fetch_range(None, "a", 15, 100)] == ["a", "a"]
        store.put("a", None, 20)
        assert store.fetch("a", 20) is None
        assert store.stream_time == 30
        for call in (
            lambda: store.put(None, 1, 1),
            lambda: store.put("a", 1, -1),
            lambda: store.fetch(None, 1),
            lambda: store.put("a", "text", 40),
        ):
            with pytest.raises(InputError):
                call()
        assert store.stream_time == 30
    with pytest.raises(ConfigurationError, match="not open"):
        store.fetch("a", 20)


def test_retention(where: Path | None) -> None:
    metrics = NodeMetrics()
    with opened(where, metrics) as store:
        for start in (0, 50, 101, 150):
            store.put("a", start, start)
        assert list(store.fetch("a", 0, 1_000)) == [(101, 101), (150, 150)]
        store.put("b", 1, 50)
        assert metrics.counters == {"expired-window-record-drop": 1}
        assert store.fetch("b", 50) is None
        store.put("b", 1, 51)
        assert store.fetch("b", 51) == 1


def test_timestamped(where: Path | None) -> None:
    builder = Stores.timestamped_window_store_builder(supplier(where), pa.string(), pa.int64())
    with builder.build().init(where) as store:
        store.put("a", ValueAndTimestamp.make(5, 17), 10)
        assert store.fetch("a", 10) == (5, 17)
        assert list(store.all()) == [(Windowed("a", 10, 20), (5, 17))]
        with pytest.raises(InputError, match="no timestamp"):
            store.put("a", 5, 10)


def test_what_is_stored_is_there_again(tmp_path: Path) -> None:
    with opened(tmp_path) as store:
        store.put("a", 1, 500)
        store.put("a", None, 500)
    with opened(tmp_path) as store:
        assert store.stream_time == 500, "although the window is gone"
        store.put("a", 1, 400)
        assert list(store.all()) == []


def test_windows_that_have_expired_leave_no_bytes() -> None:
    backend = MemoryBackend()
    store = Stores.window_store_builder(supplier(None), pa.string(), pa.int64()).build().init(backend)
    for start in range(0, 1_000, 7):
        store.put("a", 1, start)
    assert len(list(backend.scan("views"))) == len(list(store.all()))


def test_duplicates_are_retained_in_the_order_of_their_puts(where: Path | None) -> None:
    make = Stores.in_memory_window_store if where is None else Stores.persistent_window_store
    supplier = make("views", RETENTION, SIZE, retain_duplicates=True)
    with Stores.window_store_builder(supplier, pa.string(), pa.int64()).build().init(where) as store:
        for key, value, start in (
            ("a", 1, 10),
            ("a", 2, 10),
            ("b", 3, 10),
            ("a", 4, 20),
            ("a", None, 20),
            ("a", 1, 10),
        ):
            store.put(key, value, start)
        assert list(store.fetch("a", 0, 100)) == [(10, 1), (10, 2), (10, 1), (20, 4)]
        assert list(store.backward_fetch("a", 0, 100)) == [(20, 4), (10, 1), (10, 2), (10, 1)]
        assert (store.fetch("a", 10), store.fetch("a", 11)) == (1, None)
        a, b, later = Windowed("a", 10, 20), Windowed("b", 10, 20), Windowed("a", 20, 30)
        assert list(store.all()) == [(a, 1), (a, 2), (a, 1), (b, 3), (later, 4)]
        assert list(store.backward_fetch_all(0, 10)) == [(b, 3), (a, 1), (a, 2), (a, 1)]
        assert list(store.fetch_range("b", None, 0, 100)) == [(b, 3)]
        store.put("a", 5, 125)
        assert list(store.fetch("a", 0, 200)) == [(125, 5)], "what is out of retention is gone"
        with pytest.raises(InputError):
            store.put(None, None, 10)


def test_duplicates_have_a_timestamp_each(where: Path | None) -> None:
    make = Stores.in_memory_window_store if where is None else Stores.persistent_timestamped_window_store
    supplier = make("views", RETENTION, SIZE, retain_duplicates=True)
    made = Stores.timestamped_window_store_builder(supplier, pa.string(), pa.struct([("n", pa.int64())]))
    one, two = ValueAndTimestamp({"n": 1}, 12), ValueAndTimestamp({"n": 2}, 11)
    with made.build().init(where) as store:
        for key, value in (("a", one), ("a", two), ("b", one), ("a", None), ("a", ValueAndTimestamp.make(None, 9))):
            store.put(key, value, 10)
        assert list(store.fetch("a", 0, 100)) == [(10, one), (10, two)]
        assert store.fetch("a", 10) == two
        a, b = Windowed("a", 10, 20), Windowed("b", 10, 20)
        assert list(store.backward_all()) == [(b, one), (a, two), (a, one)]
        with pytest.raises(InputError, match=r"has no timestamp.*ValueAndTimestamp\.make"):
            store.put("a", 1, 10)


def test_suppliers() -> None:
    with pytest.raises(ConfigurationError, match="windows of 10 ms are kept for 9 ms only"):
        Stores.persistent_window_store("s", timedelta(milliseconds=9), SIZE)
    options = Materialized.as_(Stores.in_memory_window_store("s", RETENTION, SIZE))
    assert (options.store_name, options.retention_ms) == ("s", 100)
    persistent = Stores.persistent_window_store("s", RETENTION, SIZE)
    assert Stores.persistent_timestamped_window_store("s", RETENTION, SIZE) == persistent


puts = st.tuples(st.sampled_from(["", "a", "ab"]), st.none() | st.integers(0, 9), st.integers(0, 300))


@given(st.lists(puts, max_size=30), st.integers(0, 300), st.integers(0, 300))
def test_like_a_dictionary_that_forgets(operations: list[tuple[str, int | None, int]], first: int, last: int) -> None:
    expected: dict[tuple[int, str], int] = {}
    clock = -1
    with opened(None) as store:
        for key, value, start in operations:
            store.put(key, value, start)
            clock = max(clock, start)
            expected = {at: there for at, there in expected.items() if at[0] > clock - 100}
            if value is None:
                expected.pop((start, key), None)
            elif start > clock - 100:
                expected[start, key] = value
        everything = [(Windowed(key, start, start + 10), value) for (start, key), value in sorted(expected.items())]
        assert list(store.all()) == everything
        assert list(store.fetch_all(first, last)) == [w for w in everything if first <= w[0].window_start <= last]
        for key in ("", "a", "ab"):
            of_key = [(w.window_start, value) for w, value in everything if w.key == key and w.window_start >= first]
            assert list(store.fetch(key, first, 1_000)) == of_key
