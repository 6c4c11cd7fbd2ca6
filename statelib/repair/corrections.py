"""The records that make readers of a sink right, who have read what the job wrote before.

Of a sink that a table's stream goes to, a correction is the newest value of a key: readers keep that anyway. A key that
should not be there gets a tombstone.

Of any other sink each record stands for itself, so one that should not be there is taken back by a record of its own:
with the same key and timestamp, no value, and a header `RETRACTS` that names the wrong one as
``<topic>/<partition>@<offset>``. Where what differs is a record together with one that took it back, that is nothing
for readers.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from statelib.columns.arrow_buffers import taken_rows
from statelib.comparison.differing_rows import PLACE
from statelib.comparison.sides import partition_of
from statelib.errors.kinds import ConfigurationError
from statelib.topics.parquet.schema import HEADERS, topic_schema
from statelib.topics.parquet.writer import PartitionWriter

if TYPE_CHECKING:
    from collections.abc import Mapping

    from statelib.comparison.matches import Way
    from statelib.comparison.sides import Side
    from statelib.storage import Storage
    from statelib.topics.files import ArchiveFile

RETRACTS = "hindstream-retracts"
"""The header of a record that takes another one back."""

_COLUMNS = ("key", "value", "timestamp", "headers")


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

    def parts(self) -> dict[int, list[pa.RecordBatch]]:
        """By partition the corrections: first what is taken back, then what is right.

        They are in the order in which the job, or its fork, has written the rows.
        """
        parts: dict[int, list[pa.RecordBatch]] = defaultdict(list)
        for table in (self._retractions(), self._records()):
            if table is None:
                continue
            partitions = partition_of(table.column(PLACE).to_numpy())
            rows = table.drop_columns(PLACE).combine_chunks().to_batches()[0]
            for partition in np.unique(partitions).tolist():
                parts[partition].append(taken_rows(rows, np.flatnonzero(partitions == partition)))
        return dict(parts)

    def write(
        self, storage: Storage, topic: str, next_offsets: Mapping[int, int], attempts: Mapping[int, str]
    ) -> list[ArchiveFile]:
        """Writes them behind what the sink has.

        Args:
            storage: The topic's folder.
            topic: The topic, for messages.
            next_offsets: By partition, the offset of the next record; 0 where one is missing.
            attempts: By partition, how files are named.

        Returns:
            The files, by partition.
        """
        files: list[ArchiveFile] = []
        for partition, batches in sorted(self.parts().items()):
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
        if rows is not None:
            rows, others = _without_settled(rows, self._before)
            if others:
                raise ConfigurationError(
                    f"readers were told that {others[0]} is taken back, and now it would have to come back",
                    next_step="correct what an earlier repair has corrected here, too: its file, or an interval with"
                    " both; or first take that repair back: hindstream state rollback",
                )
        if rows is None or not len(rows):
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
        places = rows.column(PLACE).to_pylist()
        return pa.array([[{"key": RETRACTS, "value": _name(self._before, place)}] for place in places], HEADERS)

    def _records(self) -> pa.Table | None:
        """What should be there."""
        rows = _in_order(self._added)
        if rows is not None:
            rows, _ = _without_settled(rows, self._after)
        return None if rows is None or not len(rows) else rows.select([*_COLUMNS, PLACE])


def _name(side: Side, place: int) -> bytes:
    """What a retraction calls a record."""
    at = side.place_of(place)
    return f"{at['topic']}/{at['partition']}@{at['offset']}".encode()


def _without_settled(rows: pa.Table, side: Side) -> tuple[pa.Table, list[str]]:
    """Leaves out records together with those that take them back; and the names of those taken back that are not here.

    A job that has been repaired has such pairs; one that was never wrong has neither.
    """
    named: dict[bytes, int] = {}
    for row, headers in enumerate(rows.column("headers").to_pylist()):
        named |= {header["value"]: row for header in headers or () if header["key"] == RETRACTS}
    if not named:
        return rows, []
    at = {_name(side, place): row for row, place in enumerate(rows.column(PLACE).to_pylist())}
    settled = [row for name in named.keys() & at.keys() for row in (named[name], at[name])]
    kept = np.setdiff1d(np.arange(len(rows)), settled)
    return rows.take(pa.array(kept)), sorted(name.decode() for name in named.keys() - at.keys())


def _in_order(tables: list[pa.Table]) -> pa.Table | None:
    """All rows in the order of their places; None: there are none."""
    if not tables:
        return None
    rows = pa.concat_tables(tables)
    return rows.take(pa.array(np.argsort(rows.column(PLACE).to_numpy())))
