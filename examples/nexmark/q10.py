"""Nexmark q10, *log to file system*: all bids, with day and minute, in files.

The original writes a folder of CSV files for each minute. A sink here is a topic archive, Parquet files in the order of
offsets, one folder a partition: that layout cannot be chosen. The columns by which the original divides are in it.
"""

from __future__ import annotations

import pyarrow.compute as pc

from hindstream import Job, StreamsBuilder

TIME = pc.field("value", "dateTime")


def job() -> Job:
    """Bids with ``dt`` and ``hm``."""
    builder = StreamsBuilder("nexmark-q10")
    bid = {name: name for name in ("auction", "bidder", "price", "dateTime", "extra")}
    day_and_minute = {"dt": pc.strftime(TIME, "%Y-%m-%d"), "hm": pc.strftime(TIME, "%H:%M")}
    builder.stream("bid").map_values(bid | day_and_minute).to("q10")
    return Job("nexmark-q10", builder.build())
