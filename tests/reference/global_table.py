"""A global table and its join with a stream, a record at a time (``KStreamGlobalKTableJoin``)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from tests.reference.stream_table_join import VersionedTable
from tests.reference.table import PlainTable


class Row(NamedTuple):
    """A record of one partition of a topic."""

    key: Any
    value: Any
    timestamp: int


def ordered(partitions: Sequence[Sequence[Row]]) -> Iterator[tuple[int, int, Row]]:
    """(Order time, partition, record), merged: by the largest timestamp of the partition so far."""
    rows = []
    for partition, records in enumerate(partitions):
        running = -1
        for record in records:
            running = max(running, record.timestamp)
            rows.append((running, partition, record))
    yield from sorted(rows, key=lambda row: row[:2])


def joined(
    stream: Iterable[tuple[int, Row]],
    partitions: Sequence[Sequence[Row]],
    history_retention_ms: int | None,
    *,
    left: bool,
) -> list[tuple[Any, Any, Any, int]]:
    """(Record's key, its value, the table's, timestamp) of what comes out; a record's value names the table's key.

    Args:
        stream: The records of one partition with their order times, in order.
        partitions: The table's topic.
        history_retention_ms: None: the table is plain, and complete from the beginning.
        left: Whether records without a match go on.
    """
    table: Any = PlainTable() if history_retention_ms is None else VersionedTable(history_retention_ms)
    updates = list(ordered(partitions))
    out = []
    for order_time, record in stream:
        while updates and (history_retention_ms is None or updates[0][0] <= order_time):
            _, _, update = updates.pop(0)
            if update.key is not None:
                table.put(update.key, update.value, update.timestamp)
        if record.value is None:
            continue
        as_of = () if history_retention_ms is None else (record.timestamp,)
        found = None if record.value["place"] is None else table.get(record.value["place"], *as_of)
        if left or found is not None:
            out.append((record.key, record.value["n"], found, record.timestamp))
    return out
