"""Nexmark q9, *winning bids*: the highest bid of each auction while it ran, the earliest of several such.

As in q4, a bid finds its auction in a table if the auction has begun. The highest bid of each auction is a table too.
It changes at most every two seconds, and only then it is joined with all that is known of the auction.
"""

from __future__ import annotations

from datetime import timedelta

import pyarrow.compute as pc

from hindstream import BufferConfig, Job, StreamsBuilder, Suppressed, arg_max

AUCTION = (
    "id", "itemName", "description", "initialBid", "reserve", "dateTime", "expires", "seller", "category", "extra"
)  # fmt: skip


def job() -> Job:
    """A table of auctions with their winning bids."""
    builder = StreamsBuilder("nexmark-q9")
    auctions = builder.table("auction")
    bid = {
        "auction": "left.auction",
        "bidder": "left.bidder",
        "price": "left.price",
        "bid_dateTime": "left.dateTime",
        "bid_extra": "left.extra",
    }
    in_time = pc.field("left", "dateTime") <= pc.field("right", "expires")
    highest = (
        builder.stream("bid")
        .join(auctions, bid | {"in_time": in_time})
        .filter("in_time")
        .group_by_key()
        .aggregate({"bid": arg_max("value", "price")})
        .suppress(Suppressed.until_time_limit(timedelta(seconds=2), BufferConfig.unbounded()))
    )
    won = {name: f"right.{name}" for name in AUCTION} | {name: f"left.bid.{name}" for name in bid}
    highest.to_stream().join(auctions, won).to("q9")
    return Job("nexmark-q9", builder.build())
