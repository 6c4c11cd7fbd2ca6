from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from statelib.errors.kinds import ConfigurationError, CorruptedDataError, InputError
from statelib.operators.tables import codec as key_value_codec
from statelib.operators.tables.store import KeyValueRows, KeyValueStore
from statelib.operators.tables.value_and_timestamp import ValueAndTimestamp
from statelib.records.batch import NO_TIMESTAMP
from statelib.serdes import serde_for
from statelib.stores.backend import WriteBatch
from statelib.stores.header import HEADER_KEY, encode_header
from statelib.stores.memory import MemoryBackend
from statelib.stores.rocksdb import RocksDbBackend

if TYPE_CHECKING:
    from pathlib import Path

    from statelib.stores.backend import Backend

SCHEMA = pa.schema([("value", pa.string())])
KEYS = st.binary(max_size=3) | st.sampled_from([b"", b"\x00", b"\xff", b"\xff\xff", b"a", b"a\x00", b"ab"])


def rows(*pairs: tuple[int, bytes | None]) -> KeyValueRows:
    return KeyValueRows(np.array([at for at, _ in pairs], dtype=np.int64), pa.array([row for _, row in pairs]))


def batch_put(store: KeyValueStore, backend: Backend, keys: list[bytes], changed: KeyValueRows) -> None:
    write = WriteBatch()
    store.store(pa.array(keys, pa.binary()), changed, SCHEMA, write)
    backend.write(write)


def test_golden_bytes() -> None:
    assert key_value_codec.encode_value(772, b"ab") == bytes.fromhex("0000000000000304 6162")
    assert key_value_codec.decode_value(bytes.fromhex("00000000000003046162"), "s") == (772, b"ab")
    backend = MemoryBackend()
    batch_put(KeyValueStore(backend, "s"), backend, [b"k", b"gone"], rows((772, b"ab"), (9, None)))
    assert list(backend.scan("s")) == [(b"k", bytes.fromhex("0000000000000304 6162"))]
    assert list(backend.scan("s.header")) == [(HEADER_KEY, encode_header(1, SCHEMA))]
    assert KeyValueStore(backend, "s").header.schema == SCHEMA


def test_damaged_bytes_and_other_formats_are_refused() -> None:
    backend = MemoryBackend()
    write = WriteBatch()
    write.put("s", b"k", 7 * b"x")
    backend.write(write)
    with pytest.raises(CorruptedDataError, match="7 bytes"):
        KeyValueStore(backend, "s").get(b"k")
    write.put("s.header", HEADER_KEY, b"\x02" + encode_header(1, SCHEMA)[1:])
    backend.write(write)
    with pytest.raises(ConfigurationError, match="written in format 2, and this release reads format 1"):
        KeyValueStore(backend, "s")


@given(st.lists(st.tuples(KEYS, st.none() | st.binary(max_size=2), st.integers(0, 99))), KEYS, KEYS)
def test_like_a_dictionary_that_overwrites_by_arrival(
    puts: list[tuple[bytes, bytes | None, int]], first: bytes, last: bytes
) -> None:
    store, expected = KeyValueStore(MemoryBackend(), "s"), {}
    for key, value, timestamp in puts:
        store.put(key, value, timestamp)
        expected[key] = ValueAndTimestamp.make(value, timestamp)
    there = sorted((key, found) for key, found in expected.items() if found is not None)
    assert list(store.all()) == there
    assert list(store.all(reverse=True)) == there[::-1]
    assert list(store.range(first, last)) == [entry for entry in there if first <= entry[0] <= last]
    assert list(store.range(first, reverse=True)) == [entry for entry in there[::-1] if first <= entry[0]]
    assert list(store.range(None, last)) == [entry for entry in there if entry[0] <= last]
    assert list(store.prefix_scan(first)) == [entry for entry in there if entry[0].startswith(first)]
    assert store.approximate_num_entries() == len(there)
    loaded = store.load([first, last])
    for key, timestamp, row in zip((first, last), loaded.timestamp.tolist(), loaded.rows.to_pylist(), strict=True):
        found = expected.get(key)
        assert store.get(key) == found
        assert (row, timestamp) == (found or (None, NO_TIMESTAMP))


def test_point_and_batch_access_share_their_bytes(tmp_path: Path) -> None:
    for backend in (MemoryBackend(), RocksDbBackend(tmp_path)):
        store = KeyValueStore(backend, "s", key_serde=serde_for(pa.int32()), value_serde=serde_for(pa.string()))
        assert store.is_empty
        store.put(1, "one", 10)
        assert store.put_if_absent(1, "uno", 11) == ValueAndTimestamp("one", 10)
        assert store.put_if_absent(2, "two", 5) is None
        keys = serde_for(pa.int32()).serialize(pa.array([1, 2, 3], pa.int32())).to_pylist()
        assert store.load(keys).rows.to_pylist() == [b"one", b"two", None]
        batch_put(store, backend, keys, rows((9, b"eins"), (0, None), (7, b"")))
        assert list(store.all()) == [(1, ("eins", 9)), (3, ("", 7))]
        assert store.delete(1) == ("eins", 9)
        assert store.delete(1) is None
        assert [key for key, _ in store.range(2, 3)] == [3]
        backend.close()


def test_all_puts_or_none() -> None:
    store = KeyValueStore(MemoryBackend(), "s")
    with pytest.raises(InputError, match="negative"):
        store.put_all([(b"a", b"1", 1), (b"b", b"2", -1)])
    with pytest.raises(InputError, match="null key"):
        store.put_all([(b"a", b"1", 1), (None, b"2", 2)])
    assert store.is_empty
    with pytest.raises(InputError, match="null key"):
        store.get(None)


def test_a_value_and_its_timestamp() -> None:
    assert ValueAndTimestamp.make("v", 3) == ValueAndTimestamp.make_allow_nullable("v", 3) == ("v", 3)
    assert ValueAndTimestamp.make(None, 3) is None
    assert ValueAndTimestamp.make_allow_nullable(None, 3) == (None, 3)
