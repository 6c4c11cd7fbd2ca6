"""What is put into stores, as the records that Kafka Streams sends to their changelog topics, one a put.

Keys and values are bytes; a null value is a deletion. A store of a table or an aggregation by key, versioned or not,
logs the key, the value alone, and the value's timestamp (KIP-889: the form is the same). What others log is in a module
``changelog`` of their family. The bytes of keys and values are those of the stores (`statelib.serdes`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from statelib.described.buffer_value_codec import HEADERS_TYPE, BufferValues
from statelib.serdes import serde_for

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray

    from statelib.records.batch import Batch, Uptake
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


def waiting(
    batch: Batch, rows: NDArray[np.int64], uptake: Uptake, sources: Sequence[str], time: NDArray[np.int64],
    *, known: pa.Array | None = None, old: pa.Array | None = None,
) -> BufferValues:  # fmt: skip
    """What is logged of records that wait in a buffer.

    Args:
        batch: The records.
        rows: int64, which of them wait.
        uptake: What the batch was processed with.
        sources: The task's source topics.
        time: int64, by record: the buffer time, ms.
        known: By record the value that is known downstream; None: nobody knows.
        old: By record what it replaces upstream; None: nobody knows.
    """
    taken, chosen = batch.sequence[rows] - uptake.first_sequence, pa.array(rows)
    serde = serde_for(batch.value.type)

    def written(values: pa.Array | None) -> pa.Array:
        return pa.nulls(len(rows), pa.binary()) if values is None else serde.serialize(values.take(chosen))

    return BufferValues(
        timestamp=batch.timestamp[rows],
        offset=uptake.offset[taken],
        topic=pa.array([*sources] or [""], pa.string()).take(pa.array(uptake.source[taken])),
        partition=uptake.partition[taken],
        headers=pa.nulls(len(rows), HEADERS_TYPE) if batch.headers is None else batch.headers.take(chosen),
        prior=written(known),
        old=written(old),
        new=written(batch.value),
        time=time[rows],
    )
