"""Nexmark q3, *local item suggestion*: who sells in Oregon, Idaho or California in category 10, and which auctions?

Both are tables, and each auction refers to its seller by a foreign key (KIP-213). An auction may come before its
seller: whichever comes last completes the result.
"""

from __future__ import annotations

import pyarrow.compute as pc

from hindstream import Job, StreamsBuilder


def job() -> Job:
    """A table of auctions with their sellers."""
    builder = StreamsBuilder("nexmark-q3")
    auctions = builder.table("auction").filter(pc.field("value", "category") == 10)
    sellers = builder.table("person").filter(pc.field("value", "state").isin(["OR", "ID", "CA"]))
    suggestion = {"name": "right.name", "city": "right.city", "state": "right.state", "id": "left.id"}
    auctions.join(sellers, suggestion, foreign_key="seller").to_stream().to("q3")
    return Job("nexmark-q3", builder.build())
