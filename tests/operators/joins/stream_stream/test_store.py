from __future__ import annotations

from collections.abc import Callable, Sequence

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from statelib.errors.kinds import ConfigurationError, CorruptedDataError
from statelib.operators.joins.stream_stream import codec
from statelib.operators.joins.stream_stream.store import HeldRow, HeldStore, JoinColumns, JoinRow, JoinWindowStore
from statelib.stores.backend import WriteBatch
from statelib.stores.header import HEADER_KEY, encode_header
from statelib.stores.memory import MemoryBackend

VALUE = pa.schema([("value", pa.string())])
VALUES = pa.schema([("left", pa.string()), ("right", pa.int64())])
FIRST = JoinRow(b"ab", 258, 3, b"value")


def written(backend: MemoryBackend, *added: JoinRow, removed: Sequence[JoinRow] = (), until: int = -1) -> None:
    write = WriteBatch()
    JoinWindowStore(backend, "s").store(JoinColumns.of(added), JoinColumns.of(removed), until, VALUE, write)
    backend.write(write)


def held(backend: MemoryBackend, *added: HeldRow, removed: Sequence[HeldRow] = ()) -> None:
    write = WriteBatch()
    HeldStore(backend, "h").store(columns(added), columns(removed), VALUES, write)
    backend.write(write)


def columns(rows: Sequence[HeldRow]) -> list[tuple[bool, JoinColumns]]:
    return [(left, JoinColumns.of([held.row for held in rows if held.is_left == left])) for left in (False, True)]


def test_golden_bytes() -> None:
    backend = MemoryBackend()
    written(backend, FIRST)
    held(backend, HeldRow(True, FIRST), HeldRow(False, FIRST))
    place, key = bytes.fromhex("0000000000000102 0000000000000003"), b"ab"
    assert list(backend.scan("s")) == [(key + place, b"value")]
    assert list(backend.scan("s.by-time")) == [(HEADER_KEY, encode_header(1, VALUE)), (place + key, b"")]
    right, left = (bytes.fromhex(f"0000000000000102 {side} 0000000000000003") for side in ("00", "01"))
    assert list(backend.scan("h")) == [
        (HEADER_KEY, encode_header(1, VALUES)), (right + key, b"value"), (left + key, b"value"),
    ]  # fmt: skip
    assert codec.decode_key(key + place, "s") == (b"ab", 258, 3)
    assert codec.decode_time_key(place + key, "s") == (258, 3, b"ab")
    assert codec.decode_held_key(left + key, "h") == (258, True, 3, b"ab")


@given(st.lists(st.tuples(st.binary(max_size=9), st.integers(0, 1 << 62), st.integers(0, 1 << 62)), max_size=9))
def test_columns_of_keys_are_the_keys_of_rows(rows: list[tuple[bytes, int, int]]) -> None:
    made = JoinColumns.of([JoinRow(*row, b"") for row in rows])
    columns = (made.key, made.timestamp_ms, made.arrival)
    assert codec.encode_keys(*columns).to_pylist() == [codec.encode_key(*row) for row in rows]
    by_time = codec.encode_time_keys(*columns)
    assert by_time.to_pylist() == [codec.encode_time_key(time, n, key) for key, time, n in rows]
    assert [part.tolist() for part in codec.decode_time_keys(by_time, "s")[:2]] == [c.tolist() for c in columns[1:]]
    assert codec.decode_time_keys(by_time, "s")[2].to_pylist() == [key for key, _, _ in rows]
    for is_left in (False, True):
        assert codec.encode_held_keys(*columns, is_left=is_left).to_pylist() == [
            codec.encode_held_key(time, is_left=is_left, arrival=n, key=key) for key, time, n in rows
        ]


@pytest.mark.parametrize(
    ("decode", "raw", "message"),
    [
        (codec.decode_key, 15 * b"x", "15 bytes"),
        (codec.decode_time_key, 15 * b"x", "15 bytes"),
        (codec.decode_held_key, 16 * b"x", "16 bytes"),
        (codec.decode_held_key, 8 * b"\x00" + b"\x02" + 8 * b"\x00", "of side 2"),
    ],
    ids=["key", "time key", "held key", "side"],
)
def test_damaged_bytes_are_refused(decode: Callable[[bytes, str], object], raw: bytes, message: str) -> None:
    with pytest.raises(CorruptedDataError, match=message):
        decode(raw, "s")


@pytest.mark.parametrize(("family", "kind"), [("s.by-time", JoinWindowStore), ("s", HeldStore)], ids=["side", "held"])
def test_an_unknown_format_is_refused(family: str, kind: Callable[[MemoryBackend, str], object]) -> None:
    backend = MemoryBackend()
    write = WriteBatch()
    write.put(family, HEADER_KEY, b"\x02" + encode_header(1, VALUE)[1:])
    backend.write(write)
    with pytest.raises(ConfigurationError, match="written in format 2, and this release reads format 1"):
        kind(backend, "s")


def test_records_of_a_key_come_in_order_and_not_those_of_longer_keys() -> None:
    backend = MemoryBackend()
    rows = [JoinRow(key, time, n, b"%d" % n) for n, (key, time) in enumerate(
        [(b"a", 9), (b"a", 5), (b"a\x00", 6), (b"a", 9), (b"", 7), (b"a" + 16 * b"\x00", 7)])]  # fmt: skip
    written(backend, *rows)
    store = JoinWindowStore(backend, "s")
    assert [row.arrival for row in store.fetch(b"a", 0)] == [1, 0, 3]
    assert [row.arrival for row in store.fetch(b"a", 6)] == [0, 3]
    assert [row.arrival for row in store.fetch(b"", 0)] == [4]
    assert (store.is_empty, JoinWindowStore(backend, "other").is_empty) == (False, True)


def test_what_is_removed_and_what_is_out_of_retention_is_gone() -> None:
    backend = MemoryBackend()
    rows = [JoinRow(b"a", time, time, b"") for time in range(5)]
    written(backend, *rows)
    written(backend, removed=[rows[3], JoinRow(b"never", 3, 3, b"")], until=1)
    assert [row.timestamp_ms for row in JoinWindowStore(backend, "s").fetch(b"a", 0)] == [2, 4]
    assert len(list(backend.scan("s.by-time"))) == 1 + 2


def test_held_records_come_by_time_side_and_arrival() -> None:
    backend = MemoryBackend()
    rows = [HeldRow(is_left, JoinRow(b"k", time, n, b"v")) for n, (is_left, time) in enumerate(
        [(True, 5), (False, 5), (True, 5), (True, 4)])]  # fmt: skip
    held(backend, *rows)
    assert list(HeldStore(backend, "h").all()) == [rows[3], rows[1], rows[0], rows[2]]
    held(backend, removed=rows[:2])
    assert HeldStore(backend, "h").count() == 2
