"""Nexmark q6, *average selling price by seller*: of each seller's last ten auctions.

The highest bid of each auction is a table, as in q9. Grouped by seller, each new highest bid replaces the old one in
the seller's list, which two Python functions keep: one adds, one takes away. An auction changes at most every two
seconds, which spares the lists most of the changes and leaves the end the same.

The average is of the ten latest by the time of the bid, and every auction that has had a bid counts. So says the SQL of
the original, which Flink cannot run (FLINK-19059). It takes eleven, where its text says ten.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from hindstream import BufferConfig, Job, StreamsBuilder, Suppressed, arg_max, per_record

SOLD = pa.list_(pa.struct([("time", pa.int64()), ("auction", pa.int64()), ("price", pa.int64())]))


def add(_seller: int, won: dict[str, Any], sold: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """With one more winning bid, in the order of time."""
    return sorted([*sold, {"time": won["time"], "auction": won["auction"], "price": won["price"]}], key=_order)


def take_away(_seller: int, won: dict[str, Any], sold: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Without the bid that has been outbid."""
    return [one for one in sold if one["auction"] != won["auction"]]


def average_of_last_ten(sold: list[dict[str, Any]]) -> float:
    """Of the prices."""
    last = [one["price"] for one in sold[-10:]]
    return sum(last) / len(last)


def _order(one: dict[str, Any]) -> tuple[int, int]:
    return one["time"], one["auction"]


def job() -> Job:
    """A table of averages by seller."""
    builder = StreamsBuilder("nexmark-q6")
    auctions = builder.table("auction")
    bid = {
        "auction": "left.auction",
        "seller": "right.seller",
        "price": "left.price",
        "time": pc.field("left", "dateTime").cast(pa.int64()),
        "in_time": pc.field("left", "dateTime") <= pc.field("right", "expires"),
    }
    (
        builder.stream("bid")
        .join(auctions, bid)
        .filter("in_time")
        .group_by_key()
        .aggregate({"won": arg_max("value", "price")})
        .suppress(Suppressed.until_time_limit(timedelta(seconds=2), BufferConfig.unbounded()))
        .group_by("value.won.seller", "value.won")
        .aggregate_with(list, add, take_away, SOLD)
        .filter(pc.list_value_length(pc.field("value")) > 0)
        .map_values(per_record(average_of_last_ten, pa.float64(), "value"))
        .to_stream()
        .to("q6")
    )
    return Job("nexmark-q6", builder.build())
