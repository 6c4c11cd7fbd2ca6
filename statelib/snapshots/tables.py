"""Views of key-value and versioned stores, of the answers of foreign-key joins, and of deduplications."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from statelib.described.stored_values import stored_values
from statelib.described.view import Column, View, key_column, plain_column, time_column, times_or_null
from statelib.operators.deduplication.codec import decode_ids, decode_keys, encode_ids
from statelib.operators.deduplication.codec import decode_values as decode_entries
from statelib.operators.deduplication.store import DeduplicationStore
from statelib.operators.tables.codec import FORMAT_VERSION, decode_values
from statelib.operators.tables.store import KeyValueStore
from statelib.operators.versioned.families import VersionedFamilies
from statelib.operators.versioned.scan import NO_END, history, latest_values, values_at
from statelib.operators.versioned.segment_interval import default_segment_interval_ms
from statelib.records.batch import NO_TIMESTAMP
from statelib.stores.column_scan import scan_columns
from statelib.stores.header import Header

if TYPE_CHECKING:
    from collections.abc import Iterator

    from statelib.described.description import Described, Place
    from statelib.described.view import Ask, Raw, ViewName
    from statelib.operators.deduplication.codec import Entries
    from statelib.stores.byte_columns import Column as BytesColumn


def key_value_view(described: Described, view: ViewName) -> View | None:
    """Of each key the value that arrived last, and its time (null where the store keeps none)."""
    return _of_pairs(described, "value") if view == "latest" else None


def answers_view(described: Described, view: ViewName) -> View | None:
    """Of each primary key the number of the youngest change that was answered."""
    return _of_pairs(described, "number") if view == "latest" else None


def _of_pairs(described: Described, value: str) -> View:
    key, key_serde = key_column(described)
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
    columns = {"key": key, value: values, "timestamp": time_column()}
    return View(columns, scan, {"key": key_serde}, "key", "timestamp")


def versioned_view(described: Described, view: ViewName) -> View:
    """Latest values, or those of a time; or the history, tombstones included."""
    settings, _name = described.settings, described.name
    retention_ms = settings["history_retention_ms"]
    key, key_serde = key_column(described)
    value = Column(described.type("value"), stored_values(described))

    def latest(place: Place, ask: Ask) -> Iterator[Raw]:
        families, one = opened(described, place), ask.where.get("key")
        as_of = ask.as_of_ms
        found = latest_values(families, one) if as_of is None else values_at(families, as_of, retention_ms, one)
        for versions in found:
            yield {"key": versions.keys, "value": versions.values, "timestamp": versions.valid_from}

    def whole(place: Place, ask: Ask) -> Iterator[Raw]:
        for versions in history(opened(described, place), retention_ms, ask.where.get("key")):
            yield {
                "key": versions.keys,
                "value": versions.values,
                "valid_from": versions.valid_from,
                "valid_to": times_or_null(versions.valid_to, NO_END),
                "is_tombstone": versions.is_tombstone,
            }

    if view == "latest":
        columns = {"key": key, "value": value, "timestamp": time_column()}
        return View(columns, latest, {"key": key_serde}, "key", "timestamp", takes_as_of=True)
    bounds = {"valid_from": time_column(), "valid_to": time_column()}
    columns = {"key": key, "value": value, **bounds, "is_tombstone": plain_column(pa.bool_())}
    return View(columns, whole, {"key": key_serde}, "key", "valid_from")


def opened(described: Described, place: Place) -> VersionedFamilies:
    """What a task has of a versioned store."""
    retention_ms, interval_ms = (described.settings[name] for name in ("history_retention_ms", "segment_interval_ms"))
    interval_ms = default_segment_interval_ms(retention_ms) if interval_ms is None else interval_ms
    return VersionedFamilies(place.backend, described.name, retention_ms, interval_ms)


def deduplication_view(described: Described, view: ViewName) -> View | None:
    """The forwarded records by key, by id, or by both; whether the interval is over since."""
    if view != "latest":
        return None
    settings, name = described.settings, described.name
    kind, interval_ms = settings["kind"], settings["interval_ms"]
    has = {"by_key": ("key",), "by_id": ("id",), "by_key_value": ("key", "id")}[kind]
    keys = {
        column: key_column(described, column, "id_serde" if column == "id" or kind == "by_key" else "")
        for column in has
    }
    family, _ = DeduplicationStore.families(name)

    def entries_of(place: Place, ask: Ask) -> Iterator[tuple[BytesColumn, Entries]]:
        store = DeduplicationStore(place.backend, name, interval_ms=interval_ms)
        if all(column in ask.where for column in has):
            asked = [pa.array([ask.where[column]], pa.binary()) for column in has]
            ids = encode_ids(*asked) if kind == "by_key_value" else asked[0]
            entries = store.fetch(ids[0].as_py())
            yield ids.slice(0, len(entries)), entries
            return
        for raw_keys, raws in scan_columns(place.backend, family):
            yield decode_keys(raw_keys, name), decode_entries(raws.to_pylist(), name)

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
        **{column: shown for column, (shown, _) in keys.items()},
        "timestamp": time_column(),
        "source": plain_column(pa.int64()),
        "source_partition": plain_column(pa.int64()),
        "source_offset": plain_column(pa.int64()),
        "expired": plain_column(pa.bool_()),
    }
    return View(columns, scan, {column: serde for column, (_, serde) in keys.items()}, has[0], "timestamp")
