"""What the buffer of a stream-table join logs: each record that begins to wait, and each that has left.

The bytes are those of Kafka's ``RocksDBTimeOrderedKeyValueBuffer``; all integers are big-endian::

    key    +------+---------------------+------------+-----------------+
           | 00   | timestamp i64, ms   | key bytes  | sequence i32    |     sequence: the how manieth, from 1 on; it
           +------+---------------------+------------+-----------------+     begins anew after 2^31 - 1

with values as `statelib.stores.buffer_value_codec` has them, or null for what has left. A log record's timestamp is the
buffer's stream time, where Kafka's has none, and the producer fills its wall clock in.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from statelib.errors.kinds import CorruptedDataError
from statelib.serdes import serde_for
from statelib.stores.buffer_value_codec import HEADERS_TYPE, BufferValues, encode
from statelib.stores.byte_columns import joined, packed, split_head, split_tail, times

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from statelib.records.batch import Batch, Uptake
    from statelib.stores.byte_columns import Column

HEAD, TAIL = np.dtype([("zero", "u1"), ("timestamp", ">i8")]), np.dtype([("sequence", ">i4")])
"""What is before the key's bytes in a log key, and behind them."""

_SEQUENCES = 1 << 31


def log_keys(keys: Column, timestamp: NDArray[np.int64], arrival: NDArray[np.int64]) -> Column:
    """The keys of records that wait; ``arrival``: the how manieth each is, from 0 on."""
    return joined(packed(np.zeros(len(timestamp), np.uint8)), times(timestamp), keys, packed(sequences_of(arrival)))


def sequences_of(arrival: NDArray[np.int64]) -> NDArray[Any]:
    """The sequences of records: the how manieth each is from 1 on, given that from 0 on, modulo 2^31."""
    return ((arrival + 1) % _SEQUENCES).astype(">i4")


def arrivals_of(sequence: NDArray[np.int64], arrivals: int) -> NDArray[np.int64]:
    """The inverse of `sequences_of`, of the last records of ``arrivals``."""
    return sequence - 1 + (arrivals - sequence) // _SEQUENCES * _SEQUENCES


def split_keys(raws: Column, arrivals: int, store: str) -> tuple[Column, NDArray[np.int64], NDArray[np.int64]]:
    """The inverse of `log_keys`, of records that were not far from the last one.

    Args:
        raws: The keys.
        arrivals: How many records have ever waited.
        store: Its name, for errors.

    Raises:
        CorruptedDataError: One is too short, or not such a key.
    """
    heads, rest = split_head(raws, HEAD, store)
    keys, tails = split_tail(rest, TAIL, store)
    if heads["zero"].any():
        raise CorruptedDataError("a record of a join buffer's changelog has a key that is none of its", store=store)
    arrival = arrivals_of(tails["sequence"].astype(np.int64), arrivals)
    return keys, heads["timestamp"].astype(np.int64), arrival


def log_values(batch: Batch, rows: NDArray[np.int64], uptake: Uptake, sources: Sequence[str]) -> Column:
    """The values of those records of a batch that begin to wait; ``sources``: the task's source topics."""
    taken, chosen = batch.sequence[rows] - uptake.first_sequence, pa.array(rows)
    nulls = pa.nulls(len(rows), pa.binary())
    return encode(
        BufferValues(
            timestamp=batch.timestamp[rows],
            offset=uptake.offset[taken],
            topic=pa.array([*sources] or [""], pa.string()).take(pa.array(uptake.source[taken])),
            partition=uptake.partition[taken],
            headers=pa.nulls(len(rows), HEADERS_TYPE) if batch.headers is None else batch.headers.take(chosen),
            prior=nulls,
            old=nulls,
            new=serde_for(batch.value.type).serialize(batch.value.take(chosen)),
            time=np.zeros(len(rows), np.int64),
        )
    )
