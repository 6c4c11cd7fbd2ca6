"""Nexmark q15, *bidding statistics*: how many bids, bidders and auctions were there each day, by rank of price?

Different bidders and auctions are counted in two steps, so that not all bids have to come to one place.
First each bidder and each auction has one record a day, when the day is over, with the number of its bids of each rank.
Then these are added up: each bidder counts once in a rank of which it has bids.
`count_distinct`, as in q16, says it in a line, but keeps all values of a key in one place.
"""

from __future__ import annotations

from datetime import timedelta

import pyarrow as pa
import pyarrow.compute as pc

from hindstream import BufferConfig, DayWindows, Job, KStream, StreamsBuilder, Suppressed, count, sum_

DAYS = DayWindows.of_zone_and_grace("UTC", timedelta(seconds=4))
FINAL = Suppressed.until_window_closes(BufferConfig.unbounded())
PRICE = pc.field("value", "price")
BIDS = {
    "total": count(),
    "rank1": count(where=PRICE < 10_000),
    "rank2": count(where=(PRICE >= 10_000) & (PRICE < 1_000_000)),
    "rank3": count(where=PRICE >= 1_000_000),
}
NONE, EVERYONE = pc.scalar(0), pc.scalar("all")


def bids_of_each(keyed: KStream) -> KStream:
    """How many bids of each rank each key has had each day."""
    return keyed.group_by_key().windowed_by(DAYS).aggregate(BIDS).suppress(FINAL).to_stream()


def job() -> Job:
    """Statistics by day."""
    builder = StreamsBuilder("nexmark-q15")
    bids = builder.stream("bid").map_values({"bidder": "bidder", "price": "price"})
    once = {rank: (pc.field("value", rank) > 0).cast(pa.int64()) for rank in BIDS}
    of_bidders = {f"{rank}_bids": rank for rank in BIDS} | {f"{rank}_bidders": once[rank] for rank in BIDS}
    of_auctions = {f"{rank}_auctions": once[rank] for rank in BIDS}
    bidders = bids_of_each(bids.select_key("bidder")).map(EVERYONE, of_bidders | dict.fromkeys(of_auctions, NONE))
    auctions = bids_of_each(bids).map(EVERYONE, dict.fromkeys(of_bidders, NONE) | of_auctions)
    (
        bidders.merge(
            auctions.repartition()
        )  # or the tasks of bids would wait for those of bidders, and these for them
        .group_by_key()
        .windowed_by(DAYS)
        .aggregate({name: sum_(name) for name in (*of_bidders, *of_auctions)})
        .suppress(FINAL)
        .to_stream()
        .to("q15")
    )
    return Job("nexmark-q15", builder.build())
