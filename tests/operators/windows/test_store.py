from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from statelib.errors.kinds import ConfigurationError, CorruptedDataError
from statelib.metrics.node_metrics import NodeMetrics
from statelib.operators.tables import codec as values_codec
from statelib.operators.windows import codec as window_codec
from statelib.operators.windows.store import WindowChanges, WindowRow, WindowStore
from statelib.stores.backend import WriteBatch
from statelib.stores.header import HEADER_KEY, decode_header, encode_header
from statelib.stores.memory import MemoryBackend

SCHEMA = pa.schema([("value", pa.int64())])


on_and_off_grid = pytest.mark.parametrize("on_grid", [False, True], ids=["by key", "by start"])


def store_with(backend: MemoryBackend, *windows: tuple[bytes, int], on_grid: bool = False) -> WindowStore:
    store = WindowStore(backend, "w", retention_ms=100, metrics=NodeMetrics(), on_grid=on_grid)
    for key, start in windows:
        write = WriteBatch()
        store.put(key, start, b"row-" + key, start + 1, write)
        backend.write(write)
    return store


def test_golden_bytes() -> None:
    assert window_codec.encode_key(b"ab", 258) == bytes.fromhex("6162 0000000000000102 00000000")
    assert window_codec.decode_key(bytes.fromhex("6162000000000000010200000000"), "w") == (b"ab", 258)
    assert values_codec.encode_value(3, b"xy") == bytes.fromhex("0000000000000003 7879")
    assert values_codec.decode_value(bytes.fromhex("00000000000000037879"), "w") == (3, b"xy")
    assert window_codec.encode_start_key(258, b"ab") == bytes.fromhex("0000000000000102 6162")
    assert window_codec.decode_start_key(bytes.fromhex("00000000000001026162"), "w") == (258, b"ab")


def test_many_at_once_are_the_same_bytes() -> None:
    keys, starts = [b"ab", b"", b"c"], [258, 0, 1 << 40]
    column, start = pa.array(keys, pa.binary()), np.array(starts)
    pairs = list(zip(keys, starts, strict=True))
    assert window_codec.encode_keys(column, start).to_pylist() == [window_codec.encode_key(*pair) for pair in pairs]
    assert values_codec.encode_values(start, column).to_pylist() == [
        values_codec.encode_value(time, row) for row, time in pairs
    ]
    start_keys = window_codec.encode_start_keys(column, start).to_pylist()
    assert start_keys == [window_codec.encode_start_key(time, key) for key, time in pairs]
    decoded, times = window_codec.decode_start_keys(pa.array(start_keys, pa.binary()), "w")
    assert list(zip(decoded.to_pylist(), times.tolist(), strict=True)) == pairs


@pytest.mark.parametrize(
    ("decode", "raw"),
    [
        (window_codec.decode_key, b"short"),
        (values_codec.decode_value, b"short"),
        (window_codec.decode_start_key, b""),
        (lambda raw, store: window_codec.decode_start_keys(pa.array([b"12345678", raw]), store), b"short"),
    ],
)
def test_damaged_bytes_are_refused(decode, raw: bytes) -> None:
    with pytest.raises(CorruptedDataError, match="bytes"):
        decode(raw, "w")


def test_an_unknown_format_is_refused() -> None:
    raw = encode_header(1, SCHEMA)
    assert raw[0] == 1
    assert decode_header(raw, {1, 2}, "w") == (1, SCHEMA)
    with pytest.raises(ConfigurationError, match="written in format 3, and this release reads format 1 and 2"):
        decode_header(b"\x03" + raw[1:], {2, 1}, "w")
    for damaged in (b"", raw[:40], b"\x01"):
        with pytest.raises(CorruptedDataError, match="header"):
            decode_header(damaged, {1}, "w")
    backend = MemoryBackend()
    write = WriteBatch()
    write.put("w.by-start", HEADER_KEY, b"\x07")
    backend.write(write)
    with pytest.raises(ConfigurationError, match="format 7"):
        WindowStore(backend, "w", retention_ms=1)


def test_golden_bytes_in_order_of_the_start() -> None:
    backend = MemoryBackend()
    store = WindowStore(backend, "w", retention_ms=100, on_grid=True)
    store.stream_time = 258
    write = WriteBatch()
    store.store(changes_of((b"ab", 258, 3, b"xy", False)), SCHEMA, write)
    backend.write(write)
    assert list(backend.scan("w")) == []
    assert list(backend.scan("w.by-start")) == [
        (HEADER_KEY, encode_header(2, SCHEMA)),
        (bytes.fromhex("0000000000000102 6162"), bytes.fromhex("0000000000000003 7879")),
    ]


def test_a_store_stays_in_its_format() -> None:
    backend = MemoryBackend()
    for on_grid, start in ((False, 10), (True, 20)):
        store = WindowStore(backend, "w", retention_ms=100, stream_time=start - 10, on_grid=on_grid)
        store.stream_time = start
        write = WriteBatch()
        store.store(changes_of((b"a", start, 1, b"A", False)), SCHEMA, write)
        backend.write(write)
    assert len(list(backend.scan("w"))) == 2
    assert [row.start_ms for row in store.fetch_range(b"a", 0, 99)] == [10, 20]


@on_and_off_grid
def test_fetch(on_grid: bool) -> None:
    windows = ((b"a", 10), (b"a", 256), (b"a", 300), (b"a\0", 10), (b"ab", 256), (b"", 300))
    store = store_with(MemoryBackend(), *windows, on_grid=on_grid)
    assert store.fetch(b"a", 256) == WindowRow(b"a", 256, 257, b"row-a")
    assert store.fetch(b"a", 257) is None
    assert [row.start_ms for row in store.fetch_range(b"a", 0, 300)] == [256, 300]  # 10 is out of retention
    assert [row.start_ms for row in store.fetch_range(b"a", 201, 299)] == [256]
    assert store.fetch_range(b"a", 5, 4) == []
    everything = [(b"", 300), (b"a", 256), (b"a", 300), (b"ab", 256)]
    by_start = [(b"a", 256), (b"ab", 256), (b"", 300), (b"a", 300)]
    assert [(row.key, row.start_ms) for row in store.all()] == (by_start if on_grid else everything)
    assert [(row.key, row.start_ms) for row in store.in_time(0, 300)] == by_start
    assert [(row.key, row.start_ms) for row in store.in_time(257, 999, reverse=True)] == [(b"a", 300), (b"", 300)]
    assert [row.start_ms for row in store.fetch_range(b"ab", 0, 1 << 63)] == [256]
    assert [row.start_ms for row in store.fetch_range(b"", 0, 1 << 63)] == [300]
    assert store.fetch_range(b"b", 0, 1 << 63) == []


@on_and_off_grid
def test_put_out_of_retention_is_refused_and_counted(on_grid: bool) -> None:
    backend = MemoryBackend()
    store = store_with(backend, (b"a", 300), (b"a", 200), (b"a", 201), on_grid=on_grid)
    assert [row.start_ms for row in store.all()] == [201, 300]
    assert store._metrics.counters == {"expired-window-record-drop": 1}
    write = WriteBatch()
    store.put(b"a", 201, None, 0, write)
    backend.write(write)
    assert store.fetch(b"a", 201) is None
    assert len(list(backend.scan("w.by-start"))) == 1


def test_load_looks_only_for_what_the_store_can_have() -> None:
    backend = MemoryBackend()
    store = store_with(backend, (b"a", 300), (b"b", 290))
    asked: list[list[bytes]] = []
    multi_get = backend.multi_get
    backend.multi_get = lambda family, keys: asked.append(list(keys)) or multi_get(family, keys)
    keys = [b"a", b"b", b"a", b"c"]
    there, rows = store.load(lambda of: pa.array([keys[i] for i in of]), np.array([300, 290, 301, 100]))
    assert there.tolist() == [0, 1]
    assert rows == [(301, b"row-a"), (291, b"row-b")]
    assert asked == [[window_codec.encode_key(b"a", 300), window_codec.encode_key(b"b", 290)]]
    empty = WindowStore(MemoryBackend(), "w", retention_ms=100, stream_time=500)
    assert empty.load(lambda of: pa.array([keys[i] for i in of]), np.array([450]))[0].tolist() == []


def changes_of(*windows: tuple[bytes, int, int, bytes, bool]) -> WindowChanges:
    keys, start, timestamp, rows, is_stored = zip(*windows, strict=True)
    return WindowChanges(
        pa.array(keys, pa.binary()).take, np.array(start), np.array(timestamp), pa.array(rows, pa.binary()).take,
        np.array(is_stored),
    )  # fmt: skip


def test_windows_that_were_never_written_are_not_looked_for() -> None:
    """But for those that another object may have written, before the clock that it left."""
    backend = MemoryBackend()
    written = [(key, start, start, key, False) for key in (b"a", b"b") for start in (100, 120, 160, 190)]
    store = WindowStore(backend, "w", retention_ms=100, stream_time=100, on_grid=True)
    asked: list[bytes] = []
    multi_get = backend.multi_get
    backend.multi_get = lambda family, keys: asked.extend(keys) or multi_get(family, keys)
    for clock, some in ((120, written[:2] + written[4:6]), (190, written[2:4] + written[6:])):
        store.stream_time = clock
        write = WriteBatch()
        store.store(changes_of(*some), SCHEMA, write)
        backend.write(write)
    keys, starts = [b"a", b"b", b"c"] * 5, np.repeat([100, 120, 130, 160, 190], 3)
    there, rows = store.load(lambda of: pa.array([keys[i] for i in of], pa.binary()), starts)
    assert there.tolist() == [0, 1, 3, 4, 9, 10, 12, 13]
    assert rows == [(int(starts[i]), keys[i]) for i in there]
    assert asked == [window_codec.encode_start_key(int(starts[i]), keys[i]) for i in (0, 1, 2, 3, 4, 9, 10, 12, 13)]
    known = store.memory_bytes()
    store.stream_time = 320
    write = WriteBatch()
    store.expire(write)
    backend.write(write)
    assert store.memory_bytes() < known
    assert list(store.all()) == []


@on_and_off_grid
def test_store_writes_removes_and_expires(on_grid: bool) -> None:
    backend = MemoryBackend()
    store = store_with(backend, (b"a", 100), (b"b", 150), (b"c", 190), on_grid=on_grid)
    store.stream_time = 250
    changes = changes_of(
        (b"b", 151, 5, b"B", False), (b"c", 190, -1, b"C", True), (b"d", 250, 7, b"D", False),
        (b"e", 250, -1, b"E", False),
    )  # fmt: skip
    write = WriteBatch()
    store.store(changes, SCHEMA, write)
    backend.write(write)
    assert list(store.all()) == [WindowRow(b"b", 151, 5, b"B"), WindowRow(b"d", 250, 7, b"D")]
    by_key = [window_codec.encode_key(b"b", 151), window_codec.encode_key(b"d", 250)]
    assert [key for key, _ in backend.scan("w")] == ([] if on_grid else by_key)
    index = [key for key, _ in backend.scan("w.by-start")]
    assert index == [HEADER_KEY, window_codec.encode_start_key(151, b"b"), window_codec.encode_start_key(250, b"d")]
    assert WindowStore(backend, "w", retention_ms=1).header.schema == SCHEMA


@on_and_off_grid
def test_the_windows_of_many_keys(on_grid: bool) -> None:
    store = store_with(MemoryBackend(), on_grid=on_grid)
    assert store.load_keys([b"a"])[1] == []
    store = store_with(MemoryBackend(), (b"a", 5), (b"b", 5), (b"a", 9), on_grid=on_grid)
    numbers, rows = store.load_keys([b"c", b"a", b"b"])
    assert numbers.tolist() == [1, 1, 2]
    assert [(row.key, row.start_ms) for row in rows] == [(b"a", 5), (b"a", 9), (b"b", 5)]
