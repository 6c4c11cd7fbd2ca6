"""A topic at rest: a Delta table that any reader of Delta understands; how it is laid out, and one version of it.

::

    <archive>/_delta_log/                          the truth: which files there are, and who has committed what
    <archive>/partition=<p>/<offset>-<attempt>.parquet   records of Kafka partition p, ascending by offset

Columns are those of `statelib.topics.parquet.schema`. The number of partitions and the version of this layout are
metadata of the table's column ``partition`` (``hindstream.partitions``, ``hindstream.format``): a partition may well be
empty. Add actions carry Delta's statistics of offset and timestamp, so a reader opens only the files that it needs.
"""

from __future__ import annotations

from copy import copy
from typing import TYPE_CHECKING, Self

import pyarrow as pa
from deltalake import Schema as DeltaSchema

from statelib.errors.counted import counted
from statelib.errors.kinds import ConfigurationError, InputError
from statelib.storage import Storage
from statelib.topics.delta.log import ArchiveNotFoundError, DeltaLog, LoadedVersion, topic_of
from statelib.topics.parquet.reader import PartitionReader
from statelib.topics.parquet.schema import topic_schema, topic_schema_of
from statelib.topics.parquet.schema_changes import united

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from statelib.topics.delta.file_index import FileColumns, FileIndex
    from statelib.topics.files import ArchiveFile

FORMAT_VERSION = 2
"""The newest that this release reads. Format 2: files may be of earlier schemas of the table."""

FIRST_FORMAT_VERSION = 1
"""That of a table whose schema has never changed."""

FORMAT_KEY = "hindstream.format"
PARTITIONS_KEY = "hindstream.partitions"

CLEANED = "hindstream.cleaned"
"""``<this>/<partition>``: the application whose transaction is `TopicVersion.cleaned_offset`."""

COPY_BEGIN, COPY_POSITION = "hindstream.kafka.begin", "hindstream.kafka.position"
"""``<this>/<partition>``: those whose transactions are `TopicVersion.copied_from` and `TopicVersion.copied_to`."""

LAG = "hindstream.min.compaction.lag.ms"
"""The application whose transaction is `TopicVersion.min_compaction_lag_ms`."""


class TopicVersion:
    """One version of a topic archive, to be read. It does not change: `refresh` gives the newest one.

    Attributes:
        topic: The topic's name.
        uri: The table's root, as given.
        version: Delta version.
        partitions: Number of Kafka partitions.
        schema: The columns that its records are read as, as `topic_schema` gives them.
        table_schema: Those of the table; older files may have fewer fields, and narrower numbers.
        schema_json: The table's Delta schema.
        table_id: The table's id in Delta: a table that is deleted and made anew has another.
        storage: Rooted at the table.
    """

    def __init__(self, loaded: LoadedVersion, uri: str, options: Mapping[str, str] | None) -> None:
        table = loaded.table
        schema = pa.schema(table.schema().to_arrow())
        self.topic = table.metadata().name or topic_of(uri)
        _check_format(schema, uri)
        self.uri = uri
        self.version = table.version()
        self.partitions = int(schema.field("partition").metadata[PARTITIONS_KEY.encode()])
        self.schema = self.table_schema = topic_schema_of(schema)
        self.schema_json = table.schema().to_json()
        self.table_id = str(table.metadata().id)
        self.storage = Storage(uri, options)
        self._loaded = loaded
        self._options = dict(options or {})
        self._log = DeltaLog(uri, self._options)

    def __repr__(self) -> str:
        return f"TopicArchive({self.uri!r}, version={self.version})"

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
        return cls(DeltaLog(uri, options or {}).load(version), uri, options)

    @classmethod
    def open_if_present(cls, uri: str, *, options: Mapping[str, str] | None = None) -> Self | None:
        """The newest version of an archive, or None if there is none. Raises as `open` does."""
        try:
            return cls.open(uri, options=options)
        except ArchiveNotFoundError:
            return None

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

    def file_columns(self, partition: int) -> FileColumns:
        """What the log says of all files of a partition, as columns."""
        self._check_partition(partition)
        return self._files.columns_of(partition)

    def all_files(self) -> list[ArchiveFile]:
        """The files of all partitions, ascending by partition and offset."""
        return [file for partition in range(self.partitions) for file in self.files(partition)]

    def files_reaching(self, partition: int, timestamp_ms: int) -> Iterator[ArchiveFile]:
        """The files that may hold a record with this timestamp or a later one, ascending by offset."""
        self._check_partition(partition)
        return self._files.reaching(partition, timestamp_ms)

    def archived_at_ms(self, file: ArchiveFile) -> int | None:
        """When one of its files became part of the topic; None: the log does not say."""
        return self._files.archived_at_ms(file)

    def holds_before(self, partition: int, start_offset: int, timestamp_ms: int) -> bool:
        """Whether files that begin at ``start_offset`` or behind it are known to hold a timestamp before this one."""
        return self._files.holds_before(partition, start_offset, timestamp_ms)

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

    def spans(self) -> dict[int, tuple[int, int]]:
        """By partition, the offsets that the archive speaks for: from its first record to behind its last one.

        A copy of a Kafka topic speaks for all from where it began to where it has come: what Kafka gives to no reader
        leaves holes, also there.
        """
        found = {}
        for partition, end in self.end_offsets().items():
            begin = self.copied_from(partition)
            first = self._files.start_offset(partition) if begin is None else begin
            found[partition] = (first, max(end, self.copied_to(partition) or 0))
        return found

    def copied_from(self, partition: int) -> int | None:
        """The first offset that was there when a copy of a Kafka topic began; None: it is no copy, or has not begun."""
        return self.last_transaction(f"{COPY_BEGIN}/{partition}")

    def copied_to(self, partition: int) -> int | None:
        """The next offset to copy from Kafka; None as of `copied_from`."""
        return self.last_transaction(f"{COPY_POSITION}/{partition}")

    @property
    def is_empty(self) -> bool:
        """Whether it holds no record, nor a place where some were."""
        return not any(self.end_offsets().values())

    @property
    def rows(self) -> int:
        """Number of records."""
        return self._files.rows

    def max_timestamp_ms(self) -> int | None:
        """The largest timestamp that is known from statistics; None: there is none."""
        return self._files.max_timestamp_ms()

    def last_transaction(self, app_id: str) -> int | None:
        """The version that ``app_id`` committed last; None: it has committed nothing."""
        return self._log.last_transaction(self._loaded, app_id)

    def has_committed(self, app_id: str, app_version: int) -> bool:
        """Whether ``app_id`` has committed ``app_version`` or a later one."""
        last = self.last_transaction(app_id)
        return last is not None and last >= app_version

    def cleaned_offset(self, partition: int) -> int:
        """Of a compacted topic, the offset before which records have made room for later ones of their keys; else 0."""
        return self.last_transaction(f"{CLEANED}/{partition}") or 0

    @property
    def min_compaction_lag_ms(self) -> int | None:
        """Kafka's ``min.compaction.lag.ms``, as `TopicArchive.set_min_compaction_lag` set it; None: it is not set."""
        return self.last_transaction(LAG)

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
            self.table_schema,
            wanted=self.schema,
            topic=self.topic,
            partition=partition,
            start_offset=start_offset,
            end_offset=end_offset,
            columns=columns,
            batch_rows=batch_rows,
        )

    def reading_as(self, schema_json: str) -> Self:
        """The same version, its records read as those of an earlier schema of the topic.

        Args:
            schema_json: A Delta schema that the table has had.
        """
        found = copy(self)
        found.schema = topic_schema_of(pa.schema(DeltaSchema.from_json(schema_json).to_arrow()))
        found.schema_json = schema_json
        return found

    def check_shape(self, schema: pa.Schema, partitions: int) -> pa.Schema:
        """Checks that the archive can take records of ``schema`` in ``partitions`` partitions.

        Returns:
            The columns that it needs for that: its own, or more and wider ones
            (`statelib.topics.parquet.schema_changes`).

        Raises:
            ConfigurationError: It cannot.
        """
        step = "write to another topic, or move this archive away"
        if self.partitions != partitions:
            what = f"the topic archive has {counted(self.partitions, 'partition')}, not {partitions}"
            raise ConfigurationError(what, topic=self.topic, file=self.uri, next_step=step)
        mine, wanted = self.table_schema, topic_schema_of(schema)
        if not mine.field("key").type.equals(wanted.field("key").type):
            what = f"the topic archive's column key is {mine.field('key').type}, not {wanted.field('key').type}"
            what += ": keys of another type have other bytes, which lie in other partitions"
            step = f"cast the keys to {mine.field('key').type}, or {step}"
            raise ConfigurationError(what, topic=self.topic, file=self.uri, next_step=step)
        try:
            value = united(mine.field("value").type, wanted.field("value").type)
        except ConfigurationError as error:
            place = {"topic": self.topic, "file": self.uri, **error.place}
            raise ConfigurationError(error.what, next_step=error.next_step, **place) from None
        return topic_schema(mine.field("key").type, value)

    @property
    def _files(self) -> FileIndex:
        """All files."""
        if isinstance(self._loaded.files, InputError):
            raise self._loaded.files
        return self._loaded.files

    def _check_partition(self, partition: int) -> None:
        if not 0 <= partition < self.partitions:
            what = f"the topic has partitions 0 to {self.partitions - 1}"
            raise ConfigurationError(what, topic=self.topic, partition=partition)


def _check_format(schema: pa.Schema, uri: str) -> None:
    """Checks that a table is a topic archive that this version reads."""
    names = [*topic_schema(pa.string(), pa.string()).names, "partition"]
    metadata = (schema.field("partition").metadata or {}) if "partition" in schema.names else {}
    if PARTITIONS_KEY.encode() not in metadata:
        step = "archive the topic into a new table"
        raise ConfigurationError("the table is not a topic archive", file=uri, next_step=step)
    if sorted(schema.names) != sorted(names):
        more, less = (
            [n for n in one if n not in other] for one, other in ((schema.names, names), (names, schema.names))
        )
        changes = [f"{verb} {', '.join(changed)}" for verb, changed in (("added", more), ("removed", less)) if changed]
        what = f"another program has changed the columns of the topic archive: it has {' and '.join(changes)}"
        topic = topic_of(uri)
        step = f"restore the archive's former version: hindstream topic {topic} (docs/runbooks/damaged-data.md)"
        raise ConfigurationError(what, topic=topic, file=uri, next_step=step)
    version = int(metadata.get(FORMAT_KEY.encode(), b"0"))
    if version > FORMAT_VERSION:
        what = f"the topic archive has format {version}, this Hindstream knows up to {FORMAT_VERSION}"
        raise ConfigurationError(what, file=uri, next_step="install the newer Hindstream that wrote it")
