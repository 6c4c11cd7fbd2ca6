"""Views of what waits: the buffers of suppress and of stream-table joins, and the scheduled calls of processors."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from statelib.described.view import View, key_column, plain_column, time_column
from statelib.operators.joins.stream_table.buffer_store import JoinBufferStore, decode_columns, encode_place
from statelib.operators.processors.codec import KEY, decode_calls
from statelib.operators.suppress.definition import wait_ms
from statelib.operators.suppress.store import SuppressionBufferStore
from statelib.operators.windows.definition import windows_of
from statelib.records.batch import NO_TIMESTAMP
from statelib.serdes import serde_for
from statelib.stores.column_scan import scan_columns

if TYPE_CHECKING:
    from collections.abc import Iterator

    from statelib.described.description import Described, Place
    from statelib.described.view import Ask, Raw, ViewName
    from statelib.stores.header import Header

_END_OF_TIME = (1 << 63) - 2


def suppression_view(described: Described, view: ViewName) -> View | None:
    """The updates that are held back, one a key, and when they leave; windows if the table has them."""
    if view != "latest":
        return None
    settings, name = described.settings, described.name
    windows = None if settings["windows"] is None else windows_of(settings["windows"])
    waits_ms = wait_ms(settings["time_limit_ms"], windows, settings.get("held_ms", 0), described.semantics)
    suffix_words = windows.key_suffix_words if windows else 0
    key, key_serde = key_column(described)

    def scan(place: Place, ask: Ask) -> Iterator[Raw]:
        del ask
        store = SuppressionBufferStore(place.backend, name, suffix_words=suffix_words)
        left_until_ms = max(place.clocks.get("stream_time", NO_TIMESTAMP) - waits_ms, -1)
        for buffered in store.everything(left_until_ms):
            row = _rows(store.header, buffered.row)
            bounds = {"window_start": buffered.start, "window_end": buffered.end} if windows else {}
            leaves_at = np.minimum(buffered.time, _END_OF_TIME - waits_ms) + waits_ms
            yield {
                "key": buffered.key,
                **bounds,
                "value": row.field("value"),
                "timestamp": row.field("timestamp"),
                "leaves_at": leaves_at,
            }

    bounds = {"window_start": time_column(), "window_end": time_column()} if windows else {}
    columns = {
        "key": key,
        **bounds,
        "value": plain_column(described.type("value")),
        "timestamp": time_column(),
        "leaves_at": time_column(),
    }
    return View(columns, scan, {"key": key_serde}, "key", "window_start" if windows else "timestamp")


def join_buffer_view(described: Described, view: ViewName) -> View | None:
    """The stream's records that wait for the table, and the stream time after which they are joined."""
    if view != "latest":
        return None
    name, grace_ms = described.name, described.settings["grace_ms"]
    key, key_serde = key_column(described)

    def scan(place: Place, ask: Ask) -> Iterator[Raw]:
        header = JoinBufferStore(place.backend, name).header
        first = encode_place(max(ask.since_ms or 0, 0))
        end = None if ask.until_ms is None else encode_place(max(ask.until_ms, 0))
        for places, raws in scan_columns(place.backend, name, first, end):
            timestamp, _, keys, rows = decode_columns(places, raws, name)
            value = _rows(header, rows).field("value")
            yield {"key": keys, "value": value, "timestamp": timestamp, "joined_after": timestamp + grace_ms}

    columns = {
        "key": key,
        "value": plain_column(described.type("value")),
        "timestamp": time_column(),
        "joined_after": time_column(),
    }
    return View(columns, scan, {"key": key_serde}, "key", "timestamp")


def punctuation_view(described: Described, view: ViewName) -> View | None:
    """The calls that a custom processor has scheduled."""
    if view != "latest":
        return None
    (family,) = described.store.families

    def scan(place: Place, ask: Ask) -> Iterator[Raw]:
        del ask
        raw = place.backend.get(family, KEY)
        calls = [] if raw is None else decode_calls(raw, described.store.node)
        yield {
            "due": np.array([call.due_ms for call in calls], np.int64),
            "interval_ms": np.array([call.interval_ms for call in calls], np.int64),
            "cancelled": np.array([call.cancelled for call in calls], np.bool_),
            "callback": pa.array([call.callback for call in calls], pa.string()),
        }

    columns = {
        "due": time_column(),
        "interval_ms": plain_column(pa.int64()),
        "cancelled": plain_column(pa.bool_()),
        "callback": plain_column(pa.string()),
    }
    return View(columns, scan, {}, None, "due")


def _rows(header: Header, rows: pa.Array) -> pa.StructArray:
    """What the rows of a buffer hold."""
    return serde_for(pa.struct(list(header.schema or ()))).deserialize(rows)
