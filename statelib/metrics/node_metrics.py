"""What a run counts: where every record went, how late it was, how large the state is.

Every node keeps a *ledger*: each record that it took up ends in exactly one account, so that a run can prove that
nothing was lost (``records_in + held_before == sum(accounts) + held_after``). Further figures are counters (added up
over tasks), gauges (the largest over tasks wins for ``_max``, else added up), means and a histogram of lateness.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

LATENESS_BOUNDS_MS = (
    0, 1_000, 5_000, 15_000, 60_000, 300_000, 900_000, 1_800_000, 3_600_000, 7_200_000,
    14_400_000, 28_800_000, 86_400_000, 604_800_000,
)  # fmt: skip
"""Upper bounds (inclusive) of the lateness histogram's buckets; a last bucket holds what is later."""

_BOUNDS = np.array(LATENESS_BOUNDS_MS, dtype=np.int64)


@dataclass(slots=True)
class Lateness:
    """How far behind stream time records arrived (KIP-328, "record-lateness"): histogram, sum and maximum, in ms."""

    counts: list[int] = field(default_factory=lambda: [0] * (len(LATENESS_BOUNDS_MS) + 1))
    total_ms: int = 0
    max_ms: int = 0

    def observe(self, lateness_ms: NDArray[np.int64]) -> None:
        """Adds records; ``lateness_ms`` is int64, stream time minus timestamp, never negative."""
        from statelib.columns.lateness import count_beyond  # noqa: PLC0415 - numba, which readers of metrics do without

        beyond = np.zeros(len(LATENESS_BOUNDS_MS), dtype=np.int64)
        total_ms, latest = count_beyond(np.ascontiguousarray(lateness_ms), _BOUNDS, beyond)
        later = [len(lateness_ms), *beyond.tolist(), 0]
        self.counts = [count + a - b for count, (a, b) in zip(self.counts, pairwise(later), strict=True)]
        self.total_ms += total_ms
        self.max_ms = max(self.max_ms, latest)

    def add(self, other: Lateness) -> None:
        """Adds another task's figures."""
        self.counts = [a + b for a, b in zip(self.counts, other.counts, strict=True)]
        self.total_ms += other.total_ms
        self.max_ms = max(self.max_ms, other.max_ms)


@dataclass(slots=True)
class Mean:
    """The mean, and the least, of values that were observed; adds up over tasks and runs."""

    count: int = 0
    total: int = 0
    least: int | None = None

    def add(self, count: int, total: int, least: int | None) -> None:
        """Adds ``count`` values, of which the sum is known and perhaps the least."""
        self.count += count
        self.total += total
        if least is not None:
            self.least = least if self.least is None else min(self.least, least)

    @property
    def mean(self) -> float:
        """Of at least one value."""
        return self.total / self.count


@dataclass(slots=True)
class NodeMetrics:
    """The ledger and the figures of one node of one task, or of all tasks of a run added up.

    Accounts in use: ``forwarded``, ``duplicate``, ``late``, ``null-key``, ``null-value``, ``filtered``, ``stored``,
    ``refused`` (older than a store's retention), ``aggregated``, ``joined``, ``unmatched``, ``emitted``, ``replaced``,
    ``tombstone``, ``empty-list``, ``consumed``, ``written``, ``quarantined``, ``out-of-order``, ``null-foreign-key``,
    ``stale``, ``invalid-timestamp``, ``no-partition``.

    ``dropped`` has once more those that are ``dropped-records`` to Kafka: what could not be processed or came too late,
    but not what was filtered, was a duplicate or met no other record.
    """

    records_in: int = 0
    records_out: int = 0
    held_before: int = 0
    held_after: int = 0
    accounts: dict[str, int] = field(default_factory=dict)
    dropped: dict[str, int] = field(default_factory=dict)
    counters: dict[str, int] = field(default_factory=dict)
    gauges: dict[str, int] = field(default_factory=dict)
    means: dict[str, Mean] = field(default_factory=dict)
    lateness: Lateness = field(default_factory=Lateness)

    def account(self, name: str, records: int) -> None:
        """Says where ``records`` of those taken up went."""
        if records:
            self.accounts[name] = self.accounts.get(name, 0) + int(records)

    def drop(self, reason: str, records: int) -> None:
        """Says that records were dropped, in an account named as the reason: Kafka's ``dropped-records``."""
        self.account(reason, records)
        if records:
            self.dropped[reason] = self.dropped.get(reason, 0) + int(records)

    def count(self, name: str, events: int) -> None:
        """Adds to a counter that is no account, such as ``expired-window-record-drop``."""
        if events:
            self.counters[name] = self.counters.get(name, 0) + int(events)

    def gauge_max(self, name: str, value: int) -> None:
        """Keeps the largest value seen; ``name`` ends in ``_max``."""
        self.gauges[name] = max(self.gauges.get(name, 0), int(value))

    def mean(self, name: str, count: int, total: int, least: int | None = None) -> None:
        """Adds ``count`` values, of which the sum is known and perhaps the least, to a mean."""
        if count:
            self.means.setdefault(name, Mean()).add(count, int(total), least)

    @property
    def unaccounted(self) -> int:
        """Records taken up or held that are in no account: 0, or the run is wrong."""
        return self.records_in + self.held_before - sum(self.accounts.values()) - self.held_after

    def add(self, other: NodeMetrics) -> None:
        """Adds the figures of another task, or of another run's same node."""
        self.records_in += other.records_in
        self.records_out += other.records_out
        self.held_before += other.held_before
        self.held_after += other.held_after
        for name, records in other.accounts.items():
            self.account(name, records)
        for reason, records in other.dropped.items():
            self.dropped[reason] = self.dropped.get(reason, 0) + records
        for name, events in other.counters.items():
            self.count(name, events)
        for name, value in other.gauges.items():
            if name.endswith("_max"):
                self.gauge_max(name, value)
            else:
                self.gauges[name] = self.gauges.get(name, 0) + value
        for name, mean in other.means.items():
            self.mean(name, mean.count, mean.total, mean.least)
        self.lateness.add(other.lateness)
