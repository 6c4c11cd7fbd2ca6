"""A value and the time of the record that made it (Kafka's ``ValueAndTimestamp``; KIP-258, KIP-889)."""

from __future__ import annotations

from typing import Any, NamedTuple


class ValueAndTimestamp(NamedTuple):
    """A value and its timestamp in milliseconds (Kafka's ``ValueAndTimestamp``; nullable: KIP-889)."""

    value: Any
    timestamp: int

    @classmethod
    def make(cls, value: Any, timestamp: int) -> ValueAndTimestamp | None:
        """Both, or None if there is no value: a plain store keeps nothing of a key without one."""
        return None if value is None else cls(value, timestamp)

    @classmethod
    def make_allow_nullable(cls, value: Any, timestamp: int) -> ValueAndTimestamp:
        """Both, also where the value is None: a versioned store keeps the time of a deletion (KIP-889)."""
        return cls(value, timestamp)
