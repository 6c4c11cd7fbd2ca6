"""What both of Spark's scripts share: the session, the topics, and the join with what was valid at a time."""

from __future__ import annotations

import os
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as sf

if TYPE_CHECKING:
    from pyspark.sql import Column

TASKS = 2
CLICKS = "offset LONG, timestamp TIMESTAMP, key STRING, value STRUCT<id STRING, amount LONG, currency STRING>"
RATES = "offset LONG, timestamp TIMESTAMP, key STRING, value STRUCT<rate LONG>"


def session(**settings: str) -> SparkSession:
    """Local, two threads. The parallel collector costs a third less CPU here than the one that Java chooses itself."""
    os.environ.pop("SPARK_HOME", None)  # another Spark's jars under this pyspark
    options = {
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.extraJavaOptions": "-XX:+UseParallelGC",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.memory": "4g",
        "spark.log.level": "ERROR",
        "spark.sql.parquet.compression.codec": "zstd",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": str(TASKS),
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }
    return SparkSession.builder.master(f"local[{TASKS}]").config(map=options | settings).getOrCreate()


def topic(spark: SparkSession, topics: str, name: str, schema: str) -> DataFrame:
    """A topic's records with the fields of their values, and the number of their partition."""
    return flat(spark.read.schema(schema).parquet(str(Path(topics, name))))


def flat(records: DataFrame) -> DataFrame:
    """The fields of the values beside the others."""
    return records.select("partition", "offset", "key", "timestamp", "value.*")


def priced(clicks: DataFrame, rates: DataFrame, ended_at: DataFrame) -> DataFrame:
    """Each click with its cost at its time.

    A join by key alone would try all rates that a campaign ever had, so it is by key and hour: each rate stands in
    every hour in which it is valid. The last ones are valid until ``ended_at``, a table of one row.
    """
    following = sf.lead("timestamp").over(Window.partitionBy("key").orderBy("timestamp"))
    periods = rates.select("key", "rate", sf.col("timestamp").alias("since"), following.alias("until"))
    periods = periods.crossJoin(sf.broadcast(ended_at)).withColumn("until", sf.coalesce("until", "ended_at"))
    hours = sf.sequence(hour(sf.col("since")), hour(sf.greatest("since", "until")), sf.lit(timedelta(hours=1)))
    by_hour = periods.select("key", "rate", "since", "until", sf.explode(hours).alias("hour"))
    is_valid = (sf.col("timestamp") >= sf.col("since")) & (sf.col("timestamp") < sf.col("until"))
    joined = clicks.withColumn("hour", hour(sf.col("timestamp"))).join(by_hour, ["key", "hour"]).where(is_valid)
    return joined.withColumn("cost", sf.col("amount") * sf.col("rate"))


def hour(timestamp: Column) -> Column:
    """The hour that it is in."""
    return sf.date_trunc("hour", timestamp)


def end(clicks: DataFrame) -> DataFrame:
    """After the last click."""
    return clicks.agg((sf.max("timestamp") + timedelta(milliseconds=1)).alias("ended_at"))
