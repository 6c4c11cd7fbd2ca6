"""KIP-889's join of a stream with a versioned table, a record at a time (semantics ``kip``)."""

from __future__ import annotations

from dataclasses import dataclass, field

Value = dict[str, object] | None


@dataclass
class VersionedTable:
    history_retention_ms: int
    stream_time: int = -1
    versions: dict[str, dict[int, Value]] = field(default_factory=dict)

    def put(self, key: str, value: Value, timestamp: int) -> bool:
        """Whether the version was young enough."""
        if timestamp < self.stream_time - self.history_retention_ms:
            return False
        self.stream_time = max(self.stream_time, timestamp)
        self.versions.setdefault(key, {})[timestamp] = value
        return True

    def get(self, key: str, as_of: int) -> Value:
        """The value valid at ``as_of``."""
        versions = self.versions.get(key, {})
        older = [timestamp for timestamp in versions if timestamp <= as_of]
        if not older:
            return None
        latest = max(versions) <= as_of
        return versions[max(older)] if latest or as_of >= self.stream_time - self.history_retention_ms else None


def joined(table: VersionedTable, key: str | None, value: Value, timestamp: int, *, left: bool) -> list[Value]:
    """The values on the right with which a stream record is emitted: none or one."""
    if value is None:
        return []
    right = None if key is None else table.get(key, timestamp)
    return [right] if left or right is not None else []
