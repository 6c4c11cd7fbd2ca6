"""Format 1 of the deduplication store, and how a store of it becomes one of today's format.

::

    <store>.entries    key    id bytes
                       value  as today, with version u8 = 1

    <store>.index      key    timestamp i64 | id bytes
                       value  empty

An id had one entry, and each entry one key in the index, by which it was found when it expired.
"""

from __future__ import annotations

from collections import Counter
from itertools import islice
from typing import TYPE_CHECKING

import numpy as np

from statelib.errors.kinds import CorruptedDataError
from statelib.operators.deduplication.codec import (
    decode_values,
    encode_count,
    encode_keys,
    encode_segment,
    encode_values,
)
from statelib.operators.versioned.segment_interval import deduplication_segment_ms
from statelib.stores.backend import WriteBatch
from statelib.stores.byte_columns import raw_column, split_head

if TYPE_CHECKING:
    from collections.abc import Iterator

    from statelib.stores.backend import Backend
    from statelib.stores.byte_columns import Column

_AT_ONCE = 1 << 14


def upgrade(backend: Backend, store: str, *, interval_ms: int) -> None:
    """Makes a store of format 1 one of today's; one of today's stays as it is.

    Args:
        backend: Where the families are. The database has to be one that is thrown away where this fails.
        store: The store's name.
        interval_ms: The deduplication interval.

    Raises:
        CorruptedDataError: Entries and index do not belong together.
    """
    entries, segments, index, upgraded = (f"{store}.{name}" for name in ("entries", "segments", "index", "upgraded"))
    if not is_format_1(backend, store):
        return
    counts = Counter[int]()
    # Today's key of an id may be the bytes of another id: all old keys go before the first new one comes.
    for index_keys, _ in _chunks(backend, index):
        times, ids = split_head(index_keys, np.dtype(">i8"), store)
        values = backend.multi_get(entries, ids.to_pylist())
        found = decode_values([value or b"" for value in values], store, version=1)
        if not np.array_equal(found.timestamp, times):
            raise _damaged(store)
        numbers = found.timestamp // deduplication_segment_ms(interval_ms)
        counts.update(numbers.tolist())
        write = WriteBatch()
        write.put_columns(upgraded, encode_keys(numbers, ids), encode_values(found))
        write.delete_columns(entries, ids)
        write.delete_columns(index, index_keys)
        backend.write(write)
    if not backend.is_empty(entries):
        raise _damaged(store)
    for keys, values_of_keys in _chunks(backend, upgraded):
        write = WriteBatch()
        write.put_columns(entries, keys, values_of_keys)
        write.delete_columns(upgraded, keys)
        backend.write(write)
    write = WriteBatch()
    for number, count in counts.items():
        write.put(segments, encode_segment(number), encode_count(count))
    backend.write(write)


def is_format_1(backend: Backend, store: str) -> bool:
    """Whether there is a store, and it has format 1."""
    return backend.is_empty(f"{store}.segments") and not backend.is_empty(f"{store}.entries")


def _chunks(backend: Backend, family: str) -> Iterator[tuple[Column, Column]]:
    pairs = iter(backend.scan(family))
    while some := list(islice(pairs, _AT_ONCE)):
        keys, values = zip(*some, strict=True)
        yield raw_column(keys), raw_column(values)


def _damaged(store: str) -> CorruptedDataError:
    return CorruptedDataError(
        "the entries of a deduplication of format 1 are not those of its index",
        store=store,
        next_step="restore the checkpoint from another copy",
    )
