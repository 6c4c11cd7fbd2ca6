"""Changelogs of what waits, in suppress and before a stream-table join: see `statelib.changelog.export`.

A buffer does not keep from which topic and offset a record was. What is written is the topic from which the operator
gets its records, the task's partition, and the offset -1, by which Kafka Streams says that there is none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from statelib.described.exporting import Records, topic_of
from statelib.described.live_format import LiveKeys, LiveValues
from statelib.described.stored_values import buffered_columns
from statelib.operators.joins.stream_table.buffer_store import JoinBufferStore, decode_columns, encode_place
from statelib.operators.joins.stream_table.changelog import log_keys
from statelib.operators.suppress.definition import wait_ms
from statelib.operators.suppress.layout_kernel import buffer_keys
from statelib.operators.suppress.store import SuppressionBufferStore
from statelib.operators.windows.definition import windows_of
from statelib.records.batch import NO_TIMESTAMP
from statelib.stores.buffer_value_codec import HEADERS_TYPE, VERSION_HEADER, BufferValues, encode
from statelib.stores.column_scan import scan_columns

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from statelib.described.description import Described
    from statelib.described.exporting import Share
    from statelib.described.live_format import StoreFormat

_NO_OFFSET = -1


class SuppressionExporter:
    """What suppress holds back, in the order in which the store has it; with Kafka's header.

    What a row replaces upstream is known where the store keeps it: in buffers with a bound as shipped
    (``semantics="kafka-4.3"``). It is null elsewhere, as is what is known downstream of tables that do not tell.
    """

    def __init__(self, described: Described, declared: StoreFormat) -> None:
        self._name, self._topic = described.name, topic_of(described)
        self._keys = LiveKeys(described, declared.key)
        self._values = LiveValues(described, declared, aggregates=False)
        settings = described.settings
        windows = None if settings["windows"] is None else windows_of(settings["windows"])
        self._suffix_words = windows.key_suffix_words if windows else 0
        held_ms = settings.get("held_ms", 0)
        self._wait_ms = wait_ms(settings["time_limit_ms"], windows, held_ms, described.semantics)

    def records(self, share: Share) -> Iterator[Records]:
        """See `statelib.described.exporting`."""
        store = SuppressionBufferStore(share.place.backend, self._name, suffix_words=self._suffix_words)
        left_until_ms = max(share.place.clocks.get("stream_time", NO_TIMESTAMP) - self._wait_ms, -1)
        for buffered in store.everything(left_until_ms):
            rows = buffered_columns(store.header, buffered.row)
            nothing = pa.nulls(len(buffered), self._values.type)
            values = {name: self._values.of_states(rows.get(name, nothing)) for name in ("prior", "old", "value")}
            keys = self._keys.written(buffered.key)
            encoded = _encoded(
                rows["timestamp"].to_numpy(), self._topic, share.partition, rows.get("headers"), values, buffered.time
            )
            raw_keys = buffer_keys(keys, buffered.start, buffered.end, self._suffix_words)
            yield Records(self._keys.placed_by(keys), raw_keys, encoded, None, _version_headers(len(buffered)))


class JoinBufferExporter:
    """The stream's records that wait for the table, by time and arrival.

    These are the bytes that Kafka Streams 4.3 writes and cannot read: its restore takes the keys for those of windows
    (``RocksDBTimeOrderedKeyValueBytesStore.getWriteBatches``), so that it never finds the records again, and has a
    clock of which nothing else waits any more. An application that is to go on from here should be given none of them.
    """

    def __init__(self, described: Described, declared: StoreFormat) -> None:
        self._name, self._topic = described.name, topic_of(described)
        self._keys = LiveKeys(described, declared.key)
        self._values = LiveValues(described, declared, aggregates=False)

    def records(self, share: Share) -> Iterator[Records]:
        """See `statelib.described.exporting`."""
        header = JoinBufferStore(share.place.backend, self._name).header
        for places, raws in scan_columns(share.place.backend, self._name, encode_place(0)):
            timestamp, arrival, stored_keys, stored = decode_columns(places, raws, self._name)
            rows, keys = buffered_columns(header, stored), self._keys.written(stored_keys)
            nothing = pa.nulls(len(keys), pa.binary())
            values = {"prior": nothing, "old": nothing, "value": self._values.of_states(rows["value"])}
            time = np.zeros(len(keys), np.int64)
            encoded = _encoded(timestamp, self._topic, share.partition, rows.get("headers"), values, time)
            yield Records(self._keys.placed_by(keys), log_keys(keys, timestamp, arrival), encoded, None)


def _encoded(
    timestamp: NDArray[np.int64], topic: str, partition: int, headers: pa.Array | None, values: dict[str, Any],
    time: NDArray[np.int64],
) -> pa.Array:  # fmt: skip
    count = len(timestamp)
    return encode(
        BufferValues(
            timestamp=timestamp,
            offset=np.full(count, _NO_OFFSET),
            topic=pa.array([topic] * count, pa.string()),
            partition=np.full(count, partition, np.int32),
            headers=pa.nulls(count, HEADERS_TYPE) if headers is None else headers,
            prior=values["prior"],
            old=values["old"],
            new=values["value"],
            time=time,
        )
    )


def _version_headers(count: int) -> pa.Array:
    name, version = VERSION_HEADER
    return pa.array([[{"key": name, "value": version}]] * count, HEADERS_TYPE)
