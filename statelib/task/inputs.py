"""What a task reads: a source for each source node, and how far each of their partitions has been taken up."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from statelib.columns.arrow_buffers import fixed_width
from statelib.commits.layout import topic_path
from statelib.documents.places import place_of
from statelib.documents.plans import SourceRange
from statelib.errors.kinds import InternalError
from statelib.operators.mappers.fields import both, fields_of_mapper, reads_key
from statelib.task.copartitioned import CopartitionedCheck
from statelib.task.future_records import FutureLimit
from statelib.task.merge import Merged, merge
from statelib.task.sources import GlobalSource, Progress, RepartitionSource, TopicSource, records_of
from statelib.topics.parquet.reader import PartitionReader
from statelib.topology.copartitioned_sources import beside_repartitions
from statelib.topology.projection import wanted_fields

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from statelib.documents.manifests import TaskPosition
    from statelib.operators.mappers.fields import Fields
    from statelib.storage import Storage
    from statelib.task.quarantine import Quarantine
    from statelib.task.source_records import Records
    from statelib.task.work import TaskWork
    from statelib.topology import Source

_LONG = 1 << 30


class Inputs:
    """The sources of a task, in the topology's order.

    Args:
        work: The task.
        before: Where it stood.
        storage: The warehouse.
        quarantine: Takes records that cannot be used.
        staging: Where the repartition files are; None: in the warehouse.
        fields: What is looked at of what each source reads; None: what the nodes of ``work`` do.
    """

    def __init__(
        self,
        work: TaskWork,
        before: TaskPosition,
        *,
        storage: Storage,
        quarantine: Quarantine,
        staging: Storage | None = None,
        fields: Mapping[str, Fields] | None = None,
    ) -> None:
        self._work = work
        self._before = before
        self._storage = storage
        self._staging = storage if staging is None else staging
        self._quarantine = quarantine
        self._progress: dict[str, Progress] = {}
        self._fields = wanted_fields(work.sub_topology.nodes) if fields is None else fields
        self._beside = beside_repartitions(work.sub_topology.nodes)
        self._sources = [self._open(node) for node in work.sub_topology.all_sources]
        self.most_at_once: int | None = None
        """How many records are taken up at a time at most, however many have been read; None: any number."""
        self.nothing = [source.empty for source in self._sources]
        """No records, of the types of each source."""

    def taken_up(self) -> Iterator[tuple[Merged, list[Records]]]:
        """The merged order of all sources, and of each run of it the rows of each source."""
        for merged in self._pieces():
            parts = zip(merged.parts, self.nothing, strict=True)
            yield merged, [none if part is None else part for part, none in parts]

    def _pieces(self) -> Iterator[Merged]:
        for merged in merge(self._sources):
            rest = merged
            while self.most_at_once is not None and len(rest) > self.most_at_once:
                first, rest = rest.cut(self.most_at_once)
                yield first
            yield rest

    def passed_on(self, source: int, rows: pa.RecordBatch) -> tuple[Merged, list[Records]]:
        """Rows of a repartition topic that no file has been written for yet, as a run of the merged order.

        Args:
            source: The topic's, among the task's.
            rows: See `statelib.task.sinks.RepartitionSink`.
        """
        reader = self._sources[source]
        if not isinstance(reader, RepartitionSource):
            raise InternalError("records are passed on to a source that reads an archive")
        parts = list(self.nothing)
        parts[source] = reader.numbered(records_of(rows))
        none = np.empty(0, np.int64)
        rank = tuple(np.arange(len(rows)) if index == source else none for index in range(len(parts)))
        return Merged(tuple(parts), rank), parts

    def offsets(self) -> dict[str, int]:
        """The next offset to take up after the slice, by ``<topic>/<partition>``."""
        offsets = {place: progress.next_offset for place, progress in self._progress.items()}
        planned = {place_of(part.topic, part.partition): part.end_offset for part in self._work.planned.sources}
        return {**offsets, **planned}  # behind the last record there may be holes

    def times(self) -> dict[str, int]:
        """The largest timestamp taken up, by ``<topic>/<partition>``."""
        return {place: progress.max_timestamp for place, progress in self._progress.items()}

    def _open(self, node: Source) -> TopicSource | GlobalSource | RepartitionSource:
        work = self._work
        if node.internal:
            files = [file for file in work.repartitions if file.topic == node.topic]
            progress = self._progress_of(node.topic, work.planned.partition)
            return RepartitionSource(files, self._staging, progress=progress, types=work.repartition_types[node.topic])
        parts = [part for part in work.planned.sources if part.topic == node.topic]
        if node.is_global:
            bootstrap = node.reading == "bootstrap"
            return GlobalSource([self._partition(node, part) for part in parts], bootstrap=bootstrap)
        if not parts:  # the topic has fewer partitions than another one of the sub-topology
            nothing = SourceRange(topic=node.topic, partition=0, start_offset=0, end_offset=0, records=0)
            reader = self._reader(node, nothing)
            return TopicSource(node, reader, partition=0, progress=Progress(), quarantine=self._quarantine)
        return self._partition(node, parts[0])

    def _partition(self, node: Source, part: SourceRange) -> TopicSource:
        reader, progress = self._reader(node, part), self._progress_of(part.topic, part.partition)
        return TopicSource(
            node,
            reader,
            partition=part.partition,
            progress=progress,
            quarantine=self._quarantine,
            placed=self._placed(node, part.partition),
            future=self._future(node.topic, part.partition),
        )

    def _placed(self, node: Source, partition: int) -> CopartitionedCheck | None:
        beside = self._beside.get(node.name)
        partitions = 1 if beside is None else self._work.partitions[beside]
        if beside is None or partitions == 1:
            return None
        return CopartitionedCheck(node.topic, partition, partitions, beside)

    def _future(self, topic: str, partition: int) -> FutureLimit | None:
        files = self._work.source_files[topic]
        if partition not in files.latest_ms:
            return None
        begins = np.array([file.first_offset for file in files.by_partition[partition]])
        return FutureLimit(begins, np.array(files.latest_ms[partition]), self._work.settings.on_future_record)

    def _reader(self, node: Source, part: SourceRange) -> PartitionReader:
        source = self._work.source_files[node.topic]
        return PartitionReader(
            self._storage.within(topic_path(node.topic)),
            source.by_partition.get(part.partition, ()),
            source.table_schema,
            wanted=source.schema,
            topic=node.topic,
            partition=part.partition,
            start_offset=part.start_offset,
            end_offset=part.end_offset,
            columns=self._columns(node, source.schema),
            batch_rows=self._work.settings.batch_records,
            encoded_keys=node.consumed.key_serde is None and not reads_key(node.consumed.timestamp_extractor.mapper),
        )

    def _columns(self, node: Source, schema: pa.Schema) -> list[str] | None:
        """The columns that the task needs of a topic; None: all of them.

        A record that is kept aside is kept whole, and what is still encoded is one column.
        """
        settings, value_type = self._work.settings, schema.field("value").type
        timestamp = fields_of_mapper(node.consumed.timestamp_extractor.mapper)
        wanted = both([self._fields[node.name], timestamp])
        keeps_aside = (
            settings.on_bad_record != "fail"
            or settings.on_processing_error != "fail"
            or settings.on_late_record != "drop"
        )
        keeps_aside = keeps_aside or bool(self._work.source_files[node.topic].latest_ms)
        if wanted is None or keeps_aside or node.consumed.value_serde is not None or not pa.types.is_struct(value_type):
            return None
        fields = [field.name for field in value_type if field.name in wanted]
        if not fields:  # whether a value is null still shows in any of its fields
            fields = [min(value_type, key=lambda field: fixed_width(field.type) or _LONG).name]
        return [name for name in schema.names if name != "value"] + [f"value.{name}" for name in fields]

    def _progress_of(self, topic: str, partition: int) -> Progress:
        place = place_of(topic, partition)
        offset, time = self._before.source_offsets.get(place, 0), self._before.source_times.get(place, -1)
        return self._progress.setdefault(place, Progress(offset, time))
