"""What suppress logs of its buffer: what waits under a key after a source record, or that nothing does any more.

Kafka's ``InMemoryTimeOrderedKeyValueChangeBuffer`` logs at each commit the keys that have changed since the last one,
a key once, in the order of a hash set. A replay has no such commits: it logs after each source record, in the order in
which the keys changed last. The record's bytes are Kafka's (`statelib.described.buffer_value_codec`), with its header;
its timestamp is the operator's stream time, where Kafka's has none, and the producer fills its wall clock in.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from statelib.columns.arrow_buffers import valid_of
from statelib.described.buffer_value_codec import HEADERS_TYPE, VERSION_HEADER, BufferValues, decode, encode
from statelib.described.exporting import PairsExporter, Records, topic_of, waiting_values
from statelib.described.importing import Buffered
from statelib.described.restoring import Restoring
from statelib.errors.kinds import InputError
from statelib.operators.changelog import waiting
from statelib.operators.serialized_sizes import kafka_header_sizes, serialized_bytes
from statelib.operators.suppress.codec import BufferedRows, encode_keys
from statelib.operators.suppress.definition import BUFFER_TIME_BYTES, RECORD_CONTEXT_BYTES
from statelib.operators.suppress.layout_kernel import buffer_keys
from statelib.operators.suppress.snapshot import DescribedBuffer, described_windows
from statelib.operators.suppress.store import BufferChanges, SuppressionBufferStore
from statelib.operators.windows.definition import SessionWindows
from statelib.records.key_column import KeyColumn
from statelib.records.key_table import KeyTable
from statelib.serdes import serde_for, serialized
from statelib.stores.byte_columns import joined, packed, split_tail

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from statelib.described.description import Described
    from statelib.described.exporting import Share
    from statelib.described.live_format import StoreFormat
    from statelib.described.restoring import Target
    from statelib.operators.changelog import Changelog
    from statelib.operators.suppress.buffer import Puts
    from statelib.operators.suppress.departures import Departures
    from statelib.records.batch import Batch, Uptake
    from statelib.stores.backend import WriteBatch
    from statelib.stores.byte_columns import Column


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
        encoded = encode(waiting(batch, stays, uptake, self._sources, puts.time, known=puts.known, old=batch.prior))
        self._add(
            raw_keys.take(pa.array(chosen)),
            encoded.take(pa.array(values, mask=values < 0)),
            stream_time[record[chosen]],
        )

    def remove(self, left: Departures, stream_time: int) -> None:
        """Logs that all that waited has left at the end of the input; ``stream_time``: the operator's, ms."""
        count = len(left)
        self._add(self._keys_of(left), pa.nulls(count, pa.binary()), np.full(count, max(stream_time, 0)))

    def _add(self, raw_keys: pa.Array, values: pa.Array, timestamp: NDArray[np.int64]) -> None:
        headers = version_headers(len(values)).take(pa.array(np.arange(len(values)), mask=~valid_of(values)))
        self._changelog.add(raw_keys, values, timestamp, headers)

    def _keys_of(self, left: Departures) -> pa.Array:
        return buffer_keys(KeyColumn(left.keys).plain, left.start, left.end, self._suffix_words)

    def _raw_keys(self, codes: NDArray[np.int64], start: NDArray[np.int64], end: NDArray[np.int64]) -> pa.Array:
        return buffer_keys(self._keys.take(np.ascontiguousarray(codes)), start, end, self._suffix_words)


def version_headers(count: int) -> pa.Array:
    """The header that tells the version of the values, of as many records."""
    name, version = VERSION_HEADER
    return pa.array([[{"key": name, "value": version}]] * count, HEADERS_TYPE)


class SuppressionExporter(PairsExporter):
    """What suppress holds back, in the order in which the store has it; with Kafka's header.

    What a row replaces upstream is known where the store keeps it: in buffers with a bound as shipped
    (``semantics="kafka-4.3"``). It is null elsewhere, as is what is known downstream of tables that do not tell.
    """

    def records(self, share: Share) -> Iterator[Records]:
        """See `statelib.described.exporting`."""
        buffer, topic = DescribedBuffer(self._described), topic_of(self._described)
        for buffered, rows in buffer.waiting(share.place):
            nothing = pa.nulls(len(buffered), self._values.type)
            values = {name: self._values.of_states(rows.get(name, nothing)) for name in ("prior", "old", "value")}
            keys = self._keys.written(buffered.key)
            encoded = waiting_values(
                rows["timestamp"].to_numpy(), topic, share.partition, rows.get("headers"), values, buffered.time
            )
            raw_keys = buffer_keys(keys, buffered.start, buffered.end, buffer.suffix_words)
            yield Records(self._keys.placed_by(keys), raw_keys, encoded, None, version_headers(len(buffered)))


class SuppressionImporter(Buffered):
    """What suppress holds back."""

    def __init__(self, described: Described, form: StoreFormat) -> None:
        super().__init__(described, form)
        windows = described_windows(described.settings)
        words = windows.key_suffix_words if windows else 0
        self._suffix = np.dtype((">i8", (words,))) if words else None

    def keys(self, raws: Column) -> pa.Array:
        """See `Importer`."""
        if self._suffix is None:
            return self._keys.read(raws)
        plain, words = split_tail(raws, self._suffix, self._name)
        return joined(self._keys.read(plain), packed(words))

    def values(self, batch: pa.RecordBatch) -> tuple[pa.Array, pa.Array]:
        """See `Importer`; refuses the bytes of old versions of Kafka Streams."""
        name, version = VERSION_HEADER
        for value, headers in zip(batch.column("value"), batch.column("headers").to_pylist(), strict=True):
            if value.is_valid and {"key": name, "value": version} not in (headers or []):
                raise InputError(
                    f"a record of suppress has no header {name} = {version.hex()}: another version of Kafka Streams",
                    store=self._name,
                    next_step="run the application with version 2.6 or later, so that it writes its buffer again",
                )
        return super().values(batch)


class RestoringSuppression(Restoring):
    """Of each key what waits last. Where the row is from is not in the store; how much it counts is found again."""

    def __init__(self, target: Target) -> None:
        settings = target.store.settings
        self._name = target.store.name
        self._windows = described_windows(settings)
        self._suffix_words = self._windows.key_suffix_words if self._windows else 0
        self._schema = target.row
        self._as_shipped = target.semantics != "kip"
        self._final = settings["time_limit_ms"] is None
        self._store = SuppressionBufferStore(
            target.backend, self._name, suffix_words=self._suffix_words, time_is_of_key=self._final
        )
        self._records = self._bytes = 0
        self._has_run = target.has_run

    def put(self, keys: Column, values: pa.Array, timestamp: NDArray[np.int64], write: WriteBatch) -> None:
        """See `Restoring`."""
        self._has_run = True
        plain, start, end = self._split(keys)
        for there in self._store.load(keys, end):
            self._store.remove(encode_keys(there, self._suffix_words), there.time, write)
            self._records -= len(there)
            self._bytes -= int(there.counted_bytes.sum())
        stays = np.flatnonzero(valid_of(values))
        chosen = pa.array(stays)
        buffered = decode(values.take(chosen).to_pylist(), self._name)
        staying = keys.take(chosen)
        rows = BufferedRows(
            key=plain.take(chosen),
            start=start[stays],
            end=end[stays],
            time=buffered.time,
            updated=timestamp[stays],
            counted_bytes=self._counted(staying, buffered),
            row=serialized(self._rows(buffered).to_struct_array()),
        )
        self._store.store(BufferChanges.of(staying, rows), self._schema, write)
        self._records += len(stays)
        self._bytes += int(rows.counted_bytes.sum())

    def finish(self, write: WriteBatch) -> None:
        """Adds how much there is."""
        if self._has_run:
            self._store.store_totals(self._records, self._bytes, self._schema, write)

    def _split(self, raw_keys: Column) -> tuple[Column, NDArray[np.int64], NDArray[np.int64]]:
        """Plain keys, and their windows' bounds: 0 without windows."""
        match self._windows:
            case None:
                nothing = np.zeros(len(raw_keys), np.int64)
                return raw_keys, nothing, nothing
            case SessionWindows():
                plain, words = split_tail(raw_keys, np.dtype([("end", ">i8"), ("start", ">i8")]), self._name)
                return plain, words["start"].astype(np.int64), words["end"].astype(np.int64)
        plain, words = split_tail(raw_keys, np.dtype([("start", ">i8")]), self._name)
        start = words["start"].astype(np.int64)
        return plain, start, self._windows.end_of(start)

    def _rows(self, buffered: BufferValues) -> pa.RecordBatch:
        """As `statelib.operators.suppress.buffered_columns.to_store` gives them."""
        columns: dict[str, Any] = {
            "timestamp": pa.array(buffered.timestamp),
            "value": self._values(buffered.new),
            "headers": buffered.headers,
        }
        if "old" in self._schema.names:
            columns["prior"] = self._values(buffered.prior)
            columns["old"] = (
                self._values(buffered.old) if self._as_shipped else pa.nulls(len(buffered), columns["value"].type)
            )
        return pa.RecordBatch.from_arrays([columns[name] for name in self._schema.names], schema=self._schema)

    def _values(self, raws: pa.Array) -> pa.Array:
        return serde_for(self._schema.field("value").type).deserialize(raws)

    def _counted(self, raw_keys: Column, buffered: BufferValues) -> NDArray[np.int64]:
        """What each key counts, as `statelib.operators.suppress.operator` has it."""
        lengths = serialized_bytes(raw_keys) + serialized_bytes(self._values(buffered.new))
        if not self._as_shipped:
            return lengths
        lengths += BUFFER_TIME_BYTES + RECORD_CONTEXT_BYTES
        lengths += serialized_bytes(buffered.topic) + kafka_header_sizes(buffered.headers)
        if "old" not in self._schema.names:
            return lengths
        prior, old = (serialized_bytes(self._values(raws)) for raws in (buffered.prior, buffered.old))
        is_other = np.array(
            [a != b for a, b in zip(buffered.prior.to_pylist(), buffered.old.to_pylist(), strict=True)], np.bool_
        )
        return lengths + prior + np.where(is_other, old, 0)
