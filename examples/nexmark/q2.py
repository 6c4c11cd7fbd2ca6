"""Nexmark q2, *selection*: auction and price of the bids for some auctions.

A filter and a projection. Arrow has no modulo; integers are divided without a rest.
"""

from __future__ import annotations

import pyarrow.compute as pc

from hindstream import Job, StreamsBuilder

AUCTION = pc.field("value", "auction")


def job() -> Job:
    """Bids for every 123rd auction."""
    builder = StreamsBuilder("nexmark-q2")
    chosen = AUCTION == AUCTION / 123 * 123
    builder.stream("bid").filter(chosen).map_values({"auction": "auction", "price": "price"}).to("q2")
    return Job("nexmark-q2", builder.build())
