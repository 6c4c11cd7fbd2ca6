"""What lies where, to the byte; that a real application starts on it: ``tests/kafka/test_state_directory.py``."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from hindstream.kafka.local_state.layout import Layout, layout_of
from hindstream.kafka.producer import Outgoing
from statelib.described.description import Described
from statelib.documents.topologies import NodeDescription, StoreDescription

WINDOW = b"key" + bytes.fromhex("000000000000ea60 00000002")  # starts at 60,000; the second of its duplicates
SESSION = b"key" + bytes.fromhex("0000000000015f90 000000000000ea60")  # from 60,000 to 90,000
AT_7 = bytes.fromhex("0000000000000007")


def described(kind: str, *, emit: str | None = None, **settings: Any) -> Described:
    store = StoreDescription(
        name="s", kind=kind, node="n", sub_topology=0, families=(), settings=settings, arrow_schema=""
    )
    node = NodeDescription(name="n", sub_topology=0, parents=(), settings={"emit": emit} if emit else {})
    return Described(store, pa.schema([]), {}, "kip", {"n": node})


def layout(kind: str, **settings: Any) -> Layout:
    if "store" in settings:  # of a processor
        settings["value_serde"] = {"serde": "with-headers" if settings["store"].endswith("WithHeaders") else "string"}
    found = layout_of(described(kind, **settings))
    assert found is not None
    return found


HEADERS = bytes.fromhex("18 04 04") + b"by" + bytes.fromhex("02") + b"a" + bytes.fromhex("08") + b"none" + b"\x01"
"""Their bytes, their number, and by name: two for a value of one, and none."""

ON_CLOSE = "on_window_close"
TIME_FIRST = bytes.fromhex("00 000000000000ea60") + b"key" + bytes.fromhex("00000002")


@pytest.mark.parametrize(
    ("store", "family", "key", "expected"),
    [
        (layout("key-value"), "keyValueWithTimestamp", b"key", [(b"key", AT_7 + b"value")]),
        (layout("key-value", store="KeyValueStore"), "default", b"key", [(b"key", b"value")]),
        (
            layout("key-value", store="TimestampedKeyValueStore"),
            "keyValueWithTimestamp",
            b"key",
            [(b"key", AT_7 + b"value")],
        ),
        (layout("subscriptions"), "keyValueWithTimestamp", b"key", [(b"key", AT_7 + b"value")]),
        (layout("held-records"), "default", b"key", [(b"key", b"value")]),
        (layout("window", retention_ms=1), "keyValueWithTimestamp", WINDOW, [(WINDOW, AT_7 + b"value")]),
        (layout("window", retention_ms=1, store="WindowStore"), "default", WINDOW, [(WINDOW, b"value")]),
        (
            layout("window", retention_ms=1, emit=ON_CLOSE, windows="time"),
            "default",
            WINDOW,
            [(TIME_FIRST, AT_7 + b"value")],
        ),
        (
            layout("window", retention_ms=1, emit=ON_CLOSE, windows="sliding"),
            "default",
            WINDOW,
            [(TIME_FIRST, AT_7 + b"value"), (b"\x01" + WINDOW, b"")],
        ),
        (layout("session", retention_ms=1), "default", SESSION, [(SESSION, b"value")]),
        (
            layout("session", retention_ms=1, emit=ON_CLOSE),
            "default",
            SESSION,
            [(b"\x00" + SESSION[3:] + b"key", b"value"), (b"\x01" + SESSION, b"")],
        ),
        (
            layout("key-value", store="TimestampedKeyValueStoreWithHeaders"),
            "keyValueWithTimestampAndHeaders",
            b"key",
            [(b"key", HEADERS + AT_7 + b"value")],
        ),
        (
            layout("window", retention_ms=1, store="TimestampedWindowStoreWithHeaders"),
            "keyValueWithTimestampAndHeaders",
            WINDOW,
            [(WINDOW, HEADERS + AT_7 + b"value")],
        ),
        (
            layout("session", retention_ms=1, store="SessionStoreWithHeaders"),
            "sessionKeyValueWithHeaders",
            SESSION,
            [(SESSION, HEADERS + b"value")],
        ),
        (
            layout("join-window", before_ms=1, after_ms=1, grace_period_ms=1),
            "default",
            WINDOW,
            [(WINDOW, b"value")],
        ),
    ],
)
def test_entries(store: Layout, family: str, key: bytes, expected: list[tuple[bytes, bytes]]) -> None:
    assert store.family == family
    record = Outgoing(key, b"value", 7, [("by", b"a"), ("none", None)])
    assert list(store.entries(key, record, 7)) == expected
    assert list(store.entries(key, Outgoing(key, None, 7), 7)) == [(entry, None) for entry, _ in expected]


def test_segments() -> None:
    """Half of the retention, but at least a minute; by the start of a window, and the end of a session."""
    hours = layout("window", retention_ms=7_200_000).segments
    assert hours is not None
    assert (hours.interval_ms, hours.time_of(WINDOW)) == (3_600_000, 60_000)
    assert [hours.start_of(at) for at in (0, 3_599_999, 3_600_000)] == [0, 0, 3_600_000]
    session = layout("session", retention_ms=40_000).segments
    assert session is not None
    assert (session.interval_ms, session.time_of(SESSION)) == (60_000, 90_000)
    join = layout("join-window", before_ms=100_000, after_ms=200_000, grace_period_ms=100_000).segments
    assert join is not None
    assert join.interval_ms == 200_000
    assert layout("key-value").segments is None


def test_what_is_not_there() -> None:
    assert layout("versioned").restored
    for kind in ("suppression-buffer", "join-buffer", "deduplication", "foreign-key-answers", "punctuation"):
        assert layout_of(described(kind)) is None
