"""The records that an Iceberg table should have: those of the job that its readers read, in the order of its history.

The records of a partition are numbered from 0, whichever topics they lie in: a fork's own come behind those that it
shares with the job that it stands on. So the number of a record stays as long as the record does, and tells which ones
a rollback or a promotion takes back: all from the first that is not the same.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from hindstream.iceberg.position import Part, TablePosition
from statelib.commits.archives import open_archive_if_present
from statelib.commits.layout import CommitLog, fork_topic
from statelib.commits.sources.rollbacks import rollback_notices
from statelib.commits.versions.sink_history import sink_history
from statelib.documents.upkeep import ROLLBACKS
from statelib.topics.parquet.schema import HEADERS
from statelib.topics.parquet.schema_changes import read_as, united

if TYPE_CHECKING:
    from collections.abc import Iterator

    from statelib.commits.versions.publishers import Publisher
    from statelib.storage import Storage
    from statelib.topics.archive import TopicArchive

TIMESTAMP = pa.timestamp("us", "UTC")
"""Iceberg's times are microseconds."""


@dataclass(frozen=True)
class Sink:
    """What a sink has, at one instant.

    Attributes:
        position: Where it ends.
        archives: Of the topics of ``position``.
        schema: The table's columns.
    """

    position: TablePosition
    archives: tuple[TopicArchive, ...]
    schema: pa.Schema

    def kept(self, published: TablePosition, warehouse: Storage) -> list[int]:
        """By partition, how many of the records that are published stand: those before the first other one.

        Raises:
            CorruptedDataError: The notice of a rollback is missing or damaged.
        """
        kept = [0] * max(self.position.partitions, published.partitions)
        ended = [False] * len(kept)
        for before, now in zip(published.parts, self.position.parts, strict=False):
            if (before.topic, before.table_id) != (now.topic, now.table_id):
                break
            notices = list(rollback_notices(warehouse, now.topic, after=before.rollback, newest=now.rollback))
            for partition in range(len(kept)):
                ends = [part.ends[partition] if partition < len(part.ends) else 0 for part in (before, now)]
                same = min([*ends, *(notice.end_offsets.get(partition, 0) for notice in notices)])
                kept[partition] += 0 if ended[partition] else same
                ended[partition] |= not same == ends[0] == ends[1]
        return kept

    def behind(self, partition: int, kept: int) -> Iterator[pa.RecordBatch]:
        """The records of a partition behind those that are kept."""
        first = 0
        for part, archive in zip(self.position.parts, self.archives, strict=True):
            end = part.ends[partition] if partition < len(part.ends) else 0
            if first + end > kept:
                for batch in archive.reader(partition, max(kept - first, 0), end):
                    yield self._row_batch(batch, partition, first)
            first += end

    def _row_batch(self, batch: pa.RecordBatch, partition: int, first: int) -> pa.RecordBatch:
        count = batch.num_rows
        columns = {
            "partition": pa.array([partition] * count, pa.int32()),
            "offset": pc.add(batch["offset"], first),
            "timestamp": batch["timestamp"].cast(TIMESTAMP),
            "key": read_as(batch["key"], self.schema.field("key").type, "key"),
            "value": read_as(batch["value"], self.schema.field("value").type),
            "headers": batch["headers"].cast(HEADERS),
        }
        return pa.RecordBatch.from_pydict(columns, schema=self.schema)


def sink_of(warehouse: Storage, publisher: Publisher) -> Sink | None:
    """What the job that publishes has in a sink; None: nothing yet.

    Raises:
        ConfigurationError: The job that a fork stands on no longer has the records before it; or fields of both do not
            go together.
        CorruptedDataError: A document of a job is damaged.
    """
    own = publisher.sink if publisher.job == publisher.readers else fork_topic(publisher.sink, publisher.job)
    ends: dict[str, dict[int, int]] = {}
    for part in sink_history(warehouse, publisher.job).get(publisher.sink, ()):
        ends.setdefault(part.topic, {})[part.partition] = part.end_offset
    parts, archives = [], []
    for topic in [*(topic for topic in ends if topic != own), own]:
        archive = open_archive_if_present(warehouse, topic)
        if archive is None:
            continue
        there = archive.end_offsets()
        # Of its own topic the archive alone says how far it goes: a commit may not be published yet, or just be.
        reach = there if topic == own else {p: min(end, there.get(p, 0)) for p, end in ends[topic].items()}
        parts.append(
            Part(
                topic=topic,
                table_id=archive.table_id,
                rollback=archive.last_transaction(ROLLBACKS) or 0,
                ends=tuple(reach.get(partition, 0) for partition in range(archive.partitions)),
            )
        )
        archives.append(archive)
    if not archives:
        return None
    first = CommitLog(warehouse, publisher.readers).read_if_present(1)
    position = TablePosition(
        readers=publisher.readers,
        made_at_ms=None if first is None else first.created_at_ms,
        job=publisher.job,
        parts=tuple(parts),
    )
    return Sink(position, tuple(archives), _columns(archives))


def _columns(archives: list[TopicArchive]) -> pa.Schema:
    key, value = (archives[0].schema.field(name).type for name in ("key", "value"))
    for archive in archives[1:]:
        key = united(key, archive.schema.field("key").type, "key")
        value = united(value, archive.schema.field("value").type)
    return pa.schema([
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("timestamp", TIMESTAMP),
        ("key", _stored(key)),
        ("value", _stored(value)),
        ("headers", HEADERS),
    ])  # fmt: skip


def _stored(type_: pa.DataType) -> pa.DataType:
    """Iceberg's narrowest whole numbers have 32 bits."""
    if pa.types.is_struct(type_):
        return pa.struct([field.with_type(_stored(field.type)) for field in type_])
    if pa.types.is_list(type_):
        return pa.list_(_stored(type_.value_type))
    if pa.types.is_map(type_):
        return pa.map_(_stored(type_.key_type), _stored(type_.item_type))
    return pa.int32() if type_ in {pa.int8(), pa.int16()} else type_
