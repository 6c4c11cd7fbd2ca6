"""What a deduplication remembers, as data."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from statelib.described.view import View, key_column, plain_column, time_column
from statelib.operators.deduplication.codec import decode_ids, decode_keys, decode_values, encode_ids
from statelib.operators.deduplication.store import DeduplicationStore
from statelib.stores.column_scan import scan_columns

if TYPE_CHECKING:
    from collections.abc import Iterator

    from statelib.described.description import Described, Place
    from statelib.described.view import Ask, Raw
    from statelib.operators.deduplication.codec import Entries
    from statelib.stores.byte_columns import Column


def deduplication_view(described: Described) -> View:
    """The forwarded records by key, by id, or by both; whether the interval is over since."""
    settings, name = described.settings, described.name
    kind, interval_ms = settings["kind"], settings["interval_ms"]
    has = {"by_key": ("key",), "by_id": ("id",), "by_key_value": ("key", "id")}[kind]
    keys = {
        column: key_column(described, column, "id_serde" if column == "id" or kind == "by_key" else "")
        for column in has
    }
    family, _ = DeduplicationStore.families(name)

    def entries_of(place: Place, ask: Ask) -> Iterator[tuple[Column, Entries]]:
        store = DeduplicationStore(place.backend, name, interval_ms=interval_ms)
        if all(column in ask.where for column in has):
            asked = [pa.array([ask.where[column]], pa.binary()) for column in has]
            ids = encode_ids(*asked) if kind == "by_key_value" else asked[0]
            entries = store.fetch(ids[0].as_py())
            yield ids.slice(0, len(entries)), entries
            return
        for raw_keys, raws in scan_columns(place.backend, family):
            yield decode_keys(raw_keys, name), decode_values(raws.to_pylist(), name)

    def scan(place: Place, ask: Ask) -> Iterator[Raw]:
        horizon_ms = place.stream_time_ms - interval_ms
        for ids, entries in entries_of(place, ask):
            parts = decode_ids(ids, name) if kind == "by_key_value" else (ids,)
            yield {
                **dict(zip(has, parts, strict=True)),
                "timestamp": entries.timestamp,
                "source": entries.source,
                "source_partition": entries.partition,
                "source_offset": entries.offset,
                "expired": entries.timestamp < horizon_ms,
            }

    columns = {
        **keys,
        "timestamp": time_column(),
        "source": plain_column(pa.int64()),
        "source_partition": plain_column(pa.int64()),
        "source_offset": plain_column(pa.int64()),
        "expired": plain_column(pa.bool_()),
    }
    return View(columns, scan, has[0], "timestamp")
