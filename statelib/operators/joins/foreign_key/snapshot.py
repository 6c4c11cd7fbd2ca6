"""What a foreign-key join remembers, as data: rows that refer to others, and what was answered."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from statelib.described.view import View, key_column, plain_column, value_column
from statelib.operators.joins.foreign_key.codec import decode_keys, decode_values, encode_prefix
from statelib.operators.joins.foreign_key.store import SubscriptionStore
from statelib.operators.tables.snapshot import pairs_view
from statelib.stores.backend import end_of_prefix
from statelib.stores.column_scan import scan_columns

if TYPE_CHECKING:
    from collections.abc import Iterator

    from statelib.described.description import Described, Place
    from statelib.described.view import Ask, Raw


def subscriptions_view(described: Described) -> View | None:
    """The rows of one table that refer to a key of another, and the number of the change that each is from."""
    if "foreign_key" not in described.schema.names:  # a description from before there was one
        return None
    name = described.name

    def scan(place: Place, ask: Ask) -> Iterator[Raw]:
        SubscriptionStore(place.backend, name)  # refuses another format
        family, _ = SubscriptionStore.families(name)
        one = ask.where.get("foreign_key")
        prefix = b"" if one is None else encode_prefix(one)
        for raw_keys, raws in scan_columns(place.backend, family, prefix, end_of_prefix(prefix)):
            foreign_keys, keys = decode_keys(raw_keys, name)
            number, rows = decode_values(raws, name)
            yield {"foreign_key": foreign_keys, "key": keys, "value": rows, "number": number}

    columns = {
        "foreign_key": key_column(described, "foreign_key", ""),
        "key": key_column(described),
        "value": value_column(described),
        "number": plain_column(pa.int64()),
    }
    return View(columns, scan, "foreign_key", None)


def answers_view(described: Described) -> View:
    """Of each primary key the number of the youngest change that was answered."""
    return pairs_view(described, "number")
