"""Nexmark q19, *top ten*: the ten highest bids of each auction, the earlier first of two equal ones.

A table of lists, kept by a Python function. It is called for each bid, which costs far more than a compiled aggregation
(docs/operators/aggregations.md).
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from hindstream import Job, StreamsBuilder

BIDS = pa.list_(
    pa.struct(
        [
            ("auction", pa.int64()),
            ("bidder", pa.int64()),
            ("price", pa.int64()),
            ("channel", pa.string()),
            ("url", pa.string()),
            ("dateTime", pa.timestamp("ms", "UTC")),
            ("extra", pa.string()),
        ]
    )
)


def with_bid(_auction: int, bid: dict[str, Any], highest: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The ten highest bids, one more considered."""
    if len(highest) == 10 and bid["price"] <= highest[-1]["price"]:
        return highest
    place = next((n for n, other in enumerate(highest) if bid["price"] > other["price"]), len(highest))
    return [*highest[:place], bid, *highest[place:9]]


def job() -> Job:
    """A table of lists of bids by auction."""
    builder = StreamsBuilder("nexmark-q19")
    builder.stream("bid").group_by_key().aggregate_with(list, with_bid, BIDS).to_stream().to("q19")
    return Job("nexmark-q19", builder.build())
