"""Nexmark q20, *expand bid with auction*: bids together with their auctions, for category 10.

A join of two streams, since a bid may come before its auction. The original's join looks back and forth without end. A
join of streams has a window: here a bid and its auction are at most a minute apart. The generator's are closer: by
less than four thousand events, of which there are more than a hundred a second.
"""

from __future__ import annotations

from datetime import timedelta

import pyarrow.compute as pc

from hindstream import Job, JoinWindows, StreamsBuilder

BID = ("auction", "bidder", "price", "channel", "url")
AUCTION = ("itemName", "description", "initialBid", "reserve", "expires", "seller", "category")


def job() -> Job:
    """Bids with their auctions."""
    builder = StreamsBuilder("nexmark-q20")
    auctions = builder.stream("auction").filter(pc.field("value", "category") == 10)
    expanded = {name: f"left.{name}" for name in BID} | {"bid_dateTime": "left.dateTime", "bid_extra": "left.extra"}
    expanded |= {name: f"right.{name}" for name in AUCTION}
    expanded |= {"auction_dateTime": "right.dateTime", "auction_extra": "right.extra"}
    apart = JoinWindows.of_time_difference_and_grace(timedelta(minutes=1), timedelta(seconds=4))
    builder.stream("bid").join(auctions, expanded, apart).to("q20")
    return Job("nexmark-q20", builder.build())
