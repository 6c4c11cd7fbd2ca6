"""Nexmark's queries in Flink's SQL, in the form of those of github.com/nexmark/nexmark.

Windows of processing time (q12) are windows of event time. Averages are of doubles, as everywhere here; those of the
original are of integers. q6 is missing: Flink cannot run it (FLINK-19059).
"""

_IN_TIME = "A.id = B.auction AND B.`dateTime` BETWEEN A.`dateTime` AND A.expires"
_RANKS = {"rank1": "price < 10000", "rank2": "price >= 10000 AND price < 1000000", "rank3": "price >= 1000000"}
_BIDS = "COUNT(*) AS total_bids, " + ", ".join(
    f"COUNT(*) FILTER (WHERE {rank}) AS {name}_bids" for name, rank in _RANKS.items()
)
_DISTINCT = ", ".join(
    f"COUNT(DISTINCT {field}) AS total_{field}s, "
    + ", ".join(f"COUNT(DISTINCT {field}) FILTER (WHERE {rank}) AS {name}_{field}s" for name, rank in _RANKS.items())
    for field in ("bidder", "auction")
)
_DAY = "DATE_FORMAT(`dateTime`, 'yyyy-MM-dd')"
_CHANNEL_ID = "REGEXP_EXTRACT(url, '(&|^)channel_id=([^&]*)', 2)"
_HOPS = "TABLE(HOP(TABLE bid, DESCRIPTOR(`dateTime`), INTERVAL '2' SECOND, INTERVAL '10' SECOND))"


def _tumbling(table: str) -> str:
    return f"TABLE(TUMBLE(TABLE {table}, DESCRIPTOR(`dateTime`), INTERVAL '10' SECOND))"


FLINK_QUERIES = {
    "q0": "SELECT auction, bidder, price, `dateTime`, extra FROM bid",
    "q1": "SELECT auction, bidder, CAST(0.908 * price AS DECIMAL(23, 3)), `dateTime`, extra FROM bid",
    "q2": "SELECT auction, price FROM bid WHERE MOD(auction, 123) = 0",
    "q3": """
        SELECT P.name, P.city, P.state, A.id
        FROM auction AS A INNER JOIN person AS P ON A.seller = P.id
        WHERE A.category = 10 AND (P.state = 'OR' OR P.state = 'ID' OR P.state = 'CA')
    """,
    "q4": f"""
        SELECT category, AVG(CAST(final AS DOUBLE))
        FROM (
            SELECT MAX(B.price) AS final, A.category FROM auction A, bid B WHERE {_IN_TIME} GROUP BY A.id, A.category
        )
        GROUP BY category
    """,
    "q5": f"""
        SELECT AuctionBids.auction, AuctionBids.num, AuctionBids.starttime
        FROM (
            SELECT auction, COUNT(*) AS num, window_start AS starttime, window_end AS endtime
            FROM {_HOPS} GROUP BY auction, window_start, window_end
        ) AS AuctionBids
        JOIN (
            SELECT MAX(num) AS maxn, starttime, endtime
            FROM (
                SELECT COUNT(*) AS num, window_start AS starttime, window_end AS endtime
                FROM {_HOPS} GROUP BY auction, window_start, window_end
            ) AS CountBids
            GROUP BY starttime, endtime
        ) AS MaxBids
        ON AuctionBids.starttime = MaxBids.starttime AND AuctionBids.endtime = MaxBids.endtime
            AND AuctionBids.num >= MaxBids.maxn
    """,
    "q7": f"""
        SELECT B.auction, B.price, B.bidder, B.`dateTime`, B.extra
        FROM bid B
        JOIN (
            SELECT MAX(price) AS maxprice, window_end AS endtime
            FROM {_tumbling("bid")} GROUP BY window_start, window_end
        ) B1
        ON B.price = B1.maxprice
        WHERE B.`dateTime` BETWEEN B1.endtime - INTERVAL '10' SECOND AND B1.endtime
    """,
    "q8": f"""
        SELECT P.id, P.name, P.starttime
        FROM (
            SELECT id, name, window_start AS starttime, window_end AS endtime
            FROM {_tumbling("person")} GROUP BY id, name, window_start, window_end
        ) P
        JOIN (
            SELECT seller, window_start AS starttime, window_end AS endtime
            FROM {_tumbling("auction")} GROUP BY seller, window_start, window_end
        ) A
        ON P.id = A.seller AND P.starttime = A.starttime AND P.endtime = A.endtime
    """,
    "q9": f"""
        SELECT id, itemName, description, initialBid, reserve, `dateTime`, expires, seller, category, extra, auction,
            bidder, price, bid_dateTime, bid_extra
        FROM (
            SELECT A.*, B.auction, B.bidder, B.price, B.`dateTime` AS bid_dateTime, B.extra AS bid_extra,
                ROW_NUMBER() OVER (PARTITION BY A.id ORDER BY B.price DESC, B.`dateTime` ASC) AS rownum
            FROM auction A, bid B
            WHERE {_IN_TIME}
        )
        WHERE rownum <= 1
    """,
    "q10": f"""
        SELECT auction, bidder, price, `dateTime`, extra, {_DAY}, DATE_FORMAT(`dateTime`, 'HH:mm') FROM bid
    """,
    "q11": """
        SELECT bidder, COUNT(*), SESSION_START(`dateTime`, INTERVAL '10' SECOND),
            SESSION_END(`dateTime`, INTERVAL '10' SECOND)
        FROM bid GROUP BY bidder, SESSION(`dateTime`, INTERVAL '10' SECOND)
    """,
    "q12": f"""
        SELECT bidder, COUNT(*), window_start, window_end
        FROM {_tumbling("bid")} GROUP BY bidder, window_start, window_end
    """,
    "q13": """
        SELECT B.auction, B.bidder, B.price, B.`dateTime`, S.`value`
        FROM (SELECT *, PROCTIME() AS p_time FROM bid) B
        JOIN side_input FOR SYSTEM_TIME AS OF B.p_time AS S ON MOD(B.auction, 10000) = S.`key`
    """,
    "q14": """
        SELECT auction, bidder, CAST(0.908 * price AS DECIMAL(23, 3)),
            CASE
                WHEN HOUR(`dateTime`) >= 8 AND HOUR(`dateTime`) <= 18 THEN 'dayTime'
                WHEN HOUR(`dateTime`) <= 6 OR HOUR(`dateTime`) >= 20 THEN 'nightTime'
                ELSE 'otherTime'
            END,
            `dateTime`, extra, CAST(CHAR_LENGTH(extra) - CHAR_LENGTH(REPLACE(extra, 'c', '')) AS BIGINT)
        FROM bid
        WHERE 0.908 * price > 1000000 AND 0.908 * price < 50000000
    """,
    "q15": f"SELECT {_DAY}, {_BIDS}, {_DISTINCT} FROM bid GROUP BY {_DAY}",
    "q16": f"""
        SELECT channel, {_DAY}, MAX(DATE_FORMAT(`dateTime`, 'HH:mm')), {_BIDS}, {_DISTINCT}
        FROM bid GROUP BY channel, {_DAY}
    """,
    "q17": f"""
        SELECT auction, {_DAY}, {_BIDS}, MIN(price), MAX(price), AVG(CAST(price AS DOUBLE)), SUM(price)
        FROM bid GROUP BY auction, {_DAY}
    """,
    "q18": """
        SELECT auction, bidder, price, channel, url, `dateTime`, extra
        FROM (
            SELECT *, ROW_NUMBER() OVER (PARTITION BY bidder, auction ORDER BY `dateTime` DESC) AS rank_number FROM bid
        )
        WHERE rank_number <= 1
    """,
    "q19": """
        SELECT auction, bidder, price, channel, url, `dateTime`, extra, rank_number
        FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY auction ORDER BY price DESC) AS rank_number FROM bid)
        WHERE rank_number <= 10
    """,
    "q20": """
        SELECT auction, bidder, price, channel, url, B.`dateTime`, B.extra, itemName, description, initialBid, reserve,
            A.`dateTime`, expires, seller, category, A.extra
        FROM bid AS B INNER JOIN auction AS A ON B.auction = A.id
        WHERE A.category = 10
    """,
    "q21": f"""
        SELECT auction, bidder, price, channel,
            CASE
                WHEN LOWER(channel) = 'apple' THEN '0'
                WHEN LOWER(channel) = 'google' THEN '1'
                WHEN LOWER(channel) = 'facebook' THEN '2'
                WHEN LOWER(channel) = 'baidu' THEN '3'
                ELSE {_CHANNEL_ID}
            END
        FROM bid
        WHERE {_CHANNEL_ID} IS NOT NULL OR LOWER(channel) IN ('apple', 'google', 'facebook', 'baidu')
    """,
    "q22": """
        SELECT auction, bidder, price, channel, SPLIT_INDEX(url, '/', 3), SPLIT_INDEX(url, '/', 4),
            SPLIT_INDEX(url, '/', 5)
        FROM bid
    """,
}
