"""What a changelog topic still tells of a table, and what a versioned store will make of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from hashlib import blake2b
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from confluent_kafka import Message


@dataclass(slots=True)
class ChangelogHistory:
    """A partition of a changelog, read from its beginning.

    Attributes:
        partition: Its number.
        records: How many there are.
        absent: Offsets between the first and the last record that have none: compacted ones, markers of transactions.
            Which of the two, no reader is told.
        complete_from_ms: The largest timestamp up to the last absent offset: from there on nothing is missing. None:
            nothing is.
        oldest_ms: The smallest timestamp; None: there are no records.
        newest_ms: The largest one.
        too_late: Keys whose last record a versioned store refuses: it came later than the history retention allows.
        latest: By key, timestamp and digest of the latest value that a versioned store has; tombstones too (None).
    """

    partition: int
    records: int = 0
    absent: int = 0
    complete_from_ms: int | None = None
    oldest_ms: int | None = None
    newest_ms: int | None = None
    too_late: set[bytes] = field(default_factory=set)
    latest: dict[bytes, tuple[int, bytes | None]] = field(default_factory=dict)

    @property
    def keys(self) -> int:
        """How many keys have a value."""
        return sum(value is not None for _, value in self.latest.values())


def digest(value: bytes) -> bytes:
    """What stands for a value: two that differ have another one."""
    return blake2b(value, digest_size=16).digest()


def read_history(messages: Iterator[Message], partition: int, history_retention_ms: int) -> ChangelogHistory:
    """Reads a partition as a versioned store does that restores from it (``RocksDBVersionedStore.restoreBatch``).

    Memory: a digest of the latest value of each key.

    Args:
        messages: All records of the partition, in order.
        partition: Its number.
        history_retention_ms: The store's.
    """
    found = ChangelogHistory(partition)
    expected: int | None = None
    clock_ms = 0
    for message in messages:
        offset, timestamp_ms = message.offset() or 0, message.timestamp()[1]
        if expected is not None and offset > expected:
            found.absent += offset - expected
            found.complete_from_ms = clock_ms
        expected = offset + 1
        found.records += 1
        found.oldest_ms = min(timestamp_ms, timestamp_ms if found.oldest_ms is None else found.oldest_ms)
        key, value = bytes(message.key() or b""), message.value()
        if timestamp_ms < clock_ms - history_retention_ms:
            found.too_late.add(key)
            continue
        clock_ms = found.newest_ms = max(clock_ms, timestamp_ms)
        found.too_late.discard(key)
        if timestamp_ms >= found.latest.get(key, (timestamp_ms, None))[0]:
            found.latest[key] = (timestamp_ms, None if value is None else digest(bytes(value)))
    return found
