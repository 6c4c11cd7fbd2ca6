"""Nexmark q5, *hot items*: which auctions have had the most bids in the last ten seconds, every two seconds?

Windows of ten seconds begin every two seconds. When one is over, the counts of its auctions are published, and of these
a table by window keeps the highest, all of them if there are several.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pyarrow as pa

from hindstream import BufferConfig, Job, StreamsBuilder, Suppressed, TimeWindows

WINDOWS = TimeWindows.of_size_and_grace(timedelta(seconds=10), timedelta(seconds=4)).advance_by(timedelta(seconds=2))
HOTTEST = pa.list_(pa.struct([("auction", pa.int64()), ("num", pa.int64())]))


def hottest(_window: object, item: dict[str, Any], so_far: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The auctions with the most bids, one more considered."""
    if so_far and item["num"] < so_far[0]["num"]:
        return so_far
    return [*so_far, item] if so_far and item["num"] == so_far[0]["num"] else [item]


def job() -> Job:
    """A table of the hottest auctions by the beginning of the window."""
    builder = StreamsBuilder("nexmark-q5")
    counts = (
        builder.stream("bid")
        .group_by_key()
        .windowed_by(WINDOWS)
        .count()
        .suppress(Suppressed.until_window_closes(BufferConfig.unbounded()))
        .to_stream()
    )
    (
        counts.map("window_start", {"auction": "key", "num": "value"})
        .group_by_key()
        .aggregate_with(list, hottest, HOTTEST)
        .to_stream()
        .to("q5")
    )
    return Job("nexmark-q5", builder.build())
