"""Nexmark q21, *add channel id*: four channels have a fixed id, the others have theirs in the URL.

Bids of other channels without an id in their URL are left out.
"""

from __future__ import annotations

import pyarrow.compute as pc

from hindstream import Job, StreamsBuilder

CHANNEL = pc.utf8_lower(pc.field("value", "channel"))
IN_URL = pc.struct_field(pc.extract_regex(pc.field("value", "url"), "(?:&|^)channel_id=(?P<id>[^&]*)"), "id")


def job() -> Job:
    """Bids with the id of their channel."""
    builder = StreamsBuilder("nexmark-q21")
    channel_id = IN_URL
    for name, fixed in {"apple": "0", "google": "1", "facebook": "2", "baidu": "3"}.items():
        channel_id = pc.if_else(name == CHANNEL, fixed, channel_id)
    bid = {"auction": "auction", "bidder": "bidder", "price": "price", "channel": "channel", "channel_id": channel_id}
    builder.stream("bid").map_values(bid).filter(pc.is_valid(pc.field("value", "channel_id"))).to("q21")
    return Job("nexmark-q21", builder.build())
