"""Stores read as a whole, in columns: the same rows as the point access gives, whatever was put."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from statelib.errors.kinds import CorruptedDataError
from statelib.operators.joins.foreign_key.codec import decode_keys, encode_key
from statelib.operators.joins.stream_stream.codec import decode_held_keys, encode_held_key
from statelib.operators.joins.stream_table.buffer_store import WaitingRow, decode_columns, encode_place, encode_value
from statelib.operators.sessions.store import SessionRow, SessionStore
from statelib.operators.tables.codec import decode_values
from statelib.operators.versioned.scan import NO_END, history, latest_values, values_at
from statelib.operators.versioned.segments import VersionedFamilies
from statelib.operators.versioned.store import VersionedKeyValueStore
from statelib.operators.windows.store import WindowStore
from statelib.stores import backend as backend_module
from statelib.stores import rocksdb, rocksdb_scan
from statelib.stores.backend import WriteBatch
from statelib.stores.column_scan import look_up, scan_columns
from statelib.stores.memory import MemoryBackend
from statelib.stores.rocksdb import RocksDbBackend

if TYPE_CHECKING:
    from pathlib import Path

    from statelib.stores.backend import Backend

KEYS = st.sampled_from([b"", b"a", b"ab", b"a" + bytes(12), b"b"])
TIMES = st.integers(0, 60)
RETENTION_MS = 30


@given(st.lists(st.tuples(KEYS, st.none() | st.binary(max_size=3), TIMES), max_size=40), st.integers(-1, 70))
def test_versions(puts: list[tuple[bytes, bytes | None, int]], time_ms: int) -> None:
    backend = MemoryBackend()
    store = VersionedKeyValueStore(backend, "v", history_retention_ms=RETENTION_MS, segment_interval_ms=7)
    for put in puts:
        store.put(*put)
    store.flush()
    families = VersionedFamilies(backend, "v", RETENTION_MS, 7)

    def listed(versions):
        return [
            (row[0].as_py(), row[1], row[2], row[3].as_py())
            for some in versions
            for row in zip(some.keys, some.valid_from.tolist(), some.valid_to.tolist(), some.values, strict=True)
        ]

    latest = [(key, found.timestamp, NO_END, found.value) for key, found in store.range()]
    assert listed(latest_values(families)) == latest
    at = listed(values_at(families, time_ms, RETENTION_MS))
    assert [(key, start, value) for key, start, _, value in at] == [
        (key, found.timestamp, found.value) for key, found in store.range(as_of=time_ms)
    ]
    whole = listed(history(families, RETENTION_MS))
    keys = sorted({key for key, _, _ in puts})
    assert [row for row in whole if row[3] is not None] == [
        (key, found.timestamp, NO_END if found.valid_to is None else found.valid_to, found.value)
        for key in keys
        for found in store.history(key, order="ascending")
    ]
    horizon = store.stream_time - RETENTION_MS
    ends = {(key, end) for key, _, end, _ in whole}
    for key, start, end, value in whole:
        assert value is not None or start >= max(horizon, 0)
        assert end == NO_END or any((key, end) == row[:2] for row in whole) or end < horizon, (key, end, ends)
    for key in keys:
        assert listed(history(families, RETENTION_MS, key)) == [row for row in whole if row[0] == key]
        assert listed(latest_values(families, key)) == [row for row in latest if row[0] == key]
        assert listed(values_at(families, time_ms, RETENTION_MS, key)) == [row for row in at if row[0] == key]


@given(
    st.lists(st.tuples(KEYS, TIMES, st.none() | st.binary(max_size=3), TIMES), max_size=40),
    st.booleans(), st.none() | KEYS, TIMES, TIMES,
)  # fmt: skip
def test_windows(puts, on_grid: bool, key: bytes | None, from_ms: int, end_ms: int) -> None:
    backend = MemoryBackend()
    store = WindowStore(backend, "w", retention_ms=RETENTION_MS, on_grid=on_grid)
    for put_key, start_ms, row, timestamp in puts:
        write = WriteBatch()
        store.header.write(pa.schema([("value", pa.binary())]), write)
        store.put(put_key, start_ms, row, timestamp, write)
        backend.write(write)
    expected = [
        (row.key, row.start_ms, row.timestamp_ms, row.row)
        for row in store.all()
        if from_ms <= row.start_ms < end_ms and key in (None, row.key)
    ]
    found = [
        (row[0].as_py(), row[1], row[2], row[3].as_py())
        for some in store.scan(key, from_ms, end_ms)
        for row in zip(some.keys, some.start.tolist(), some.timestamp.tolist(), some.rows, strict=True)
    ]
    assert found == expected


@given(st.lists(st.tuples(KEYS, TIMES, TIMES, st.binary(max_size=3)), max_size=40), st.none() | KEYS)
def test_sessions(puts, key: bytes | None) -> None:
    backend = MemoryBackend()
    store = SessionStore(backend, "s", retention_ms=RETENTION_MS)
    for put_key, start_ms, length_ms, row in puts:
        write = WriteBatch()
        store.put(SessionRow(put_key, start_ms, start_ms + length_ms, row), write)
        backend.write(write)
    expected = [(row.key, row.start_ms, row.end_ms, row.row) for row in store.all() if key in (None, row.key)]
    found = [
        (*bounds, row.as_py())
        for sessions, rows in store.scan(key)
        for bounds, row in zip(sessions.to_list(), rows, strict=True)
    ]
    assert found == expected


@given(st.lists(st.tuples(st.binary(max_size=4), st.binary(max_size=4)), max_size=9), TIMES, st.booleans())
def test_columnar_codecs_are_the_inverse_of_those_of_one_entry(pairs, time_ms: int, is_left: bool) -> None:
    firsts, seconds = ([pair[i] for pair in pairs] for i in (0, 1))
    columns = decode_keys(pa.array([encode_key(*pair) for pair in pairs], pa.binary()), "s")
    assert [column.to_pylist() for column in columns] == [firsts, seconds]
    held = [encode_held_key(time_ms, is_left=is_left, arrival=4, key=key) for key in firsts]
    times, left, arrivals, keys = decode_held_keys(pa.array(held, pa.binary()), "s")
    assert (times.tolist(), left.tolist(), arrivals.tolist(), keys.to_pylist()) == (
        [time_ms] * len(pairs), [is_left] * len(pairs), [4] * len(pairs), firsts,
    )  # fmt: skip
    waiting = [WaitingRow(time_ms, 1, *pair) for pair in pairs]
    places = pa.array([encode_place(time_ms, 1) for _ in waiting], pa.binary())
    values = pa.array([encode_value(row) for row in waiting], pa.binary())
    times, arrivals, keys, rows = decode_columns(places, values, "s")
    assert (times.tolist(), keys.to_pylist(), rows.to_pylist()) == ([time_ms] * len(pairs), firsts, seconds)
    assert arrivals.tolist() == [1] * len(pairs)


@pytest.mark.parametrize(
    "damaged",
    [
        lambda: decode_values(pa.array([b"12345678", b"1234567"]), "s"),
        lambda: decode_keys(pa.array([b"\0\0\0\x09abc"]), "s"),
        lambda: decode_keys(pa.array([b"\xff\0\0\0abc"]), "s"),
        lambda: decode_held_keys(pa.array([bytes(8) + b"\x02" + bytes(8)]), "s"),
    ],
    ids=["value", "longer", "negative", "side"],
)
def test_damage_is_told(damaged) -> None:
    with pytest.raises(CorruptedDataError, match="s"):
        damaged()


@pytest.mark.parametrize("kind", ["memory", "rocksdb"])
def test_a_scan_gives_bounded_pieces(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    backend: Backend = MemoryBackend() if kind == "memory" else RocksDbBackend(tmp_path / "db")
    write = WriteBatch()
    for number in range(100):
        write.put("f", b"%03d" % number, bytes(number))
    backend.write(write)
    for module in (rocksdb, rocksdb_scan):
        monkeypatch.setattr(module, "MAX_SCAN_CHUNK", 1)
    monkeypatch.setattr(backend_module, "_LISTED_ENTRIES", 30)
    monkeypatch.setattr(backend_module, "_LISTED_BYTES", 1000)
    pieces = list(scan_columns(backend, "f", b"005", b"090"))
    found = [pair for keys, values in pieces for pair in zip(keys.to_pylist(), values.to_pylist(), strict=True)]
    assert found == [(b"%03d" % number, bytes(number)) for number in range(5, 90)]
    for keys, values in pieces:
        assert len(keys) <= 30
        sizes = [len(key) + len(value) for key, value in zip(keys.to_pylist(), values.to_pylist(), strict=True)]
        assert sum(sizes[:-1]) < 1000
    assert len(pieces) > 3
    assert list(scan_columns(backend, "nothing")) == []
    backend.close()


def test_a_look_up_in_the_order_of_keys_answers_in_that_of_the_question(tmp_path: Path) -> None:
    backend, write = RocksDbBackend(tmp_path / "db"), WriteBatch()
    for number in range(0, 300, 3):
        write.put("f", b"%03d" % number, b"%d" % number)
    backend.write(write)
    asked = np.random.default_rng(1).permutation(300).tolist()
    keys = pa.array([b"%03d" % number for number in asked], pa.binary())
    assert look_up(backend, "f", keys) == [b"%d" % number if number % 3 == 0 else None for number in asked]
    assert look_up(backend, "f", keys.slice(0, 0)) == []
    backend.close()
