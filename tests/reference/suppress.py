"""KIP-328's buffer, a record at a time."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


class FullError(Exception):
    """A strict buffer exceeds its bounds."""


@dataclass
class Buffer:
    """``process`` is the algorithm in "Buffer Eviction Behavior"; keys are the serialised ones."""

    wait_ms: int
    max_records: float = float("inf")
    max_bytes: float = float("inf")
    strict: bool = False
    clock: str = "first"
    final: bool = False
    stream_time: int = -1
    held: dict[bytes, dict[str, Any]] = field(default_factory=dict)

    def process(
        self, key: bytes, value: Any, timestamp: int, *, prior: Any = None, size: int = 0, time: int | None = None
    ) -> list[tuple[bytes, Any, int, Any]]:
        """(key, value, timestamp, prior) of what leaves. ``time``: the window's end, if that is the buffer time."""
        self.stream_time = max(self.stream_time, timestamp)
        before = self.held.get(key)
        time = timestamp if time is None else time
        self.held[key] = {
            "time": self.buffer_time(before["time"], time) if before else time,
            "value": value,
            "timestamp": timestamp,
            "prior": before["prior"] if before else prior,
            "size": size,
        }
        emitted = []
        while self.held:
            oldest = min(self.held, key=lambda key: (self.held[key]["time"], key))
            if self.held[oldest]["time"] > self.stream_time - self.wait_ms:
                full = len(self.held) > self.max_records or sum(h["size"] for h in self.held.values()) > self.max_bytes
                if not full:
                    break
                if self.strict:
                    raise FullError
            entry = self.held.pop(oldest)
            if entry["value"] is not None or not self.final:
                emitted.append((oldest, entry["value"], entry["timestamp"], entry["prior"]))
        return emitted

    def buffer_time(self, before: int, time: int) -> int:
        return {"first": before, "record": time, "last": max(before, time)}[self.clock]
