"""Nexmark q16, *channel statistics*: how many bids, bidders and auctions had each channel each day, by rank of price?

Different bidders and auctions are counted in two steps, which spread over all partitions. First each bidder of a
channel is a key of its own: when the day is over, there is one record for it, with the number of its bids of each rank.
The same with each auction. Then these records are added up by channel: each bidder counts once in a rank of which it
has bids.
"""

from __future__ import annotations

from datetime import timedelta

import pyarrow as pa
import pyarrow.compute as pc

from hindstream import BufferConfig, DayWindows, Job, KStream, StreamsBuilder, Suppressed, count, max_, sum_

DAYS = DayWindows.of_zone_and_grace("UTC", timedelta(seconds=4))
FINAL = Suppressed.until_window_closes(BufferConfig.unbounded())
PRICE = pc.field("value", "price")
BIDS = {
    "total": count(),
    "rank1": count(where=PRICE < 10_000),
    "rank2": count(where=(PRICE >= 10_000) & (PRICE < 1_000_000)),
    "rank3": count(where=PRICE >= 1_000_000),
    "last": max_("time"),
}
RANKS = ("total", "rank1", "rank2", "rank3")
NONE = pc.scalar(0)


def bids_of_each(bids: KStream, who: str) -> KStream:
    """How many bids of each rank each bidder, or each auction, has had in each channel and day."""
    return (
        bids.map({"channel": "channel", "who": who}, {"price": "price", "time": "dateTime"})
        .group_by_key()
        .windowed_by(DAYS)
        .aggregate(BIDS)
        .suppress(FINAL)
        .to_stream()
    )


def job() -> Job:
    """Statistics by channel and day."""
    builder = StreamsBuilder("nexmark-q16")
    bids = builder.stream("bid")
    once = {rank: (pc.field("value", rank) > 0).cast(pa.int64()) for rank in RANKS}
    of_bidders = {f"{rank}_bids": rank for rank in RANKS} | {f"{rank}_bidders": once[rank] for rank in RANKS}
    of_auctions = {f"{rank}_auctions": once[rank] for rank in RANKS}
    bidders = bids_of_each(bids, "bidder").map(
        "key.channel", {"last": "last"} | of_bidders | dict.fromkeys(of_auctions, NONE)
    )
    auctions = bids_of_each(bids, "auction").map(
        "key.channel", {"last": "last"} | dict.fromkeys(of_bidders, NONE) | of_auctions
    )
    numbers = (*of_bidders, *of_auctions)
    minute = {"minute": pc.strftime(pc.field("value", "last"), "%H:%M")}
    (
        bidders.merge(auctions)
        .group_by_key()
        .windowed_by(DAYS)
        .aggregate({"last": max_("last")} | {name: sum_(name) for name in numbers})
        .suppress(FINAL)
        .map_values(minute | {name: name for name in numbers})
        .to_stream()
        .to("q16")
    )
    return Job("nexmark-q16", builder.build())
