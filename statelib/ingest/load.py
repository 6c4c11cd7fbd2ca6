"""Loads new files into a topic archive, each once: the plan, the two stages (`statelib.ingest.stages`), one commit.

The Delta commit makes all of it part of the topic, together with the account of the files (`statelib.ingest.ledger`).
Until then nobody sees anything, and a load that was stopped is begun anew by the same command.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import pyarrow as pa

from statelib.commits.layout import topic_path
from statelib.errors.fault_points import step
from statelib.errors.kinds import ConfigurationError, FencedError, RetryableError
from statelib.ingest.bad_rows import publish_quarantined, stage_quarantined
from statelib.ingest.declared import declaration_of
from statelib.ingest.gaps import Gap, gaps_between
from statelib.ingest.ledger import LOADS, Ingest, IngestedFile
from statelib.ingest.plan import plan_load
from statelib.ingest.stages import MergePartition, SortFiles
from statelib.ingest.values.types import united_text
from statelib.topics.actions import OffsetsTakenError
from statelib.topics.archive import TopicArchive, topic_schema
from statelib.topics.orphaned_files import delete_passed
from statelib.topics.parquet.schema_changes import united

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from statelib.ingest.sources.queries import RunQuery
    from statelib.ingest.stages import Progress, SortedFiles
    from statelib.job.lake_topic import LakeTopic
    from statelib.storage import Storage
    from statelib.topics.files import ArchiveFile

OnBadRecord = Literal["fail", "quarantine"]


@dataclass(frozen=True, slots=True)
class Loaded:
    """What a load came to.

    Attributes:
        topic: The archive's name.
        number: The load's; None: no file was new.
        files: The new files.
        known: How many files were loaded before.
        moved: How many of these were loaded under another path or time.
        records: How many were added.
        bad_rows: How many rows went to the quarantine.
        timestamps: How timestamps were read, in words.
        min_timestamp_ms: Of the new records; None: there are none.
        max_timestamp_ms: The same.
        gaps: Offsets that no file has, where files tell offsets.
        schema: The archive's.
        copies: Of new files with records whose content another file has too: their paths, and that file's.
    """

    topic: str
    number: int | None
    files: tuple[IngestedFile, ...]
    known: int
    moved: int
    records: int
    bad_rows: int
    timestamps: str
    min_timestamp_ms: int | None
    max_timestamp_ms: int | None
    gaps: tuple[Gap, ...]
    schema: pa.Schema | None
    copies: tuple[tuple[str, str], ...] = ()


@dataclass
class Load:
    """One load of one topic.

    Args:
        topic: What is asked for.
        warehouse: The warehouse.
        source_options: Of the object store that the files are in.
        on_bad_record: What becomes of rows that cannot be loaded.
        attempt: 15 hex digits that no other attempt has.
        now_ms: The wall clock.
        run_query: Gives the result of a query among the sources; None: nobody here can.

    Raises:
        ConfigurationError: See `statelib.ingest.plan.plan_load`.
        InputError: The same.
        RetryableError: The same.
    """

    topic: LakeTopic
    warehouse: Storage
    source_options: Mapping[str, str]
    on_bad_record: OnBadRecord
    attempt: str
    now_ms: int
    run_query: RunQuery | None = None

    def __post_init__(self) -> None:
        planned = plan_load(self.topic, self.warehouse, self.source_options, self.run_query)
        self.plan, self._archive, self._ledger = planned
        self._gaps: tuple[Gap, ...] = ()
        self._schema: pa.Schema | None = None
        self._finish_former()

    @property
    def nothing(self) -> Loaded:
        """What a load comes to without a new file."""
        newest = self._ledger.newest
        schema = self._archive.schema if self._archive is not None else None
        timestamps = newest.timestamps if newest else ""
        return Loaded(
            self.topic.archive_name, None, (), len(self._ledger.files()), 0, 0, 0, timestamps, None, None, (), schema
        )

    def sort_files(self, spill: Storage, budget_bytes: int, *, in_memory: bool) -> SortFiles:
        """The first stage."""
        assert self.plan is not None  # noqa: S101 - else there is nothing to do
        sets_apart = self.on_bad_record == "quarantine"
        return SortFiles(self.plan, spill, budget_bytes, in_memory, sets_apart, self.now_ms)

    def merge_partition(self, parts: Sequence[SortedFiles]) -> MergePartition:
        """The second stage, after the first.

        Raises:
            ConfigurationError: A file does not go together with the others, or with the archive; it is named.
        """
        assert self.plan is not None  # noqa: S101 - else there is nothing to do
        self._gaps = self._checked_gaps(parts)
        archive = self._archive
        shape = self.plan.shape
        asked = topic_schema(shape.key_type, self._value_type(parts))
        self._schema = asked if archive is None or archive.is_empty else archive.check_shape(asked, shape.partitions)
        starts = dict.fromkeys(range(shape.partitions), 0) if archive is None else archive.end_offsets()
        runs = tuple(run for part in parts for run in part.runs)
        storage, times_ms = self.warehouse.within(topic_path(self.topic.archive_name)), None
        if shape.keeps_offsets:
            times_ms = dict.fromkeys(starts) if archive is None else _stream_times(archive)
        return MergePartition(runs, self._schema, storage, self.topic.archive_name, starts, times_ms)

    def _value_type(self, parts: Sequence[SortedFiles]) -> pa.DataType:
        """The type that values of all files and of the archive have in common.

        Raises:
            ConfigurationError: There is none; the file is named.
        """
        archive = self._archive
        before = archive.schema.field("value").type if archive is not None and not archive.is_empty else None
        value: pa.DataType = pa.null() if before is None else before
        for path, type_ in (item for part in parts for item in part.values):
            try:
                value = united_text(value, type_, "value")
                if before is not None:
                    united(before, value)
            except ConfigurationError as error:
                raise error.placed(file=path) from None
        if pa.types.is_struct(value) and not value.num_fields:
            step = "name a field with --value: the one of the key or of the timestamp will do"
            what = "no row has a value besides its key and its timestamp"
            raise ConfigurationError(what, topic=self.topic.archive_name, next_step=step)
        return pa.string() if pa.types.is_null(value) else value

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
        load = self._account(parts)
        step("ingest.before-account")
        self._ledger.write(load)
        step("ingest.accounted")
        moves, also = self._ledger.moves(self.attempt)
        try:
            self._archive = self._ensured()
            step("ingest.ensured")
            starts = self._archive.end_offsets()
            self._archive.append_at(files, moves, also=also, time_ms=self.now_ms)
        except (OffsetsTakenError, FencedError) as error:
            self.warehouse.within(topic_path(load.topic)).delete([file.path for file in files])
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

    def _ensured(self) -> TopicArchive:
        """The archive, made or widened for the new records.

        Raises:
            FencedError: Another load of the topic was quicker.
        """
        assert self.plan is not None  # noqa: S101 - told by the caller
        assert self._schema is not None  # noqa: S101 - `merge_partition` set it
        name = self.topic.archive_name
        uri, options = self.warehouse.uri(topic_path(name)), self.warehouse.options
        there = TopicArchive.open_if_present(uri, options=options)
        if there is not None and (there.last_transaction(LOADS) or 0) != self._ledger.number:
            raise FencedError("another load of the topic was quicker", topic=name)
        if there is not None and there.is_empty:
            there.retype(self._schema)
        return TopicArchive.ensure(uri, self._schema, self.plan.shape.partitions, topic=name, options=options)

    def _account(self, parts: Sequence[SortedFiles]) -> Ingest:
        assert self.plan is not None  # noqa: S101 - told by the caller
        return Ingest(
            topic=self.topic.archive_name,
            number=self._ledger.number + 1,
            attempt=self.attempt,
            previous=self._ledger.attempt,
            earlier=self._ledger.earlier,
            declaration=declaration_of(self.topic),
            timestamps=self.plan.timestamps,
            files=tuple(file for part in parts for file in part.files),
            rewritten=self.plan.rewritten,
            quarantined=stage_quarantined(
                self.warehouse,
                self.topic.archive_name,
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
            assert self._archive is not None  # noqa: S101 - the load is part of it
            publish_quarantined(self.warehouse, load, self._archive.partitions)
            step("ingest.quarantine-committed")

    def _loaded(self, load: Ingest, files: Iterable[ArchiveFile], archive: TopicArchive) -> Loaded:
        assert self.plan is not None  # noqa: S101 - told by the caller
        times = [time for file in files for time in (file.min_timestamp_ms, file.max_timestamp_ms) if time is not None]
        return Loaded(
            topic=load.topic,
            number=load.number,
            files=load.files,
            known=self.plan.known,
            moved=self.plan.moved,
            records=sum(file.records for file in load.files),
            bad_rows=sum(file.bad_rows for file in load.files),
            timestamps=load.timestamps,
            min_timestamp_ms=min(times, default=None),
            max_timestamp_ms=max(times, default=None),
            gaps=self._gaps,
            schema=archive.schema,
            copies=() if self.plan.shape.keeps_offsets else _copies(load.files, self._ledger.files().values()),
        )


def _copies(files: Iterable[IngestedFile], former: Iterable[IngestedFile]) -> tuple[tuple[str, str], ...]:
    """Each file with records whose content one before it has, with that one."""
    first = {file.content: file.path for file in former if file.content is not None}
    told = ((file, first.setdefault(file.content, file.path)) for file in files if file.content and file.records)
    return tuple((file.path, path) for file, path in told if path != file.path)


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
