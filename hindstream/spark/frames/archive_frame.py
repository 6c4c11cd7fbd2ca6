"""Archives the rows of any Spark frame as a topic: a table, files in Parquet, JSON or CSV, the result of a query.

Rows are partitioned with Kafka's default partitioner, ordered within each partition by timestamp or by arrival, and
added in one Delta commit. A load has a name, and is idempotent.
"""

from __future__ import annotations

import pickle
import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, get_args

import numpy as np
import pyarrow as pa
from pyspark.errors import PySparkTypeError
from pyspark.sql import functions as f
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import ArrayType, DataType, IntegerType, MapType, StructField, StructType, VariantType

from hindstream.runs import now_ms, open_warehouse
from hindstream.spark.frames.arrow_batches import arrow_batches
from hindstream.spark.frames.frame_columns import arrival, check_times, column, time_column
from hindstream.spark.tasks.works import TaskErrors, attempt_name, carry_user_code, run_action
from statelib.columns.row_hash import hash_rows
from statelib.commits.archives import open_archive_if_present
from statelib.commits.layout import topic_path
from statelib.errors.counted import counted
from statelib.errors.kinds import ConfigurationError, RetryableError
from statelib.serdes import serde_for
from statelib.topics.actions import OffsetsTakenError
from statelib.topics.archive import TopicArchive
from statelib.topics.orphaned_files import delete_passed
from statelib.topics.parquet.schema import TIMESTAMP, topic_schema
from statelib.topics.parquet.writer import PartitionWriter
from statelib.topics.partitioner import partition_for

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from pyspark.sql import DataFrame

    from statelib.serdes import Serde
    from statelib.settings.settings import Settings
    from statelib.storage import Storage
    from statelib.topics.files import ArchiveFile

Order = Literal["timestamp", "arrival"]
"""What the rows of a partition are in the order of."""

_ORDER = "order_"


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
    order: Order = "timestamp",
    order_by: Sequence[str] | str = (),
) -> bool:
    """Adds a frame's rows to a topic archive, which is created if it does not exist.

    ::

        days = spark.read.parquet("s3://lake/flights/2013-*")
        archive_frame(days, "flights", settings, load="2013", partitions=4, timestamp="departed", key="origin")

    Args:
        frame: The rows.
        topic: The archive's name.
        settings: See `Settings`: where the warehouse is.
        load: The name of this load. Loading the same name again changes nothing.
        partitions: The number of partitions of the topic.
        timestamp: The column of the records' timestamps: a timestamp, a date, text that Spark reads as one (such as
            ``2013-01-01 05:00``, in the session's time zone unless it names its own), or a number of milliseconds since
            1970.
        key: The column of the records' keys; None: no keys. Rows without a key are partitioned by their content, so the
            same load gives the same topic on any machine.
        value: The column of the values, or the columns of a struct; None: all columns except key and timestamp.
        key_serde: Serialises keys to choose the partition; None: Kafka's own serde for their type.
        order: ``"timestamp"``: no record of a partition is late; rows with equal timestamps keep the order of arrival.
            ``"arrival"``: the order of the frame's rows, files in the order of their paths; a record may be late, as it
            was in the live topic. Rows that Spark has shuffled have no order: sort them, or give ``order_by``.
        order_by: Columns that define the order of arrival, such as the offset in Kafka, instead of the frame's order.

    Returns:
        Whether the rows were added: False if a load of that name exists.

    Raises:
        ConfigurationError: There is no such column; an archive cannot hold a column's type; the archive has other
            columns or partitions; or the rows should be in the order of arrival, but have no order.
        InputError: A row has no timestamp, or one that no archive can hold.
        RetryableError: Another writer has added to the topic meanwhile; or Spark or the store did not answer.
    """
    if order not in get_args(Order):
        step = " or ".join(f'order="{known}"' for known in get_args(Order))
        raise ConfigurationError(f"rows cannot be in the order {order!r}", topic=topic, next_step=step)
    if partitions < 1:
        raise ConfigurationError(
            f"a topic cannot have {counted(partitions, 'partition')}", topic=topic, next_step="name one or more"
        )
    shaped = _shaped(frame, timestamp, key, value, order, [order_by] if isinstance(order_by, str) else order_by)
    warehouse, app_id = open_warehouse(settings), f"load:{load}"
    arrow = _arrow_schema(shaped.schema, topic)
    schema = topic_schema(arrow.field("key").type, arrow.field("value").type)
    there = open_archive_if_present(warehouse, topic)
    if there is not None:
        if there.has_committed(app_id, 1):
            return False
        there = there.widen(schema, partitions)
        schema = there.table_schema
    starts = dict.fromkeys(range(partitions), 0) if there is None else there.end_offsets()
    serde = key_serde or serde_for(schema.field("key").type)
    files = _written(shaped, serde, schema, starts, warehouse.within(topic_path(topic)), topic)
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
    shaped: DataFrame, serde: Serde, schema: pa.Schema, starts: Mapping[int, int], storage: Storage, topic: str
) -> list[ArchiveFile]:
    """Has Spark put the rows where they belong, and its workers write them."""
    carry_user_code()
    spark, partitions = shaped.sparkSession, len(starts)
    errors = TaskErrors(spark.sparkContext)
    placed = shaped.mapInArrow(_Place(serde, schema, partitions, topic, errors), _placed_schema(shaped))
    order = [name for name in shaped.columns if name.startswith(_ORDER)]
    ordered = placed.repartitionById(partitions, "partition").sortWithinPartitions(*order)
    writer = _Write(storage, schema, starts, f"load.{uuid.uuid4().hex[:8]}", errors)
    collect = ordered.mapInArrow(writer, "written binary").collect
    with arrow_batches(spark):
        context, name = spark.sparkContext, f"load {topic}"
        rows = run_action(context, collect, errors, name=name, tasks=partitions, place={"topic": topic})
    return [file for row in rows for file in pickle.loads(row.written)]  # noqa: S301 - from our own workers


def _shaped(
    frame: DataFrame,
    timestamp: str,
    key: str | None,
    value: str | Sequence[str] | None,
    order: Order,
    order_by: Sequence[str],
) -> DataFrame:
    """Columns key, value, timestamp (ms; null: it has none), time_text, and those that rows are sorted by."""
    named = {timestamp, *order_by, *([key] if key else []), *([value] if isinstance(value, str) else value or ())}
    if missing := sorted(named - set(frame.columns)):
        step = f"it has {', '.join(frame.columns)}"
        raise ConfigurationError("the frame has no such column", column=", ".join(missing), next_step=step)
    known = [name.lower() for name in frame.columns]  # as Spark tells columns apart
    if twice := [name for name in frame.columns if known.count(name.lower()) > 1]:
        step = "rename one of them (toDF), or drop it"
        raise ConfigurationError("two columns of the frame have one name", column=", ".join(twice), next_step=step)
    rest = [name for name in frame.columns if name not in {key, timestamp}]
    names = [value] if isinstance(value, str) else value or rest
    if not names:
        raise ConfigurationError("no column is left for the values", next_step="name those that are: value=[...]")
    for name in order_by:
        if not _has_order(frame.schema[name].dataType):
            what = f"rows cannot be in the order of a column of type {frame.schema[name].dataType.simpleString()}"
            raise ConfigurationError(what, column=name, next_step="name another one")
    made = column(value) if isinstance(value, str) else f.struct(*(column(name).alias(name) for name in names))
    time = time_column(frame, timestamp)
    arrived = [column(name) for name in order_by] or arrival(frame, is_asked=order == "arrival")
    sorted_by = [time.order, *arrived] if order == "timestamp" else arrived
    return frame.select(
        (column(key) if key else f.lit(None).cast("string")).alias("key"),
        made.alias("value"),
        time.milliseconds.alias("timestamp"),
        time.text.alias("time_text"),
        *(expression.alias(f"{_ORDER}{n}") for n, expression in enumerate(sorted_by)),
    )


def _has_order(of: DataType) -> bool:
    if isinstance(of, StructType):
        return all(_has_order(field.dataType) for field in of.fields)
    return _has_order(of.elementType) if isinstance(of, ArrayType) else not isinstance(of, (MapType, VariantType))


def _arrow_schema(schema: StructType, topic: str) -> pa.Schema:
    try:
        return to_arrow_schema(schema)
    except PySparkTypeError as error:
        what = f"a topic archive cannot hold what the frame has: {' '.join(str(error).split())}"
        raise ConfigurationError(what, topic=topic, next_step="cast that column, for example to a string") from error


def _placed_schema(shaped: DataFrame) -> StructType:
    fields = [field for field in shaped.schema.fields if field.name != "time_text"]
    return StructType([*fields, StructField("partition", IntegerType())])


@dataclass(frozen=True, slots=True)
class _Place:
    """Runs in a worker: gives each row the partition of its key."""

    serde: Serde
    schema: pa.Schema
    partitions: int
    topic: str
    errors: TaskErrors

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        with self.errors.told():
            for batch in batches:
                check_times(batch["timestamp"], batch["time_text"], batch["key"], self.topic)
                keys = batch["key"].cast(self.schema.field("key").type)
                where = partition_for(self.serde.serialize(keys), self.partitions)
                if keys.null_count:
                    # Not by their number: whoever does this task anew may get the rows in another order.
                    missing = keys.is_null()
                    rows = [batch[name].filter(missing) for name in ("value", "timestamp")]
                    where[np.asarray(missing)] = hash_rows(rows) % np.uint64(self.partitions)
                yield batch.drop_columns(["time_text"]).append_column("partition", pa.array(where))


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
