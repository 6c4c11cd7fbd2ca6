"""Tables, a record at a time: what a key has, and the changes that tables forward."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable


class Change(NamedTuple):
    """What a table forwards of one update."""

    key: Any
    new: Any
    old: Any
    timestamp: int
    is_latest: bool = True


@dataclass
class PlainTable:
    """The last one to arrive wins, whatever its timestamp."""

    values: dict[Any, tuple[Any, int]] = field(default_factory=dict)

    def get(self, key: Any) -> Any:
        return self.values.get(key, (None, -1))[0]

    def put(self, key: Any, value: Any, timestamp: int) -> list[Change]:
        if key is None:
            return []
        old = self.get(key)
        self.values.pop(key, None)
        if value is not None:
            self.values[key] = (value, timestamp)
        return [Change(key, value, old, timestamp)]


@dataclass
class HistoryTable:
    """KIP-889 and KIP-914: the youngest version of a key is the latest; too old ones are refused (mode ``kip``)."""

    history_retention_ms: int
    stream_time: int = -1
    versions: dict[Any, dict[int, Any]] = field(default_factory=dict)

    def get(self, key: Any) -> Any:
        versions = self.versions.get(key)
        return versions[max(versions)] if versions else None

    def put(self, key: Any, value: Any, timestamp: int) -> list[Change]:
        if key is None or timestamp < self.stream_time - self.history_retention_ms:
            return []
        self.stream_time = max(self.stream_time, timestamp)
        old, versions = self.get(key), self.versions.setdefault(key, {})
        versions[timestamp] = value
        return [Change(key, value, old, timestamp, timestamp == max(versions))]


def filtered(change: Change, predicate: Callable[[Any], bool], *, knows_old: bool, versioned: bool) -> list[Change]:
    """KTableFilter: what does not pass is deleted; from nothing to nothing is no change, where that is known."""
    new, old = (value if value is not None and predicate(value) else None for value in (change.new, change.old))
    if knows_old and not versioned and new is None and old is None:
        return []
    return [change._replace(new=new, old=old if knows_old else None)]


def mapped(change: Change, function: Callable[[Any], Any]) -> Change:
    """KTableMapValues: nothing stays nothing."""
    new, old = (None if value is None else function(value) for value in (change.new, change.old))
    return change._replace(new=new, old=old)
