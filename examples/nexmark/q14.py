"""Nexmark q14, *calculation*: bids within a range of prices, with the time of day and a count of letters.

One filter and one projection of Arrow expressions; the original counts letters with a function of its own.
"""

from __future__ import annotations

from decimal import Decimal

import pyarrow as pa
import pyarrow.compute as pc

from hindstream import Job, StreamsBuilder

DOLLARS = pc.field("value", "price").cast(pa.decimal128(19, 0))
EUROS = pc.multiply(DOLLARS, pc.scalar(Decimal("0.908"))).cast(pa.decimal128(23, 3))
HOUR = pc.hour(pc.field("value", "dateTime"))


def job() -> Job:
    """The chosen bids."""
    builder = StreamsBuilder("nexmark-q14")
    is_day, is_night = (HOUR >= 8) & (HOUR <= 18), (HOUR <= 6) | (HOUR >= 20)
    bid = {
        "auction": "auction",
        "bidder": "bidder",
        "price": EUROS,
        "bidTimeType": pc.if_else(is_day, "dayTime", pc.if_else(is_night, "nightTime", "otherTime")),
        "dateTime": "dateTime",
        "extra": "extra",
        "c_counts": pc.count_substring(pc.field("value", "extra"), "c").cast(pa.int64()),
    }
    in_range = (pc.scalar(Decimal(1_000_000)) < EUROS) & (pc.scalar(Decimal(50_000_000)) > EUROS)
    builder.stream("bid").filter(in_range).map_values(bid).to("q14")
    return Job("nexmark-q14", builder.build())
