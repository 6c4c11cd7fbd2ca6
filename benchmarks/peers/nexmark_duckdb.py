"""Nexmark's queries as a user of DuckDB writes them: ``python nexmark_duckdb.py q5 TOPICS OUTPUT``.

They are the reference for all others. Where the original's SQL leaves a choice between equal rows, the offset decides.
Tables are given as they are in the end.
"""

from __future__ import annotations

import sys
from pathlib import Path

import duckdb

THREADS = 2

TOPICS = ("person", "auction", "bid")

EUROS = "(price * 0.908)::DECIMAL(23, 3)"
IN_TIME = "bid.auction = auction.id AND bid.dateTime BETWEEN auction.dateTime AND auction.expires"
RANKS = {"rank1": "price < 10000", "rank2": "price >= 10000 AND price < 1000000", "rank3": "price >= 1000000"}
BIDS_BY_RANK = ", ".join(f"count(*) FILTER ({rank}) AS {name}_bids" for name, rank in RANKS.items())
DISTINCT = ", ".join(
    [BIDS_BY_RANK]
    + [
        f"count(DISTINCT {field}) AS total_{field}s, "
        + ", ".join(f"count(DISTINCT {field}) FILTER ({rank}) AS {name}_{field}s" for name, rank in RANKS.items())
        for field in ("bidder", "auction")
    ]
)

QUERIES = {
    "q0": "SELECT auction, bidder, price, dateTime, extra FROM bid",
    "q1": f"SELECT auction, bidder, {EUROS} AS price, dateTime, extra FROM bid",
    "q2": "SELECT auction, price FROM bid WHERE auction % 123 = 0",
    "q3": """
        SELECT name, city, state, auction.id
        FROM auction JOIN person ON auction.seller = person.id
        WHERE category = 10 AND state IN ('OR', 'ID', 'CA')
    """,
    "q4": f"""
        SELECT category, avg(final) AS average
        FROM (SELECT category, max(price) AS final FROM auction JOIN bid ON {IN_TIME} GROUP BY auction.id, category)
        GROUP BY category
    """,
    "q5": """
        WITH parts AS (
            SELECT auction, time_bucket(INTERVAL 2 SECONDS, dateTime) AS part, count(*) AS num FROM bid GROUP BY ALL
        ), counts AS (
            SELECT auction, part - to_seconds(2 * n) AS starttime, sum(num) AS num
            FROM parts CROSS JOIN range(5) AS earlier(n)
            GROUP BY ALL
        )
        SELECT auction, num, starttime FROM counts
        QUALIFY num = max(num) OVER (PARTITION BY starttime)
    """,
    "q6": f"""
        WITH won AS (
            SELECT seller, auction, price, bid.dateTime
            FROM auction JOIN bid ON {IN_TIME}
            QUALIFY row_number() OVER (PARTITION BY auction ORDER BY price DESC, bid.dateTime, bid."offset") = 1
        ), last AS (
            SELECT seller, price FROM won
            QUALIFY row_number() OVER (PARTITION BY seller ORDER BY dateTime DESC, auction DESC) <= 10
        )
        SELECT seller, avg(price) AS average FROM last GROUP BY seller
    """,
    "q7": """
        WITH highest AS (
            SELECT auction, price, bidder, dateTime, extra, time_bucket(INTERVAL 10 SECONDS, dateTime) AS starttime
            FROM bid
            QUALIFY row_number() OVER (PARTITION BY starttime, auction ORDER BY price DESC, dateTime, "offset") = 1
        )
        SELECT auction, price, bidder, dateTime, extra FROM highest
        QUALIFY price = max(price) OVER (PARTITION BY starttime)
    """,
    "q8": """
        SELECT DISTINCT person.id, name, time_bucket(INTERVAL 10 SECONDS, person.dateTime) AS starttime
        FROM person JOIN auction ON person.id = seller
            AND time_bucket(INTERVAL 10 SECONDS, person.dateTime) = time_bucket(INTERVAL 10 SECONDS, auction.dateTime)
    """,
    "q9": f"""
        SELECT id, itemName, description, initialBid, reserve, auction.dateTime, expires, seller, category,
            auction.extra, auction, bidder, price, bid.dateTime AS bid_dateTime, bid.extra AS bid_extra
        FROM auction JOIN bid ON {IN_TIME}
        QUALIFY row_number() OVER (PARTITION BY id ORDER BY price DESC, bid.dateTime, bid."offset") = 1
    """,
    "q10": """
        SELECT auction, bidder, price, dateTime, extra, strftime(dateTime, '%Y-%m-%d') AS dt,
            strftime(dateTime, '%H:%M') AS hm
        FROM bid
    """,
    "q11": """
        WITH steps AS (
            SELECT bidder, dateTime,
                coalesce(dateTime - lag(dateTime) OVER times > INTERVAL 10 SECONDS, true) AS is_first
            FROM bid WINDOW times AS (PARTITION BY bidder ORDER BY dateTime)
        ), numbered AS (
            SELECT bidder, dateTime, count(*) FILTER (is_first) OVER times AS session
            FROM steps WINDOW times AS (PARTITION BY bidder ORDER BY dateTime)
        )
        SELECT bidder, count(*) AS bid_count, min(dateTime) AS starttime,
            max(dateTime) + INTERVAL 10 SECONDS AS endtime
        FROM numbered GROUP BY bidder, session
    """,
    "q12": """
        SELECT bidder, count(*) AS bid_count, time_bucket(INTERVAL 10 SECONDS, dateTime) AS starttime,
            starttime + INTERVAL 10 SECONDS AS endtime
        FROM bid GROUP BY bidder, starttime
    """,
    "q13": """
        SELECT auction, bidder, price, dateTime, side_input.value
        FROM bid JOIN side_input ON auction % 10000 = side_input.key
    """,
    "q14": f"""
        SELECT auction, bidder, {EUROS} AS price,
            CASE
                WHEN hour(dateTime) >= 8 AND hour(dateTime) <= 18 THEN 'dayTime'
                WHEN hour(dateTime) <= 6 OR hour(dateTime) >= 20 THEN 'nightTime'
                ELSE 'otherTime'
            END AS bidTimeType,
            dateTime, extra, length(extra) - length(replace(extra, 'c', '')) AS c_counts
        FROM bid
        WHERE price * 0.908 > 1000000 AND price * 0.908 < 50000000
    """,
    "q15": f"""
        SELECT strftime(dateTime, '%Y-%m-%d') AS day, count(*) AS total_bids, {DISTINCT}
        FROM bid GROUP BY day
    """,
    "q16": f"""
        SELECT channel, strftime(dateTime, '%Y-%m-%d') AS day, max(strftime(dateTime, '%H:%M')) AS minute,
            count(*) AS total_bids, {DISTINCT}
        FROM bid GROUP BY channel, day
    """,
    "q17": f"""
        SELECT auction, strftime(dateTime, '%Y-%m-%d') AS day, count(*) AS total_bids, {BIDS_BY_RANK},
            min(price) AS min_price, max(price) AS max_price, avg(price) AS avg_price, sum(price) AS sum_price
        FROM bid GROUP BY auction, day
    """,
    "q18": """
        SELECT auction, bidder, price, channel, url, dateTime, extra FROM bid
        QUALIFY row_number() OVER (PARTITION BY bidder, auction ORDER BY dateTime DESC, "offset" DESC) = 1
    """,
    "q19": """
        SELECT auction, bidder, price, channel, url, dateTime, extra,
            row_number() OVER (PARTITION BY auction ORDER BY price DESC, dateTime, "offset") AS rank_number
        FROM bid
        QUALIFY rank_number <= 10
    """,
    "q20": """
        SELECT auction, bidder, price, channel, url, bid.dateTime AS bid_dateTime, bid.extra AS bid_extra, itemName,
            description, initialBid, reserve, auction.dateTime AS auction_dateTime, expires, seller, category,
            auction.extra AS auction_extra
        FROM bid JOIN auction ON bid.auction = auction.id
        WHERE category = 10
    """,
    "q21": r"""
        SELECT auction, bidder, price, channel,
            CASE lower(channel)
                WHEN 'apple' THEN '0' WHEN 'google' THEN '1' WHEN 'facebook' THEN '2' WHEN 'baidu' THEN '3'
                ELSE nullif(regexp_extract(url, '(&|^)channel_id=([^&]*)', 2), '')
            END AS channel_id
        FROM bid
        WHERE channel_id IS NOT NULL
    """,
    "q22": """
        SELECT auction, bidder, price, channel, split_part(url, '/', 4) AS dir1, split_part(url, '/', 5) AS dir2,
            split_part(url, '/', 6) AS dir3
        FROM bid
    """,
}


def connect(topics: str) -> duckdb.DuckDBPyConnection:
    """A connection with the topics as views: ``person``, ``auction``, ``bid``, ``side_input``."""
    connection = duckdb.connect()
    connection.execute(f"SET threads = {THREADS}; SET TimeZone = 'UTC'")
    for name in TOPICS:
        connection.execute(f"""CREATE VIEW {name} AS SELECT "offset", value.* FROM {_files(topics, name)}""")
    connection.execute(f"CREATE VIEW side_input AS SELECT key, value FROM {_files(topics, 'side_input')}")
    return connection


def main(query: str, topics: str, output: str) -> None:
    """Runs one query over ``topics`` and writes ``output/answer.parquet``."""
    with connect(topics) as connection:
        connection.execute(f"COPY ({QUERIES[query]}) TO '{output}/answer.parquet' (FORMAT parquet, COMPRESSION zstd)")


def _files(topics: str, name: str) -> str:
    return f"read_parquet('{Path(topics, name)}/partition=*/*.parquet')"


if __name__ == "__main__":
    main(*sys.argv[1:])
