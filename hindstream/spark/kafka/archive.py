"""Copies topics of a Kafka cluster into topic archives: what has come since the last time, exactly once.

A copy reads a range of offsets of each partition with Spark, writes files that nobody sees, and makes them part of
the archive in one Delta commit that also moves the positions (`statelib.topics.kafka_copy`). Killed at any moment, or
run by two drivers at once, nothing is missing and nothing is there twice: the next copy begins at the positions that
stand.
"""

from __future__ import annotations

import logging
import os
import pickle
import uuid
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pyarrow.compute as pc
import pyarrow.parquet as pq

from hindstream.kafka.cluster import Cluster
from hindstream.kafka.consumer import range_batches
from hindstream.lineage.reported import copy_reported
from hindstream.runs import now_ms, open_warehouse
from hindstream.spark.frames.arrow_batches import arrow_batches, records_for
from hindstream.spark.kafka.copy_range import RangeCopier, Written
from hindstream.spark.kafka.source import ensure_connector, kafka_frame
from hindstream.spark.session.session import spark_session
from hindstream.spark.tasks.works import TaskErrors, carry_user_code, run_action
from statelib.columns.times import LAST_TIME_MS
from statelib.commits.layout import quarantine_topic, topic_path
from statelib.errors.counted import counted
from statelib.errors.kinds import ConfigurationError, FencedError, InputError
from statelib.topics.archive import TopicArchive, topic_schema
from statelib.topics.future_records import FutureRecord
from statelib.topics.kafka_copy import CopiedRange, KafkaCopy, set_aside
from statelib.topics.orphaned_files import delete_passed
from statelib.topics.quarantined import QUARANTINE_SCHEMA

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from pyspark.sql import SparkSession

    from statelib.job.kafka_topic import KafkaTopic
    from statelib.settings.settings import Settings
    from statelib.storage import Storage
    from statelib.topics.files import ArchiveFile
    from statelib.topics.kafka_copy import CopiedPartition

_log = logging.getLogger(__name__)

_LONGEST_BYTES = 2**20
_DAY_MS = 86_400_000


@dataclass(frozen=True, slots=True)
class Copied:
    """What a copy of a topic came to.

    Attributes:
        topic: The topic in Kafka.
        archive: Its archive.
        ranges: By partition, what was copied this time; empty: there was nothing new.
        partitions: What became of all offsets up to now.
    """

    topic: str
    archive: str
    ranges: Mapping[int, CopiedRange]
    partitions: tuple[CopiedPartition, ...]


def archive_topics(topics: Sequence[KafkaTopic], settings: Settings) -> Iterator[Copied]:
    """Copies what has come since the last time, one topic after the other.

    Args:
        topics: The topics.
        settings: See `Settings`: ``kafka``, ``until``, ``on_bad_record`` and ``on_lost_record`` are for this.

    Raises:
        ConfigurationError: A topic is not in Kafka, or the archive has other partitions or is of another one.
        FencedError: Another copy of the topic has been quicker; what that has done stands.
        InputError: Records were deleted before they were copied, or cannot be decoded.
        RetryableError: The cluster, the warehouse or Spark did not answer.
    """
    carry_user_code()
    cluster = Cluster(settings)
    for topic in topics:
        with copy_reported(topic, settings) as copying:
            copied = _TopicArchiver(topic, cluster, settings).run()
            copying.is_new = bool(copied.ranges)
        yield copied


class _TopicArchiver:
    """One copy of one topic."""

    def __init__(self, topic: KafkaTopic, cluster: Cluster, settings: Settings) -> None:
        self._topic = topic
        self._cluster = cluster
        self._settings = settings
        self._warehouse = open_warehouse(settings)
        self._state = cluster.topic(topic.name)
        self._copy = self._open_copy()
        self._copy.check_origin(self._state.origin)

    def run(self) -> Copied:
        """Copies what is new."""
        ranges = self._new_ranges()
        self._tell_lost(ranges)
        if ranges:
            found = self._read(ranges)
            if self._settings.on_lost_record == "skip":  # else Spark has failed, had it come too late
                ranges = self._with_lost(ranges, found)
                self._tell_lost(ranges)
            self._commit(ranges, found)
            self._copy = self._open_copy()
            self._clean_up(ranges)
        topic = self._topic
        return Copied(topic.name, topic.archive_name, ranges, tuple(self._copy.partitions()))

    def _open_copy(self) -> KafkaCopy:
        """The archive, made if there is none."""
        topic, options = self._topic, self._warehouse.options
        schema = topic_schema(topic.key.arrow_type, topic.value.arrow_type)
        uri, partitions = self._warehouse.uri(topic_path(topic.archive_name)), len(self._state.ends)
        archive = TopicArchive.ensure(uri, schema, partitions, topic=topic.archive_name, options=options)
        aside = TopicArchive.open_if_present(self._warehouse.uri(topic_path(self._quarantine)), options=options)
        return KafkaCopy(archive, aside)

    @property
    def _quarantine(self) -> str:
        return quarantine_topic(self._topic.archive_name)

    def _new_ranges(self) -> dict[int, CopiedRange]:
        """What is to be copied, by partition; of one that has not been begun at least where it begins."""
        ranges = {}
        for partition, end in self._ends().items():
            begin, position = self._state.begins[partition], self._copy.position(partition)
            start = begin if position is None else position
            if start > self._state.ends[partition]:
                what = f"the archive is at offset {start}, and Kafka's partition ends at {self._state.ends[partition]}"
                step = "Kafka has lost records that were archived; archive what it has now under another name"
                raise ConfigurationError(what, topic=self._topic.name, partition=partition, next_step=step)
            if end > start or position is None:
                ranges[partition] = CopiedRange(start, max(end, start), lost=max(min(begin, end) - start, 0))
        return ranges

    def _ends(self) -> dict[int, int]:
        """By partition, the offset before which the copy ends.

        A record from the future ends none: where Kafka names one, all that is there is copied, since it has no answer
        to where the next record is that is not older than the slice's end.
        """
        ends, until_ms, rule = dict(self._state.ends), self._settings.until_ms, self._settings.max_future_rule
        if until_ms is None:
            return ends
        name, latest_ms = self._topic.name, LAST_TIME_MS if rule is None else rule.latest_of(now_ms())
        for partition, offset in self._cluster.offsets_from(name, list(ends), until_ms).items():
            if offset is None or offset >= ends[partition]:
                continue
            time_ms = next(self._cluster.messages_from(name, partition, offset)).timestamp()[1]
            if time_ms > min(latest_ms, LAST_TIME_MS):
                continue
            if time_ms >= until_ms + _DAY_MS:
                stopped = FutureRecord(
                    topic=name, partition=partition, offset=offset, timestamp_ms=time_ms, in_slice=False
                )
                _log.warning("%s. Next: %s", stopped, stopped.next_step)
            ends[partition] = offset
        return ends

    def _tell_lost(self, ranges: Mapping[int, CopiedRange]) -> None:
        """An error, or a warning, where something is lost."""
        lost = {partition: found for partition, found in ranges.items() if found.lost}
        if not lost:
            return
        total = sum(found.lost for found in lost.values())
        partition, first = next(iter(lost.items()))
        places = counted(len(lost), "partition")
        what = f"Kafka has deleted {counted(total, 'offset')} in {places} before they were archived"
        if self._settings.on_lost_record == "fail":
            step = "set on_lost_record to skip: they are counted, and the archive continues with the remaining records"
            place = {"topic": self._topic.name, "partition": partition, "offset": first.start}
            raise InputError(what, **place, next_step=step)
        _log.warning("%s: %s", self._topic.name, what)

    def _read(self, ranges: Mapping[int, CopiedRange]) -> Written:
        """Has Spark read the ranges, and its workers write what they hold."""
        there = {p: (found.start + found.lost, found.end) for p, found in ranges.items()}
        there = {partition: (start, end) for partition, (start, end) in there.items() if start < end}
        if not there:
            return Written((), ())
        far = self._far_times(there)
        by_spark = {p: (start, min(end, far.get(p, end))) for p, (start, end) in there.items()}
        by_spark = {partition: (start, end) for partition, (start, end) in by_spark.items() if start < end}
        spark = spark_session(self._settings)
        copier = RangeCopier(
            self._topic,
            archive=self._copy.archive.storage,
            quarantine=self._warehouse.within(topic_path(self._quarantine)),
            policy=self._settings.on_bad_record,
            quarantined_to={partition: self._copy.quarantine_position(partition) or 0 for partition in ranges},
            nonce=uuid.uuid4().hex[:8],
            errors=TaskErrors(spark.sparkContext),
        )
        parts = self._read_with_spark(spark, copier, by_spark) if by_spark else []
        for partition, start in far.items():
            parts += self._read_here(copier, partition, start, there[partition][1])
        return Written(
            tuple(file for part in parts for file in part.files),
            tuple(file for part in parts for file in part.quarantined),
        )

    def _far_times(self, ranges: Mapping[int, tuple[int, int]]) -> dict[int, int]:
        """By partition, from where on it may have records with a time that no topic can hold; others have none.

        Spark cannot read them: its timestamps are microseconds in 64 bits, and a task that meets one fails.
        """
        first = self._cluster.offsets_from(self._topic.name, list(ranges), LAST_TIME_MS + 1)
        found = {p: max(first, ranges[p][0]) for p, first in first.items() if first is not None}
        return {partition: start for partition, start in found.items() if start < ranges[partition][1]}

    def _read_with_spark(
        self, spark: SparkSession, copier: RangeCopier, ranges: Mapping[int, tuple[int, int]]
    ) -> list[Written]:
        ensure_connector(spark)
        frame = kafka_frame(spark, self._topic.name, ranges, self._settings)
        name, tasks = f"archive {self._topic.name}", frame.rdd.getNumPartitions()
        rows = frame.mapInArrow(copier, "written binary")
        with arrow_batches(spark, records_for(self._longest_bytes())):
            collected = run_action(
                spark.sparkContext,
                rows.collect,
                copier.errors,
                name=name,
                tasks=tasks,
                place={"topic": self._topic.name},
            )
        return [pickle.loads(row.written) for row in collected]  # noqa: S301 - from our own workers

    def _read_here(self, copier: RangeCopier, partition: int, start: int, end: int) -> list[Written]:
        """Reads a range in this process, record by record."""
        found = self._cluster.messages_from(self._topic.name, partition, start)
        written = copier.copy(range_batches(found, partition, end), f"kafka.{copier.nonce}-here-{os.getpid()}")
        return [] if written is None else [written]

    def _longest_bytes(self) -> int:
        """What a batch of records of the topic may take; Kafka's default where its configuration may not be read."""
        try:
            return int(self._cluster.topic_config(self._topic.name)["max.message.bytes"])
        except ConfigurationError:
            return _LONGEST_BYTES

    def _with_lost(self, ranges: Mapping[int, CopiedRange], written: Written) -> dict[int, CopiedRange]:
        """The ranges, with what Kafka has deleted before Spark came to it, which then went on behind that.

        Offsets that were absent among the deleted ones count as lost: nobody can tell.
        """
        aside = self._warehouse.within(topic_path(self._quarantine))
        found = {}
        for partition, begin in self._cluster.begins(self._topic.name, list(ranges)).items():
            copied = ranges[partition]
            deleted = len(range(copied.start + copied.lost, min(begin, copied.end)))
            if deleted:
                deleted -= _rows_before(self._copy.archive.storage, written.files, partition, begin)
                deleted -= _rows_before(aside, written.quarantined, partition, begin)
            found[partition] = replace(copied, lost=copied.lost + deleted)
        return found

    def _commit(self, ranges: Mapping[int, CopiedRange], written: Written) -> None:
        """Makes what was written part of the archive; removes it where another copy was quicker."""
        time_ms = now_ms()
        quarantine = self._copy.quarantine
        moves = {p: (self._copy.quarantine_position(p), copied.end) for p, copied in ranges.items()}
        if quarantine is None and written.quarantined:
            uri = self._warehouse.uri(topic_path(self._quarantine))
            partitions, options = self._copy.archive.partitions, self._warehouse.options
            quarantine = TopicArchive.ensure(
                uri, QUARANTINE_SCHEMA, partitions, topic=self._quarantine, options=options
            )
        try:
            if quarantine is not None:
                set_aside(quarantine, written.quarantined, moves, time_ms=time_ms)
            self._copy.advance(written.files, ranges, origin=self._state.origin, time_ms=time_ms)
        except FencedError:
            self._copy.archive.storage.delete([file.path for file in written.files])
            if quarantine is not None:
                held = {file.path for file in quarantine.refresh().present(written.quarantined)}
                quarantine.storage.delete([file.path for file in written.quarantined if file.path not in held])
            raise

    def _clean_up(self, ranges: Mapping[int, CopiedRange]) -> None:
        """Deletes what copies that were stopped have left where this one has been."""
        for archive in filter(None, (self._copy.archive, self._copy.quarantine)):
            delete_passed(archive, {partition: (found.start, found.end) for partition, found in ranges.items()})


def _rows_before(storage: Storage, files: Iterable[ArchiveFile], partition: int, offset: int) -> int:
    """How many records of a partition's files lie before an offset."""
    rows = 0
    for file in (file for file in files if file.partition == partition and file.first_offset < offset):
        if file.last_offset < offset:
            rows += file.rows
        else:
            with storage.open_input(file.path) as opened:
                offsets = pq.read_table(opened, columns=["offset"])["offset"]
            rows += pc.sum(pc.less(offsets, offset)).as_py()
    return rows
