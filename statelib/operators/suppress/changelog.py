"""What suppress logs of its buffer: what waits under a key after a source record, or that nothing does any more.

Kafka's ``InMemoryTimeOrderedKeyValueChangeBuffer`` logs at each commit the keys that have changed since the last one,
a key once, in the order of a hash set. A replay has no such commits: it logs after each source record, in the order in
which the keys changed last. The record's bytes are Kafka's (`statelib.stores.buffer_value_codec`), with its header; its
timestamp is the operator's stream time, where Kafka's has none, and the producer fills its wall clock in.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from statelib.columns.arrow_buffers import valid_of
from statelib.operators.suppress.layout_kernel import buffer_keys
from statelib.records.key_column import KeyColumn
from statelib.records.key_table import KeyTable
from statelib.serdes import serde_for
from statelib.stores.buffer_value_codec import HEADERS_TYPE, VERSION_HEADER, BufferValues, encode

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from statelib.operators.changelog import Changelog
    from statelib.operators.suppress.buffer import Puts
    from statelib.operators.suppress.departures import Departures
    from statelib.records.batch import Batch, Uptake


class SuppressChangelog:
    """The changelog of one buffer.

    Args:
        changelog: Takes the records.
        keys: The dictionary of the task's keys.
        sources: The task's source topics.
        suffix_words: How many integers follow the key's bytes in a buffer key.
    """

    def __init__(self, changelog: Changelog, keys: KeyTable, sources: Sequence[str], suffix_words: int) -> None:
        self._changelog = changelog
        self._keys = keys
        self._sources = sources
        self._suffix_words = suffix_words

    def add(self, batch: Batch, puts: Puts, left: Departures, stream_time: NDArray[np.int64], uptake: Uptake) -> None:
        """Logs what some records have changed.

        Args:
            batch: The records, with key codes.
            puts: What they have put.
            left: What has left the buffer because of them.
            stream_time: int64, the operator's after each record, ms.
            uptake: What the batch was processed with.
        """
        count, nothing = len(batch), np.zeros(len(batch), np.int64)
        windows = batch.windows if self._suffix_words else None  # without, they are in the bytes of the keys
        start, end = (nothing, nothing) if windows is None else (windows.start, windows.end)
        codes = batch.key_code if batch.key_code is not None else nothing
        raw_keys = pa.concat_arrays([self._raw_keys(codes, start, end), self._keys_of(left)])
        record = np.concatenate([np.arange(count), left.trigger])
        # Each record puts before it makes others leave; of the changes of a key by one source record the last counts.
        order = np.argsort(2 * record + (np.arange(len(record)) >= count), kind="stable")
        cause = np.unique(uptake.causes_of(batch)[record], return_inverse=True)[1][order]
        key = KeyTable().encode(raw_keys.take(pa.array(order)))
        pairs = cause * (int(key.max()) + 1) + key
        last = np.sort(len(pairs) - 1 - np.unique(pairs[::-1], return_index=True)[1])
        chosen = order[last]
        stays = chosen[chosen < count]
        values = np.full(len(chosen), -1)
        values[chosen < count] = np.arange(len(stays))
        encoded = encode(self._values(batch, puts, stays, uptake))
        self._add(
            raw_keys.take(pa.array(chosen)),
            encoded.take(pa.array(values, mask=values < 0)),
            stream_time[record[chosen]],
        )

    def remove(self, left: Departures, stream_time: int) -> None:
        """Logs that all that waited has left at the end of the input; ``stream_time``: the operator's, ms."""
        count = len(left)
        self._add(self._keys_of(left), pa.nulls(count, pa.binary()), np.full(count, max(stream_time, 0)))

    def _values(self, batch: Batch, puts: Puts, chosen: NDArray[np.int64], uptake: Uptake) -> BufferValues:
        rows, which = batch.sequence[chosen] - uptake.first_sequence, pa.array(chosen)
        serde = serde_for(batch.value.type)
        nulls = pa.nulls(len(chosen), pa.binary())
        topics = pa.array([*self._sources] or [""], pa.string())
        return BufferValues(
            timestamp=batch.timestamp[chosen],
            offset=uptake.offset[rows],
            topic=topics.take(pa.array(uptake.source[rows])),
            partition=uptake.partition[rows],
            headers=pa.nulls(len(chosen), HEADERS_TYPE) if batch.headers is None else batch.headers.take(which),
            prior=nulls if puts.known is None else serde.serialize(puts.known.take(which)),
            old=nulls if batch.prior is None else serde.serialize(batch.prior.take(which)),
            new=serde.serialize(batch.value.take(which)),
            time=puts.time[chosen],
        )

    def _add(self, raw_keys: pa.Array, values: pa.Array, timestamp: NDArray[np.int64]) -> None:
        name, version = VERSION_HEADER
        headers = pa.array([[{"key": name, "value": version}]], HEADERS_TYPE).take(
            pa.array(np.zeros(len(values), np.int64))
        )
        has_value = valid_of(values)
        headers = headers.take(pa.array(np.arange(len(values)), mask=~has_value))
        self._changelog.add(raw_keys, values, timestamp, headers)

    def _keys_of(self, left: Departures) -> pa.Array:
        return buffer_keys(KeyColumn(left.keys).plain, left.start, left.end, self._suffix_words)

    def _raw_keys(self, codes: NDArray[np.int64], start: NDArray[np.int64], end: NDArray[np.int64]) -> pa.Array:
        return buffer_keys(self._keys.take(np.ascontiguousarray(codes)), start, end, self._suffix_words)
