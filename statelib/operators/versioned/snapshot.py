"""A versioned store as data."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from statelib.described.stored_values import stored_values
from statelib.described.view import Column, View, key_column, plain_column, time_column, times_or_null
from statelib.operators.versioned.scan import NO_END, history, latest_values, values_at
from statelib.operators.versioned.segment_interval import default_segment_interval_ms
from statelib.operators.versioned.segments import VersionedFamilies

if TYPE_CHECKING:
    from collections.abc import Iterator

    from statelib.described.description import Described, Place
    from statelib.described.view import Ask, Raw


def versioned_view(described: Described) -> View:
    """Latest values, or those of a time."""
    retention_ms = described.settings["history_retention_ms"]

    def scan(place: Place, ask: Ask) -> Iterator[Raw]:
        families, one = opened(described, place), ask.where.get("key")
        as_of = ask.as_of_ms
        found = latest_values(families, one) if as_of is None else values_at(families, as_of, retention_ms, one)
        for versions in found:
            yield {"key": versions.keys, "value": versions.values, "timestamp": versions.valid_from}

    value = Column(described.type("value"), stored_values(described))
    columns = {"key": key_column(described), "value": value, "timestamp": time_column()}
    return View(columns, scan, "key", "timestamp", takes_as_of=True)


def history_view(described: Described) -> View:
    """All versions within the history retention, tombstones included."""
    retention_ms = described.settings["history_retention_ms"]

    def scan(place: Place, ask: Ask) -> Iterator[Raw]:
        for versions in history(opened(described, place), retention_ms, ask.where.get("key")):
            yield {
                "key": versions.keys,
                "value": versions.values,
                "valid_from": versions.valid_from,
                "valid_to": times_or_null(versions.valid_to, NO_END),
                "is_tombstone": versions.is_tombstone,
            }

    columns = {
        "key": key_column(described),
        "value": Column(described.type("value"), stored_values(described)),
        "valid_from": time_column(),
        "valid_to": time_column(),
        "is_tombstone": plain_column(pa.bool_()),
    }
    return View(columns, scan, "key", "valid_from")


def opened(described: Described, place: Place) -> VersionedFamilies:
    """What a task has of a versioned store."""
    retention_ms, interval_ms = (described.settings[name] for name in ("history_retention_ms", "segment_interval_ms"))
    interval_ms = default_segment_interval_ms(retention_ms) if interval_ms is None else interval_ms
    return VersionedFamilies(place.backend, described.name, retention_ms, interval_ms)
