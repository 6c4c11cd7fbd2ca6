"""Runs in a Spark worker: writes what Spark has read of one range of a partition's offsets."""

from __future__ import annotations

import pickle
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hindstream.spark.tasks.works import attempt_name
from statelib.columns.time_columns import out_of_reach, out_of_reach_reason
from statelib.columns.times import LAST_TIME_MS
from statelib.errors.kinds import InputError
from statelib.serdes.base import within_reach
from statelib.topics.parquet.schema import HEADERS, TIMESTAMP, topic_schema
from statelib.topics.parquet.writer import PartitionWriter
from statelib.topics.quarantined import QUARANTINE_SCHEMA, VALUE_TYPE

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from numpy.typing import NDArray

    from hindstream.spark.tasks.works import TaskErrors
    from statelib.job.kafka_topic import KafkaTopic
    from statelib.serdes import Lenient
    from statelib.storage import Storage
    from statelib.topics.files import ArchiveFile

_NONE = pa.RecordBatch.from_pylist([], QUARANTINE_SCHEMA)
WRITTEN = pa.schema([("written", pa.binary())])


class Written(NamedTuple):
    """What a range came to: the files of its records, and of those that cannot be decoded."""

    files: tuple[ArchiveFile, ...]
    quarantined: tuple[ArchiveFile, ...]


@dataclass(frozen=True, slots=True)
class RangeCopier:
    """Writes the records of a range; travels to Spark's workers.

    Attributes:
        topic: What is read, and how it is decoded.
        archive: Rooted at the archive.
        quarantine: Rooted at that of undecodable records.
        policy: What becomes of these.
        quarantined_to: By partition, the offset before which these are in quarantine already.
        nonce: Unique to this copy; part of the files' names.
        errors: Takes those that no repeat would mend, and of the last attempt all.
    """

    topic: KafkaTopic
    archive: Storage
    quarantine: Storage
    policy: Literal["fail", "quarantine"]
    quarantined_to: Mapping[int, int]
    nonce: str
    errors: TaskErrors

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """One row for the range, with a pickled `Written`; none where there are no records.

        Args:
            batches: As Spark's Kafka source gives them, of one partition, ascending by offset.
        """
        with self.errors.told():
            written = self.copy(batches, attempt_name(f"kafka.{self.nonce}"))
            if written is not None:
                yield pa.RecordBatch.from_pydict({"written": [pickle.dumps(written)]}, WRITTEN)

    def copy(self, batches: Iterable[pa.RecordBatch], attempt: str) -> Written | None:
        """The files that the records of a range came to; None: there are none.

        Raises:
            InputError: One cannot be decoded, or has a time that no topic can hold, and such are not set apart.
        """
        writers: tuple[PartitionWriter, PartitionWriter] | None = None
        try:
            for batch in batches:
                if not batch.num_rows:
                    continue
                partition = batch["partition"][0].as_py()
                writers = writers or self._writers(partition, attempt)
                for writer, records in zip(writers, self._decoded(batch, partition), strict=True):
                    writer.write(records)
        except BaseException:
            for writer in writers or ():
                writer.abort()
            raise
        return Written(writers[0].close(), writers[1].close()) if writers else None

    def _writers(self, partition: int, attempt: str) -> tuple[PartitionWriter, PartitionWriter]:
        schema = topic_schema(self.topic.key.arrow_type, self.topic.value.arrow_type)
        return (
            PartitionWriter(self.archive, schema, partition, attempt=attempt, topic=self.topic.archive_name),
            PartitionWriter(self.quarantine, QUARANTINE_SCHEMA, partition, attempt=attempt),
        )

    def _decoded(self, batch: pa.RecordBatch, partition: int) -> tuple[pa.RecordBatch, pa.RecordBatch]:
        """The records of a batch as an archive's, and those that cannot be decoded as a quarantine's."""
        key = within_reach(self.topic.key.deserialize_lenient(batch["key"]))
        value = within_reach(self.topic.value.deserialize_lenient(batch["value"]))
        records = _records(batch, key.values, value.values)
        far = out_of_reach(batch["timestamp"])
        bad = key.bad | value.bad if far is None else key.bad | value.bad | far
        if not bad.any():
            return records, _NONE
        reasons = pc.coalesce(_of_timestamp(batch["timestamp"], far), _reasons(key, value))
        if self.policy == "fail":
            row = int(bad.argmax())
            done = "decoded" if far is None or not far[row] else "archived"
            raise InputError(
                f"a record cannot be {done}: {reasons[row].as_py()}",
                topic=self.topic.name,
                partition=partition,
                offset=batch["offset"][row].as_py(),
                next_step="correct how the topic is declared, or set on_bad_record to quarantine to set it apart",
            )
        again = batch["offset"].to_numpy() < self.quarantined_to.get(partition, 0)
        aside = pa.array(bad & ~again)
        return records.filter(pa.array(~bad)), self._quarantined(batch.filter(aside), reasons.filter(aside), partition)

    def _quarantined(self, batch: pa.RecordBatch, reasons: pa.Array, partition: int) -> pa.RecordBatch:
        value = pa.StructArray.from_arrays(
            [
                pa.repeat(self.topic.name, len(batch)),
                pa.array(np.full(len(batch), partition, np.int32)),
                batch["offset"],
                _milliseconds(batch),
                reasons,
                batch["value"],
            ],
            fields=list(VALUE_TYPE),
        )
        bounded = pa.array(np.minimum(_milliseconds(batch).to_numpy(), LAST_TIME_MS)).cast(TIMESTAMP)
        return _records(batch, batch["key"], value).set_column(1, "timestamp", bounded)


def _records(batch: pa.RecordBatch, key: pa.Array, value: pa.Array) -> pa.RecordBatch:
    columns = {
        "offset": batch["offset"],
        "timestamp": batch["timestamp"].cast(TIMESTAMP),
        "key": key,
        "value": value,
        "headers": batch["headers"].cast(HEADERS),
    }
    return pa.RecordBatch.from_pydict(columns)


def _milliseconds(batch: pa.RecordBatch) -> pa.Array:
    return batch["timestamp"].cast(TIMESTAMP).cast(pa.int64())


def _of_timestamp(timestamp: pa.Array, far: NDArray[np.bool_] | None) -> pa.Array:
    """What is wrong with the timestamps of records, null where nothing is."""
    reasons = np.full(len(timestamp), None, np.object_)
    for row in [] if far is None else np.flatnonzero(far).tolist():
        reasons[row] = f"timestamp: {out_of_reach_reason(timestamp, row)}"
    return pa.array(reasons, pa.string())


def _reasons(key: Lenient, value: Lenient) -> pa.Array:
    of_key = pc.binary_join_element_wise("key: ", key.reasons, "")
    of_value = pc.binary_join_element_wise("value: ", value.reasons, "")
    return pc.coalesce(of_key, of_value)
