"""The works with Spark's batch operators: ``python spark_batch.py WORK TOPICS OUTPUT [with-stream-time]``.

Plain, nothing is late: a record comes once whenever it comes again, and every window is final. With stream time, which
is a running maximum over each partition, the answers are those of a stream.
"""

from __future__ import annotations

import sys
from datetime import timedelta
from typing import TYPE_CHECKING

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as sf
from spark_common import CLICKS, RATES, end, priced, session, topic

if TYPE_CHECKING:
    from pyspark.sql import Column

INTERVAL = GRACE = timedelta(minutes=10)
MINUTE = timedelta(minutes=1)
WITH_STREAM_TIME = "with-stream-time"


def with_stream_time(clicks: DataFrame) -> DataFrame:
    """Each with the largest timestamp of its partition so far."""
    so_far = Window.partitionBy("partition").orderBy("offset").rowsBetween(Window.unboundedPreceding, 0)
    return clicks.withColumn("stream_time", sf.max("timestamp").over(so_far))


def once(clicks: DataFrame) -> DataFrame:
    """One record of each id. ``distinct`` hashes; ``dropDuplicates(["id"])``, which aggregates strings, would sort."""
    return clicks.distinct()


def once_on_time(clicks: DataFrame) -> DataFrame:
    """... but a record of more than ten minutes ago is nobody's repeat: its offset makes it a group of its own."""
    is_late = sf.col("timestamp") < sf.col("stream_time") - INTERVAL
    return once(clicks.withColumn("late_offset", sf.when(is_late, sf.col("offset"))).drop("offset", "stream_time"))


def window_end() -> Column:
    """Of the minute that a record is in."""
    return sf.date_trunc("minute", "timestamp") + MINUTE


def counted(rows: DataFrame, column: str) -> DataFrame:
    """Count and sum for each campaign and minute."""
    windows = rows.groupBy("partition", "key", sf.date_trunc("minute", "timestamp").alias("window_start"))
    return windows.agg(sf.count("*").alias("clicks"), sf.sum(column).alias(column))


def counted_when_final(rows: DataFrame, column: str, clicks: DataFrame) -> DataFrame:
    """... of the windows whose ten minutes of grace are over when their partition ends."""
    ends = clicks.groupBy("partition").agg(sf.max("timestamp").alias("ended_at"))
    is_final = sf.col("window_start") + MINUTE + GRACE <= sf.col("ended_at")
    return counted(rows, column).join(sf.broadcast(ends), "partition").where(is_final)


def answer(work: str, clicks: DataFrame, rates: DataFrame, *, timed: bool) -> DataFrame:
    """What ``work`` gives, with stream time or plain."""
    needed = {"W1": ["id", "amount", "currency"], "W2": ["id", "amount"], "W3": ["amount"], "W4": ["id", "amount"]}
    rows = clicks.select("partition", "key", "timestamp", *needed[work], *(["offset"] if timed else []))
    if timed:
        rows = with_stream_time(rows)
    if work in {"W3", "W4"} and timed:
        rows = rows.withColumn("is_in_time", window_end() + GRACE > sf.col("stream_time"))
    if work in {"W1", "W4"}:
        rows = once_on_time(rows) if timed else once(rows)
    if work in {"W2", "W4"}:
        rows = priced(rows, rates, end(clicks))
    if work in {"W1", "W2"}:
        columns = ["id", "amount", "currency"] if work == "W1" else ["id", "cost"]
        return rows.select("key", sf.unix_millis("timestamp").alias("timestamp"), *columns)
    column = "amount" if work == "W3" else "cost"
    windows = counted_when_final(rows.where("is_in_time"), column, clicks) if timed else counted(rows, column)
    return windows.select("key", sf.unix_millis("window_start").alias("window_start"), "clicks", column)


def main(work: str, topics: str, output: str, mode: str = "plain") -> None:
    """Runs one work over ``topics/{clicks,rates}`` and writes ``output/answer``."""
    spark = session()
    clicks, rates = topic(spark, topics, "clicks", CLICKS), topic(spark, topics, "rates", RATES)
    answer(work, clicks, rates, timed=mode == WITH_STREAM_TIME).write.parquet(f"{output}/answer")
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
