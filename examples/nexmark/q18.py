"""Nexmark q18, *last bid*: of each bidder for each auction.

A table holds the last record of each key, so the key is bidder and auction. Of bids at the same time the last counts.
"""

from __future__ import annotations

from hindstream import Job, StreamsBuilder


def job() -> Job:
    """A table of bids."""
    builder = StreamsBuilder("nexmark-q18")
    builder.stream("bid").select_key({"bidder": "bidder", "auction": "auction"}).to_table().to_stream().to("q18")
    return Job("nexmark-q18", builder.build())
