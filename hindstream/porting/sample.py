"""The records by which a port is proved: those of a job's sources, in the order in which one task would take them up.

All partitions of a topic become one. The order is that of `statelib.task.merge`: by order time, of equal ones the topic
that was declared first, of one topic the lower partition. So no record is later than it was in its own partition.
Global tables, which are complete at the start, come before everything else.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from statelib.columns.stream_time import running_stream_time
from statelib.commits.archives import open_archive
from statelib.errors.kinds import InputError
from statelib.records.batch import NO_TIMESTAMP
from statelib.records.key_column import KeyColumn
from statelib.task.merge import merge
from statelib.task.source_records import HEADERS_TYPE, Records
from statelib.task.timestamps import extracted
from statelib.topology import Source

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from statelib.records.key_sample import KeySample
    from statelib.storage import Storage
    from statelib.topics.archive import TopicArchive
    from statelib.topology import Topology

RECORDS = 100_000
"""How many are taken if nobody says."""

_BATCH_ROWS = 8_192


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which records.

    Attributes:
        records: At most so many, the first ones. Global tables that are complete at the start come whole.
        since_ms: Those whose order time is not before this; None: all.
        until_ms: Those whose order time is before this; None: all.
        keys: Those of some keys; None: of all.
    """

    records: int = RECORDS
    since_ms: int | None = None
    until_ms: int | None = None
    keys: KeySample | None = None


@dataclass(frozen=True, slots=True)
class Sample:
    """See the module's docstring. A record's *place* is its number in the order.

    Attributes:
        topics: The sources, as declared.
        schemas: Of their archives.
        tables: Of each the records: ``key``, ``value``, ``timestamp``, ``headers``, ``partition``, ``offset``.
        topic: int64, by place: the number of its topic.
        row: int64, by place: its row there.
        order_time: int64 ms, by place; of global tables that are complete at the start, `NO_TIMESTAMP`.
        left_out: Whether there are more.
    """

    topics: tuple[str, ...]
    schemas: tuple[pa.Schema, ...]
    tables: tuple[pa.Table, ...]
    topic: NDArray[np.int64]
    row: NDArray[np.int64]
    order_time: NDArray[np.int64]
    left_out: bool

    def __len__(self) -> int:
        return len(self.topic)

    def records(self, places: NDArray[np.int64]) -> dict[str, pa.Table]:
        """By topic those at some places, which ascend."""
        topic, row = self.topic[places], self.row[places]
        return {name: self.tables[n].take(pa.array(row[topic == n])) for n, name in enumerate(self.topics)}

    def at(self, place: int) -> dict[str, object]:
        """Where a record is."""
        topic = int(self.topic[place])
        row = self.tables[topic].slice(int(self.row[place]), 1)
        return {"topic": self.topics[topic], **{name: row[name][0].as_py() for name in ("partition", "offset")}}


def read_sample(topology: Topology, warehouse: Storage, wanted: Wanted) -> Sample:
    """Reads the records of a job's sources.

    Raises:
        ConfigurationError: A source has no archive.
        InputError: There is no such record.
    """
    reader = _Reader(topology, warehouse, wanted)
    rows, left_out = reader.rows()
    if not rows:
        step = "archive the job's sources first (hindstream topics lists what is there), or ask for others"
        raise InputError("the sources have no such record", topics=", ".join(topology.source_topics), next_step=step)
    return reader.sample(rows, left_out=left_out)


class _Reader:
    def __init__(self, topology: Topology, warehouse: Storage, wanted: Wanted) -> None:
        sources = {node.topic: node for node in topology.nodes if isinstance(node, Source) and not node.internal}
        self._sources = [sources[topic] for topic in topology.source_topics]
        self._archives = [open_archive(warehouse, source.topic) for source in self._sources]
        self._wanted = wanted

    def rows(self) -> tuple[list[tuple[int, int, Records]], bool]:
        """Runs of records in their order, each with its topic and partition; and whether there are more."""
        taken: list[tuple[int, int, Records]] = []
        left, left_out = self._wanted.records, False
        for is_bootstrap in (True, False):
            chosen = [n for n, source in enumerate(self._sources) if (source.reading == "bootstrap") == is_bootstrap]
            places = [(n, partition) for n in chosen for partition in range(self._archives[n].partitions)]
            for merged in merge([self._partition(n, partition) for n, partition in places]):
                part, rest = (merged, ()) if is_bootstrap else merged.cut(min(left, len(merged)))
                taken += _in_order(places, [*zip(part.parts, part.rank, strict=True)])
                left, left_out = left if is_bootstrap else left - len(part), len(rest) > 0
                if left_out:
                    break
        return taken, left_out

    def sample(self, taken: Sequence[tuple[int, int, Records]], *, left_out: bool) -> Sample:
        tables, rows = [], np.zeros(sum(len(records) for _, _, records in taken), np.int64)
        topic = np.concatenate([np.full(len(records), n, np.int64) for n, _, records in taken])
        order_time = np.concatenate([records.order_time for _, _, records in taken])
        for number, archive in enumerate(self._archives):
            of_topic = [(partition, records) for n, partition, records in taken if n == number]
            tables.append(_table(archive, of_topic))
            rows[topic == number] = np.arange(tables[-1].num_rows)
        names = tuple(source.topic for source in self._sources)
        schemas = tuple(archive.schema for archive in self._archives)
        return Sample(names, schemas, tuple(tables), topic, rows, order_time, left_out)

    def _partition(self, number: int, partition: int) -> Iterator[Records]:
        """The records of a partition that are wanted, with their order times."""
        source, wanted, partition_time = self._sources[number], self._wanted, NO_TIMESTAMP
        is_bootstrap = source.reading == "bootstrap"
        for batch in self._archives[number].reader(partition, batch_rows=_BATCH_ROWS):
            order_time = running_stream_time(_times(source, batch, partition, partition_time), partition_time)
            partition_time = int(order_time[-1])
            chosen = np.ones(len(batch), np.bool_)
            if not is_bootstrap:
                chosen &= order_time >= (NO_TIMESTAMP if wanted.since_ms is None else wanted.since_ms)
                if wanted.until_ms is not None:
                    chosen &= order_time < wanted.until_ms
                if wanted.keys is not None and not source.is_global:
                    chosen &= wanted.keys.has(KeyColumn(batch.column("key")))
            rows = batch.filter(pa.array(chosen))
            yield Records(
                KeyColumn(rows.column("key")),
                rows.column("value"),
                rows.column("timestamp").cast(pa.int64()).to_numpy(zero_copy_only=False),
                rows.column("offset").to_numpy(),
                _headers(rows),
                np.full(len(rows), NO_TIMESTAMP, np.int64) if is_bootstrap else order_time[chosen],
            )
            if not is_bootstrap and wanted.until_ms is not None and partition_time >= wanted.until_ms:
                return


def _in_order(
    places: Sequence[tuple[int, int]], runs: Sequence[tuple[Records | None, NDArray[np.int64]]]
) -> Iterator[tuple[int, int, Records]]:
    """Merged records, cut into runs of one partition each."""
    count = sum(len(rank) for _, rank in runs)
    of, row = np.empty(count, np.int64), np.empty(count, np.int64)
    for number, (_, rank) in enumerate(runs):
        of[rank], row[rank] = number, np.arange(len(rank))
    begins = np.flatnonzero(np.diff(of, prepend=-1))
    for begin, end in zip(begins.tolist(), [*begins[1:].tolist(), count], strict=True):
        number = int(of[begin])
        records = runs[number][0]
        if records is not None:
            yield *places[number], records.slice(int(row[begin]), int(row[end - 1]) + 1)


def _table(archive: TopicArchive, runs: Sequence[tuple[int, Records]]) -> pa.Table:
    schema = pa.schema([
        *(archive.schema.field(name) for name in ("key", "value", "timestamp", "headers")),
        ("partition", pa.int64()),
        ("offset", pa.int64()),
    ])  # fmt: skip
    batches = [
        pa.RecordBatch.from_arrays(
            [
                records.keys.plain.cast(schema.field("key").type),
                records.value.cast(schema.field("value").type),
                pa.array(records.timestamp).cast(schema.field("timestamp").type),
                records.headers,
                pa.array(np.full(len(records), partition, np.int64)),
                pa.array(records.offset),
            ],
            schema=schema,
        )
        for partition, records in runs
    ]
    return pa.Table.from_batches(batches, schema)


def _headers(batch: pa.RecordBatch) -> pa.Array:
    return batch.column("headers") if "headers" in batch.schema.names else pa.nulls(len(batch), HEADERS_TYPE)


def _times(source: Source, batch: pa.RecordBatch, partition: int, partition_time: int) -> NDArray[np.int64]:
    """By which the job orders them; `NO_TIMESTAMP` where there is none."""
    if source.reading == "bootstrap" or source.consumed.timestamp_extractor.mapper is None:
        times: NDArray[np.int64] = batch.column("timestamp").cast(pa.int64()).fill_null(NO_TIMESTAMP).to_numpy()
        return times
    names = ("key", "value", "timestamp", "offset")
    columns = {name: batch.column(name) for name in names} | {"headers": _headers(batch)}
    for name, serde in (("key", source.consumed.key_serde), ("value", source.consumed.value_serde)):
        if serde is not None:
            columns[name] = serde.deserialize_lenient(columns[name]).values
    decoded = pa.RecordBatch.from_pydict(columns)
    return extracted(source, decoded, partition=partition, partition_time=partition_time).times
