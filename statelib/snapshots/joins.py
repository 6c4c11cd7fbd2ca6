"""Views of what joins remember: records of both sides, those that have met nobody, and rows that refer to others."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from statelib.described.view import Column, View, key_column, plain_column, time_column
from statelib.operators.joins.foreign_key.codec import decode_keys as decode_subscriptions
from statelib.operators.joins.foreign_key.codec import decode_values, encode_prefix
from statelib.operators.joins.foreign_key.store import SubscriptionStore
from statelib.operators.joins.stream_stream.codec import FIRST_HELD_KEY, decode_held_keys, decode_keys, encode_key
from statelib.operators.joins.stream_stream.store import HeldStore, JoinWindowStore
from statelib.serdes import serde_for
from statelib.stores.backend import end_of_prefix
from statelib.stores.column_scan import scan_columns

if TYPE_CHECKING:
    from collections.abc import Iterator

    from statelib.described.description import Described, Place
    from statelib.described.view import Ask, Raw, ViewName

_END_OF_TIME = (1 << 63) - 1


def join_window_view(described: Described, view: ViewName) -> View | None:
    """The records of one side that those of the other may meet."""
    if view != "latest":
        return None
    name = described.name
    key, key_serde = key_column(described)

    def scan(place: Place, ask: Ask) -> Iterator[Raw]:
        JoinWindowStore(place.backend, name)  # refuses another format
        one = ask.where.get("key")
        first, end = b"", None
        if one is not None:
            first, end = encode_key(one, max(ask.since_ms or 0, 0), 0), encode_key(one, _END_OF_TIME, _END_OF_TIME)
        for raw_keys, values in scan_columns(place.backend, JoinWindowStore.families(name)[0], first, end):
            keys, timestamp, _ = decode_keys(raw_keys, name)
            yield {"key": keys, "value": values, "timestamp": timestamp}

    value = described.type("value")
    columns = {"key": key, "value": Column(value, serde_for(value).deserialize), "timestamp": time_column()}
    return View(columns, scan, {"key": key_serde}, "key", "timestamp")


def held_view(described: Described, view: ViewName) -> View | None:
    """The records of both sides that have met nobody; the value is in the column of its side."""
    if view != "latest":
        return None
    name = described.name
    key, key_serde = key_column(described)
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
    columns = {"key": key, "side": plain_column(pa.string()), **values, "timestamp": time_column()}
    return View(columns, scan, {"key": key_serde}, "key", "timestamp")


def _only(values: pa.Array, keep: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> pa.Array:
    """The values, null where ``keep`` is false."""
    return values.take(pa.array(np.arange(len(values)), mask=~keep))


def subscriptions_view(described: Described, view: ViewName) -> View | None:
    """The rows of one table that refer to a key of another, and the number of the change that each is from."""
    if view != "latest" or "foreign_key" not in described.schema.names:  # a description from before there was one
        return None
    name = described.name
    foreign_key, foreign_serde = key_column(described, "foreign_key", "")
    key, key_serde = key_column(described)

    def scan(place: Place, ask: Ask) -> Iterator[Raw]:
        SubscriptionStore(place.backend, name)  # refuses another format
        family, _ = SubscriptionStore.families(name)
        one = ask.where.get("foreign_key")
        prefix = b"" if one is None else encode_prefix(one)
        for raw_keys, raws in scan_columns(place.backend, family, prefix, end_of_prefix(prefix)):
            foreign_keys, keys = decode_subscriptions(raw_keys, name)
            number, rows = decode_values(raws, name)
            yield {"foreign_key": foreign_keys, "key": keys, "value": rows, "number": number}

    value = described.type("value")
    columns = {
        "foreign_key": foreign_key,
        "key": key,
        "value": Column(value, serde_for(value).deserialize),
        "number": plain_column(pa.int64()),
    }
    return View(columns, scan, {"foreign_key": foreign_serde, "key": key_serde}, "foreign_key", None)
