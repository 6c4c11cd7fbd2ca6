"""Nexmark q22, *URL directories*: the three directories in each bid's URL."""

from __future__ import annotations

import pyarrow.compute as pc

from hindstream import Job, StreamsBuilder

PARTS = pc.split_pattern(pc.field("value", "url"), "/")


def job() -> Job:
    """Bids with ``dir1`` to ``dir3``."""
    builder = StreamsBuilder("nexmark-q22")
    bid = {name: name for name in ("auction", "bidder", "price", "channel")}
    directories = {f"dir{n}": pc.list_element(PARTS, 2 + n) for n in (1, 2, 3)}
    builder.stream("bid").map_values(bid | directories).to("q22")
    return Job("nexmark-q22", builder.build())
