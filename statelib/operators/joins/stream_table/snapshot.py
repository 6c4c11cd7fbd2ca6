"""What waits before a stream-table join, as data."""

from __future__ import annotations

from typing import TYPE_CHECKING

from statelib.described.stored_values import buffered_columns
from statelib.described.view import View, key_column, plain_column, time_column
from statelib.operators.joins.stream_table.buffer_store import JoinBufferStore, decode_columns, encode_place
from statelib.stores.column_scan import scan_columns

if TYPE_CHECKING:
    from collections.abc import Iterator

    from statelib.described.description import Described, Place
    from statelib.described.view import Ask, Raw


def join_buffer_view(described: Described) -> View:
    """The stream's records that wait for the table, and the stream time after which they are joined."""
    name, grace_ms = described.name, described.settings["grace_ms"]

    def scan(place: Place, ask: Ask) -> Iterator[Raw]:
        header = JoinBufferStore(place.backend, name).header
        first = encode_place(max(ask.since_ms or 0, 0))
        end = None if ask.until_ms is None else encode_place(max(ask.until_ms, 0))
        for places, raws in scan_columns(place.backend, name, first, end):
            timestamp, _, keys, rows = decode_columns(places, raws, name)
            value = buffered_columns(header, rows)["value"]
            yield {"key": keys, "value": value, "timestamp": timestamp, "joined_after": timestamp + grace_ms}

    columns = {
        "key": key_column(described),
        "value": plain_column(described.type("value")),
        "timestamp": time_column(),
        "joined_after": time_column(),
    }
    return View(columns, scan, "key", "timestamp")
