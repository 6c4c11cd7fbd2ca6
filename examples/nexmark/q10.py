"""Nexmark q10, *log to file system*: all bids, with day and minute, in files.

The original writes a folder of CSV files for each minute. A sink here is a topic archive, Parquet files in the order of
offsets, one folder a partition: that layout cannot be chosen. The columns by which the original divides are in it,
cut out of the time as text: ``strftime`` says the same, but takes five times as long.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from hindstream import Job, StreamsBuilder

TIME = pc.field("value", "dateTime").cast(pa.timestamp("ms")).cast(pa.string())


def job() -> Job:
    """Bids with ``dt`` and ``hm``."""
    builder = StreamsBuilder("nexmark-q10")
    bid = {name: name for name in ("auction", "bidder", "price", "dateTime", "extra")}
    day_and_minute = {"dt": pc.utf8_slice_codeunits(TIME, 0, 10), "hm": pc.utf8_slice_codeunits(TIME, 11, 16)}
    builder.stream("bid").map_values(bid | day_and_minute).to("q10")
    return Job("nexmark-q10", builder.build())
