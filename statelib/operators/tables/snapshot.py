"""A table as data, and whatever has a key-value store."""

from __future__ import annotations

from typing import TYPE_CHECKING

from statelib.described.stored_values import stored_values
from statelib.described.view import Column, View, key_column, time_column, times_or_null
from statelib.operators.tables.codec import FORMAT_VERSION, decode_values
from statelib.operators.tables.store import KeyValueStore
from statelib.records.batch import NO_TIMESTAMP
from statelib.stores.column_scan import scan_columns
from statelib.stores.header import Header

if TYPE_CHECKING:
    from collections.abc import Iterator

    from statelib.described.description import Described, Place
    from statelib.described.view import Ask, Raw


def key_value_view(described: Described) -> View:
    """Of each key the value that arrived last, and its time (null where the store keeps none)."""
    return pairs_view(described, "value")


def pairs_view(described: Described, value: str) -> View:
    """The same of another column than ``value``."""
    name = described.name
    family, header = KeyValueStore.families(name)

    def scan(place: Place, ask: Ask) -> Iterator[Raw]:
        Header(place.backend, header, FORMAT_VERSION, name)  # refuses another format
        one = ask.where.get("key")
        first, end = (b"", None) if one is None else (one, one + b"\x00")
        for keys, raws in scan_columns(place.backend, family, first, end):
            timestamp, rows = decode_values(raws, name)
            yield {"key": keys, value: rows, "timestamp": times_or_null(timestamp, NO_TIMESTAMP)}

    values = Column(described.type("value"), stored_values(described))
    columns = {"key": key_column(described), value: values, "timestamp": time_column()}
    return View(columns, scan, "key", "timestamp")
