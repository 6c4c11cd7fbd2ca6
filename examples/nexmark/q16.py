"""Nexmark q16, *channel statistics*: how many bids, bidders and auctions had each channel each day, by rank of price?

`count_distinct` keeps all bidders and auctions of each channel and day, as does the SQL of the original. Of hundreds of
thousands in one day, or of days in many slices, q15's two steps spread them over all partitions.
"""

from __future__ import annotations

from datetime import timedelta

import pyarrow.compute as pc

from hindstream import BufferConfig, DayWindows, Job, StreamsBuilder, Suppressed, count, count_distinct, max_

DAYS = DayWindows.of_zone_and_grace("UTC", timedelta(seconds=4))
FINAL = Suppressed.until_window_closes(BufferConfig.unbounded())
PRICE = pc.field("value", "price")
RANKS = {
    "total": None,
    "rank1": PRICE < 10_000,
    "rank2": (PRICE >= 10_000) & (PRICE < 1_000_000),
    "rank3": PRICE >= 1_000_000,
}


def job() -> Job:
    """Statistics by channel and day."""
    builder = StreamsBuilder("nexmark-q16")
    numbers = {f"{rank}_bids": count(where=of) for rank, of in RANKS.items()}
    numbers |= {f"{rank}_bidders": count_distinct("bidder", where=of) for rank, of in RANKS.items()}
    numbers |= {f"{rank}_auctions": count_distinct("auction", where=of) for rank, of in RANKS.items()}
    minute = {"minute": pc.strftime(pc.field("value", "last"), "%H:%M")}
    (
        builder.stream("bid")
        .map("channel", {name: name for name in ("bidder", "auction", "price")} | {"time": "dateTime"})
        .group_by_key()
        .windowed_by(DAYS)
        .aggregate({"last": max_("time")} | numbers)
        .suppress(FINAL)
        .map_values(minute | {name: name for name in numbers})
        .to_stream()
        .to("q16")
    )
    return Job("nexmark-q16", builder.build())
