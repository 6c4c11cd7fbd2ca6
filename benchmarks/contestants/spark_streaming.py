"""Spark Structured Streaming."""

from benchmarks.contestants.script import Script


class SparkStreaming(Script):
    """Takes what is available in one batch and ends."""

    name = "spark-streaming"
    title = "Spark Structured Streaming"
    settings = (
        "local[2], trigger availableNow, RocksDB state store with changelog checkpoints, two shuffle partitions, "
        "parallel collector, 4 GiB, Parquet with zstd; rates are a static table of periods; one watermark for all "
        "partitions, which stands still in a batch, and all files are one: nothing is late, and repeats after "
        "more than ten minutes are dropped too"
    )
    agrees = ("W2",)
    script = "spark_streaming.py"
