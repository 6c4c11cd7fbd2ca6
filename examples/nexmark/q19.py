"""Nexmark q19, *top ten*: the ten highest bids of each auction, the earlier first of two equal ones.

A table of lists.
"""

from __future__ import annotations

from hindstream import Job, StreamsBuilder, top_n


def job() -> Job:
    """A table of lists of bids by auction."""
    builder = StreamsBuilder("nexmark-q19")
    highest = {"bids": top_n("value", "price", 10)}
    builder.stream("bid").group_by_key().aggregate(highest).to_stream().to("q19")
    return Job("nexmark-q19", builder.build())
