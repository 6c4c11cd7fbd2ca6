"""Nexmark q3, *local item suggestion*: who sells in Oregon, Idaho or California in category 10, and which auctions?

Both are tables, and each auction refers to its seller by a foreign key (KIP-213). An auction may come before its
seller: whichever comes last completes the result. Nobody changes an auction or a person later, so the streams are
filtered before they become tables, and the tables hold nothing else.
"""

from __future__ import annotations

import pyarrow.compute as pc

from hindstream import Job, StreamsBuilder


def job() -> Job:
    """A table of auctions with their sellers."""
    builder = StreamsBuilder("nexmark-q3")
    auctions = builder.stream("auction").filter(pc.field("value", "category") == 10).to_table()
    sellers = builder.stream("person").filter(pc.field("value", "state").isin(["OR", "ID", "CA"])).to_table()
    suggestion = {"name": "right.name", "city": "right.city", "state": "right.state", "id": "left.id"}
    auctions.join(sellers, suggestion, foreign_key="seller").to_stream().to("q3")
    return Job("nexmark-q3", builder.build())
