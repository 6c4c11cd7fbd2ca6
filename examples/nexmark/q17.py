"""Nexmark q17, *auction statistics*: how many bids did each auction have each day, at which prices?

A window of a day; the key is the auction. Each day is published once, when it is over.
"""

from __future__ import annotations

from datetime import timedelta

import pyarrow.compute as pc

from hindstream import BufferConfig, DayWindows, Job, StreamsBuilder, Suppressed, count, max_, mean_, min_, sum_

PRICE = pc.field("value", "price")


def job() -> Job:
    """Statistics by auction and day."""
    builder = StreamsBuilder("nexmark-q17")
    statistics = {
        "total_bids": count(),
        "rank1_bids": count(where=PRICE < 10_000),
        "rank2_bids": count(where=(PRICE >= 10_000) & (PRICE < 1_000_000)),
        "rank3_bids": count(where=PRICE >= 1_000_000),
        "min_price": min_("price"),
        "max_price": max_("price"),
        "avg_price": mean_("price"),
        "sum_price": sum_("price"),
    }
    (
        builder.stream("bid")
        .group_by_key()
        .windowed_by(DayWindows.of_zone_and_grace("UTC", timedelta(seconds=4)))
        .aggregate(statistics)
        .suppress(Suppressed.until_window_closes(BufferConfig.unbounded()))
        .to_stream()
        .to("q17")
    )
    return Job("nexmark-q17", builder.build())
