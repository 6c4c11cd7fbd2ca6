"""Nexmark q0, *pass through*: all bids, as they are.

One projection. What this costs, reading and writing costs.
"""

from __future__ import annotations

from hindstream import Job, StreamsBuilder


def job() -> Job:
    """Five fields of each bid."""
    builder = StreamsBuilder("nexmark-q0")
    bid = {name: name for name in ("auction", "bidder", "price", "dateTime", "extra")}
    builder.stream("bid").map_values(bid).to("q0")
    return Job("nexmark-q0", builder.build())
