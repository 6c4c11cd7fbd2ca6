"""A node's figures under the names that Kafka Streams and KIP-328 ("Metrics") give them, for reports and exporters.

Counters end in ``-total`` and gauges in ``-current``, ``-avg``, ``-min`` or ``-max``, as Kafka's do; there are no
rates, since a replay has no wall clock. Figures of Hindstream's own keep to that rule.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Iterator

    from statelib.metrics.node_metrics import NodeMetrics

_OF_WINDOWS = ("open-windows", "sealed-windows", "late-record-drop")

_DESCRIPTIONS = {
    "record-lateness-avg": "mean of stream time minus timestamp, over all records (KIP-328)",
    "record-lateness-max": "largest stream time minus timestamp (KIP-328)",
    "late-record-drop-total": "windows that a record came too late for (KIP-328)",
    "late-record-to-topic-total": "late records that went to the job's topic for them",
    "expired-window-record-drop-total": "updates out of a window store's retention (KIP-328)",
    "dropped-records-total": "records that could not be processed or came too late, by reason",
    "future-record-total": "records from the future that were taken up with their partition's time",
    "versioned-put-total": "updates put into a versioned store",
    "versioned-expired-put-total": "updates older than a versioned store's history retention",
    "expired-entries-total": "ids that a deduplication has forgotten",
    "failed-punctuations-total": "scheduled calls of a processor that have failed",
    "suppression-emit-total": "results that a suppression has let go (KIP-328)",
    "suppression-spill-total": "results that moved to disk since the buffer's bounds were exceeded",
    "suppression-buffer-count-avg": "mean number of results that waited, taken after each record (KIP-328)",
    "suppression-buffer-count-current": "results that wait (KIP-328)",
    "suppression-buffer-count-max": "most results that waited at a time, in one task (KIP-328)",
    "suppression-buffer-size-avg": "mean number of bytes that waited, taken after each record (KIP-328)",
    "suppression-buffer-size-current": "bytes of the results that wait (KIP-328)",
    "suppression-buffer-size-max": "most bytes that waited at a time, in one task (KIP-328)",
    "intermediate-result-suppression-overtime-avg": "how long results were held after their last update (KIP-328)",
    "intermediate-result-suppression-overtime-min": "the least of it: a limit shorter by it does as much (KIP-328)",
    "collection-limit-drop-total": "values that collect_list and collect_set have left out at their limit",
    "open-windows-current": "windows that still take records",
    "sample-record-total": "records of the keys that a trial replays",
    "sample-time-record-total": "records of other keys that were taken for the sake of time",
    "sample-left-out-record-total": "records of other keys that were left out",
    "sample-only-current": "tasks in which the node took a sample of the keys alone",
    "sealed-windows-total": "windows that were open when the input was sealed",
    "sealed-results-total": "results that waited when the input was sealed, and were let go",
}


@dataclass(frozen=True, slots=True)
class Measure:
    """One figure of a node.

    Attributes:
        name: Kafka's, or one after its pattern.
        value: The figure.
        kind: ``total``: adds up over tasks and runs; ``gauge``: does not.
        reason: Of ``dropped-records-total``.
    """

    name: str
    value: float
    kind: Literal["total", "gauge"]
    reason: str | None = None

    @property
    def unit(self) -> str:
        """Of OpenTelemetry's units: ``ms``, ``By``, or a kind of thing in braces."""
        if "lateness" in self.name or "overtime" in self.name:
            return "ms"
        if "-size-" in self.name:
            return "By"
        return "{window}" if self.name.startswith(_OF_WINDOWS) else "{record}"

    @property
    def description(self) -> str:
        """For people; empty if there is none."""
        return _DESCRIPTIONS.get(self.name, "")


def measures(metrics: NodeMetrics) -> Iterator[Measure]:
    """The figures of one node of one task, or of all tasks added up; those that are nothing are left out."""
    lateness = metrics.lateness
    if records := sum(lateness.counts):
        yield Measure("record-lateness-avg", lateness.total_ms / records, "gauge")
        yield Measure("record-lateness-max", lateness.max_ms, "gauge")
    for reason, records in sorted(metrics.dropped.items()):
        yield Measure("dropped-records-total", records, "total", reason)
    for name, account in (("versioned-put-total", "stored"), ("versioned-expired-put-total", "refused")):
        if metrics.accounts.get(account):
            yield Measure(name, metrics.accounts[account], "total")
    for name, events in sorted(metrics.counters.items()):
        yield Measure(f"{name}-total", events, "total")
    yield from sorted((*_gauges(metrics), *_means(metrics)), key=lambda measure: measure.name)


def _gauges(metrics: NodeMetrics) -> Iterator[Measure]:
    for name, value in metrics.gauges.items():
        base, _, statistic = name.rpartition("_")
        yield Measure(f"{base}-{statistic}" if base else f"{name}-current", value, "gauge")


def _means(metrics: NodeMetrics) -> Iterator[Measure]:
    for name, mean in metrics.means.items():
        yield Measure(f"{name}-avg", mean.mean, "gauge")
        if mean.least is not None:
            yield Measure(f"{name}-min", mean.least, "gauge")
