from __future__ import annotations

import pyarrow as pa
import pytest

from statelib.errors import ConfigurationError, CorruptedDataError
from statelib.stores import suppression_codec
from statelib.stores.backend import WriteBatch
from statelib.stores.header import HEADER_KEY
from statelib.stores.memory import MemoryBackend
from statelib.stores.suppression_buffer import SuppressionBufferStore
from statelib.stores.suppression_codec import BufferedRow, BufferKey

SCHEMA = pa.schema([("timestamp", pa.int64()), ("value", pa.string())])


@pytest.mark.parametrize(
    ("words", "key", "raw"),
    [
        (0, BufferKey(b"ab"), "6162"),
        (1, BufferKey(b"ab", 258, 300), "6162 0000000000000102"),
        (2, BufferKey(b"ab", 258, 300), "6162 000000000000012c 0000000000000102"),
    ],
)
def test_golden_bytes(words: int, key: BufferKey, raw: str) -> None:
    buffered = BufferedRow(key, 7, 9, b"row")
    raw_key = suppression_codec.encode_key(key, words)
    raw_value = suppression_codec.encode_value(buffered)
    assert raw_key == bytes.fromhex(raw)
    assert raw_value == (7).to_bytes(8, "big") + key.end_ms.to_bytes(8, "big") + (9).to_bytes(8, "big") + b"row"
    assert suppression_codec.decode(raw_key, raw_value, words, "s") == buffered
    assert suppression_codec.encode_time_key(7, raw_key) == bytes.fromhex("0000000000000007" + raw)


def test_damaged_bytes_are_refused() -> None:
    for words, raw_key, raw_value in ((0, b"k", b"short"), (1, b"short", bytes(24))):
        with pytest.raises(CorruptedDataError, match="a buffered record has"):
            suppression_codec.decode(raw_key, raw_value, words, "s")


def test_store() -> None:
    backend = MemoryBackend()
    store = SuppressionBufferStore(backend, "s", suffix_words=1)
    old = [BufferedRow(BufferKey(b"a", 5, 9), 9, 1, b"A"), BufferedRow(BufferKey(b"b", 0, 4), 4, 1, b"B")]
    write = WriteBatch()
    store.store([], [], old, SCHEMA, write)
    backend.write(write)
    assert list(store.all()) == old
    assert list(store.oldest()) == old[::-1]

    new = [BufferedRow(BufferKey(b"a", 5, 9), 2, 1, b"AA"), BufferedRow(BufferKey(b"c", 0, 4), 4, 1, b"C")]
    write = WriteBatch()
    store.store([(BufferKey(b"b", 0, 4), 4)], [(BufferKey(b"a", 5, 9), 9)], new, SCHEMA, write)
    backend.write(write)
    assert list(store.oldest()) == new
    assert SuppressionBufferStore(backend, "s", suffix_words=1).header.schema == SCHEMA

    write = WriteBatch()
    write.delete("s", suppression_codec.encode_key(new[0].key, 1))
    backend.write(write)
    with pytest.raises(CorruptedDataError, match="not there"):
        list(store.oldest())


def test_an_unknown_format_is_refused() -> None:
    backend = MemoryBackend()
    write = WriteBatch()
    write.put("s.by-time", HEADER_KEY, b"\x02")
    backend.write(write)
    with pytest.raises(ConfigurationError, match="format 2"):
        SuppressionBufferStore(backend, "s", suffix_words=0)
