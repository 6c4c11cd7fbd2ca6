"""Nexmark q4, *average price for a category*: the average of the winning bids of all auctions in each category.

A bid counts if it comes while its auction runs. Records are taken up in the order of their time, auctions before bids.
So a bid finds its auction in the table if the auction has begun. The highest bid of each auction is a table; grouped by
category, each new highest bid replaces the old one in the average.
"""

from __future__ import annotations

import pyarrow.compute as pc

from hindstream import Job, StreamsBuilder, max_


def job() -> Job:
    """A table of averages by category."""
    builder = StreamsBuilder("nexmark-q4")
    auctions = builder.table("auction")
    bid = {
        "category": "right.category",
        "price": "left.price",
        "in_time": pc.field("left", "dateTime") <= pc.field("right", "expires"),
    }
    (
        builder.stream("bid")
        .join(auctions, bid)
        .filter("in_time")
        .group_by_key()
        .aggregate({"category": max_("category"), "final": max_("price")})
        .group_by("value.category")
        .mean("final")
        .to_stream()
        .to("q4")
    )
    return Job("nexmark-q4", builder.build())
