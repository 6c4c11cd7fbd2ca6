"""What a stream-stream join remembers, as data: records of both sides, and those that have met nobody."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from statelib.described.view import Column, View, key_column, plain_column, time_column, value_column
from statelib.operators.joins.stream_stream.codec import FIRST_HELD_KEY, decode_held_keys, decode_keys, encode_key
from statelib.operators.joins.stream_stream.store import HeldStore, JoinWindowStore
from statelib.serdes import serde_for
from statelib.stores.column_scan import scan_columns

if TYPE_CHECKING:
    from collections.abc import Iterator

    from statelib.described.description import Described, Place
    from statelib.described.view import Ask, Raw

_END_OF_TIME = (1 << 63) - 1


def join_window_view(described: Described) -> View:
    """The records of one side that those of the other may meet."""
    name = described.name

    def scan(place: Place, ask: Ask) -> Iterator[Raw]:
        JoinWindowStore(place.backend, name)  # refuses another format
        one = ask.where.get("key")
        first, end = b"", None
        if one is not None:
            first, end = encode_key(one, max(ask.since_ms or 0, 0), 0), encode_key(one, _END_OF_TIME, _END_OF_TIME)
        for raw_keys, values in scan_columns(place.backend, JoinWindowStore.families(name)[0], first, end):
            keys, timestamp, _ = decode_keys(raw_keys, name)
            yield {"key": keys, "value": values, "timestamp": timestamp}

    columns = {"key": key_column(described), "value": value_column(described), "timestamp": time_column()}
    return View(columns, scan, "key", "timestamp")


def held_view(described: Described) -> View:
    """The records of both sides that have met nobody; the value is in the column of its side."""
    name = described.name
    sides = {
        store.settings["side"]: schema.field("value").type
        for store, schema in described.siblings.values()
        if "side" in store.settings
    }

    def scan(place: Place, ask: Ask) -> Iterator[Raw]:
        HeldStore(place.backend, name)  # refuses another format
        del ask
        for raw_keys, values in scan_columns(place.backend, name, FIRST_HELD_KEY):
            timestamp, is_left, _, keys = decode_held_keys(raw_keys, name)
            yield {
                "key": keys,
                "side": np.where(is_left, "left", "right"),
                "left": _only(values, is_left),
                "right": _only(values, ~is_left),
                "timestamp": timestamp,
            }

    values = {side: Column(sides[side], serde_for(sides[side]).deserialize) for side in ("left", "right")}
    columns = {"key": key_column(described), "side": plain_column(pa.string()), **values, "timestamp": time_column()}
    return View(columns, scan, "key", "timestamp")


def _only(values: pa.Array, keep: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> pa.Array:
    """The values, null where ``keep`` is false."""
    return values.take(pa.array(np.arange(len(values)), mask=~keep))
