"""Archives the rows of any Spark frame as a topic: a table, files in Parquet, JSON or CSV, the result of a query.

Rows go to the partitions that a producer with Kafka's default partitioner would give their keys, each partition in the
order of timestamps, and are added in one Delta commit. A load has a name, and is made once.
"""

from __future__ import annotations

import pickle
import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from pyspark.sql import functions as f
from pyspark.sql.pandas.types import to_arrow_schema

from spark_jobs.arrow_batches import arrow_batches
from spark_jobs.runs import now_ms, open_warehouse
from spark_jobs.spark_tasks import TaskErrors, attempt_name, carry_user_code, run_action
from statelib.commits.archives import open_archive_if_present
from statelib.commits.layout import topic_path
from statelib.errors import ConfigurationError, InputError, RetryableError
from statelib.serdes import serde_for
from statelib.topics.actions import OffsetsTakenError
from statelib.topics.archive import TopicArchive
from statelib.topics.partitioner import partition_for
from statelib.topics.passed import delete_passed
from statelib.topics.schema import TIMESTAMP, topic_schema
from statelib.topics.writer import PartitionWriter

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from pyspark.sql import DataFrame

    from statelib.config import Settings
    from statelib.serdes import Serde
    from statelib.storage import Storage
    from statelib.topics.files import ArchiveFile


def archive_frame(
    frame: DataFrame,
    topic: str,
    settings: Settings,
    *,
    load: str,
    partitions: int,
    timestamp: str,
    key: str | None = None,
    value: str | Sequence[str] | None = None,
    key_serde: Serde | None = None,
    order_by: Sequence[str] = (),
) -> bool:
    """Adds a frame's rows to a topic archive, which is made if there is none.

    ::

        days = spark.read.parquet("s3://lake/flights/2013-*")
        archive_frame(days, "flights", settings, load="2013", partitions=4, timestamp="departed", key="origin")

    Args:
        frame: The rows.
        topic: The archive's name.
        settings: See `Settings`: where the warehouse is.
        load: Names these rows: whoever loads the same name again changes nothing.
        partitions: Of the topic.
        timestamp: The column of the records' timestamps: a timestamp, or milliseconds since 1970.
        key: The column of their keys; None: they have none, and are spread evenly.
        value: The column of their values, or those that make a struct; None: all that are neither key nor timestamp.
        key_serde: How keys become the bytes that decide the partition; None: as Kafka's own serdes write their type.
        order_by: Columns that order rows of the same timestamp within a partition; else their order is left to Spark.

    Returns:
        Whether the rows were added: False if a load of that name has been.

    Raises:
        ConfigurationError: There is no such column; a type that an archive cannot hold; the archive has other columns
            or partitions.
        InputError: A row has no timestamp.
        RetryableError: Somebody else has added to the topic meanwhile; or Spark or the store did not answer.
    """
    shaped = _shaped(frame, timestamp, key, value, order_by)
    warehouse, app_id = open_warehouse(settings), f"load:{load}"
    arrow = to_arrow_schema(shaped.schema)
    schema = topic_schema(arrow.field("key").type, arrow.field("value").type)
    there = open_archive_if_present(warehouse, topic)
    if there is not None:
        there.check_shape(schema, partitions)
        if there.has_committed(app_id, 1):
            return False
    starts = dict.fromkeys(range(partitions), 0) if there is None else there.end_offsets()
    serde = key_serde or serde_for(schema.field("key").type)
    files = _written(shaped, serde, schema, starts, warehouse.within(topic_path(topic)), order_by, topic)
    archive = there or TopicArchive.ensure(
        warehouse.uri(topic_path(topic)), schema, partitions, topic=topic, options=warehouse.options
    )
    try:
        added = archive.commit(files, app_id=app_id, app_version=1, modification_time_ms=now_ms())
    except OffsetsTakenError as error:
        archive.storage.delete([file.path for file in files])
        what = "another writer added to the topic at the same time"
        raise RetryableError(what, topic=topic, load=load, next_step="load it again") from error
    newest = archive.refresh()
    delete_passed(newest, {p: (starts[p], end) for p, end in newest.end_offsets().items() if starts[p] < end})
    return added


def _written(
    shaped: DataFrame,
    serde: Serde,
    schema: pa.Schema,
    starts: Mapping[int, int],
    storage: Storage,
    order_by: Sequence[str],
    topic: str,
) -> list[ArchiveFile]:
    """Has Spark put the rows where they belong, and its workers write them."""
    carry_user_code()
    spark, partitions = shaped.sparkSession, len(starts)
    errors = TaskErrors(spark)
    placed = shaped.mapInArrow(_Place(serde, schema, partitions, errors), _with_partition(shaped))
    ordered = placed.repartitionById(partitions, "partition").sortWithinPartitions("timestamp", *_extra(order_by))
    writer = _Write(storage, schema, starts, f"load.{uuid.uuid4().hex[:8]}", errors)
    collect = ordered.mapInArrow(writer, "written binary").collect
    with arrow_batches(spark):
        rows = run_action(spark, collect, errors, name=f"load {topic}", tasks=partitions, place={"topic": topic})
    return [file for row in rows for file in pickle.loads(row.written)]  # noqa: S301 - from our own workers


def _shaped(
    frame: DataFrame, timestamp: str, key: str | None, value: str | Sequence[str] | None, order_by: Sequence[str]
) -> DataFrame:
    """Columns key, value, timestamp (ms), and those of ``order_by``."""
    named = {timestamp, *order_by, *([key] if key else []), *([value] if isinstance(value, str) else value or ())}
    if missing := sorted(named - set(frame.columns)):
        step = f"it has {', '.join(frame.columns)}"
        raise ConfigurationError("the frame has no such column", column=", ".join(missing), next_step=step)
    rest = [name for name in frame.columns if name not in {key, timestamp}]
    made = f.col(f"`{value}`") if isinstance(value, str) else f.struct(*(f"`{name}`" for name in value or rest))
    time = f.col(f"`{timestamp}`")
    is_number = frame.schema[timestamp].dataType.typeName() in {"long", "integer"}
    return frame.select(
        (f.col(f"`{key}`") if key else f.lit(None).cast("string")).alias("key"),
        made.alias("value"),
        (time.cast("long") if is_number else f.unix_millis(time.cast("timestamp"))).alias("timestamp"),
        *(f.col(f"`{name}`").alias(extra) for name, extra in zip(order_by, _extra(order_by), strict=True)),
    )


def _extra(order_by: Sequence[str]) -> list[str]:
    return [f"order_{n}" for n in range(len(order_by))]


def _with_partition(shaped: DataFrame) -> str:
    fields = [f"`{field.name}` {field.dataType.simpleString()}" for field in shaped.schema.fields]
    return ", ".join([*fields, "partition int"])


@dataclass(frozen=True, slots=True)
class _Place:
    """Runs in a worker: gives each row the partition of its key."""

    serde: Serde
    schema: pa.Schema
    partitions: int
    errors: TaskErrors

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        null_keys = 0
        with self.errors.told():
            for batch in batches:
                if batch["timestamp"].null_count:
                    what = f"{batch['timestamp'].null_count} rows have no timestamp"
                    raise InputError(what, next_step="filter them, or give them one")
                keys = batch["key"].cast(self.schema.field("key").type)
                where = partition_for(self.serde.serialize(keys), self.partitions, null_keys_before=null_keys)
                null_keys += keys.null_count
                yield batch.append_column("partition", pa.array(where))


@dataclass(frozen=True, slots=True)
class _Write:
    """Runs in a worker: writes the rows of one partition, which come in their order."""

    storage: Storage
    schema: pa.Schema
    starts: Mapping[int, int]
    nonce: str
    errors: TaskErrors

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        with self.errors.told():
            files = self._written(batches)
            yield pa.RecordBatch.from_pydict({"written": pa.array([pickle.dumps(files)], pa.binary())})

    def _written(self, batches: Iterable[pa.RecordBatch]) -> tuple[ArchiveFile, ...]:
        writer: PartitionWriter | None = None
        offset = 0
        try:
            for batch in batches:
                if not batch.num_rows:
                    continue
                if writer is None:
                    partition = batch["partition"][0].as_py()
                    offset = self.starts[partition]
                    writer = PartitionWriter(self.storage, self.schema, partition, attempt=attempt_name(self.nonce))
                columns = {name: batch[name] for name in ("key", "value")}
                columns["timestamp"] = batch["timestamp"].cast(TIMESTAMP)
                columns["offset"] = pa.array(np.arange(offset, offset + batch.num_rows))
                writer.write(pa.RecordBatch.from_pydict(columns))
                offset += batch.num_rows
        except BaseException:
            if writer is not None:
                writer.abort()
            raise
        return writer.close() if writer is not None else ()
