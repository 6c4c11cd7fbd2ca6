"""Nexmark's queries as a user of polars writes them: ``python nexmark_polars.py q5 TOPICS OUTPUT``.

A lazy query each, on the streaming engine. Where rows are equal, the order of arrival decides.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

THREADS = 2
os.environ["POLARS_MAX_THREADS"] = str(THREADS)  # read when polars is imported

import polars as pl  # noqa: E402

PRICE, TIME, URL = pl.col("price"), pl.col("dateTime"), pl.col("url")
BID = ("auction", "bidder", "price", "dateTime", "extra")
WHOLE_BID = ("auction", "bidder", "price", "channel", "url", "dateTime", "extra")
AUCTION = (
    "id", "itemName", "description", "initialBid", "reserve", "dateTime", "expires", "seller", "category", "extra"
)  # fmt: skip
EUROS = (PRICE.cast(pl.Decimal(19, 0)) * pl.lit("0.908").str.to_decimal(scale=3)).cast(pl.Decimal(23, 3))
DAY = TIME.dt.strftime("%Y-%m-%d").alias("day")
RANKS = {
    "rank1": PRICE < 10_000,
    "rank2": (PRICE >= 10_000) & (PRICE < 1_000_000),
    "rank3": PRICE >= 1_000_000,
}


class Topics:
    """The topics in a folder.

    Args:
        folder: With ``bid/partition=0/*.parquet`` and so on.
    """

    def __init__(self, folder: str) -> None:
        self._folder = Path(folder)

    def topic(self, name: str, *fields: str) -> pl.LazyFrame:
        """Records with these fields of their values; ``offset`` too, if it is among them."""
        files = sorted(self._folder.glob(f"{name}/partition=*/*.parquet"))
        rows = pl.scan_parquet(files, hive_partitioning=False)
        chosen = [pl.col("value").struct.field(field) for field in fields if field != "offset"]
        return rows.select(*chosen, *(["offset"] if "offset" in fields else []))

    def bids(self, *fields: str) -> pl.LazyFrame:
        """Bids with these fields."""
        return self.topic("bid", *fields)

    def side_input(self) -> pl.LazyFrame:
        """Key and value."""
        files = sorted(self._folder.glob("side_input/partition=*/*.parquet"))
        return pl.scan_parquet(files, hive_partitioning=False).select("key", "value")


def in_time(topics: Topics, auction: tuple[str, ...], bid: tuple[str, ...]) -> pl.LazyFrame:
    """Bids with their auctions, while these ran; what both have is ``bid_``... of the bid."""
    auctions = topics.topic("auction", *dict.fromkeys(("id", "dateTime", "expires", *auction)))
    bids = topics.bids(*dict.fromkeys(("auction", "dateTime", *bid)))
    bids = bids.rename({name: f"bid_{name}" for name in ("dateTime", "extra") if name in ("dateTime", *bid)})
    joined = bids.join(auctions, left_on="auction", right_on="id", coalesce=False)
    return joined.filter(pl.col("bid_dateTime").is_between(TIME, pl.col("expires")))


def first_by(rows: pl.LazyFrame, keys: list[str], order: list[str], *, descending: list[bool]) -> pl.LazyFrame:
    """The first row of each group."""
    return rows.sort(order, descending=descending).unique(keys, keep="first", maintain_order=False)


def window(every: str) -> pl.Expr:
    """The beginning of a bid's window."""
    return TIME.dt.truncate(every).alias("starttime")


def q5(topics: Topics) -> pl.LazyFrame:
    """Counts of two seconds are added up to those of ten."""
    parts = topics.bids("auction", "dateTime").group_by("auction", window("2s")).agg(num=pl.len())
    earlier = pl.LazyFrame({"earlier": [2 * n for n in range(5)]})
    counts = (
        parts.join(earlier, how="cross")
        .with_columns(pl.col("starttime") - pl.duration(seconds=pl.col("earlier")))
        .group_by("auction", "starttime")
        .agg(pl.col("num").sum())
    )
    most = counts.group_by("starttime").agg(most=pl.col("num").max())
    return counts.join(most, on="starttime").filter(pl.col("num") == pl.col("most")).drop("most")


def q6(topics: Topics) -> pl.LazyFrame:
    """The average of each seller's last ten."""
    bids = in_time(topics, ("seller",), ("price", "offset"))
    won = first_by(bids, ["auction"], ["price", "bid_dateTime", "offset"], descending=[True, False, False])
    last = won.sort("bid_dateTime", "auction", descending=True).group_by("seller", maintain_order=True).head(10)
    return last.group_by("seller").agg(average=PRICE.mean())


def q7(topics: Topics) -> pl.LazyFrame:
    """The highest bid of each auction, and of these the highest."""
    bids = topics.bids(*BID, "offset").with_columns(window("10s"))
    highest = bids.group_by("starttime").agg(highest=PRICE.max())
    best = bids.join(highest, on="starttime").filter(pl.col("highest") == PRICE)
    order = ["dateTime", "offset"]
    return first_by(best, ["starttime", "auction"], order, descending=[False, False]).select(BID)


def q8(topics: Topics) -> pl.LazyFrame:
    """A semi-join by id and window."""
    persons = topics.topic("person", "id", "name", "dateTime").with_columns(window("10s"))
    sellers = topics.topic("auction", "seller", "dateTime").select("seller", window("10s"))
    found = persons.join(sellers, left_on=["id", "starttime"], right_on=["seller", "starttime"], how="semi")
    return found.select("id", "name", "starttime")


def q9(topics: Topics) -> pl.LazyFrame:
    """All that is known of the winning bid."""
    bids = in_time(topics, ("id",), ("bidder", "price", "extra", "offset"))
    won = first_by(bids, ["auction"], ["price", "bid_dateTime", "offset"], descending=[True, False, False])
    won = won.select("auction", "bidder", "price", "bid_dateTime", "bid_extra")
    return topics.topic("auction", *AUCTION).join(won, left_on="id", right_on="auction", coalesce=False)


def q11(topics: Topics) -> pl.LazyFrame:
    """A session begins where the bid before is more than ten seconds ago."""
    bids = topics.bids("bidder", "dateTime").sort("bidder", "dateTime")
    is_first = (TIME - TIME.shift(1).over("bidder") > pl.duration(seconds=10)).fill_null(value=True)
    sessions = bids.with_columns(session=is_first.cum_sum()).group_by("bidder", "session")
    ends = (TIME.max() + pl.duration(seconds=10)).alias("endtime")
    return sessions.agg(pl.len().alias("bid_count"), TIME.min().alias("starttime"), ends).drop("session")


def q12(topics: Topics) -> pl.LazyFrame:
    """Counts by bidder and window."""
    counts = topics.bids("bidder", "dateTime").group_by("bidder", window("10s")).agg(bid_count=pl.len())
    return counts.with_columns(endtime=pl.col("starttime") + pl.duration(seconds=10))


def q14(topics: Topics) -> pl.LazyFrame:
    """Calculations."""
    hour = TIME.dt.hour()
    is_night = (hour <= 6) | (hour >= 20)
    time_type = pl.when(hour.is_between(8, 18)).then(pl.lit("dayTime"))
    time_type = time_type.when(is_night).then(pl.lit("nightTime")).otherwise(pl.lit("otherTime"))
    euros = topics.bids(*BID).with_columns(price=EUROS).filter((PRICE > 1_000_000) & (PRICE < 50_000_000))
    return euros.with_columns(
        bidTimeType=time_type, c_counts=pl.col("extra").str.count_matches("c", literal=True).cast(pl.Int64)
    )


def bids_by_rank() -> list[pl.Expr]:
    """How many there are, and of each rank."""
    ranks = [rank.sum().cast(pl.Int64).alias(f"{name}_bids") for name, rank in RANKS.items()]
    return [pl.len().alias("total_bids"), *ranks]


def distinct() -> list[pl.Expr]:
    """How many different bidders and auctions there are, and of each rank."""
    counts = []
    for field in ("bidder", "auction"):
        counts.append(pl.col(field).n_unique().alias(f"total_{field}s"))
        counts += [pl.col(field).filter(rank).n_unique().alias(f"{name}_{field}s") for name, rank in RANKS.items()]
    return counts


def q17(topics: Topics) -> pl.LazyFrame:
    """Statistics of prices."""
    prices = {"min_price": PRICE.min(), "max_price": PRICE.max(), "avg_price": PRICE.mean(), "sum_price": PRICE.sum()}
    bids = topics.bids("auction", "price", "dateTime")
    return bids.group_by("auction", DAY).agg(*bids_by_rank(), **prices)


def q20(topics: Topics) -> pl.LazyFrame:
    """Bids with their auctions."""
    auctions = topics.topic("auction", *AUCTION).filter(pl.col("category") == 10)
    auctions = auctions.rename({"dateTime": "auction_dateTime", "extra": "auction_extra"})
    bids = topics.bids(*WHOLE_BID).rename({"dateTime": "bid_dateTime", "extra": "bid_extra"})
    return bids.join(auctions, left_on="auction", right_on="id")


def q21(topics: Topics) -> pl.LazyFrame:
    """Fixed ids of four channels, and those in the URL."""
    fixed = pl.col("channel").str.to_lowercase()
    fixed = fixed.replace_strict({"apple": "0", "google": "1", "facebook": "2", "baidu": "3"}, default=None)
    found = pl.coalesce(fixed, URL.str.extract("(?:&|^)channel_id=([^&]*)", 1))
    bids = topics.bids("auction", "bidder", "price", "channel", "url").with_columns(channel_id=found).drop("url")
    return bids.filter(pl.col("channel_id").is_not_null())


def q22(topics: Topics) -> pl.LazyFrame:
    """The parts of the URL."""
    parts = URL.str.split("/")
    directories = {f"dir{n}": parts.list.get(2 + n, null_on_oob=True) for n in (1, 2, 3)}
    return topics.bids("auction", "bidder", "price", "channel", "url").with_columns(**directories).drop("url")


QUERIES = {
    "q0": lambda topics: topics.bids(*BID),
    "q1": lambda topics: topics.bids(*BID).with_columns(price=EUROS),
    "q2": lambda topics: topics.bids("auction", "price").filter(pl.col("auction") % 123 == 0),
    "q3": lambda topics: (
        topics.topic("auction", "id", "seller", "category")
        .filter(pl.col("category") == 10)
        .join(
            topics.topic("person", "id", "name", "city", "state").filter(pl.col("state").is_in(["OR", "ID", "CA"])),
            left_on="seller",
            right_on="id",
        )
        .select("name", "city", "state", "id")
    ),
    "q4": lambda topics: (
        in_time(topics, ("category",), ("price",))
        .group_by("auction", "category")
        .agg(PRICE.max())
        .group_by("category")
        .agg(average=PRICE.mean())
    ),
    "q5": q5,
    "q6": q6,
    "q7": q7,
    "q8": q8,
    "q9": q9,
    "q10": lambda topics: topics.bids(*BID).with_columns(dt=TIME.dt.strftime("%Y-%m-%d"), hm=TIME.dt.strftime("%H:%M")),
    "q11": q11,
    "q12": q12,
    "q13": lambda topics: (
        topics.bids("auction", "bidder", "price", "dateTime")
        .with_columns(key=pl.col("auction") % 10_000)
        .join(topics.side_input(), on="key")
        .drop("key")
    ),
    "q14": q14,
    "q15": lambda topics: (
        topics.bids("auction", "bidder", "price", "dateTime").group_by(DAY).agg(*bids_by_rank(), *distinct())
    ),
    "q16": lambda topics: (
        topics.bids("auction", "bidder", "price", "channel", "dateTime")
        .group_by("channel", DAY)
        .agg(TIME.dt.strftime("%H:%M").max().alias("minute"), *bids_by_rank(), *distinct())
    ),
    "q17": q17,
    "q18": lambda topics: first_by(
        topics.bids(*WHOLE_BID, "offset"), ["bidder", "auction"], ["dateTime", "offset"], descending=[True, True]
    ).drop("offset"),
    "q19": lambda topics: (
        topics.bids(*WHOLE_BID, "offset")
        .sort("price", "dateTime", "offset", descending=[True, False, False])
        .with_columns(rank_number=pl.int_range(1, pl.len() + 1).over("auction"))
        .filter(pl.col("rank_number") <= 10)
        .drop("offset")
    ),
    "q20": q20,
    "q21": q21,
    "q22": q22,
}


def main(query: str, topics: str, output: str) -> None:
    """Runs one query over ``topics`` and writes ``output/answer.parquet``."""
    answer = QUERIES[query](Topics(topics))
    answer.sink_parquet(Path(output, "answer.parquet"), compression="zstd", engine="streaming")


if __name__ == "__main__":
    main(*sys.argv[1:])
