from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from statelib.errors.kinds import ConfigurationError, CorruptedDataError
from statelib.metrics.node_metrics import NodeMetrics
from statelib.operators.sessions import codec as session_codec
from statelib.operators.sessions.store import SessionBounds, SessionRow, SessionStore
from statelib.stores.backend import WriteBatch
from statelib.stores.header import HEADER_KEY, encode_header
from statelib.stores.memory import MemoryBackend

SCHEMA = pa.schema([("value", pa.int64())])


def store_with(backend: MemoryBackend, *sessions: tuple[bytes, int, int]) -> SessionStore:
    store = SessionStore(backend, "s", retention_ms=100, metrics=NodeMetrics())
    for key, start, end in sessions:
        write = WriteBatch()
        store.put(SessionRow(key, start, end, b"row-" + key), write)
        backend.write(write)
    return store


def bounds(*sessions: tuple[bytes, int, int]) -> SessionBounds:
    keys, start, end = zip(*sessions, strict=True) if sessions else ((), (), ())
    return SessionBounds(pa.array(keys, pa.binary()), np.array(start, dtype=np.int64), np.array(end, dtype=np.int64))


def times(rows: list[SessionRow]) -> list[tuple[int, int]]:
    return [(row.start_ms, row.end_ms) for row in rows]


def test_golden_bytes() -> None:
    assert session_codec.encode_key(b"ab", 258, 772) == bytes.fromhex("6162 0000000000000304 0000000000000102")
    assert session_codec.decode_key(bytes.fromhex("616200000000000003040000000000000102"), "s") == (b"ab", 258, 772)
    assert session_codec.encode_end_key(772, 258, b"ab") == bytes.fromhex("0000000000000304 0000000000000102 6162")
    assert session_codec.decode_end_key(bytes.fromhex("000000000000030400000000000001026162"), "s") == (b"ab", 258, 772)
    backend = MemoryBackend()
    write = WriteBatch()
    store_with(backend).store(bounds(), bounds((b"ab", 258, 772)), pa.array([b"row"]), SCHEMA, write)
    backend.write(write)
    assert list(backend.scan("s")) == [(session_codec.encode_key(b"ab", 258, 772), b"row")]
    assert list(backend.scan("s.by-end")) == [
        (HEADER_KEY, encode_header(1, SCHEMA)),
        (session_codec.encode_end_key(772, 258, b"ab"), b""),
    ]


@pytest.mark.parametrize("decode", [session_codec.decode_key, session_codec.decode_end_key])
def test_damaged_bytes_are_refused(decode) -> None:
    with pytest.raises(CorruptedDataError, match="15 bytes"):
        decode(15 * b"x", "s")


def test_an_unknown_format_is_refused() -> None:
    backend = MemoryBackend()
    write = WriteBatch()
    write.put("s.by-end", HEADER_KEY, b"\x02" + encode_header(1, SCHEMA)[1:])
    backend.write(write)
    with pytest.raises(ConfigurationError, match="written in format 2, and this release reads format 1"):
        SessionStore(backend, "s", retention_ms=1)


def test_fetch_and_find() -> None:
    store = store_with(
        MemoryBackend(),
        *((b"a", 10, 20), (b"a", 201, 205), (b"a", 250, 256), (b"a", 290, 300)),
        *((b"a\0", 250, 256), (b"ab", 250, 250), (b"", 300, 300)),
    )
    assert store.fetch(b"a") == [SessionRow(b"a", *ends, b"row-a") for ends in ((201, 205), (250, 256), (290, 300))]
    assert store.fetch(b"nobody") == []
    assert times(store.find_sessions(b"a", 206, 289)) == [(250, 256)]
    assert times(store.find_sessions(b"a", 205, 250)) == [(201, 205), (250, 256)]
    assert times(store.find_sessions(b"a", 257, 289)) == []
    assert store.fetch_session(b"a", 250, 256) == b"row-a"
    assert store.fetch_session(b"a", 251, 256) is None
    assert store.fetch_session(b"a", 10, 20) is None  # out of retention
    assert [row.key for row in store.all()] == [b"", b"a\0", b"a", b"a", b"a", b"ab"]


@given(
    st.lists(st.tuples(st.sampled_from([b"", b"a", b"a\0", b"ab"]), st.integers(0, 90), st.integers(0, 30))),
    st.integers(0, 130),
    st.integers(0, 130),
)
def test_find_sessions_is_a_filter_of_all(
    sessions: list[tuple[bytes, int, int]], earliest_end: int, latest_start: int
) -> None:
    known = [(key, start, start + length) for key, start, length in sessions]
    store = store_with(MemoryBackend(), *known)
    for key in (b"", b"a", b"a\0"):
        found = [(row.start_ms, row.end_ms) for row in store.find_sessions(key, earliest_end, latest_start)]
        expected = {
            (row.start_ms, row.end_ms)
            for row in store.all()
            if row.key == key and row.end_ms >= earliest_end and row.start_ms <= latest_start
        }
        assert found == sorted(expected, key=lambda ends: ends[::-1])


def test_put_out_of_retention_is_refused_and_counted_and_what_is_removed_is_gone() -> None:
    backend = MemoryBackend()
    store = store_with(backend, (b"a", 290, 300), (b"a", 100, 200), (b"a", 100, 201))
    assert [row.end_ms for row in store.all()] == [201, 300]
    assert store._metrics is not None
    assert store._metrics.counters == {"expired-window-record-drop": 1}
    write = WriteBatch()
    store.remove(b"a", 100, 201, write)
    store.remove(b"a", 5, 6, write)
    backend.write(write)
    assert times(store.fetch(b"a")) == [(290, 300)]
    assert [key for key, _ in backend.scan("s.by-end")] == [session_codec.encode_end_key(300, 290, b"a")]


def test_load() -> None:
    store = store_with(MemoryBackend(), (b"a", 290, 300), (b"b", 250, 260), (b"a", 220, 230))
    index, rows = store.load([b"b", b"c", b"a"])
    assert index.tolist() == [0, 2, 2]
    assert [(row.key, row.end_ms) for row in rows] == [(b"b", 260), (b"a", 230), (b"a", 300)]
    index, rows = SessionStore(MemoryBackend(), "s", retention_ms=100).load([b"b"])
    assert (index.tolist(), rows) == ([], [])


def test_store_writes_removes_and_expires() -> None:
    backend = MemoryBackend()
    store = store_with(backend, (b"a", 100, 110), (b"b", 140, 150), (b"c", 190, 195), (b"d", 200, 220))
    store.stream_time = 250
    write = WriteBatch()
    changed = bounds((b"c", 190, 230), (b"d", 200, 220), (b"e", 151, 151))
    store.store(bounds((b"c", 190, 195)), changed, pa.array([b"C", b"D", b"E"]), SCHEMA, write)
    backend.write(write)
    kept = [SessionRow(b"c", 190, 230, b"C"), SessionRow(b"d", 200, 220, b"D"), SessionRow(b"e", 151, 151, b"E")]
    assert list(store.all()) == kept
    assert len(list(backend.scan("s"))) == 3
    assert [key for key, _ in backend.scan("s.by-end")] == [
        HEADER_KEY,
        session_codec.encode_end_key(151, 151, b"e"),
        session_codec.encode_end_key(220, 200, b"d"),
        session_codec.encode_end_key(230, 190, b"c"),
    ]
    assert SessionStore(backend, "s", retention_ms=1).header.schema == SCHEMA
