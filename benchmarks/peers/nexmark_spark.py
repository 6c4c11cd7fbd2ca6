"""Nexmark's queries in Spark's SQL, in batch: ``python nexmark_spark.py q5 TOPICS OUTPUT``.

Where the original's SQL leaves a choice between equal rows, the offset decides. Tables are given as they are at the
end.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from spark_common import session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SCHEMAS = {
    "person": "id LONG, name STRING, emailAddress STRING, creditCard STRING, city STRING, state STRING, "
    "dateTime TIMESTAMP, extra STRING",
    "auction": "id LONG, itemName STRING, description STRING, initialBid LONG, reserve LONG, dateTime TIMESTAMP, "
    "expires TIMESTAMP, seller LONG, category LONG, extra STRING",
    "bid": "auction LONG, bidder LONG, price LONG, channel STRING, url STRING, dateTime TIMESTAMP, extra STRING",
}
EUROS = "CAST(price * 0.908 AS DECIMAL(23, 3))"
IN_TIME = "bid.auction = auction.id AND bid.dateTime BETWEEN auction.dateTime AND auction.expires"
DAY = "date_format(dateTime, 'yyyy-MM-dd')"
RANKS = {"rank1": "price < 10000", "rank2": "price >= 10000 AND price < 1000000", "rank3": "price >= 1000000"}
BIDS_BY_RANK = "count(*) AS total_bids, " + ", ".join(
    f"count(*) FILTER (WHERE {rank}) AS {name}_bids" for name, rank in RANKS.items()
)
DISTINCT = ", ".join(
    f"count(DISTINCT {field}) AS total_{field}s, "
    + ", ".join(f"count(DISTINCT {field}) FILTER (WHERE {rank}) AS {name}_{field}s" for name, rank in RANKS.items())
    for field in ("bidder", "auction")
)
TEN_SECONDS = "window(dateTime, '10 seconds').start"


WON = f"""
    SELECT auction.id, seller, auction, bidder, price, bid.dateTime AS bid_dateTime, bid.extra AS bid_extra,
        row_number() OVER (PARTITION BY auction.id ORDER BY price DESC, bid.dateTime, bid.offset) AS place
    FROM auction JOIN bid ON {IN_TIME}
"""
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
        WITH counts AS (
            SELECT auction, window(dateTime, '10 seconds', '2 seconds').start AS starttime, count(*) AS num
            FROM bid GROUP BY 1, 2
        )
        SELECT auction, num, starttime
        FROM (SELECT *, max(num) OVER (PARTITION BY starttime) AS most FROM counts)
        WHERE num = most
    """,
    "q6": f"""
        SELECT seller, avg(price) AS average
        FROM (
            SELECT seller, price,
                row_number() OVER (PARTITION BY seller ORDER BY bid_dateTime DESC, auction DESC) AS place
            FROM ({WON}) WHERE place = 1
        )
        WHERE place <= 10 GROUP BY seller
    """,
    "q7": f"""
        WITH highest AS (
            SELECT *, row_number() OVER (PARTITION BY starttime, auction ORDER BY price DESC, dateTime, offset) AS place
            FROM (SELECT *, {TEN_SECONDS} AS starttime FROM bid)
        )
        SELECT auction, price, bidder, dateTime, extra
        FROM (SELECT *, max(price) OVER (PARTITION BY starttime) AS most FROM highest WHERE place = 1)
        WHERE price = most
    """,
    "q8": f"""
        SELECT id, name, starttime
        FROM (SELECT id, name, {TEN_SECONDS} AS starttime FROM person)
            LEFT SEMI JOIN (SELECT seller, {TEN_SECONDS} AS opened FROM auction) ON id = seller AND starttime = opened
    """,
    "q9": f"""
        SELECT auction.*, won.auction, bidder, price, bid_dateTime, bid_extra
        FROM auction JOIN ({WON}) AS won ON auction.id = won.id AND place = 1
    """,
    "q10": f"""
        SELECT auction, bidder, price, dateTime, extra, {DAY} AS dt, date_format(dateTime, 'HH:mm') AS hm FROM bid
    """,
    "q11": """
        SELECT bidder, count(*) AS bid_count, min(dateTime) AS starttime,
            max(dateTime) + INTERVAL 10 SECONDS AS endtime
        FROM (
            SELECT bidder, dateTime, count_if(is_first) OVER (PARTITION BY bidder ORDER BY dateTime) AS session
            FROM (
                SELECT bidder, dateTime, coalesce(
                    dateTime - lag(dateTime) OVER (PARTITION BY bidder ORDER BY dateTime) > INTERVAL 10 SECONDS, true
                ) AS is_first
                FROM bid
            )
        )
        GROUP BY bidder, session
    """,
    "q12": """
        SELECT bidder, bid_count, time.start AS starttime, time.end AS endtime
        FROM (SELECT bidder, window(dateTime, '10 seconds') AS time, count(*) AS bid_count FROM bid GROUP BY 1, 2)
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
    "q15": f"SELECT {DAY} AS day, {BIDS_BY_RANK}, {DISTINCT} FROM bid GROUP BY 1",
    "q16": f"""
        SELECT channel, {DAY} AS day, max(date_format(dateTime, 'HH:mm')) AS minute, {BIDS_BY_RANK}, {DISTINCT}
        FROM bid GROUP BY 1, 2
    """,
    "q17": f"""
        SELECT auction, {DAY} AS day, {BIDS_BY_RANK}, min(price) AS min_price, max(price) AS max_price,
            avg(price) AS avg_price, sum(price) AS sum_price
        FROM bid GROUP BY 1, 2
    """,
    "q18": """
        SELECT auction, bidder, price, channel, url, dateTime, extra
        FROM (
            SELECT *, row_number() OVER (PARTITION BY bidder, auction ORDER BY dateTime DESC, offset DESC) AS place
            FROM bid
        )
        WHERE place = 1
    """,
    "q19": """
        SELECT auction, bidder, price, channel, url, dateTime, extra, rank_number
        FROM (
            SELECT *, row_number() OVER (PARTITION BY auction ORDER BY price DESC, dateTime, offset) AS rank_number
            FROM bid
        )
        WHERE rank_number <= 10
    """,
    "q20": """
        SELECT auction, bidder, price, channel, url, bid.dateTime AS bid_dateTime, bid.extra AS bid_extra, itemName,
            description, initialBid, reserve, auction.dateTime AS auction_dateTime, expires, seller, category,
            auction.extra AS auction_extra
        FROM bid JOIN auction ON bid.auction = auction.id
        WHERE category = 10
    """,
    "q21": r"""
        SELECT * FROM (
            SELECT auction, bidder, price, channel,
                CASE lower(channel)
                    WHEN 'apple' THEN '0' WHEN 'google' THEN '1' WHEN 'facebook' THEN '2' WHEN 'baidu' THEN '3'
                    ELSE nullif(regexp_extract(url, '(&|^)channel_id=([^&]*)', 2), '')
                END AS channel_id
            FROM bid
        )
        WHERE channel_id IS NOT NULL
    """,
    "q22": """
        SELECT auction, bidder, price, channel, split_part(url, '/', 4) AS dir1, split_part(url, '/', 5) AS dir2,
            split_part(url, '/', 6) AS dir3
        FROM bid
    """,
}


def make_views(spark: SparkSession, topics: str) -> None:
    """The topics as views: ``person``, ``auction``, ``bid``, ``side_input``."""
    for name, schema in SCHEMAS.items():
        records = spark.read.schema(f"offset LONG, value STRUCT<{schema}>").parquet(str(Path(topics, name)))
        records.select("offset", "value.*").createTempView(name)
    spark.read.schema("key LONG, value STRING").parquet(str(Path(topics, "side_input"))).createTempView("side_input")


def main(query: str, topics: str, output: str) -> None:
    """Runs one query over ``topics`` and writes ``output/answer``."""
    spark = session()
    make_views(spark, topics)
    spark.sql(QUERIES[query]).write.parquet(f"{output}/answer")
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
