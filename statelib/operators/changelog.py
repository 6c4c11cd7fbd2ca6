"""What is put into stores, as the records that Kafka Streams sends to their changelog topics, one a put.

Keys and values are bytes; a null value is a deletion. A store of a table or an aggregation by key, versioned or not,
logs the key, the value alone, and the value's timestamp (KIP-889: the form is the same). Keys of windows and sessions
(all integers big-endian)::

    window    +-----------+------------------+---------------+
              | key bytes | start i64, ms    | 0 i32         |
              +-----------+------------------+---------------+
    session   +-----------+------------------+---------------+
              | key bytes | end i64, ms      | start i64, ms |
              +-----------+------------------+---------------+

What waits in buffers is in `statelib.operators.suppress.changelog` and
`statelib.operators.joins.stream_table.changelog`.

Subscriptions of a foreign-key join have Kafka's keys and timestamps, and deletions where Kafka has them. Their values
are ours, since the row itself travels here (`statelib.operators.joins.foreign_key.subscribe`)::

    key    as `statelib.operators.joins.foreign_key.codec` has it (Kafka's ``CombinedKeySchema``)
    value  as it has it too: number, row; Kafka's ``SubscriptionWrapper`` has a hash of the row
    time   of the left row's change

The numbers of the answers (`statelib.operators.joins.foreign_key.resolve`), which Kafka has no store for, are logged as
any
table: the primary key, the number i64, the answer's timestamp.

A deduplication, which Kafka Streams never had, logs each entry that it sets: the id's bytes, the entry as the store has
it (`statelib.operators.deduplication.codec`), the forwarded record's timestamp. What expires is not logged, as in
windows.

The layouts of windows and sessions are Kafka's (``WindowKeySchema``, ``SessionKeySchema``) and have no version of their
own: others read them. The bytes of keys and values are those of the stores (`statelib.serdes`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from statelib.serdes import serde_for
from statelib.stores.byte_columns import joined, packed, times
from statelib.stores.stored_rows import stored_value

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from statelib.stores.byte_columns import Column

SCHEMA = pa.schema([("key", pa.binary()), ("value", pa.binary()), ("timestamp", pa.int64())])
"""Of records without headers; where a store's have some, there is a fourth column, ``headers``."""


class Changelog:
    """The changelog records of one store of one task, in the order of the puts."""

    def __init__(self) -> None:
        self.added = 0
        """How many records there have been."""
        self._collected: list[pa.RecordBatch] = []

    def add(
        self,
        keys: Column | pa.DictionaryArray,
        values: pa.Array,
        timestamp: NDArray[np.int64],
        headers: pa.Array | None = None,
    ) -> None:
        """Takes puts.

        Args:
            keys: Their bytes.
            values: Of any type, null for deletions; written by its serde.
            timestamp: int64, ms.
            headers: Those of the records; of a store that has any: always.
        """
        if isinstance(keys, pa.DictionaryArray):
            keys = keys.dictionary_decode()
        self.added += len(timestamp)
        columns = [keys.cast(pa.binary()), serde_for(values.type).serialize(values).cast(pa.binary())]
        columns.append(pa.array(timestamp))
        if headers is None:
            self._collected.append(pa.RecordBatch.from_arrays(columns, schema=SCHEMA))
        else:
            with_headers = SCHEMA.append(pa.field("headers", headers.type))
            self._collected.append(pa.RecordBatch.from_arrays([*columns, headers], schema=with_headers))

    def drain(self) -> pa.RecordBatch:
        """What was collected since the last call."""
        collected, self._collected = self._collected, []
        return pa.concat_batches(collected) if collected else pa.RecordBatch.from_pylist([], SCHEMA)


def window_keys(keys: Column, start: NDArray[np.int64]) -> Column:
    """The keys of windows that begin at ``start``, ms."""
    return joined(keys, times(start), packed(np.zeros(len(start), ">i4")))


def session_keys(keys: Column, start: NDArray[np.int64], end: NDArray[np.int64]) -> Column:
    """The keys of sessions; their bounds, both inclusive, in ms."""
    return joined(keys, times(end), times(start))


def states(walked: pa.StructArray, removed: NDArray[np.bool_]) -> pa.Array:
    """What a store keeps after each update of an aggregation; null where ``removed`` (empty: nowhere)."""
    values = stored_value(walked)
    return values.take(pa.array(np.arange(len(values)), mask=removed)) if len(removed) else values
