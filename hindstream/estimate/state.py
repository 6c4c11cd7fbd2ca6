"""How large state becomes, and how much of it slices write, as far as the runs before tell it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from hindstream.estimate.evidence import Evidence, StateAt
    from statelib.stores.spec import StoreSpec

_SPANS = ("size_ms", "before_ms", "after_ms", "gap_ms", "time_difference_ms", "grace_period_ms", "grace_ms")


@dataclass(frozen=True)
class StateGrowth:
    """Bytes of state after so many records since a job's beginning.

    What expires (ids, windows, sessions, sides of joins) grows with the records until the first of it expires; from
    then on as much goes as comes. Tables grow as a power of the number of records between 0 and 1, as keys come again
    and again (Heaps' law): the power that fits the first and the last of the runs; of one run, 1.

    Attributes:
        first: State after the first run.
        last: State after the last one.
        kept_ms: By family of a store, how long in event time an entry is kept; None: until its key is deleted.
    """

    first: StateAt
    last: StateAt
    kept_ms: Mapping[str, int | None]

    @classmethod
    def told_by(cls, evidence: Evidence | None, kept_ms: Mapping[str, int | None]) -> StateGrowth | None:
        """Of runs; None: there are none."""
        return None if evidence is None else cls(evidence.states[0], evidence.states[-1], kept_ms)

    def bytes_after(self, records: float) -> float:
        """Of all stores."""
        families = sum(self._family(family, records) for family in self.last.families)
        # Files are compressed; what RocksDB says of families is not always.
        at_rest = sum(self.last.families.values())
        return families * self.last.size_bytes / at_rest if at_rest else float(self.last.size_bytes)

    def written_bytes(self, records: float, slices: int) -> float:
        """What so many slices of so many records in all write: each what it alone would make."""
        return slices * self.bytes_after(records / slices)

    def _family(self, family: str, records: float) -> float:
        kept_ms = self.kept_ms.get(family)
        first, last = self.first.families.get(family, 0), self.last.families[family]
        if kept_ms is None:
            return last * (records / self.last.records) ** self._power(first, last) if self.last.records else last
        # After a job's first run all that is at rest is alive; later, files hold what has expired too.
        at, size_bytes = (self.first, first) if first else (self.last, last)
        span_ms = max(at.span_ms, 1)
        then_ms = span_ms * records / max(at.records, 1)
        return size_bytes * min(then_ms, max(kept_ms, 1)) / min(span_ms, max(kept_ms, 1))

    def _power(self, first: int, last: int) -> float:
        if self.first.records >= self.last.records or not first or not last:
            return 1.0
        return min(max(math.log(last / first) / math.log(self.last.records / self.first.records), 0.0), 1.0)


def kept_ms_of(store: StoreSpec) -> int | None:
    """How long, in event time, an entry of a store is kept at most; None: until its key is deleted or comes again."""
    settings = store.settings
    if store.kind == "deduplication" and isinstance(interval_ms := settings.get("interval_ms"), int):
        return interval_ms * 3 // 2  # by segments of half an interval
    if isinstance(retention_ms := settings.get("retention_ms"), int):
        return retention_ms
    if isinstance(limit_ms := settings.get("time_limit_ms"), int):
        return limit_ms
    windows = settings.get("windows")
    spans = windows if isinstance(windows, dict) else settings
    found = [span for name in _SPANS if isinstance(span := spans.get(name), int)]
    return sum(found) if found else None
