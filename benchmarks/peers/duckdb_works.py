"""The works as a user of DuckDB writes them: ``python duckdb_works.py WORK TOPICS OUTPUT``.

Stream time, the largest timestamp of a partition so far, decides what is a repeat and what is late. It is a running
maximum over the files in their order, which DuckDB takes without sorting.
"""

from __future__ import annotations

import sys
from pathlib import Path

import duckdb

THREADS = 2

CLICKS = """
    SELECT {partition} AS partition, "offset", key, timestamp, value.id, value.amount, value.currency,
        {stream_time} AS stream_time
    FROM read_parquet({files})
"""
STREAM_TIME, NO_STREAM_TIME = "max(timestamp) OVER (ROWS UNBOUNDED PRECEDING)", "NULL::TIMESTAMPTZ"
RATES = "SELECT key, timestamp, value.rate FROM read_parquet({files})"

# A record of more than ten minutes ago is nobody's repeat: its offset makes it a group of its own.
ONCE = """
    SELECT id, any_value(partition) AS partition, any_value(key) AS key, any_value(timestamp) AS timestamp,
        any_value(amount) AS amount, any_value(currency) AS currency, min(stream_time) AS stream_time
    FROM clicks
    GROUP BY id, CASE WHEN timestamp < stream_time - INTERVAL 10 MINUTES THEN "offset" END
"""
PRICED = """
    SELECT partition, key, timestamp, stream_time, id, amount * rate AS cost
    FROM {clicks} ASOF JOIN rates USING (key, timestamp)
"""
# Final results only: of windows whose ten minutes of grace are over when the partition ends.
COUNTED = """
    SELECT key, epoch_ms(window_start) AS window_start, clicks, total AS {column}
    FROM (
        SELECT partition, key, time_bucket(INTERVAL 1 MINUTE, timestamp) AS window_start,
            count(*) AS clicks, sum({column})::BIGINT AS total
        FROM {clicks}
        WHERE time_bucket(INTERVAL 1 MINUTE, timestamp) + INTERVAL 11 MINUTES > stream_time
        GROUP BY ALL
    ) JOIN (SELECT partition, max(timestamp) AS ended_at FROM clicks GROUP BY partition) USING (partition)
    WHERE window_start + INTERVAL 11 MINUTES <= ended_at
"""
WORKS = {
    "W1": f"SELECT key, epoch_ms(timestamp) AS timestamp, id, amount, currency FROM ({ONCE})",
    "W2": f"SELECT key, epoch_ms(timestamp) AS timestamp, id, cost FROM ({PRICED.format(clicks='clicks')})",
    "W3": COUNTED.format(clicks="clicks", column="amount"),
    "W4": COUNTED.format(clicks=f"({PRICED.format(clicks=f'({ONCE})')})", column="cost"),
}


def main(work: str, topics: str, output: str) -> None:
    """Runs one work over ``topics/{clicks,rates}/partition=*`` and writes ``output/answer.parquet``."""
    with duckdb.connect() as connection:
        connection.execute(f"SET threads = {THREADS}")
        if (
            work == "W2"
        ):  # it needs no order of rows, and no stream time, which DuckDB would compute though nobody reads it
            connection.execute("SET preserve_insertion_order = false")
        stream_time = NO_STREAM_TIME if work == "W2" else STREAM_TIME
        clicks = [
            CLICKS.format(stream_time=stream_time, partition=number, files=sorted(map(str, folder.glob("*.parquet"))))
            for number, folder in enumerate(sorted(Path(topics, "clicks").glob("partition=*")))
        ]
        connection.execute(f"CREATE VIEW clicks AS {' UNION ALL '.join(clicks)}")
        rates = sorted(map(str, Path(topics, "rates").glob("partition=*/*.parquet")))
        connection.execute(f"CREATE VIEW rates AS {RATES.format(files=rates)}")
        connection.execute(f"COPY ({WORKS[work]}) TO '{output}/answer.parquet' (FORMAT parquet, COMPRESSION zstd)")


if __name__ == "__main__":
    main(*sys.argv[1:])
