"""The complete, compacted changelog from which a live Kafka Streams application would restore a store at any commit.

It holds, byte for byte, the last record of each key that the application itself would have sent (Kafka Streams 4.3;
exceptions: ``docs/decisions/0020-exported-changelogs.md``): keys and values in the application's bytes
(`StoreFormat`), timestamps, headers. Each task's part of the store becomes the partition of the same number. Only the
commit's state is needed, whether or not the store itself writes a changelog.

===================  ===================================================================================================
kind of store        records, one for each
===================  ===================================================================================================
key-value            key: key, value, the value's timestamp
versioned            version within the history retention, and latest value: key, value or null, timestamp; by time
window               window within retention: key, start i64, 0 i32; value; timestamp
session              session within retention: key, end i64, start i64; value; its end as the timestamp
suppression-buffer   update that is held back: `statelib.described.buffer_value_codec`; no timestamp; header ``v``
join-buffer          record that waits: `statelib.operators.joins.stream_table.changelog`; no timestamp
join-window          record of a side: key, timestamp i64, sequence i32; value; timestamp
held-records         key, side and time of what waits for a match; that time
                     (`statelib.operators.joins.stream_stream.held_lists`)
subscriptions        referring row: `statelib.operators.joins.foreign_key.subscription_wrapper`
===================  ===================================================================================================

Windows and sessions come in the store's order, but the oldest one last: see `oldest_last`. Kafka Streams has no
equivalent of the other kinds, which are refused.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from statelib.changelog.kinds import KINDS
from statelib.described.buffer_value_codec import HEADERS_TYPE
from statelib.described.exporting import Share
from statelib.described.headers import HeadersExporter, has_headers
from statelib.described.live_format import StoreFormat
from statelib.errors.kinds import ConfigurationError
from statelib.topics.partitioner import partition_for

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from statelib.described.description import Described
    from statelib.described.exporting import Exporter, Records
    from statelib.snapshots.store import StoreSnapshot

RECORDS = pa.schema(
    [("key", pa.binary()), ("value", pa.binary()), ("timestamp", pa.int64()), ("headers", HEADERS_TYPE)]
)
"""Of exported changelogs: value null: a deletion; timestamp in ms, null: Kafka Streams sends none."""

AS_KAFKA = StoreFormat()

_EXPIRING = ("window", "session", "join-window")
"""Kinds of stores that let go by time."""

_NO_FORM = {
    "deduplication": "Kafka Streams has no deduplication (KIP-655 never came), so nobody knows the form of yours: read"
    " the store with hindstream.open_state(...), and write what your processor's store holds",
    "foreign-key-answers": "leave it out: Kafka Streams has no such store",
    "punctuation": "leave it out: Kafka Streams forgets what is scheduled, and its processors schedule it anew",
}


def export_changelog(store: StoreSnapshot, partition: int, form: StoreFormat = AS_KAFKA) -> Iterator[pa.RecordBatch]:
    """The records from which a live application restores one partition of a store.

    ::

        with hindstream.open_state("warehouse", "flight-delays", "delays") as store:
            for partition in store.partitions:
                for records in export_changelog(store, partition, StoreFormat(value=JsonSerde(...))):
                    ...  # Arrow: key, value, timestamp, headers; produced to <application.id>-delays-changelog

    Args:
        store: A store at a commit (`hindstream.open_state`).
        partition: One of `StoreSnapshot.partitions`; also the partition of the changelog topic.
        form: How the application writes keys and values.

    Returns:
        Batches with the columns of `RECORDS`, some thousand records each, to be produced in this order. The same commit
        gives the same records in the same order, whatever slices, batches and memory it was made with.

    Raises:
        ConfigurationError: Kafka Streams has no equivalent of this kind of store; or Kafka has no serde for keys or
            values, and none is declared. While the records are read: a key belongs to another partition.
        InputError: While the records are read: the declared serde cannot write a value.
        CorruptedDataError: While the records are read: a file of the state is missing or damaged.
    """
    described = store.described
    if partition not in store.partitions:
        raise ConfigurationError(
            f"there is no partition {partition}", store=store.name, next_step=f"one of: {list(store.partitions)}"
        )
    return _records(store, partition, exporter_of(described, form), form)


def exporter_of(described: Described, form: StoreFormat = AS_KAFKA) -> Exporter:
    """What exports a store.

    Raises:
        ConfigurationError: As of `export_changelog`.
    """
    kind = KINDS.get(described.store.kind)
    if kind is None or kind.exporter is None:
        raise ConfigurationError(
            f"Kafka Streams has no changelog for a {described.store.kind} store",
            store=described.name,
            next_step=_NO_FORM.get(described.store.kind, "leave it out"),
        )
    if described.is_global:
        raise ConfigurationError(
            "a global table has no changelog: an application restores it from its topic",
            store=described.name,
            next_step="leave it out",
        )
    if has_headers(described.settings):
        return HeadersExporter(kind.exporter, described, form)
    return kind.exporter(described, form)


def _records(store: StoreSnapshot, partition: int, exporter: Exporter, form: StoreFormat) -> Iterator[pa.RecordBatch]:
    checked = form.placed_by_key and not store.described.is_of_processor
    with store.opened(partition) as place, store.scratch() as scratch:

        def batches() -> Iterator[pa.RecordBatch]:
            for records in exporter.records(Share(place, partition, scratch)):
                if checked:
                    _check_places(records, partition, len(store.partitions), store.name)
                if len(records.keys):
                    yield as_batch(records)

        yield from oldest_last(batches()) if store.kind in _EXPIRING else batches()


def oldest_last(records: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The same records, but the first of those with the smallest timestamp comes last.

    Kafka Streams 4.4 restores windows and sessions from the first record on that is not older than the last one less
    the retention (``StoreChangelogReader.seekNewPartitions``): it would leave out windows that the store keeps, which
    goes by their starts. Like this it restores all, as earlier versions do.
    """
    held: pa.RecordBatch | None = None
    for batch in records:
        one = batch if held is None else pa.concat_batches([held, batch])
        timestamp = one["timestamp"].to_numpy()
        is_oldest = np.append(True, timestamp[1:] < np.minimum.accumulate(timestamp)[:-1])  # of all up to it
        oldest = np.maximum.accumulate(np.where(is_oldest, np.arange(len(timestamp)), 0))
        if len(one) > 1:
            yield one.take(pa.array(np.where(is_oldest[1:], oldest[:-1], np.arange(1, len(timestamp)))))
        held = one.slice(int(oldest[-1]), 1)
    if held is not None:
        yield held


def as_batch(records: Records) -> pa.RecordBatch:
    """Records with the columns of `RECORDS`."""
    count = len(records.keys)
    timestamp = pa.nulls(count, pa.int64()) if records.timestamp is None else pa.array(records.timestamp, pa.int64())
    headers = pa.nulls(count, HEADERS_TYPE) if records.headers is None else records.headers
    columns = [records.keys.cast(pa.binary()), records.values.cast(pa.binary()), timestamp, headers]
    return pa.RecordBatch.from_arrays(columns, schema=RECORDS)


def _check_places(records: Records, partition: int, partitions: int, store: str) -> None:
    places = partition_for(records.placed_by, partitions)
    elsewhere = np.flatnonzero(places != partition)
    if len(elsewhere):
        first = int(elsewhere[0])
        raise ConfigurationError(
            f"the key {records.placed_by[first].as_py()!r}, as the application writes it, belongs to partition"
            f" {places[first]} of {partitions}, where the application will look for it",
            store=store,
            partition=partition,
            next_step="name the serde with which the application's topics are keyed: StoreFormat(key=...), or, if it"
            " has a partitioner of its own, StoreFormat(placed_by_key=False)",
        )
