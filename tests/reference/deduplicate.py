"""KIP-655's deduplication, a record at a time."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Hashable


@dataclass
class Deduplication:
    interval_ms: int
    stream_time: int = -1
    forwarded_at: dict[Hashable, tuple[int, Hashable]] = field(default_factory=dict)

    def advance(self, timestamp: int) -> None:
        """The task takes up a record."""
        self.stream_time = max(self.stream_time, timestamp)
        oldest = self.stream_time - self.interval_ms
        self.forwarded_at = {id_: entry for id_, entry in self.forwarded_at.items() if entry[0] >= oldest}

    def forwards(self, id_: Hashable, timestamp: int, offset: Hashable) -> bool:
        """Whether a record, for which `advance` was called, goes on; ``offset`` None: it has none."""
        if id_ is None:
            return True
        if id_ in self.forwarded_at:
            first, first_offset = self.forwarded_at[id_]
            if abs(timestamp - first) <= self.interval_ms:
                return offset is not None and offset == first_offset
        if timestamp >= self.stream_time - self.interval_ms:
            self.forwarded_at[id_] = (timestamp, offset)
        return True
