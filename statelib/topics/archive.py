"""A topic at rest: a Delta table with one directory per Kafka partition. SIGNATURES; bodies follow."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import pyarrow as pa

from statelib.storage import Storage
from statelib.topics.files import ArchiveFile
from statelib.topics.reader import PartitionReader
from statelib.topics.writer import FileLimits, PartitionWriter


def topic_schema(key: pa.DataType, value: pa.DataType) -> pa.Schema:
    """The columns of a topic's files: offset int64, timestamp timestamp[ms, UTC], key, value, headers (in this order).

    Raises ConfigurationError: a type that Delta cannot hold exactly (unsigned integers, ...), naming the field.
    """
    raise NotImplementedError


class TopicArchive:
    """A version of a topic archive. Immutable; `refresh` gives the newest."""

    topic: str
    uri: str
    version: int  # Delta version
    partitions: int
    schema: pa.Schema  # as topic_schema gives it: physical columns of the files
    schema_json: str  # Delta schema, for manifests
    storage: Storage  # rooted at the table's directory

    @classmethod
    def create(cls, uri: str, schema: pa.Schema, partitions: int, *, topic: str | None = None,
               options: Mapping[str, str] | None = None) -> TopicArchive:
        """Makes an empty archive; ConfigurationError if there is a table already. topic defaults to the URI's last part."""
        raise NotImplementedError

    @classmethod
    def open(cls, uri: str, version: int | None = None, *, options: Mapping[str, str] | None = None) -> TopicArchive:
        """Opens it; ConfigurationError if it is not there or not a topic archive."""
        raise NotImplementedError

    @classmethod
    def ensure(cls, uri: str, schema: pa.Schema, partitions: int, *, topic: str | None = None,
               options: Mapping[str, str] | None = None) -> TopicArchive:
        """Opens it, or creates it; ConfigurationError if the one that is there has other partitions or another schema."""
        raise NotImplementedError

    def refresh(self) -> TopicArchive:
        """The newest version."""
        raise NotImplementedError

    def files(self, partition: int, start_offset: int = 0, end_offset: int | None = None) -> list[ArchiveFile]:
        """The files with offsets in [start_offset, end_offset), ascending."""
        raise NotImplementedError

    def start_offsets(self) -> dict[int, int]:
        """By partition, the first offset that the archive holds (its end offset if it holds none)."""
        raise NotImplementedError

    def end_offsets(self) -> dict[int, int]:
        """By partition, the offset after the last one; 0 for an empty partition."""
        raise NotImplementedError

    def max_timestamp_ms(self) -> int | None:
        """The largest timestamp in the archive, None if it is empty."""
        raise NotImplementedError

    def last_transaction(self, app_id: str) -> int | None:
        """The last version committed by ``app_id``."""
        raise NotImplementedError

    def commit(self, files: Sequence[ArchiveFile], *, app_id: str, app_version: int, modification_time_ms: int = 0) -> bool:
        """Adds files and the application transaction in one Delta commit; False, and nothing changes, if
        ``app_id`` has committed ``app_version`` or a later one already. Safe against concurrent writers and repeats.
        InputError if files overlap with what is there."""
        raise NotImplementedError

    def append(self, records: pa.Table | Iterable[pa.RecordBatch], *, attempt: str, app_id: str, app_version: int,
               limits: FileLimits = FileLimits()) -> bool:
        """Archives records (columns key, value, timestamp, optionally headers) in the order given."""
        raise NotImplementedError

    def reader(self, partition: int, start_offset: int = 0, end_offset: int | None = None, *,
               columns: Sequence[str] | None = None, batch_rows: int = 65_536) -> PartitionReader:
        raise NotImplementedError

    def writer(self, partition: int, *, attempt: str, limits: FileLimits = FileLimits()) -> PartitionWriter:
        raise NotImplementedError

    def checkpoint(self) -> None:
        """Writes a checkpoint of the Delta log (also done every 50 commits)."""
        raise NotImplementedError
