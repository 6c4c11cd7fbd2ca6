"""Loads new files into a topic archive, each once, in two stages as a run of a job has them.

*Sort*: tasks of some files each read rows, make records of them, and write sorted runs. *Merge*: a task for each
partition merges the runs into the archive's files. Then one Delta commit makes all of it part of the topic, together
with the account of the files (`statelib.ingest.ledger`). Until then nobody sees anything, and a load that was stopped
is begun anew by the same command.

Both stages are functions of what they are given, so whoever runs them, here or on Spark, gets the same records.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import pyarrow as pa

from statelib.commits.layout import topic_path
from statelib.errors.fault_points import step
from statelib.errors.kinds import ConfigurationError, FencedError, HindstreamError, InputError, RetryableError
from statelib.ingest.bad_rows import BadRows, bad_row_runs, publish_quarantined, stage_quarantined
from statelib.ingest.declared import declaration_of
from statelib.ingest.layouts import Gap, gaps_between
from statelib.ingest.ledger import Ingest, IngestedFile
from statelib.ingest.merge import write_partition
from statelib.ingest.plan import plan_load
from statelib.ingest.runs import RunWriter
from statelib.ingest.types import united_text
from statelib.topics.actions import OffsetsTakenError
from statelib.topics.archive import TopicArchive, topic_schema
from statelib.topics.orphaned_files import delete_passed
from statelib.topics.schema_changes import united
from statelib.topics.writer import PartitionWriter

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from statelib.ingest.formats.rows import BadRow, Rows
    from statelib.ingest.plan import LoadPlan
    from statelib.ingest.records import RecordShape
    from statelib.ingest.runs import Run
    from statelib.ingest.source_files import SourceFile
    from statelib.job.lake_topic import LakeTopic
    from statelib.storage import Storage
    from statelib.topics.files import ArchiveFile

_PARTS_OF_BUDGET = 4
"""Part of the budget that holds records: sorting them takes as much again, and so does what is read meanwhile."""

OnBadRow = Literal["fail", "quarantine"]
Progress = Callable[[int, int], None]
"""Told how many records have been read, and how many bytes of files these were, since it was told last."""


def no_progress(records: int, size_bytes: int) -> None:
    """Where nobody wants to know."""


@dataclass(frozen=True, slots=True)
class Loaded:
    """What a load came to.

    Attributes:
        topic: The archive's name.
        number: The load's; None: no file was new.
        files: The new files.
        known: How many files were loaded before.
        records: How many were added.
        bad_rows: How many rows went to the quarantine.
        timestamps: How timestamps were read, in words.
        min_timestamp_ms: Of the new records; None: there are none.
        max_timestamp_ms: The same.
        gaps: Offsets that no file has, where files tell offsets.
        schema: The archive's.
    """

    topic: str
    number: int | None
    files: tuple[IngestedFile, ...]
    known: int
    records: int
    bad_rows: int
    timestamps: str
    min_timestamp_ms: int | None
    max_timestamp_ms: int | None
    gaps: tuple[Gap, ...]
    schema: pa.Schema | None


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
                records, unusable = _placed(shape, rows, file)
                bad += bad_rows.add(file, [*rows.bad, *unusable])
                value = united_text(value, records.schema.field("value").type, "value")
                runs.add(records)
                count += records.num_rows
                progress(records.num_rows, 0)
            values[file.path] = value
            account = {"path": file.path, "size_bytes": file.size_bytes, "version": file.version}
            accounts.append(IngestedFile(**account, records=count, bad_rows=bad))
            progress(0, file.size_bytes)
        made = runs.finish(in_memory=self.in_memory)
        apart_runs = bad_rows.finish(in_memory=self.in_memory)
        return SortedFiles(tuple(made), tuple(accounts), tuple(values.items()), apart_runs)


def _placed(shape: RecordShape, rows: Rows, file: SourceFile) -> tuple[pa.RecordBatch, list[BadRow]]:
    """The records of rows, and the rows that are none; says of which file they are where that fails."""
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


@dataclass
class Load:
    """One load of one topic.

    Args:
        topic: What is asked for.
        warehouse: The warehouse.
        source_options: Of the object store that the files are in.
        on_bad_row: What becomes of rows that cannot be loaded.
        attempt: 15 hex digits that no other attempt has.
        now_ms: The wall clock.

    Raises:
        ConfigurationError: See `statelib.ingest.plan.plan_load`.
        InputError: The same.
        RetryableError: The same.
    """

    topic: LakeTopic
    warehouse: Storage
    source_options: Mapping[str, str]
    on_bad_row: OnBadRow
    attempt: str
    now_ms: int

    def __post_init__(self) -> None:
        self.plan, self._archive, self._ledger = plan_load(self.topic, self.warehouse, self.source_options)
        self._gaps: tuple[Gap, ...] = ()
        self._finish_former()

    @property
    def nothing(self) -> Loaded:
        """What a load comes to without a new file."""
        newest = self._ledger.newest
        schema = self._archive.schema if self._archive is not None else None
        timestamps = newest.timestamps if newest else ""
        return Loaded(
            self.topic.archive_name, None, (), len(self._ledger.files()), 0, 0, timestamps, None, None, (), schema
        )

    def sort_files(self, spill: Storage, budget_bytes: int, *, in_memory: bool) -> SortFiles:
        """The first stage."""
        assert self.plan is not None  # noqa: S101 - else there is nothing to do
        sets_apart = self.on_bad_row == "quarantine"
        return SortFiles(self.plan, spill, budget_bytes, in_memory, sets_apart, self.now_ms)

    def merge_partition(self, parts: Sequence[SortedFiles]) -> MergePartition:
        """The second stage, after the first; makes the archive, or gives it what the new records have more.

        Raises:
            ConfigurationError: A file does not go together with the others, or with the archive; it is named.
        """
        assert self.plan is not None  # noqa: S101 - else there is nothing to do
        self._gaps = self._checked_gaps(parts)
        before = self._archive.schema.field("value").type if self._archive is not None else None
        value: pa.DataType = pa.null() if before is None else before
        for path, type_ in (item for part in parts for item in part.values):
            try:
                value = united_text(value, type_, "value")
                if before is not None:
                    united(before, value)
            except ConfigurationError as error:
                raise error.placed(file=path) from None
        if pa.types.is_null(value):
            value = pa.string()
        name, shape = self.topic.archive_name, self.plan.shape
        self._archive = TopicArchive.ensure(
            self.warehouse.uri(topic_path(name)),
            topic_schema(shape.key_type, value),
            shape.partitions,
            topic=name,
            options=self.warehouse.options,
        )
        runs = tuple(run for part in parts for run in part.runs)
        archive = self._archive
        times_ms = _stream_times(archive) if shape.keeps_offsets else None
        return MergePartition(runs, archive.schema, archive.storage, name, archive.end_offsets(), times_ms)

    def _checked_gaps(self, parts: Sequence[SortedFiles]) -> tuple[Gap, ...]:
        assert self.plan is not None  # noqa: S101 - told by the caller
        if not self.plan.shape.keeps_offsets or self.plan.reader.layout != "connect":
            return ()
        ends = self._archive.end_offsets() if self._archive is not None else {}
        accounts = [account for part in parts for account in part.files]
        former = list(self._ledger.files().values())
        return gaps_between(self.plan.files, accounts, former, {p: end for p, end in ends.items() if end})

    def commit(self, parts: Sequence[SortedFiles], files: Sequence[ArchiveFile]) -> Loaded:
        """Makes the files part of the topic, and deletes what loads that were stopped have left.

        Raises:
            FencedError: Another load of the topic was quicker; nothing of this one counts.
            RetryableError: Another program has added to the topic at the same time, or the store did not answer.
        """
        assert self.plan is not None  # noqa: S101 - else there is nothing to do
        assert self._archive is not None  # noqa: S101 - `merge_partition` made it
        load = self._account(parts)
        step("ingest.before-account")
        self._ledger.write(load)
        step("ingest.accounted")
        starts = self._archive.end_offsets()
        moves, also = self._ledger.moves(self.attempt)
        try:
            self._archive.append_at(files, moves, also=also, time_ms=self.now_ms)
        except (OffsetsTakenError, FencedError) as error:
            self._archive.storage.delete([file.path for file in files])
            if isinstance(error, FencedError):
                raise
            what = "another program has added to the topic at the same time"
            raise RetryableError(what, topic=self.topic.name, next_step="run the same command again") from error
        step("ingest.committed")
        self._publish_quarantined(load)
        self._ledger.clean_up(load)
        newest = self._archive.refresh()
        delete_passed(newest, {p: (starts[p], end) for p, end in newest.end_offsets().items() if starts[p] < end})
        return self._loaded(load, files, newest)

    def _account(self, parts: Sequence[SortedFiles]) -> Ingest:
        assert self.plan is not None  # noqa: S101 - told by the caller
        return Ingest(
            topic=self.topic.archive_name,
            number=self._ledger.number + 1,
            attempt=self.attempt,
            previous=self._ledger.attempt,
            declaration=declaration_of(self.topic),
            timestamps=self.plan.timestamps,
            files=tuple(file for part in parts for file in part.files),
            quarantined=stage_quarantined(
                self.warehouse,
                self.topic.archive_name,
                self.plan.shape.partitions,
                [run for part in parts for run in part.bad_rows],
                f"load.{self.attempt}",
            ),
            made_at_ms=self.now_ms,
        )

    def _finish_former(self) -> None:
        """Publishes the quarantined rows of a load that was killed behind its commit."""
        if (newest := self._ledger.newest) is not None:
            self._publish_quarantined(newest)

    def _publish_quarantined(self, load: Ingest) -> None:
        if load.quarantined:
            publish_quarantined(self.warehouse, load)
            step("ingest.quarantine-committed")

    def _loaded(self, load: Ingest, files: Iterable[ArchiveFile], archive: TopicArchive) -> Loaded:
        assert self.plan is not None  # noqa: S101 - told by the caller
        times = [time for file in files for time in (file.min_timestamp_ms, file.max_timestamp_ms) if time is not None]
        return Loaded(
            topic=load.topic,
            number=load.number,
            files=load.files,
            known=self.plan.known,
            records=sum(file.records for file in load.files),
            bad_rows=sum(file.bad_rows for file in load.files),
            timestamps=load.timestamps,
            min_timestamp_ms=min(times, default=None),
            max_timestamp_ms=max(times, default=None),
            gaps=self._gaps,
            schema=archive.schema,
        )


def _stream_times(archive: TopicArchive) -> dict[int, int | None]:
    """By partition, the largest timestamp that the log says."""
    found: dict[int, int | None] = {}
    for partition in range(archive.partitions):
        times = [file.max_timestamp_ms for file in archive.files(partition) if file.max_timestamp_ms is not None]
        found[partition] = max(times, default=None)
    return found


def load_here(load: Load, spill: Storage, budget_bytes: int, progress: Progress) -> Loaded:
    """Does a whole load in this process.

    Args:
        load: The load.
        spill: A folder of its own, for what does not fit into memory.
        budget_bytes: What may be held in memory.
        progress: Is told what was read.

    Raises:
        HindstreamError: As `Load`, `SortFiles`, `MergePartition`.
    """
    if load.plan is None:
        return load.nothing
    part = load.sort_files(spill, budget_bytes, in_memory=True)(load.plan.files, f"load.{load.attempt}", progress)
    merge = load.merge_partition([part])
    files: list[ArchiveFile] = []
    try:
        for partition in range(load.plan.shape.partitions):
            files += merge(partition, f"load.{load.attempt}")
    except BaseException:
        merge.storage.delete([file.path for file in files])
        raise
    return load.commit([part], files)
