"""What the buffer of a stream-table join logs: each record that begins to wait, and each that has left.

The bytes are those of Kafka's ``RocksDBTimeOrderedKeyValueBuffer``; all integers are big-endian::

    key    +------+---------------------+------------+-----------------+
           | 00   | timestamp i64, ms   | key bytes  | sequence i32    |     sequence: the how manieth, from 1 on; it
           +------+---------------------+------------+-----------------+     begins anew after 2^31 - 1

with values as `statelib.described.buffer_value_codec` has them, or null for what has left. A log record's timestamp is
the buffer's stream time, where Kafka's has none, and the producer fills its wall clock in.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from statelib.columns.arrow_buffers import valid_of
from statelib.described.buffer_value_codec import decode, encode
from statelib.described.exporting import PairsExporter, Records, topic_of, waiting_values
from statelib.described.importing import Buffered
from statelib.described.restoring import Restoring
from statelib.described.stored_values import buffered_columns
from statelib.errors.kinds import CorruptedDataError
from statelib.operators.changelog import waiting
from statelib.operators.joins.stream_table.buffer_store import JoinBufferStore, WaitingRow, decode_columns, encode_place
from statelib.serdes import serde_for, serialized
from statelib.stores.byte_columns import joined, packed, split_head, split_tail, times
from statelib.stores.column_scan import scan_columns

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from statelib.described.exporting import Share
    from statelib.described.restoring import Target
    from statelib.records.batch import Batch, Uptake
    from statelib.stores.backend import WriteBatch
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
    return encode(waiting(batch, rows, uptake, sources, np.zeros(len(batch), np.int64)))


class JoinBufferExporter(PairsExporter):
    """The stream's records that wait for the table, by time and arrival.

    These are the bytes that Kafka Streams 4.3 writes and cannot read: its restore takes the keys for those of windows
    (``RocksDBTimeOrderedKeyValueBytesStore.getWriteBatches``), so that it never finds the records again, and has a
    clock of which nothing else waits any more. An application that is to go on from here should be given none of them.
    """

    def records(self, share: Share) -> Iterator[Records]:
        """See `statelib.described.exporting`."""
        topic = topic_of(self._described)
        header = JoinBufferStore(share.place.backend, self._name).header
        for places, raws in scan_columns(share.place.backend, self._name, encode_place(0)):
            timestamp, arrival, stored_keys, stored = decode_columns(places, raws, self._name)
            rows, keys = buffered_columns(header, stored), self._keys.written(stored_keys)
            nothing = pa.nulls(len(keys), pa.binary())
            values = {"prior": nothing, "old": nothing, "value": self._values.of_states(rows["value"])}
            time = np.zeros(len(keys), np.int64)
            encoded = waiting_values(timestamp, topic, share.partition, rows.get("headers"), values, time)
            yield Records(self._keys.placed_by(keys), log_keys(keys, timestamp, arrival), encoded, None)


class JoinBufferImporter(Buffered):
    """What waits for a table."""

    def keys(self, raws: Column) -> pa.Array:
        """See `Importer`."""
        heads, rest = split_head(raws, HEAD, self._name)
        plain, tails = split_tail(rest, TAIL, self._name)
        return joined(packed(heads), self._keys.read(plain), packed(tails))


class RestoringJoinBuffer(Restoring):
    """The records that have come and not left."""

    def __init__(self, target: Target) -> None:
        self._name = target.store.name
        self._store = JoinBufferStore(target.backend, self._name)
        self._schema = target.row
        self._has_run = target.has_run
        self._arrivals = target.clocks.get("arrivals", 0)

    def put(self, keys: Column, values: pa.Array, timestamp: NDArray[np.int64], write: WriteBatch) -> None:
        """See `Restoring`."""
        del timestamp
        plain, time, arrival = split_keys(keys, self._arrivals, self._name)
        has_value = valid_of(values)
        stays, gone = np.flatnonzero(has_value), np.flatnonzero(~has_value)
        buffered = decode(values.take(pa.array(stays)).to_pylist(), self._name)
        columns = {
            "value": serde_for(self._schema.field("value").type).deserialize(buffered.new),
            "headers": buffered.headers,
        }
        arrays = [columns[name] for name in self._schema.names]
        rows = serialized(pa.StructArray.from_arrays(arrays, fields=list(self._schema))).to_pylist()
        entries = (time[stays].tolist(), arrival[stays].tolist(), plain.take(pa.array(stays)).to_pylist(), rows)
        self._store.remove(zip(time[gone].tolist(), arrival[gone].tolist(), strict=True), write)
        self._store.store(-1, [WaitingRow(*entry) for entry in zip(*entries, strict=True)], self._schema, write)

    def finish(self, write: WriteBatch) -> None:
        """Adds what is there as soon as the operator has run."""
        if self._has_run:
            self._store.header.write(self._schema, write)
