"""A topic archive to write to: making it, and the Delta commits that add, take away and replace its files."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Self

import pyarrow as pa
from deltalake import Schema as DeltaSchema
from deltalake import TableFeatures
from deltalake.exceptions import DeltaError
from deltalake.transaction import create_table_with_add_actions

from statelib.errors.counted import counted
from statelib.errors.kinds import ConfigurationError, FencedError
from statelib.topics.actions import added, check_follows, removed
from statelib.topics.committing import INTERVAL_KEY, LOG_CHECKPOINT_INTERVAL, CommittableVersion
from statelib.topics.delta.log import STATISTICS, ArchiveNotFoundError, DeltaLog, created, topic_of
from statelib.topics.parquet.schema import topic_schema, topic_schema_of
from statelib.topics.parquet.writer import PartitionWriter
from statelib.topics.version import (
    FIRST_FORMAT_VERSION,
    FORMAT_KEY,
    FORMAT_VERSION,
    LAG,
    PARTITIONS_KEY,
    TopicVersion,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from deltalake.transaction import AddAction, RemoveAction

    from statelib.topics.files import ArchiveFile
    from statelib.topics.parquet.writer import FileLimits

__all__ = ["ArchiveNotFoundError", "TopicArchive", "topic_schema"]


class TopicArchive(CommittableVersion):
    """One version of a topic archive, read and written; what is committed shows in the version that `refresh` gives."""

    @classmethod
    def create(
        cls,
        uri: str,
        schema: pa.Schema,
        partitions: int,
        *,
        topic: str | None = None,
        options: Mapping[str, str] | None = None,
    ) -> Self:
        """Makes an empty archive.

        Args:
            uri: Where: a directory or URL, see `statelib.storage`.
            schema: As `topic_schema` gives it.
            partitions: Number of Kafka partitions, at least 1.
            topic: The topic's name; None: the last part of ``uri``.
            options: Of the store.

        Raises:
            ConfigurationError: There is a table already, or an argument cannot be.
            RetryableError: The store did not answer.
        """
        if partitions < 1:
            raise ConfigurationError(f"a topic cannot have {counted(partitions, 'partition')}", setting="partitions")
        metadata = {PARTITIONS_KEY: str(partitions), FORMAT_KEY: str(FIRST_FORMAT_VERSION)}
        columns = topic_schema_of(schema)
        table_schema = DeltaSchema.from_arrow(columns.append(pa.field("partition", pa.int32(), metadata=metadata)))
        name = topic or topic_of(uri)
        log = DeltaLog(uri, options or {})
        log.make_directory()  # and refuses what no store understands
        try:
            create_table_with_add_actions(
                uri,
                table_schema,
                [],
                mode="error",
                partition_by=["partition"],
                name=name,
                configuration={**STATISTICS, INTERVAL_KEY: str(LOG_CHECKPOINT_INTERVAL)},
                storage_options=dict(options or {}),
                commit_properties=created(name, ["partition"], table_schema.to_json()),
            )
        except (DeltaError, OSError) as error:
            if cls.open_if_present(uri, options=options) is not None:
                step = "open it, or choose another place"
                raise ConfigurationError("there is a table already", file=uri, next_step=step) from None
            raise log.store_error("create the topic archive", error) from None
        log.sync(0)
        return cls.open(uri, options=options)

    @classmethod
    def ensure(
        cls,
        uri: str,
        schema: pa.Schema,
        partitions: int,
        *,
        topic: str | None = None,
        options: Mapping[str, str] | None = None,
    ) -> Self:
        """Opens an archive, or makes it if there is none; gives it what ``schema`` has more. Arguments as for `create`.

        Raises:
            ConfigurationError: The one that is there has another number of partitions, or columns that these do not go
                together with (`statelib.topics.parquet.schema_changes`).
            RetryableError: The store did not answer.
        """
        archive = cls.open_if_present(uri, options=options)
        if archive is None:
            try:
                archive = cls.create(uri, schema, partitions, topic=topic, options=options)
            except ConfigurationError:
                archive = cls.open(uri, options=options)  # somebody else was quicker
                archive.sync()
        return archive.widen(schema, partitions)

    def writer(
        self,
        partition: int,
        *,
        attempt: str,
        limits: FileLimits | None = None,
        has_headers: bool = False,
        takes_all: bool = False,
    ) -> PartitionWriter:
        """Writes files for one partition, to be committed later; see `PartitionWriter`."""
        self._check_partition(partition)
        return PartitionWriter(
            self.storage,
            self.schema,
            partition,
            attempt=attempt,
            limits=limits,
            has_headers=has_headers,
            topic=self.topic,
            takes_all=takes_all,
        )

    def commit(
        self, files: Sequence[ArchiveFile], *, app_id: str, app_version: int, modification_time_ms: int = 0
    ) -> bool:
        """Makes files part of the topic, once: in one Delta commit with the application transaction.

        It adds to this version or not at all. A commit that lost a race, because there is a newer one, looks again at
        what is there before it tries again, so that neither a repeat, nor two writers at once, nor a commit that landed
        but was reported failed can put records into the topic twice.

        Args:
            files: As `PartitionWriter.close` describes them; may be empty.
            app_id: Who commits, such as the job's name.
            app_version: Its commit's number; ascending.
            modification_time_ms: What the log says of the files' age.

        Returns:
            Whether the files are part of the topic: False, and nothing has changed, if ``app_id`` has committed
            ``app_version`` or a later one already, with other files.

        Raises:
            OffsetsTakenError: A file holds offsets that the topic has already: somebody else writes to it.
            ConfigurationError: A file may not be written; the commit may have landed.
            CorruptedDataError: A file is not there, or not as it was written.
            RetryableError: The store did not answer, or there are too many writers at once.
        """

        def actions(newest: Self) -> list[AddAction | RemoveAction]:
            newest._check_present(files)
            check_follows(newest, files)
            return [added(file, modification_time_ms) for file in files]

        standing = self._transact(actions, [(app_id, app_version)], files)
        return standing is None or standing._holds(files)  # noqa: SLF001 - of this class

    def append_at(
        self,
        files: Sequence[ArchiveFile],
        moves: Mapping[str, tuple[int | None, int]],
        *,
        also: Sequence[tuple[str, int]] = (),
        time_ms: int = 0,
    ) -> None:
        """Makes files part of the topic and moves positions, once: in one Delta commit.

        Args:
            files: As `PartitionWriter.close` describes them; may be empty.
            moves: By application, at least one: its position as the caller has found it (None: it had none), and the
                one that the files bring it to.
            also: Applications and versions that are set besides.
            time_ms: What the log says of the files' age.

        Raises:
            OffsetsTakenError: A file holds offsets that the topic has already: somebody else writes to it.
            ConfigurationError: A file may not be written; the commit may have landed.
            CorruptedDataError: A file is not there, or not as it was written.
            FencedError: Somebody else has moved a position; nothing has changed.
            RetryableError: The store did not answer, or there are too many writers at once.
        """

        def is_done(newest: Self) -> bool:
            moved = all(newest.last_transaction(app_id) == end for app_id, (_, end) in moves.items())
            return moved and (not files or newest._holds(files))

        def actions(newest: Self) -> list[AddAction | RemoveAction]:
            for app_id, (start, end) in moves.items():
                if (found := newest.last_transaction(app_id)) != start:
                    what = f"somebody else has moved {app_id} from {start} to {found}: {end} is not reached from there"
                    raise FencedError(what, topic=newest.topic, file=newest.uri)
            newest._check_present(files)
            check_follows(newest, files)
            return [added(file, time_ms) for file in files]

        transactions = [*((app_id, end) for app_id, (_, end) in moves.items()), *also]
        self._transact(actions, transactions, files, is_done)

    def retract(
        self, files: Sequence[ArchiveFile], *, app_id: str, app_version: int, marker: str, deletion_time_ms: int
    ) -> None:
        """Takes files out of the topic, once: in one Delta commit with the application transaction; nothing is deleted.

        Nothing changes if ``app_id`` has committed ``app_version`` or a later one already.

        Args:
            files: Those that are not part of the topic are passed over.
            app_id: As for `commit`.
            app_version: As for `commit`.
            marker: A second application whose transaction becomes ``app_version``: who has read the topic notices.
            deletion_time_ms: What the log says of when the files went.

        Raises:
            RetryableError: The store did not answer, or there are too many writers at once.
        """

        def actions(newest: Self) -> list[AddAction | RemoveAction]:
            return [removed(file, deletion_time_ms) for file in newest.present(files)]

        self._transact(actions, [(app_id, app_version), (marker, app_version)])

    def replace(
        self,
        gone: Sequence[ArchiveFile],
        files: Sequence[ArchiveFile],
        transactions: Sequence[tuple[str, int]],
        *,
        time_ms: int,
        drops_records: bool = False,
    ) -> None:
        """Puts files in the place of others, once: in one Delta commit; nothing is deleted.

        Nothing changes if the first of ``transactions`` (application and version) or a later version has been committed
        already.

        Args:
            gone: Those that leave.
            files: Those with their records, at the same offsets.
            transactions: What the commit carries.
            time_ms: What the log says of when that was. Of the files themselves it goes on to say when their records
                came, which is what tells records from the future (`statelib.topics.future_records`).
            drops_records: Whether records are left out; else the log says that no data has changed.

        Raises:
            ConfigurationError: One of ``gone`` is not part of the topic.
            CorruptedDataError: One of ``files`` is not there, or not as it was written.
            RetryableError: The store did not answer, or there are too many writers at once.
        """

        def actions(newest: Self) -> list[AddAction | RemoveAction]:
            newest._check_present(files)
            if len(newest.present(gone)) < len(gone):
                what = "files of the topic that were to be merged are no longer part of it"
                step = "let nobody but its job change the topic"
                raise ConfigurationError(what, topic=newest.topic, file=newest.uri, next_step=step)
            return [
                *(removed(file, time_ms, is_data=drops_records) for file in gone),
                *(added(file, _archived_at_ms(newest, file, gone), is_data=drops_records) for file in files),
            ]

        self._transact(actions, transactions, files)

    def set_min_compaction_lag(self, lag_ms: int) -> Self:
        """Sets Kafka's ``min.compaction.lag.ms``: nothing that is not older than this is compacted from now on.

        It is an application transaction and not a property of the table: like all that is read of the log it has a
        check (`statelib.topics.delta.log`). A repeat changes nothing.

        Returns:
            The newest version, read anew.

        Raises:
            RetryableError: The store did not answer, or there are too many writers at once.
        """
        self._transact(lambda _: [], [(LAG, lag_ms)], is_done=lambda newest: newest.min_compaction_lag_ms == lag_ms)
        return self.refresh()

    def widen(self, schema: pa.Schema, partitions: int) -> Self:
        """Gives the topic the fields and widths that values of ``schema`` need, in one Delta commit; files stay.

        Returns:
            The version that has them: this one if it does.

        Raises:
            ConfigurationError: They do not go together with what the topic has.
            RetryableError: The store did not answer, or there are too many writers at once.
        """

        def fits(newest: Self) -> bool:
            return bool(newest.check_shape(schema, partitions).equals(newest.table_schema))

        if fits(self):
            return self
        self._enable(self.check_shape(schema, partitions))
        self._transact(
            lambda _: [],
            [],
            is_done=fits,
            widened=lambda newest: _delta_schema(newest, newest.check_shape(schema, partitions)),
        )
        return self.refresh()

    def retype(self, schema: pa.Schema) -> Self:
        """Gives a topic without any record the columns of ``schema``, in one Delta commit.

        Returns:
            The version that has them: this one if it does.

        Raises:
            ConfigurationError: There are records.
            RetryableError: The store did not answer, or there are too many writers at once.
        """
        wanted = topic_schema_of(schema)

        def fits(newest: Self) -> bool:
            return bool(newest.table_schema.equals(wanted))

        def retyped(newest: Self) -> DeltaSchema:
            if not newest.is_empty:
                what = "the topic has records: its columns cannot become others"
                raise ConfigurationError(what, topic=newest.topic, file=newest.uri, next_step="write to another topic")
            return _delta_schema(newest, wanted)

        if fits(self):
            return self
        self._enable(wanted)
        self._transact(lambda _: [], [], is_done=fits, widened=retyped)
        return self.refresh()

    def _enable(self, columns: pa.Schema) -> None:
        """Lets the table have the columns: Delta wants a feature of times without a time zone, in a commit before them.

        Raises:
            RetryableError: The store did not answer, or there are too many writers at once.
        """
        if _has_clocks(columns):
            self._add_feature(TableFeatures.TimestampWithoutTimezone, "timestampNtz")


def _archived_at_ms(archive: TopicVersion, file: ArchiveFile, gone: Sequence[ArchiveFile]) -> int:
    """When the last records of a file came that stands in the place of others; 0: nobody knows."""
    return max((archive.archived_at_ms(one) or 0 for one in gone if one.overlaps(file)), default=0)


def _has_clocks(type_: pa.DataType | pa.Schema) -> bool:
    """Whether there are times without a time zone in it."""
    if isinstance(type_, pa.Schema):
        return any(_has_clocks(field.type) for field in type_)
    if pa.types.is_timestamp(type_):
        return type_.tz is None
    return any(_has_clocks(type_.field(n).type) for n in range(type_.num_fields))


def _delta_schema(archive: TopicArchive, columns: pa.Schema) -> DeltaSchema:
    """The schema of an archive's table with keys and values of other types."""
    described = json.loads(archive.schema_json)
    for field in described["fields"]:
        if field["name"] in {"key", "value"}:
            column = pa.schema([columns.field(field["name"])])
            field["type"] = json.loads(DeltaSchema.from_arrow(column).to_json())["fields"][0]["type"]
        if field["name"] == "partition":
            field["metadata"][FORMAT_KEY] = str(FORMAT_VERSION)
    return DeltaSchema.from_json(json.dumps(described))
