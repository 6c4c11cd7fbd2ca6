"""Nexmark q7, *highest bid*: the bid with the highest price of each ten seconds.

In two steps, as one would count a crowd: the highest bid of each auction, in all partitions at once, and when the ten
seconds are over, the highest of these. Of several bids at that price, one of each auction stays.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pyarrow as pa

from hindstream import BufferConfig, Job, StreamsBuilder, Suppressed, TimeWindows, arg_max

BID = pa.struct(
    [
        ("auction", pa.int64()),
        ("price", pa.int64()),
        ("bidder", pa.int64()),
        ("dateTime", pa.timestamp("ms", "UTC")),
        ("extra", pa.string()),
    ]
)


def highest(_window: object, bid: dict[str, Any], so_far: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The highest bids, one more considered."""
    if so_far and bid["price"] < so_far[0]["price"]:
        return so_far
    return [*so_far, bid] if so_far and bid["price"] == so_far[0]["price"] else [bid]


def job() -> Job:
    """A table of the highest bids by the beginning of the window."""
    builder = StreamsBuilder("nexmark-q7")
    of_auctions = (
        builder.stream("bid")
        .map_values({field.name: field.name for field in BID})
        .group_by_key()
        .windowed_by(TimeWindows.of_size_and_grace(timedelta(seconds=10), timedelta(seconds=4)))
        .aggregate({"highest": arg_max("value", "price")})
        .suppress(Suppressed.until_window_closes(BufferConfig.unbounded()))
        .to_stream()
    )
    (
        of_auctions.map("window_start", "highest")
        .group_by_key()
        .aggregate_with(list, highest, pa.list_(BID))
        .to_stream()
        .to("q7")
    )
    return Job("nexmark-q7", builder.build())
