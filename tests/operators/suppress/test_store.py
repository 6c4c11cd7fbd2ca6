from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pytest

from statelib.errors.kinds import ConfigurationError, CorruptedDataError
from statelib.operators.suppress import codec as suppression_codec
from statelib.operators.suppress.codec import BufferedRow, BufferedRows, Reference
from statelib.operators.suppress.layout_kernel import NOT_STORED
from statelib.operators.suppress.store import BufferChanges, SuppressionBufferStore
from statelib.stores.backend import WriteBatch
from statelib.stores.header import HEADER_KEY, encode_header
from statelib.stores.memory import MemoryBackend

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

NUMBERS = ("start_ms", "end_ms", "time_ms", "updated_ms", "counted_bytes")
SCHEMA = pa.schema([("timestamp", pa.int64()), ("value", pa.string())])


def columns(rows: Sequence[BufferedRow]) -> BufferedRows:
    numbers = (np.array([getattr(row, name) for row in rows], np.int64) for name in NUMBERS)
    start, end, time, updated, counted_bytes = numbers
    keys, raws = (pa.array([getattr(row, name) for row in rows], pa.binary()) for name in ("key", "row"))
    return BufferedRows(keys, start, end, time, updated, counted_bytes, raws)


def changes(rows: Sequence[BufferedRow], *stored_time: int) -> BufferChanges:
    raw_keys = suppression_codec.encode_keys(columns(rows), 1)
    time = columns(rows).time
    return BufferChanges(time, np.array(stored_time), raw_keys.take, lambda some: columns([rows[i] for i in some]))


def stored(backend: MemoryBackend, fill: Callable[[WriteBatch], None]) -> None:
    write = WriteBatch()
    fill(write)
    backend.write(write)


@pytest.mark.parametrize(
    ("words", "start_ms", "end_ms", "raw"),
    [
        (0, 0, 0, "6162"),
        (1, 258, 300, "6162 0000000000000102"),
        (2, 258, 300, "6162 000000000000012c 0000000000000102"),
    ],
)
def test_golden_bytes(words: int, start_ms: int, end_ms: int, raw: str) -> None:
    buffered = [BufferedRow(b"ab", start_ms, end_ms, 7, 8, 9, b"row")]
    raw_keys = suppression_codec.encode_keys(columns(buffered), words).to_pylist()
    raw_values = suppression_codec.encode_values(columns(buffered)).to_pylist()
    assert raw_keys == [bytes.fromhex(raw)]
    assert raw_values == [b"".join(number.to_bytes(8, "big") for number in (7, 8, end_ms, 9)) + b"row"]
    assert list(suppression_codec.decode(raw_keys, raw_values, words, "s")) == buffered
    raw_time_key = suppression_codec.encode_time_key(7, raw_keys[0])
    assert raw_time_key == bytes.fromhex("0000000000000007" + raw)
    assert suppression_codec.decode_time_key(raw_time_key, "s") == (7, raw_keys[0])


def test_golden_bytes_of_the_totals() -> None:
    assert bytes.fromhex("0000") == suppression_codec.TOTALS_KEY
    assert suppression_codec.encode_totals(3, 258) == bytes.fromhex("0000000000000003 0000000000000102")
    assert suppression_codec.decode_totals(suppression_codec.encode_totals(3, 258), "s") == (3, 258)


def test_damaged_bytes_are_refused() -> None:
    for words, raw_key, raw_value in ((0, b"k", b"short"), (1, b"short", bytes(32))):
        with pytest.raises(CorruptedDataError, match="a buffered record has"):
            suppression_codec.decode([raw_key], [raw_value], words, "s")
    with pytest.raises(CorruptedDataError, match="totals"):
        suppression_codec.decode_totals(b"short", "s")
    with pytest.raises(CorruptedDataError, match="index has 5 bytes"):
        suppression_codec.decode_time_key(b"short", "s")


def test_store() -> None:
    backend = MemoryBackend()
    store = SuppressionBufferStore(backend, "s", suffix_words=1)
    a, b = BufferedRow(b"a", 5, 9, 9, 9, 1, b"A"), BufferedRow(b"b", 0, 4, 4, 9, 1, b"B")
    stored(backend, lambda write: store.store(changes([a, b], NOT_STORED, NOT_STORED), SCHEMA, write))
    stored(backend, lambda write: store.store_totals(2, 2, SCHEMA, write))
    assert list(store.all()) == [a, b]
    assert list(store.oldest()) == [b, a]
    assert (store.totals(), store.newest_time()) == ((2, 2), 9)
    asked = pa.array([b"?", b"a" + (5).to_bytes(8, "big")], pa.binary())
    assert [list(rows) for rows in store.load(asked, np.array([0, 9]))] == [[a]]

    moved, c = BufferedRow(b"a", 5, 9, 2, 9, 1, b"AA"), BufferedRow(b"c", 0, 4, 4, 9, 1, b"C")
    stored(backend, lambda write: store.remove(suppression_codec.encode_keys(columns([b]), 1), np.array([4]), write))
    stored(backend, lambda write: store.store(changes([moved, c], 9, NOT_STORED), SCHEMA, write))
    assert list(store.oldest()) == [moved, c]
    assert [row for rows in store.due(2, 4) for row in rows] == [c]
    assert [row for rows in store.due(-1, 3) for row in rows] == [moved]
    assert SuppressionBufferStore(backend, "s", suffix_words=1).header.schema == SCHEMA

    stored(backend, lambda write: write.delete("s", suppression_codec.encode_keys(columns([moved]), 1)[0].as_py()))
    with pytest.raises(CorruptedDataError, match="not there"):
        list(store.oldest())


def test_a_store_that_was_never_written() -> None:
    store = SuppressionBufferStore(MemoryBackend(), "s", suffix_words=0)
    assert (list(store.all()), list(store.oldest()), store.totals(), store.newest_time()) == ([], [], (0, 0), -1)


def test_golden_bytes_in_order_of_time() -> None:
    """Nobody asks when the key was updated, so what is stored does not tell."""
    backend = MemoryBackend()
    store = SuppressionBufferStore(backend, "s", suffix_words=1, time_is_of_key=True)
    row = BufferedRow(b"ab", 258, 300, 300, 8, 9, b"row")
    stored(backend, lambda write: store.store(changes([row], NOT_STORED), SCHEMA, write))
    assert list(backend.scan("s")) == []
    header, (key, value) = backend.scan("s.by-time")
    assert header == (HEADER_KEY, encode_header(3, SCHEMA))
    assert key == bytes.fromhex("000000000000012c 6162 0000000000000102")
    assert value == b"".join(number.to_bytes(8, "big") for number in (300, 300, 300, 9)) + b"row"


def test_store_in_order_of_time() -> None:
    backend = MemoryBackend()
    store = SuppressionBufferStore(backend, "s", suffix_words=1, time_is_of_key=True)
    assert (store.is_by_time, store.totals(), store.newest_time()) == (True, (0, 0), -1)
    a, b, c = (BufferedRow(key, end - 5, end, end, end, 1, key * 2) for key, end in ((b"a", 9), (b"b", 6), (b"", 7)))
    stored(backend, lambda write: store.store(changes([a, b, c], *[NOT_STORED] * 3), SCHEMA, write))
    stored(backend, lambda write: store.store_totals(3, 3, SCHEMA, write))
    changed = BufferedRow(b"b", 1, 6, 6, 6, 2, b"BB")
    stored(backend, lambda write: store.store(changes([changed], 6), SCHEMA, write))
    assert list(store.all()) == list(store.oldest()) == [changed, c, a]
    assert (store.totals(), store.newest_time()) == ((3, 3), 9)
    assert [row for rows in store.everything(6) for row in rows] == [c, a]
    assert [row for rows in store.due(6, 7) for row in rows] == [c]
    asked = suppression_codec.encode_keys(columns([a, b, BufferedRow(b"?", 4, 9, 9, 9, 1, b"")]), 1)
    assert [list(rows) for rows in store.load(asked, np.array([9, 6, 9]))] == [[a, changed]]
    stored(backend, lambda write: store.remove_until(7, write))
    assert list(store.all()) == [a]
    assert store.totals() == (3, 3)  # and the header is there yet
    again = SuppressionBufferStore(backend, "s", suffix_words=1)
    assert (again.header.schema, list(again.all())) == (SCHEMA, [a])


def test_a_store_stays_in_its_format() -> None:
    backend = MemoryBackend()
    row = BufferedRow(b"a", 5, 9, 9, 9, 1, b"A")
    by_key = SuppressionBufferStore(backend, "s", suffix_words=1)
    stored(backend, lambda write: by_key.store(changes([row], NOT_STORED), SCHEMA, write))
    store = SuppressionBufferStore(backend, "s", suffix_words=1, time_is_of_key=True)
    assert not store.is_by_time
    more = BufferedRow(b"b", 5, 9, 9, 9, 1, b"B")
    stored(backend, lambda write: store.store(changes([more], NOT_STORED), SCHEMA, write))
    assert list(store.oldest()) == [row, more]
    assert len(list(backend.scan("s"))) == 2


@pytest.mark.parametrize("version", [1, 5])
def test_another_format_is_refused(version: int) -> None:
    backend = MemoryBackend()
    stored(backend, lambda write: write.put("s.by-time", HEADER_KEY, bytes([version])))
    with pytest.raises(ConfigurationError, match=f"format {version}"):
        SuppressionBufferStore(backend, "s", suffix_words=0)


def test_golden_bytes_of_a_reference() -> None:
    """The key lies before all times; the aggregation is as it was described, in any order."""
    aggregation = {"store": "w", "windows": "time", "size_ms": 5, "aggregator": {"aggregations": [["n", {"of": "é"}]]}}
    raw = suppression_codec.encode_reference(Reference(-1, 258, aggregation))
    assert bytes.fromhex("000000") == suppression_codec.REFERENCE_KEY < suppression_codec.encode_time_key(0, b"")
    assert raw[:16] == bytes.fromhex("ffffffffffffffff 0000000000000102")
    text = '{"aggregator":{"aggregations":[["n",{"of":"é"}]]},"size_ms":5,"store":"w","windows":"time"}'
    assert raw[16:] == text.encode()
    assert suppression_codec.decode_reference(raw, "s") == Reference(-1, 258, aggregation)


@pytest.mark.parametrize("raw", [b"", b"short", bytes(16), bytes(16) + b"{}", bytes(16) + b"[]", bytes(16) + b"\xff"])
def test_a_damaged_reference_is_refused(raw: bytes) -> None:
    with pytest.raises(CorruptedDataError, match="the reference of a suppression buffer cannot be read"):
        suppression_codec.decode_reference(raw, "s")
