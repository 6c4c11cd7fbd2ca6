"""The records that make readers of a sink right, who have read what the job wrote before.

Of a sink that a table's stream goes to, a correction is the newest value of a key: readers keep that anyway. A key that
should not be there gets a tombstone.

Of any other sink each record stands for itself, so one that should not be there is taken back by a record of its own:
with the same key and timestamp, no value, and a header `RETRACTS` that names the wrong one as
``<topic>/<partition>@<offset>``.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from statelib.columns.arrow_buffers import taken_rows
from statelib.comparison.differing_rows import PLACE
from statelib.comparison.sides import partition_of
from statelib.topics.schema import HEADERS, topic_schema
from statelib.topics.writer import PartitionWriter

if TYPE_CHECKING:
    from collections.abc import Mapping

    from statelib.comparison.matches import Way
    from statelib.comparison.sides import Side
    from statelib.storage import Storage
    from statelib.topics.files import ArchiveFile

RETRACTS = "hindstream-retracts"
"""The header of a record that takes another one back."""


class Corrections:
    """Collects the corrections of one sink; see `statelib.comparison.difference.DifferingRowsTaker`.

    They are held in memory: as many as there are rows that differ.

    Args:
        way: How the sink was compared: ``latest``, or ``set``.
        before: What the job has written.
        after: What it should have written.
    """

    def __init__(self, way: Way, before: Side, after: Side) -> None:
        self._way = way
        self._before = before
        self._after = after
        self._taken_back: list[pa.Table] = []
        self._added: list[pa.Table] = []

    def take(self, a: pa.Table | None, b: pa.Table | None) -> None:
        """Rows as they were, and as they should be."""
        if a is not None and (self._way == "set" or b is None):
            self._taken_back.append(a)
        if b is not None:
            self._added.append(b)

    def write(
        self, storage: Storage, topic: str, next_offsets: Mapping[int, int], attempts: Mapping[int, str]
    ) -> list[ArchiveFile]:
        """Writes them behind what the sink has: in each partition first what is taken back, then what is right.

        They are in the order in which the job, or its fork, has written the rows.

        Args:
            storage: The topic's folder.
            topic: The topic, for messages.
            next_offsets: By partition, the offset of the next record; 0 where one is missing.
            attempts: By partition, how files are named.

        Returns:
            The files, by partition.
        """
        parts: dict[int, list[pa.RecordBatch]] = defaultdict(list)
        for table in (self._retractions(), self._records()):
            if table is None:
                continue
            partitions = partition_of(table.column(PLACE).to_numpy())
            rows = table.drop_columns(PLACE).combine_chunks().to_batches()[0]
            for partition in np.unique(partitions).tolist():
                parts[partition].append(taken_rows(rows, np.flatnonzero(partitions == partition)))
        files: list[ArchiveFile] = []
        for partition, batches in sorted(parts.items()):
            schema = topic_schema(self._after.key, self._after.value)
            offset = next_offsets.get(partition, 0)
            with PartitionWriter(storage, schema, partition, attempt=attempts[partition], topic=topic) as writer:
                for batch in batches:
                    offsets = pa.array(np.arange(offset, offset + len(batch)))
                    writer.write(batch.append_column("offset", offsets))
                    offset += len(batch)
                files += writer.close()
        return files

    def _retractions(self) -> pa.Table | None:
        """Of what should not be there."""
        rows = _in_order(self._taken_back)
        if rows is None:
            return None
        headers = pa.nulls(len(rows), HEADERS) if self._way == "latest" else self._names_of(rows)
        columns = {
            "key": rows.column("key"),
            "value": pa.nulls(len(rows), self._after.value),
            "timestamp": rows.column("timestamp"),
            "headers": headers,
            PLACE: rows.column(PLACE),
        }
        return pa.table(columns)

    def _names_of(self, rows: pa.Table) -> pa.Array:
        """Headers that name some rows of the job."""
        headers = []
        for place in rows.column(PLACE).to_pylist():
            at = self._before.place_of(place)
            name = f"{at['topic']}/{at['partition']}@{at['offset']}"
            headers.append([{"key": RETRACTS, "value": name.encode()}])
        return pa.array(headers, HEADERS)

    def _records(self) -> pa.Table | None:
        """What should be there."""
        rows = _in_order(self._added)
        return None if rows is None else rows.select(["key", "value", "timestamp", "headers", PLACE])


def _in_order(tables: list[pa.Table]) -> pa.Table | None:
    """All rows in the order of their places; None: there are none."""
    if not tables:
        return None
    rows = pa.concat_tables(tables)
    return rows.take(pa.array(np.argsort(rows.column(PLACE).to_numpy())))
