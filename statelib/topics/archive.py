"""A topic at rest: a Delta table that any reader of Delta understands.

::

    <archive>/_delta_log/                          the truth: which files there are, and who has committed what
    <archive>/partition=<p>/<offset>-<attempt>.parquet   records of Kafka partition p, ascending by offset

Columns are those of `statelib.topics.schema`. The number of partitions and the version of this layout are metadata of
the table's column ``partition`` (``hindstream.partitions``, ``hindstream.format``): a partition may well be empty.
Add actions carry Delta's statistics of offset and timestamp, so a reader opens only the files that it needs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

import pyarrow as pa
from deltalake import Schema as DeltaSchema
from deltalake.exceptions import CommitFailedError, DeltaError
from deltalake.transaction import AddAction, PostCommitHookProperties, RemoveAction, create_table_with_add_actions

from statelib.errors import ConfigurationError, CorruptedDataError, InputError
from statelib.storage import Storage
from statelib.topics.actions import added, check_follows, removed
from statelib.topics.delta_log import ArchiveNotFoundError, DeltaLog, changed, created
from statelib.topics.reader import PartitionReader
from statelib.topics.schema import topic_schema
from statelib.topics.writer import PartitionWriter

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from deltalake import DeltaTable

    from statelib.topics.file_index import FileIndex
    from statelib.topics.files import ArchiveFile
    from statelib.topics.writer import FileLimits

__all__ = ["CLEANED", "FORMAT_VERSION", "ArchiveNotFoundError", "TopicArchive", "topic_schema"]

FORMAT_VERSION = 1

CLEANED = "hindstream.cleaned"
"""``<this>/<partition>``: the application whose transaction is `TopicArchive.cleaned_offset`."""

_LAG = "hindstream.min.compaction.lag.ms"
_FORMAT_KEY = "hindstream.format"
_PARTITIONS_KEY = "hindstream.partitions"
_STATISTICS_COLUMNS = 2  # offset and timestamp, the first two
_LOG_CHECKPOINT_INTERVAL = 10  # commits; what comes after the last checkpoint is read one by one
_INTERVAL_KEY = "delta.checkpointInterval"
_COMMIT_TRIES = 50


class TopicArchive:
    """One version of a topic archive. It does not change: `refresh` gives the newest one.

    Attributes:
        topic: The topic's name.
        uri: The table's root, as given.
        version: Delta version.
        partitions: Number of Kafka partitions.
        schema: The columns of its files, as `topic_schema` gives them.
        schema_json: The table's Delta schema.
        storage: Rooted at the table.
    """

    def __init__(
        self, table: DeltaTable, files: FileIndex | InputError, uri: str, options: Mapping[str, str] | None
    ) -> None:
        schema = pa.schema(table.schema().to_arrow())
        self.topic = table.metadata().name or uri.rstrip("/").rsplit("/", 1)[-1]
        _check_format(schema, uri)
        self.uri = uri
        self.version = table.version()
        self.partitions = int(schema.field("partition").metadata[_PARTITIONS_KEY.encode()])
        self.schema = topic_schema(schema.field("key").type, schema.field("value").type)
        self.schema_json = table.schema().to_json()
        self.storage = Storage(uri, options)
        self._table = table
        self._found = files
        self._options = dict(options or {})
        self._log = DeltaLog(uri, self._options)

    def __repr__(self) -> str:
        return f"TopicArchive({self.uri!r}, version={self.version})"

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
            raise ConfigurationError(f"a topic cannot have {partitions} partitions", setting="partitions")
        metadata = {_PARTITIONS_KEY: str(partitions), _FORMAT_KEY: str(FORMAT_VERSION)}
        columns = topic_schema(schema.field("key").type, schema.field("value").type)
        table_schema = DeltaSchema.from_arrow(columns.append(pa.field("partition", pa.int32(), metadata=metadata)))
        name = topic or uri.rstrip("/").rsplit("/", 1)[-1]
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
                configuration={
                    "delta.dataSkippingNumIndexedCols": str(_STATISTICS_COLUMNS),
                    _INTERVAL_KEY: str(_LOG_CHECKPOINT_INTERVAL),
                },
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
    def open(cls, uri: str, version: int | None = None, *, options: Mapping[str, str] | None = None) -> Self:
        """Opens an archive.

        Args:
            uri: The table's root.
            version: A Delta version; None: the newest.
            options: Of the store.

        Raises:
            ConfigurationError: There is none, it lacks the version, is no topic archive or that of a newer Hindstream.
            CorruptedDataError: Its Delta log is damaged.
            RetryableError: The store did not answer.
        """
        return cls(*DeltaLog(uri, options or {}).load(version), uri, options)

    @classmethod
    def open_if_present(cls, uri: str, *, options: Mapping[str, str] | None = None) -> Self | None:
        """The newest version of an archive, or None if there is none. Raises as `open` does."""
        try:
            return cls.open(uri, options=options)
        except ArchiveNotFoundError:
            return None

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
        """Opens an archive, or makes it if there is none. Arguments as for `create`.

        Raises:
            ConfigurationError: The one that is there has another number of partitions or other columns.
            RetryableError: The store did not answer.
        """
        archive = cls.open_if_present(uri, options=options)
        if archive is None:
            try:
                archive = cls.create(uri, schema, partitions, topic=topic, options=options)
            except ConfigurationError:
                archive = cls.open(uri, options=options)  # somebody else was quicker
                archive.sync()
        archive.check_shape(schema, partitions)
        return archive

    def check_shape(self, schema: pa.Schema, partitions: int) -> None:
        """Checks that the archive can take records of ``schema`` in ``partitions`` partitions.

        Raises:
            ConfigurationError: It cannot.
        """
        step = "write to another topic, or move this archive away"
        if self.partitions != partitions:
            what = f"the topic archive has {self.partitions} partitions, not {partitions}"
            raise ConfigurationError(what, topic=self.topic, file=self.uri, next_step=step)
        wanted = topic_schema(schema.field("key").type, schema.field("value").type)
        for mine, other in zip(self.schema, wanted, strict=True):
            if not mine.type.equals(other.type):
                what = f"the topic archive's column {mine.name} is {mine.type}, not {other.type}"
                raise ConfigurationError(what, topic=self.topic, file=self.uri, next_step=step)

    def refresh(self) -> Self:
        """The newest version."""
        return type(self).open(self.uri, options=self._options)

    def sync(self) -> None:
        """Makes this version outlive a power cut, where it is on a local disk: who committed it may have been killed.

        Raises:
            RetryableError: The disk is full, or fails.
        """
        self._log.sync(self.version)

    def files(self, partition: int, start_offset: int = 0, end_offset: int | None = None) -> list[ArchiveFile]:
        """The files that hold offsets from ``start_offset`` to before ``end_offset`` (None: to the end), ascending."""
        self._check_partition(partition)
        return self._files.in_range(partition, start_offset, end_offset)

    def files_reaching(self, partition: int, timestamp_ms: int) -> Iterator[ArchiveFile]:
        """The files that may hold a record with this timestamp or a later one, ascending by offset."""
        self._check_partition(partition)
        return self._files.reaching(partition, timestamp_ms)

    def present(self, files: Iterable[ArchiveFile]) -> list[ArchiveFile]:
        """Those of ``files`` that are part of the topic, as its log describes them, by partition and offset."""
        paths: dict[int, set[str]] = {}
        for file in files:
            paths.setdefault(file.partition, set()).add(file.path)
        return [file for p, wanted in sorted(paths.items()) for file in self.files(p) if file.path in wanted]

    def start_offsets(self) -> dict[int, int]:
        """By partition, the first offset that the archive holds; where it holds none, 0."""
        return {partition: self._files.start_offset(partition) for partition in range(self.partitions)}

    def end_offsets(self) -> dict[int, int]:
        """By partition, the offset after the last one that the archive holds; where it holds none, 0."""
        return {partition: self._files.end_offset(partition) for partition in range(self.partitions)}

    @property
    def rows(self) -> int:
        """Number of records."""
        return self._files.rows

    def max_timestamp_ms(self) -> int | None:
        """The largest timestamp that is known from statistics; None: there is none."""
        return self._files.max_timestamp_ms()

    def last_transaction(self, app_id: str) -> int | None:
        """The version that ``app_id`` committed last; None: it has committed nothing."""
        return self._log.last_transaction(self._table, app_id)

    def has_committed(self, app_id: str, app_version: int) -> bool:
        """Whether ``app_id`` has committed ``app_version`` or a later one."""
        last = self.last_transaction(app_id)
        return last is not None and last >= app_version

    def cleaned_offset(self, partition: int) -> int:
        """Of a compacted topic, the offset before which records have made room for later ones of their keys; else 0."""
        return self.last_transaction(f"{CLEANED}/{partition}") or 0

    @property
    def min_compaction_lag_ms(self) -> int | None:
        """Kafka's ``min.compaction.lag.ms``, as `set_min_compaction_lag` set it; None: it is not set."""
        return self.last_transaction(_LAG)

    def set_min_compaction_lag(self, lag_ms: int) -> Self:
        """Sets Kafka's ``min.compaction.lag.ms``: nothing that is not older than this is compacted from now on.

        It is an application transaction and not a property of the table: like all that is read of the log it has a
        check (`statelib.topics.delta_log`). A repeat changes nothing.

        Returns:
            The newest version, read anew.

        Raises:
            RetryableError: The store did not answer, or there are too many writers at once.
        """
        self._transact(lambda _: [], [(_LAG, lag_ms)], is_done=lambda newest: newest.min_compaction_lag_ms == lag_ms)
        return self.refresh()

    def reader(
        self,
        partition: int,
        start_offset: int = 0,
        end_offset: int | None = None,
        *,
        columns: Sequence[str] | None = None,
        batch_rows: int = 65_536,
    ) -> PartitionReader:
        """Reads records of one partition; see `PartitionReader`."""
        return PartitionReader(
            self.storage,
            self.files(partition, start_offset, end_offset),
            self.schema,
            topic=self.topic,
            partition=partition,
            start_offset=start_offset,
            end_offset=end_offset,
            columns=columns,
            batch_rows=batch_rows,
        )

    def writer(
        self, partition: int, *, attempt: str, limits: FileLimits | None = None, has_headers: bool = False
    ) -> PartitionWriter:
        """Writes files for one partition, to be committed later; see `PartitionWriter`."""
        self._check_partition(partition)
        return PartitionWriter(
            self.storage, self.schema, partition, attempt=attempt, limits=limits, has_headers=has_headers
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
            ConfigurationError: A file holds offsets that the topic has already: somebody else writes to it.
            CorruptedDataError: A file is not there, or not as it was written.
            RetryableError: The store did not answer, or there are too many writers at once.
        """

        def actions(newest: Self) -> list[AddAction | RemoveAction]:
            newest._check_present(files)
            check_follows(newest, files)
            return [added(file, modification_time_ms) for file in files]

        standing = self._transact(actions, [(app_id, app_version)], files)
        return standing is None or standing._holds(files)  # noqa: SLF001 - of this class

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
            time_ms: What the log says of when that was.
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
                *(added(file, time_ms, is_data=drops_records) for file in files),
            ]

        self._transact(actions, transactions, files)

    def _transact(
        self,
        actions: Callable[[Self], list[AddAction | RemoveAction]],
        transactions: Sequence[tuple[str, int]],
        files: Sequence[ArchiveFile] = (),
        is_done: Callable[[Self], bool] | None = None,
    ) -> Self | None:
        """Commits what ``actions`` gives for the newest version, unless it ``is_done``: has the first transaction.

        ``files`` are those that are added.

        Returns:
            The newest version, where that has the transaction already; None: this call has committed.
        """
        lost: Exception | None = None
        newest = self
        is_done = is_done or (lambda archive: archive.has_committed(*transactions[0]))
        for _ in range(_COMMIT_TRIES):
            if is_done(newest):
                newest.sync()
                return newest
            wanted = actions(newest)
            gone = [action.path for action in wanted if isinstance(action, RemoveAction)]
            table = newest._table
            try:
                table.create_write_transaction(
                    wanted,
                    "append",
                    table.schema(),
                    partition_by=["partition"],
                    commit_properties=changed(table, newest._files, files, gone, transactions),
                    post_commithook_properties=PostCommitHookProperties(cleanup_expired_logs=False),
                )
            except CommitFailedError as error:
                lost = error
                newest = newest.refresh()
            except (DeltaError, OSError) as error:
                lost = error
                newest = newest.refresh()
                if not is_done(newest):
                    break
            else:
                self._log.sync(table.version() + 1)
                if _has_checkpoint(table, table.version() + 1):
                    self._log.clean_up()
                return None
        raise self._log.store_error("commit to the topic archive", lost or RuntimeError())

    @property
    def _files(self) -> FileIndex:
        """All files."""
        if isinstance(self._found, InputError):
            raise self._found
        return self._found

    def _check_partition(self, partition: int) -> None:
        if not 0 <= partition < self.partitions:
            what = f"the topic has partitions 0 to {self.partitions - 1}"
            raise ConfigurationError(what, topic=self.topic, partition=partition)

    def _holds(self, files: Sequence[ArchiveFile]) -> bool:
        """Whether these very files, of which there is one at least, are part of the topic."""
        return bool(files) and all(
            file.path in {held.path for held in self.files(file.partition, file.first_offset, file.last_offset + 1)}
            for file in files
        )

    def _check_present(self, files: Sequence[ArchiveFile]) -> None:
        for file in files:
            self._check_partition(file.partition)
            size = self.storage.size_if_present(file.path)
            if size != file.size_bytes:
                what = "a file to be committed is missing" if size is None else "a file to be committed has changed"
                step = "run the slice again: it writes its files anew"
                raise CorruptedDataError(what, topic=self.topic, file=self.storage.uri(file.path), next_step=step)


def _has_checkpoint(table: DeltaTable, version: int) -> bool:
    """Whether delta-rs has made a checkpoint of the log with the commit of ``version``."""
    interval = int(table.metadata().configuration.get(_INTERVAL_KEY, _LOG_CHECKPOINT_INTERVAL))
    return (version + 1) % interval == 0  # it counts version 0


def _check_format(schema: pa.Schema, uri: str) -> None:
    """Checks that a table is a topic archive that this version reads."""
    names = [*topic_schema(pa.string(), pa.string()).names, "partition"]
    metadata = (schema.field("partition").metadata or {}) if "partition" in schema.names else {}
    if sorted(schema.names) != sorted(names) or _PARTITIONS_KEY.encode() not in metadata:
        step = "archive the topic into a new table"
        raise ConfigurationError("the table is not a topic archive", file=uri, next_step=step)
    version = int(metadata.get(_FORMAT_KEY.encode(), b"0"))
    if version > FORMAT_VERSION:
        what = f"the topic archive has format {version}, this Hindstream knows up to {FORMAT_VERSION}"
        raise ConfigurationError(what, file=uri, next_step="install the newer Hindstream that wrote it")
