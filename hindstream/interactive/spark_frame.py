"""Records of a sink as a frame of Spark, which reads the files of the sink's topics itself."""

from __future__ import annotations

from collections import defaultdict
from functools import reduce
from typing import TYPE_CHECKING

from pyspark.sql import functions as f
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import IntegerType

from hindstream.spark.frames.spark_types import spark_schema
from statelib.storage.hadoop import hadoop_uri

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    import pyarrow as pa
    from pyspark.sql import Column, DataFrame, DataFrameReader, SparkSession

    from statelib.commits.versions.sink_history import Segment
    from statelib.topics.archive import TopicArchive

_COLUMNS = ("partition", "offset", "timestamp", "key", "value", "headers")


def spark_frame(
    spark: SparkSession, parts: Iterable[tuple[int, Segment]], archives: Mapping[str, TopicArchive], schema: pa.Schema
) -> DataFrame:
    """The records of some segments, as they are in the files now.

    Args:
        spark: The session, which must be able to read the warehouse.
        parts: Segments, each with the offset that its first record gets.
        archives: Of their topics.
        schema: The columns of the newest one; what older files lack is null.
    """
    columns = from_arrow_schema(spark_schema(schema)).add("partition", IntegerType())
    by_topic: dict[str, list[tuple[int, Segment]]] = defaultdict(list)
    for begin, part in parts:
        by_topic[part.topic].append((begin, part))
    frames = [
        _of_topic(spark.read.schema(columns), archives[topic], of_topic) for topic, of_topic in sorted(by_topic.items())
    ]
    if not frames:
        return spark.createDataFrame([], columns).select(*_COLUMNS)
    return reduce(lambda one, other: one.unionByName(other), frames)


def _of_topic(reader: DataFrameReader, archive: TopicArchive, parts: list[tuple[int, Segment]]) -> DataFrame:
    files = [
        file.path for _, part in parts for file in archive.files(part.partition, part.first_offset, part.end_offset)
    ]
    root, *paths = (hadoop_uri(archive.storage.uri(path)) for path in ["", *files])
    records = reader.option("basePath", root).parquet(*paths)
    chosen, shifted = f.lit(False), f.col("offset")
    for begin, part in parts:
        is_here = _is_in(part)
        chosen = chosen | is_here
        if begin != part.first_offset:
            shifted = f.when(is_here, f.col("offset") + (begin - part.first_offset)).otherwise(shifted)
    return records.where(chosen).withColumn("offset", shifted).select(*_COLUMNS)


def _is_in(part: Segment) -> Column:
    offset = f.col("offset")
    return (f.col("partition") == part.partition) & (offset >= part.first_offset) & (offset < part.end_offset)
