"""Where Kafka Streams keeps what it restores from a changelog: version 4.3 and later.

::

    <state.dir>/<application id>/
        <sub-topology>_<partition>/        a task
            rocksdb/<store>/               a key-value store: a RocksDB
            <store>/<store>.<start>/       a segment of a window or session store: a RocksDB; start: ms, a multiple
                                           of the interval, which is half of the retention, but at least a minute

Entries, by kind of store; integers are big-endian, times ms::

    store           family                           key                                 value
    --------------  -------------------------------  ----------------------------------  -------------------------------
    plain           default                          key                                 value
    timestamped     keyValueWithTimestamp            key                                 timestamp i64, value
     with headers   keyValueWithTimestampAndHeaders  key                                 headers, timestamp i64, value
    plain window    default                          key, start i64, sequence i32        value
    window          keyValueWithTimestamp            key, start i64, sequence i32        timestamp i64, value
     with headers   keyValueWithTimestampAndHeaders  key, start i64, sequence i32        headers, timestamp i64, value
    session         default                          key, end i64, start i64             value
     with headers   sessionKeyValueWithHeaders       key, end i64, start i64             headers, value
    final window    default                          0 u8, start i64, key, sequence i32  timestamp i64, value
    final session   default                          0 u8, end i64, start i64, key       value
     their indices  default                          1 u8, the key of the others         nothing

A record lies in the segment of the start of its window, or of the end of its session. Final are those of which only
final results are forwarded (KIP-825); of such windows only sliding ones have the index. Headers (KIP-1271):
`statelib.serdes.with_headers`.

Sources: ``RocksDBStore``, ``RocksDBTimestampedStore``, ``AbstractSegments``, ``WindowKeySchema``, ``SessionKeySchema``,
``PrefixedWindowKeySchemas``, ``PrefixedSessionKeySchemas``, ``RecordConverters``. The layout is Kafka's and has no
version of its own.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from statelib.described.headers import has_headers
from statelib.operators.joins.stream_stream.definition import retention_of
from statelib.serdes.with_headers import header_bytes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from hindstream.kafka.producer import Outgoing
    from statelib.described.description import Described

DEFAULT = "default"
_TIMESTAMPED = "keyValueWithTimestamp"
_TIMESTAMPED_WITH_HEADERS = "keyValueWithTimestampAndHeaders"
_SESSION_WITH_HEADERS = "sessionKeyValueWithHeaders"
_TIME = struct.Struct(">q")
_START_AND_SEQUENCE, _END_AND_START, _SEQUENCE = 12, 16, 4
_TIME_FIRST, _KEY_FIRST = b"\x00", b"\x01"
_LEAST_INTERVAL_MS = 60_000


@dataclass(frozen=True, slots=True)
class Segments:
    """How a store is divided by time.

    Attributes:
        retention_ms: How long a segment is kept, by the largest time that the store has seen.
        suffix: How many bytes follow the key in the changelog; they begin with the time.
    """

    retention_ms: int
    suffix: int

    @property
    def interval_ms(self) -> int:
        """How much time a segment has."""
        return max(self.retention_ms // 2, _LEAST_INTERVAL_MS)

    def time_of(self, key: bytes) -> int:
        """The time that decides, of a key of the changelog, ms."""
        (time_ms,) = _TIME.unpack_from(key, len(key) - self.suffix)
        return int(time_ms)

    def start_of(self, time_ms: int) -> int:
        """Where the segment of a time begins, ms."""
        return time_ms // self.interval_ms * self.interval_ms


@dataclass(frozen=True, slots=True)
class Layout:
    """The entries that a store has of a record of its changelog.

    Attributes:
        family: The column family that has them.
        has_timestamps: Whether the record's timestamp stands before the value.
        has_headers: Whether its headers stand before both.
        segments: How it is divided; None: not at all.
        keys: Of a key of the changelog, that of the value, and those of the indices.
        restored: Whether the application has to restore it all the same, so that it has no entries here.
    """

    family: str = DEFAULT
    has_timestamps: bool = False
    has_headers: bool = False
    segments: Segments | None = None
    keys: Callable[[bytes], tuple[bytes, ...]] = lambda key: (key,)
    restored: bool = False

    def to_be_restored(self) -> Layout:
        """Of such a store, if the application has to restore it."""
        return Layout(segments=self.segments, restored=True)

    def entries(self, key: bytes, record: Outgoing, timestamp_ms: int) -> Iterator[tuple[bytes, bytes | None]]:
        """Keys and values of a record; None: the key is deleted."""
        value = record.value
        first, *indices = self.keys(key)
        if value is not None:
            headers = header_bytes(record.headers) if self.has_headers else b""
            timestamp = _TIME.pack(timestamp_ms) if self.has_timestamps else b""
            yield first, b"".join((headers, timestamp, value))
        else:
            yield first, None
        for index in indices:
            yield index, None if value is None else b""


def layout_of(described: Described) -> Layout | None:
    """That of a store; None: it is not on disk, as the buffer of suppress, or Kafka Streams has no such store.

    A versioned store is restored: where it is opened it finds none of its older versions, since
    ``LogicalKeyValueSegments.openExisting`` knows of no segment before something is put into it.
    """
    make = _LAYOUTS.get(described.store.kind)
    return None if make is None else make(described)


def _class_of(described: Described) -> str:
    """That of a processor's own store; empty: it is of the DSL."""
    name: str = described.settings["store"] if described.is_of_processor else ""
    return name


def _key_value(described: Described) -> Layout:
    if has_headers(described.settings):
        return Layout(_TIMESTAMPED_WITH_HEADERS, has_timestamps=True, has_headers=True)
    return Layout() if _class_of(described) == "KeyValueStore" else _timestamped(described)


def _timestamped(described: Described) -> Layout:
    del described
    return Layout(_TIMESTAMPED, has_timestamps=True)


def _plain(described: Described) -> Layout:
    del described
    return Layout()


def _versioned(described: Described) -> Layout:
    del described
    return Layout(restored=True)


def _join_window(described: Described) -> Layout:
    return Layout(segments=Segments(retention_of(described.settings), _START_AND_SEQUENCE))


def _window(described: Described) -> Layout:
    segments = Segments(described.settings["retention_ms"], _START_AND_SEQUENCE)
    if has_headers(described.settings):
        return Layout(_TIMESTAMPED_WITH_HEADERS, has_timestamps=True, has_headers=True, segments=segments)
    if _class_of(described) == "WindowStore":
        return Layout(segments=segments)
    if _is_final(described):
        keys = _indexed_final_window if described.settings["windows"] == "sliding" else _final_window
        return Layout(has_timestamps=True, segments=segments, keys=keys)
    return Layout(_TIMESTAMPED, has_timestamps=True, segments=segments)


def _session(described: Described) -> Layout:
    segments = Segments(described.settings["retention_ms"], _END_AND_START)
    if has_headers(described.settings):
        return Layout(_SESSION_WITH_HEADERS, has_headers=True, segments=segments)
    return Layout(segments=segments, keys=_final_session) if _is_final(described) else Layout(segments=segments)


_LAYOUTS: dict[str, Callable[[Described], Layout]] = {
    "key-value": _key_value,
    "subscriptions": _timestamped,
    "held-records": _plain,
    "versioned": _versioned,
    "join-window": _join_window,
    "window": _window,
    "session": _session,
}


def _is_final(described: Described) -> bool:
    """Whether only final results are forwarded (KIP-825), for which a store in order of time is taken."""
    node: Any = described.nodes.get(described.store.node)
    return node is not None and node.settings.get("emit") == "on_window_close"


def _final_window(key: bytes) -> tuple[bytes, ...]:
    plain, start, sequence = key[:-_START_AND_SEQUENCE], key[-_START_AND_SEQUENCE:-_SEQUENCE], key[-_SEQUENCE:]
    return (b"".join((_TIME_FIRST, start, plain, sequence)),)


def _indexed_final_window(key: bytes) -> tuple[bytes, ...]:
    return *_final_window(key), _KEY_FIRST + key


def _final_session(key: bytes) -> tuple[bytes, ...]:
    return b"".join((_TIME_FIRST, key[-_END_AND_START:], key[:-_END_AND_START])), _KEY_FIRST + key
