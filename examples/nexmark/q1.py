"""Nexmark q1, *currency conversion*: each bid's price in euros.

Prices are decimals, so that the result is exact: ``DECIMAL(23, 3)``, as in the original.
"""

from __future__ import annotations

from decimal import Decimal

import pyarrow as pa
import pyarrow.compute as pc

from hindstream import Job, StreamsBuilder

DOLLARS = pc.field("value", "price").cast(pa.decimal128(19, 0))
EUROS = pc.multiply(DOLLARS, pc.scalar(Decimal("0.908"))).cast(pa.decimal128(23, 3))


def job() -> Job:
    """The bid with another price."""
    builder = StreamsBuilder("nexmark-q1")
    bid = {"auction": "auction", "bidder": "bidder", "price": EUROS, "dateTime": "dateTime", "extra": "extra"}
    builder.stream("bid").map_values(bid).to("q1")
    return Job("nexmark-q1", builder.build())
