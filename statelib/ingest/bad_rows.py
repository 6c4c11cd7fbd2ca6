"""Rows that cannot become records: the load ends at the first one, or they go to the quarantine topic."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from statelib.commits.archives import open_archive_if_present
from statelib.commits.layout import quarantine_topic, topic_path
from statelib.errors.kinds import InputError
from statelib.ingest.ledger import LOADS
from statelib.ingest.merge import write_partition
from statelib.ingest.records import PARTITION
from statelib.ingest.runs import RunWriter
from statelib.topics.archive import TopicArchive
from statelib.topics.orphaned_files import delete_passed
from statelib.topics.parquet.schema import HEADERS
from statelib.topics.parquet.writer import PartitionWriter
from statelib.topics.quarantined import QUARANTINE_SCHEMA, VALUE_TYPE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from statelib.ingest.formats.rows import BadRow
    from statelib.ingest.ledger import Ingest
    from statelib.ingest.runs import Run
    from statelib.ingest.sources.files import SourceFile
    from statelib.storage import Storage
    from statelib.topics.files import ArchiveFile

_MEMORY_BYTES = 16 << 20


class BadRows:
    """Collects rows that cannot become records.

    Args:
        topic: The topic that they are not in.
        runs: Takes them; None: the first one ends the load.
        now_ms: Their timestamp as quarantined records.
    """

    def __init__(self, topic: str, runs: RunWriter | None, now_ms: int) -> None:
        self._topic = topic
        self._runs = runs
        self._now_ms = now_ms

    def add(self, file: SourceFile, rows: Sequence[BadRow]) -> int:
        """Takes rows of a file, and gives their number.

        Raises:
            InputError: They are not to be set apart.
        """
        if not rows:
            return 0
        if self._runs is None:
            first = min(rows, key=lambda row: row.row)
            place = {"file": file.path, "row": first.row, "field": first.field or None, "topic": self._topic}
            step = "correct the row, or set it and its like apart: --on-bad-record quarantine"
            raise InputError(f"a row cannot become a record: {first.reason}", **place, next_step=step)
        self._runs.add(self._quarantined(file, sorted(rows, key=lambda row: row.row)))
        return len(rows)

    def _quarantined(self, file: SourceFile, rows: Sequence[BadRow]) -> pa.RecordBatch:
        count = len(rows)
        values = [
            {"topic": self._topic, **_place(file, row), "timestamp": None, "reason": _reason(row), "value": row.raw}
            for row in rows
        ]
        headers = [
            [
                {"key": "file", "value": file.path.encode()},
                {"key": "row", "value": str(row.row).encode()},
                {"key": "field", "value": row.field.encode()},
            ]
            for row in rows
        ]
        columns = {
            PARTITION: pa.array(np.zeros(count, np.int32)),
            "key": pa.nulls(count, pa.binary()),
            "value": pa.array(values, VALUE_TYPE),
            "timestamp": pa.array(np.full(count, self._now_ms, np.int64)),
            "headers": pa.array(headers, HEADERS),
        }
        return pa.RecordBatch.from_pydict(columns)

    def finish(self, *, in_memory: bool) -> tuple[Run, ...]:
        """What was collected."""
        return () if self._runs is None else tuple(self._runs.finish(in_memory=in_memory))


def bad_row_runs(spill: Storage, attempt: str) -> RunWriter:
    """Takes bad rows, few of them in memory."""
    return RunWriter(spill, f"{attempt}.bad", _MEMORY_BYTES, is_sorted=False)


def _place(file: SourceFile, row: BadRow) -> dict[str, int | None]:
    if file.place is None:
        return {"partition": None, "offset": None}
    return {"partition": file.place.partition, "offset": file.place.first_offset + row.row - 1}


def _reason(row: BadRow) -> str:
    return f"{row.field}: {row.reason}" if row.field else row.reason


def stage_quarantined(warehouse: Storage, topic: str, runs: Sequence[Run], attempt: str) -> tuple[ArchiveFile, ...]:
    """Writes bad rows into files of the quarantine, which nobody sees yet."""
    if not runs:
        return ()
    name = quarantine_topic(topic)
    archive = open_archive_if_present(warehouse, name)
    start = archive.end_offsets()[0] if archive is not None else 0
    storage = warehouse.within(topic_path(name))
    with PartitionWriter(storage, QUARANTINE_SCHEMA, 0, attempt=attempt, topic=name) as writer:
        write_partition(runs, 0, writer, VALUE_TYPE, start)
        return writer.close()


def publish_quarantined(warehouse: Storage, load: Ingest, partitions: int) -> None:
    """Makes the rows of a load that has been committed part of the quarantine, once; makes that if there is none."""
    name = quarantine_topic(load.topic)
    archive = TopicArchive.ensure(
        warehouse.uri(topic_path(name)), QUARANTINE_SCHEMA, partitions, topic=name, options=warehouse.options
    )
    if archive.has_committed(LOADS, load.number):
        return
    archive.commit(load.quarantined, app_id=LOADS, app_version=load.number, modification_time_ms=load.made_at_ms)
    start, newest = archive.end_offsets()[0], archive.refresh()
    delete_passed(newest, {0: (start, newest.end_offsets()[0])})
