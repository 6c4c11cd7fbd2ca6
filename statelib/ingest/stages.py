"""The two stages of a load, as those of a run of a job: functions of what they are given, whoever runs them.

*Sort*: tasks of some files each read rows, make records of them, and write sorted runs. *Merge*: a task for each
partition merges the runs into the archive's files, which nobody sees yet. Here or on Spark, the records are the same.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from statelib.errors.kinds import HindstreamError, InputError
from statelib.ingest.bad_rows import BadRows, bad_row_runs
from statelib.ingest.ledger import IngestedFile
from statelib.ingest.merge import write_partition
from statelib.ingest.runs import RunWriter
from statelib.ingest.sources.content import content_of
from statelib.ingest.sources.find import check_unchanged
from statelib.ingest.values.types import united_text
from statelib.topics.parquet.writer import PartitionWriter

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from statelib.ingest.formats.rows import BadRow, Rows
    from statelib.ingest.plan import LoadPlan
    from statelib.ingest.records import RecordShape
    from statelib.ingest.runs import Run
    from statelib.ingest.sources.files import SourceFile
    from statelib.storage import Storage
    from statelib.topics.files import ArchiveFile

_PARTS_OF_BUDGET = 4
"""Part of the budget that holds records: sorting them takes as much again, and so does what is read meanwhile."""

Progress = Callable[[int, int], None]
"""Told how many records have been read, and how many bytes of files these were, since it was told last."""


def no_progress(records: int, size_bytes: int) -> None:
    """Where nobody wants to know."""


@dataclass(frozen=True, slots=True)
class SortedFiles:
    """What a task of the first stage has made: travels back to the driver.

    Attributes:
        runs: In the order of arrival.
        files: An account of each of its files.
        values: By path, the type of the file's values.
        bad_rows: Runs of the rows that go to the quarantine.
    """

    runs: tuple[Run, ...]
    files: tuple[IngestedFile, ...]
    values: tuple[tuple[str, pa.DataType], ...]
    bad_rows: tuple[Run, ...]


@dataclass(frozen=True, slots=True)
class SortFiles:
    """The first stage: reads some files, and writes sorted runs.

    Attributes:
        plan: The load's.
        spill: Where runs are put that do not fit into memory.
        budget_bytes: What may be held in memory.
        in_memory: Whether the last run may stay there.
        sets_apart: Whether bad rows go to the quarantine; else the first one ends the load.
        now_ms: The wall clock.
    """

    plan: LoadPlan
    spill: Storage
    budget_bytes: int
    in_memory: bool
    sets_apart: bool
    now_ms: int

    def __call__(self, files: Sequence[SourceFile], attempt: str, progress: Progress) -> SortedFiles:
        """Does it.

        Args:
            files: Neighbours in the order of all files.
            attempt: Unique to this attempt at this task.
            progress: Is told what was read.

        Raises:
            InputError: A row cannot be loaded, and is not to be set apart; or a file cannot be read.
            RetryableError: A file has changed meanwhile, or a store did not answer.
        """
        shape = self.plan.shape
        apart = bad_row_runs(self.spill, attempt) if self.sets_apart else None
        bad_rows = BadRows(self.plan.topic.archive_name, apart, self.now_ms)
        runs = RunWriter(self.spill, attempt, self.budget_bytes // _PARTS_OF_BUDGET, is_sorted=shape.order != "arrival")
        accounts: list[IngestedFile] = []
        values: dict[str, pa.DataType] = {}
        for file in files:
            count, bad = 0, 0
            value: pa.DataType = pa.null()
            for rows in self.plan.reader.rows(file, shape.columns()):
                records, unusable = records_in(shape, rows, file)
                bad += bad_rows.add(file, [*rows.bad, *unusable])
                if records.num_rows:
                    value = united_text(value, records.schema.field("value").type, "value")
                runs.add(records)
                count += records.num_rows
                progress(records.num_rows, 0)
            content = content_of(file)
            check_unchanged(file, self.plan.reader.files.options)
            values[file.path] = value
            kept = {"path": file.path, "size_bytes": file.size_bytes, "version": file.version}
            accounts.append(IngestedFile(**kept, content=content, records=count, bad_rows=bad))
            progress(0, file.size_bytes)
        made = runs.finish(in_memory=self.in_memory)
        apart_runs = bad_rows.finish(in_memory=self.in_memory)
        return SortedFiles(tuple(made), tuple(accounts), tuple(values.items()), apart_runs)


def records_in(shape: RecordShape, rows: Rows, file: SourceFile) -> tuple[pa.RecordBatch, list[BadRow]]:
    """The records of rows of a file, and the rows that are none.

    Raises:
        HindstreamError: As `RecordShape.records`; it names the file.
        InputError: Values do not fit.
    """
    try:
        return shape.records(rows)
    except HindstreamError as error:
        raise error.placed(file=file.path) from error
    except pa.ArrowException as error:
        step = "declare the field's type (--type), or load the file into another topic"
        raise InputError(
            f"values do not fit the type of their field: {error}", file=file.path, next_step=step
        ) from error


@dataclass(frozen=True, slots=True)
class MergePartition:
    """The second stage: merges the runs of a partition into files of the archive, which nobody sees yet.

    Attributes:
        runs: All of the load.
        schema: The archive's columns.
        storage: Rooted at the archive.
        topic: The archive's name.
        starts: By partition, the offset of its next record.
        stream_times_ms: By partition, the largest timestamp there, where records have the offsets that files tell;
            None: records get new offsets.
    """

    runs: tuple[Run, ...]
    schema: pa.Schema
    storage: Storage
    topic: str
    starts: Mapping[int, int]
    stream_times_ms: Mapping[int, int | None] | None

    def __call__(self, partition: int, attempt: str) -> tuple[ArchiveFile, ...]:
        """Does it; ``attempt`` is unique to this attempt.

        Raises:
            InputError: A value does not fit.
        """
        with PartitionWriter(self.storage, self.schema, partition, attempt=attempt, topic=self.topic) as writer:
            value = self.schema.field("value").type
            start = self.starts[partition]
            keeps = self.stream_times_ms is not None
            time_ms = (self.stream_times_ms or {}).get(partition)
            write_partition(self.runs, partition, writer, value, start, keeps_offsets=keeps, stream_time_ms=time_ms)
            return writer.close()
