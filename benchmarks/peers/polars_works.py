"""The works as a user of polars writes them: ``python polars_works.py WORK TOPICS OUTPUT``.

Stream time, the largest timestamp of a partition so far, decides what is a repeat and what is late. Nothing crosses
partitions, so that each is a query of its own.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

THREADS = 2
os.environ["POLARS_MAX_THREADS"] = str(THREADS)  # read when polars is imported

import polars as pl  # noqa: E402

TIMESTAMP, STREAM_TIME, WINDOW_START = pl.col("timestamp"), pl.col("stream_time"), pl.col("window_start")
TEN_MINUTES, ELEVEN_MINUTES = pl.duration(minutes=10), pl.duration(minutes=11)


def topic(partition: Path, *fields: str) -> pl.LazyFrame:
    """A partition's records in order, with these fields of their values."""
    rows = pl.scan_parquet(sorted(partition.glob("*.parquet")), hive_partitioning=False)
    return rows.select("key", "timestamp", *(pl.col("value").struct.field(name) for name in fields))


def clicks(partition: Path, *fields: str) -> pl.LazyFrame:
    """... and stream time."""
    return topic(partition, *fields).with_columns(stream_time=TIMESTAMP.cum_max())


def once(rows: pl.LazyFrame) -> pl.LazyFrame:
    """A record of more than ten minutes ago is nobody's repeat."""
    return rows.filter(pl.col("id").is_first_distinct() | (TIMESTAMP < STREAM_TIME - TEN_MINUTES))


def priced(rows: pl.LazyFrame, rates: pl.LazyFrame) -> pl.LazyFrame:
    """Each with its cost at its time. Rates come in order."""
    joined = rows.sort("timestamp").join_asof(
        rates.set_sorted("timestamp"), on="timestamp", by="key", check_sortedness=False
    )
    return joined.with_columns(cost=pl.col("amount") * pl.col("rate"))


def counted(rows: pl.LazyFrame, column: str, ended_at: pl.LazyFrame) -> pl.LazyFrame:
    """Final results only: of windows whose ten minutes of grace are over when the partition ends."""
    on_time = rows.with_columns(window_start=TIMESTAMP.dt.truncate("1m")).filter(
        WINDOW_START + ELEVEN_MINUTES > STREAM_TIME
    )
    windows = on_time.group_by("key", "window_start").agg(pl.len().cast(pl.Int64).alias("clicks"), pl.sum(column))
    return windows.join(ended_at, how="cross").filter(pl.col("ended_at") >= WINDOW_START + ELEVEN_MINUTES)


def answer(work: str, partition: Path, rate_partition: Path) -> pl.LazyFrame:
    """What ``work`` gives for one partition."""
    ended_at = topic(partition).select(TIMESTAMP.max().alias("ended_at"))
    timestamp, window_start = TIMESTAMP.dt.epoch("ms"), WINDOW_START.dt.epoch("ms")
    match work:
        case "W1":
            rows = once(clicks(partition, "id", "amount", "currency"))
            return rows.select("key", timestamp, "id", "amount", "currency")
        case "W2":
            rows = priced(topic(partition, "id", "amount"), topic(rate_partition, "rate"))
            return rows.select("key", timestamp, "id", "cost")
        case "W3":
            rows = counted(clicks(partition, "amount"), "amount", ended_at)
            return rows.select("key", window_start, "clicks", "amount")
        case _:
            rows = priced(once(clicks(partition, "id", "amount")), topic(rate_partition, "rate"))
            return counted(rows, "cost", ended_at).select("key", window_start, "clicks", "cost")


def main(work: str, topics: str, output: str) -> None:
    """Runs one work over ``topics/{clicks,rates}/partition=*`` and writes ``output/answer.parquet``."""
    partitions = zip(*(sorted(Path(topics, name).glob("partition=*")) for name in ("clicks", "rates")), strict=True)
    answers = [answer(work, *pair) for pair in partitions]
    pl.concat(answers).sink_parquet(Path(output, "answer.parquet"), compression="zstd", engine="streaming")


if __name__ == "__main__":
    main(*sys.argv[1:])
