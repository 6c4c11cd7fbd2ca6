"""How long segments are: of a versioned store, where nobody has said so, and of deduplications."""

from __future__ import annotations

_DEFAULT_SEGMENTS = (  # up to this retention: this many segments, each at least this wide (ms)
    (60_000, 3, 2_000),
    (300_000, 5, 20_000),
    (3_600_000, 12, 60_000),
    (1 << 63, 24, 300_000),
)


def default_segment_interval_ms(history_retention_ms: int) -> int:
    """The shipped default: a 3rd to a 24th of the retention (Kafka: ``RocksDbVersionedKeyValueBytesStoreSupplier``)."""
    segments, least = next((n, ms) for limit, n, ms in _DEFAULT_SEGMENTS if history_retention_ms <= limit)
    return max(history_retention_ms // segments, least)


def deduplication_segment_ms(interval_ms: int) -> int:
    """Of a deduplication with this interval."""
    return max(1, interval_ms // 2)
