"""Nexmark q13, *bounded side input*: each bid with a value that is looked up.

The side input is a topic of 10,000 rows, read as a global table: every task has all of it, and it is complete before
the first bid.
"""

from __future__ import annotations

import pyarrow.compute as pc

from hindstream import Job, StreamsBuilder

AUCTION = pc.field("value", "auction")


def job() -> Job:
    """Bids with the value of ``auction mod 10,000``."""
    builder = StreamsBuilder("nexmark-q13")
    side_input = builder.global_table("side_input")
    enriched = {name: f"left.{name}" for name in ("auction", "bidder", "price", "dateTime")} | {"value": "right"}
    builder.stream("bid").join(side_input, AUCTION - AUCTION / 10_000 * 10_000, enriched).to("q13")
    return Job("nexmark-q13", builder.build())
