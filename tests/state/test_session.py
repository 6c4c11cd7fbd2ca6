from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from statelib import ConfigurationError, InputError, Materialized, Stores, Windowed
from statelib.metrics.node_metrics import NodeMetrics
from statelib.stores.memory import MemoryBackend

if TYPE_CHECKING:
    from pathlib import Path

    from statelib.state import SessionBytesStoreSupplier, SessionStore

RETENTION = timedelta(milliseconds=100)


def supplier(where: Path | None) -> SessionBytesStoreSupplier:
    make = Stores.in_memory_session_store if where is None else Stores.persistent_session_store
    return make("visits", RETENTION)


def opened(where: Path | None, metrics: NodeMetrics | None = None) -> SessionStore:
    return Stores.session_store_builder(supplier(where), pa.string(), pa.int64()).build().init(where, metrics=metrics)


def test_sessions(where: Path | None) -> None:
    a1, a2, b = Windowed("a", 10, 20), Windowed("a", 30, 40), Windowed("b", 5, 25)
    with opened(where) as store:
        for number, session in enumerate((a2, b, a1)):
            store.put(session, number)
        assert store.fetch_session("a", 10, 20) == 2
        assert store.fetch_session("a", 10, 21) is None
        assert list(store.fetch("a")) == [(a1, 2), (a2, 0)]
        assert list(store.backward_fetch("a")) == [(a2, 0), (a1, 2)]
        assert list(store.find_sessions("a", 21, 30)) == [(a2, 0)]
        assert list(store.find_sessions("a", 0, 29)) == [(a1, 2)]
        assert list(store.backward_find_sessions("a", 20, 30)) == [(a2, 0), (a1, 2)]
        assert [session for session, _ in store.fetch_range(None, None)] == [a1, b, a2]
        assert [session for session, _ in store.backward_fetch_range("b", "z")] == [b]
        assert [session for session, _ in store.find_sessions_of_range("a", "b", 21, 29)] == [b]
        assert [session for session, _ in store.backward_find_sessions_of_range("a", None, 20, 10)] == [b, a1]
        assert [session for session, _ in store.find_sessions_by_end(20, 25)] == [a1, b]
        assert [session for session, _ in store.find_sessions_by_end(21, 40)] == [b, a2]
        assert list(store.find_sessions_by_end(26, 39)) == []
        store.remove(a1)
        store.put(b, None)
        assert [session for session, _ in store.fetch_range("a", "b")] == [a2]
        assert store.stream_time == 40
        for call in (
            lambda: store.put(Windowed(None, 1, 2), 1),
            lambda: store.put(Windowed("a", -1, 2), 1),
            lambda: store.put(Windowed("a", 3, 2), 1),
            lambda: store.fetch(None),
        ):
            with pytest.raises(InputError):
                call()
    with pytest.raises(ConfigurationError, match="not open"):
        store.fetch("a")


def test_retention(where: Path | None) -> None:
    metrics = NodeMetrics()
    with opened(where, metrics) as store:
        for end in (0, 50, 101, 150):
            store.put(Windowed("a", 0, end), end)
        assert [value for _, value in store.fetch("a")] == [101, 150]
        store.put(Windowed("b", 0, 50), 1)
        assert metrics.counters == {"expired-window-record-drop": 1}
        assert list(store.fetch("b")) == []


def test_what_is_stored_is_there_again(tmp_path: Path) -> None:
    with opened(tmp_path) as store:
        store.put(Windowed("a", 0, 500), 1)
        store.remove(Windowed("b", 600, 700))
    with opened(tmp_path) as store:
        assert store.stream_time == 700
        assert list(store.fetch("a")) == []


def test_a_supplier_gives_an_aggregation_its_name_and_retention() -> None:
    options = Materialized.as_(Stores.in_memory_session_store("s", RETENTION))
    assert (options.store_name, options.retention_ms) == ("s", 100)


sessions = st.tuples(st.sampled_from(["", "a", "ab"]), st.integers(0, 300), st.integers(0, 50))


@given(st.lists(st.tuples(sessions, st.none() | st.integers(0, 9)), max_size=30), st.integers(0, 300))
def test_like_a_dictionary_that_forgets(operations: list[tuple[tuple[str, int, int], int | None]], time: int) -> None:
    backend = MemoryBackend()
    store = Stores.session_store_builder(supplier(None), pa.string(), pa.int64()).build().init(backend)
    expected: dict[tuple[int, int, str], int] = {}
    clock = -1
    for (key, start, length), value in operations:
        end = start + length
        store.put(Windowed(key, start, end), value)
        clock = max(clock, end)
        expected = {at: there for at, there in expected.items() if at[0] > clock - 100}
        if value is None:
            expected.pop((end, start, key), None)
        elif end > clock - 100:
            expected[end, start, key] = value
    everything = [(Windowed(key, start, end), value) for (end, start, key), value in sorted(expected.items())]
    assert list(store.fetch_range(None, None)) == everything
    assert len(list(backend.scan("visits"))) == len(everything)
    reaching = [s for s in everything if s[0].window_end >= time and s[0].window_start <= time + 20]
    assert list(store.find_sessions_of_range(None, None, time, time + 20)) == reaching
    for key in ("", "a", "ab"):
        assert list(store.find_sessions(key, time, time + 20)) == [s for s in reaching if s[0].key == key]
