"""What the answer of each query looks like, and whether two are the same.

Answers are Parquet files, the rows in any order. They are compared as multisets: all rows, all columns, exactly.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import duckdb

_BIGINT, _VARCHAR, _TIME, _EUROS, _DOUBLE = "BIGINT", "VARCHAR", "TIMESTAMP_MS", "DECIMAL(23, 3)", "DOUBLE"
_TYPES = {
    _BIGINT: "auction bidder price id num initialBid reserve seller category bid_count c_counts rank_number min_price "
    "max_price sum_price total_bids rank1_bids rank2_bids rank3_bids total_bidders rank1_bidders rank2_bidders "
    "rank3_bidders total_auctions rank1_auctions rank2_auctions rank3_auctions",
    _VARCHAR: "name city state extra dt hm value bidTimeType day minute channel url itemName description bid_extra "
    "auction_extra channel_id dir1 dir2 dir3",
    _TIME: "dateTime starttime endtime expires bid_dateTime auction_dateTime",
    _DOUBLE: "average avg_price",
}
_TYPE_OF = {name: type_ for type_, names in _TYPES.items() for name in names.split()}

_BID = "auction bidder price dateTime extra"
_WHOLE_BID = "auction bidder price channel url dateTime extra"
_BY_RANK = "total_bids rank1_bids rank2_bids rank3_bids"
_DISTINCT = (
    f"{_BY_RANK} total_bidders rank1_bidders rank2_bidders rank3_bidders "
    "total_auctions rank1_auctions rank2_auctions rank3_auctions"
)
_DAY = "strftime(key.window_start, '%Y-%m-%d') AS day"


@dataclass(frozen=True)
class Answer:
    """The rows of a query's answer.

    Attributes:
        columns: Their names, in words.
        of_records: The columns from the records of Hindstream's sink, in DuckDB's SQL.
        is_table: Whether the sink has the changes of a table, of which the last of each key counts.
        has_euros: Whether ``price`` is a decimal.
    """

    columns: str
    of_records: str = "value.*"
    is_table: bool = False
    has_euros: bool = False

    def types(self) -> dict[str, str]:
        """DuckDB's type of each column."""
        return {n: _EUROS if n == "price" and self.has_euros else _TYPE_OF[n] for n in self.columns.split()}


ANSWERS = {
    "q0": Answer(_BID),
    "q1": Answer(_BID, has_euros=True),
    "q2": Answer("auction price"),
    "q3": Answer("name city state id", is_table=True),
    "q4": Answer("category average", "key AS category, value AS average", is_table=True),
    "q5": Answer(
        "auction num starttime", "epoch_ms(key) AS starttime, unnest(value, recursive := true)", is_table=True
    ),
    "q6": Answer("seller average", "key AS seller, value AS average", is_table=True),
    "q7": Answer("auction price bidder dateTime extra", "unnest(value, recursive := true)", is_table=True),
    "q8": Answer("id name starttime", "key.key AS id, value.name, key.window_start AS starttime"),
    "q9": Answer(
        "id itemName description initialBid reserve dateTime expires seller category extra auction bidder price "
        "bid_dateTime bid_extra",
        is_table=True,
    ),
    "q10": Answer(f"{_BID} dt hm"),
    "q11": Answer(
        "bidder bid_count starttime endtime",
        "key.key AS bidder, value AS bid_count, key.window_start AS starttime, "
        "key.window_end + INTERVAL 10 SECONDS AS endtime",
    ),
    "q12": Answer(
        "bidder bid_count starttime endtime",
        "key.key AS bidder, value AS bid_count, key.window_start AS starttime, key.window_end AS endtime",
    ),
    "q13": Answer("auction bidder price dateTime value"),
    "q14": Answer("auction bidder price bidTimeType dateTime extra c_counts", has_euros=True),
    "q15": Answer(f"day {_DISTINCT}", f"{_DAY}, value.*"),
    "q16": Answer(f"channel day minute {_DISTINCT}", f"key.key AS channel, {_DAY}, value.*"),
    "q17": Answer(
        f"auction day {_BY_RANK} min_price max_price avg_price sum_price", f"key.key AS auction, {_DAY}, value.*"
    ),
    "q18": Answer(_WHOLE_BID, is_table=True),
    "q19": Answer(
        f"{_WHOLE_BID} rank_number",
        "unnest(value.bids, recursive := true), generate_subscripts(value.bids, 1) AS rank_number",
        is_table=True,
    ),
    "q20": Answer(
        "auction bidder price channel url bid_dateTime bid_extra itemName description initialBid reserve "
        "auction_dateTime expires seller category auction_extra"
    ),
    "q21": Answer("auction bidder price channel channel_id"),
    "q22": Answer("auction bidder price channel dir1 dir2 dir3"),
}


def hindstreams_answer(query: str, warehouse: Path) -> str:
    """Hindstream's answer in its sink, as a SELECT of DuckDB's; no rows if nothing has been published."""
    answer = ANSWERS[query]
    files = warehouse / "topics" / query
    if not any(files.glob("partition=*/*.parquet")):
        columns = ", ".join(f"NULL::{type_} AS {name}" for name, type_ in answer.types().items())
        return f"SELECT {columns} WHERE false"
    records = f"SELECT * FROM read_parquet('{files}/partition=*/*.parquet')"
    if answer.is_table:
        last = 'row_number() OVER (PARTITION BY partition, key ORDER BY "offset" DESC) = 1'
        records = f"SELECT * FROM ({records} QUALIFY {last}) WHERE value IS NOT NULL"
    return f"SELECT {answer.of_records} FROM ({records})"


def peers_answer(output: Path) -> str:
    """The answer that a peer has left in ``output``, as a SELECT of DuckDB's."""
    return f"SELECT * FROM read_parquet('{output}/**/*.parquet')"


def save(query: str, answer: str, file: Path) -> None:
    """Writes the answer that a SELECT gives as a Parquet file, with the columns and types of the query's answer."""
    with _connect() as connection:
        connection.execute(f"COPY ({_typed(query, answer)}) TO '{file}' (FORMAT parquet)")


def differences(query: str, answer: str, expected: str) -> list[str]:
    """What is wrong with ``answer``, as sentences; none: nothing.

    Sums of hashes of the rows are compared first. Where they differ, rows are held against each other.

    Args:
        query: Its name.
        answer: A SELECT.
        expected: Another.
    """
    with _connect() as connection:
        sides = [_typed(query, one) for one in (answer, expected)]
        names = ", ".join(f'"{name}"' for name in ANSWERS[query].types())
        prints = [
            connection.execute(f"SELECT count(*), sum(hash({names})::HUGEINT) FROM ({side})").fetchone()
            for side in sides
        ]
        if prints[0] == prints[1]:
            return []
        found = []
        if prints[0][0] != prints[1][0]:
            found.append(f"{prints[0][0]:,} rows instead of {prints[1][0]:,}")
        for what, (one, other) in {"too many": (0, 1), "missing": (1, 0)}.items():
            rows = connection.execute(f"{sides[one]} EXCEPT ALL {sides[other]} LIMIT 1").fetchall()
            found += [f"{what}: {row}" for row in rows]
        return found


def _typed(query: str, answer: str) -> str:
    columns = [
        f"epoch_ms({name}) AS {name}" if type_ == _TIME else f"{name}::{type_} AS {name}"
        for name, type_ in ANSWERS[query].types().items()
    ]
    return f"SELECT {', '.join(columns)} FROM ({answer})"


def _connect() -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect()
    connection.execute("SET TimeZone = 'UTC'")
    return connection
