"""The works with Spark Structured Streaming: ``python spark_streaming.py WORK TOPICS OUTPUT``.

All files are there, so the query takes what is available and ends. Rates come from a table that is complete before it
starts: there is no join of a stream with a versioned stream.
"""

from __future__ import annotations

import sys
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf
from spark_common import CLICKS, RATES, end, flat, priced, session, topic

STATE_STORE = {
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    ),
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
}
DELAY = "10 minutes"


def counted(rows: DataFrame, column: str) -> DataFrame:
    """Count and sum for each campaign and minute."""
    windows = rows.groupBy("key", sf.window("timestamp", "1 minute"))
    totals = windows.agg(sf.count("*").alias("clicks"), sf.sum(column).alias(column))
    return totals.select("key", sf.unix_millis("window.start").alias("window_start"), "clicks", column)


def answer(work: str, spark: SparkSession, topics: str) -> DataFrame:
    """The streaming query of ``work``."""
    stream = spark.readStream.schema(CLICKS).parquet(str(Path(topics, "clicks")))
    rows = flat(stream).withWatermark("timestamp", DELAY)
    if work in {"W1", "W4"}:
        rows = rows.dropDuplicatesWithinWatermark(["id"])
    if work in {"W2", "W4"}:
        rates, clicks = topic(spark, topics, "rates", RATES), topic(spark, topics, "clicks", CLICKS)
        rows = priced(rows, rates, end(clicks))
    if work in {"W3", "W4"}:
        return counted(rows, "amount" if work == "W3" else "cost")
    columns = ["id", "amount", "currency"] if work == "W1" else ["id", "cost"]
    return rows.select("key", sf.unix_millis("timestamp").alias("timestamp"), *columns)


def main(work: str, topics: str, output: str) -> None:
    """Runs one work over ``topics/{clicks,rates}`` and writes ``output/answer``."""
    spark = session(**STATE_STORE)
    query = answer(work, spark, topics).writeStream.outputMode("append").trigger(availableNow=True)
    query.option("checkpointLocation", f"{output}/checkpoint").start(f"{output}/answer", "parquet").awaitTermination()
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
