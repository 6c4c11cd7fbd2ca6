"""Aggregation by key, a record or a change at a time (KStreamAggregate, KTableAggregate; a reduction is one, too)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tests.reference.table import Change, HistoryTable, PlainTable

if TYPE_CHECKING:
    from collections.abc import Callable


@dataclass
class Aggregates:
    """``initial_of_new``: as shipped, the first update of a stream's key replaces the initial aggregate."""

    initializer: Callable[[], Any]
    add: Callable[[Any, Any], Any]
    subtract: Callable[[Any, Any], Any] | None = None
    table: PlainTable | HistoryTable = field(default_factory=PlainTable)
    initial_of_new: bool = False

    def latest(self, key: Any) -> tuple[Any, int]:
        """What the key has, and since when."""
        if isinstance(self.table, PlainTable):
            return self.table.values.get(key, (None, -1))
        since = max(self.table.versions.get(key, {}), default=-1)
        value = self.table.get(key)
        return value, -1 if value is None else since

    def process(self, key: Any, value: Any, timestamp: int) -> list[Change]:
        """A record of a stream."""
        if key is None or value is None:
            return []
        old, since = self.latest(key)
        new = self.add(self.initializer() if old is None else old, value)
        changes = self.table.put(key, new, max(timestamp, since))
        return [c._replace(old=self.initializer()) for c in changes] if old is None and self.initial_of_new else changes

    def change(self, key: Any, new: Any, old: Any, timestamp: int) -> list[Change]:
        """A change of a table."""
        assert self.subtract is not None
        before, since = self.latest(key)
        after = before
        if old is not None and before is not None:
            after = self.subtract(after, old)
        if new is not None:
            after = self.add(self.initializer() if after is None else after, new)
        return self.table.put(key, after, max(timestamp, since))
