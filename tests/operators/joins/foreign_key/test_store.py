"""The store of the subscriptions of a foreign-key join."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from statelib.errors.kinds import ConfigurationError, CorruptedDataError
from statelib.operators.joins.foreign_key import codec
from statelib.operators.joins.foreign_key.store import StoredSubscriptions, SubscriptionStore
from statelib.stores.backend import WriteBatch
from statelib.stores.header import HEADER_KEY, encode_header
from statelib.stores.memory import MemoryBackend

SCHEMA = pa.schema([("value", pa.string())])


def stored(backend: MemoryBackend, *given: tuple[bytes, bytes, int, bytes | None]) -> SubscriptionStore:
    store = SubscriptionStore(backend, "s")
    keys = pa.array([codec.encode_key(foreign, primary) for foreign, primary, _, _ in given], pa.binary())
    numbers = np.array([number for *_, number, _ in given], dtype=np.int64)
    write = WriteBatch()
    store.store(StoredSubscriptions(keys, numbers, pa.array([row for *_, row in given], pa.binary())), SCHEMA, write)
    backend.write(write)
    return store


def test_golden_bytes() -> None:
    key = codec.encode_key(b"fk", b"pk1")
    assert key == bytes.fromhex("00000002 666b 706b31")
    assert codec.decode_key(key, "s") == (b"fk", b"pk1")
    assert codec.encode_value(258, b"row") == bytes.fromhex("0000000000000102 726f77")
    assert codec.decode_value(bytes.fromhex("0000000000000102726f77"), "s") == (258, b"row")
    several = codec.encode_values(np.array([258, -1]), pa.array([b"row", b""], pa.binary()))
    assert several.to_pylist() == [codec.encode_value(258, b"row"), codec.encode_value(-1, b"")]
    backend = MemoryBackend()
    stored(backend, (b"fk", b"pk1", 258, b"row"))
    assert list(backend.scan("s")) == [(key, codec.encode_value(258, b"row"))]
    assert list(backend.scan("s.header")) == [(HEADER_KEY, encode_header(1, SCHEMA))]


def test_those_of_a_key_in_the_order_of_primary_keys() -> None:
    backend = MemoryBackend()
    store = stored(
        backend, (b"a", b"z", 1, b"az"), (b"a", b"", 2, b"a"), (b"ab", b"c", 3, b"abc"), (b"", b"b", 4, b"b"),
        (b"\xff", b"\xff", 5, b"ff"),
    )  # fmt: skip
    stored(backend, (b"a", b"z", 6, b"az2"), (b"ab", b"c", 7, None))
    found, counts = store.load([b"a", b"none", b"", b"ab", b"\xff"])
    assert (found.number.tolist(), found.rows.to_pylist()) == ([2, 6, 4, 5], [b"a", b"az2", b"b", b"ff"])
    assert [codec.decode_key(key, "s") for key in found.keys.to_pylist()] == [
        (b"a", b""), (b"a", b"z"), (b"", b"b"), (b"\xff", b"\xff"),
    ]  # fmt: skip
    assert counts.tolist() == [2, 0, 1, 0, 1]


def test_no_keys_at_all() -> None:
    store = SubscriptionStore(MemoryBackend(), "s")
    found, counts = store.load([])
    assert (store.is_empty, len(found.keys), len(counts)) == (True, 0, 0)


@pytest.mark.parametrize("raw", [b"", b"\x00\x00\x00", b"\x00\x00\x00\x05fk", b"\xff\xff\xff\xfffk"])
def test_a_damaged_key_is_told(raw: bytes) -> None:
    with pytest.raises(CorruptedDataError, match="subscription's key"):
        codec.decode_key(raw, "s")


def test_a_damaged_value_is_told() -> None:
    with pytest.raises(CorruptedDataError, match="less than its number"):
        codec.decode_value(b"1234567", "s")


def test_another_format_or_type_is_refused() -> None:
    backend = MemoryBackend()
    store = stored(backend, (b"a", b"b", 1, b"c"))
    with pytest.raises(ConfigurationError, match="types of a store's rows have changed"):
        SubscriptionStore(backend, "s").header.check(pa.schema([("value", pa.int64())]))
    write = WriteBatch()
    write.put(store.families("s")[1], HEADER_KEY, encode_header(2, SCHEMA))
    backend.write(write)
    with pytest.raises(ConfigurationError, match="format 2"):
        SubscriptionStore(backend, "s")
