"""The accounts of a node's ledger as a reader meets them: a name, a meaning, a colour."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from statelib.metrics.node_metrics import NodeMetrics

Fate = Literal["on", "kept", "held", "dropped", "failed"]
"""``on``: went on; ``kept``: is in the state or in an update that went on; ``held``: waits; ``dropped``, ``failed``."""


@dataclass(frozen=True, slots=True)
class Account:
    """One account: ``css`` is the class that colours it."""

    name: str
    label: str
    fate: Fate
    css: str
    meaning: str


_ACCOUNTS = {
    account.name: account
    for account in (
        Account("forwarded", "forwarded", "on", "on", "went on to the next node"),
        Account("joined", "joined", "on", "on", "was joined with a version of its key"),
        Account("aggregated", "aggregated", "on", "on", "is in at least one window"),
        Account("emitted", "emitted", "on", "on", "left the buffer as a result"),
        Account("consumed", "shown", "on", "on", "was passed to the function that ends the stream"),
        Account("written", "written", "on", "on", "is in the topic"),
        Account("processed", "processed", "on", "on", "was given to the processor"),
        Account("stored", "stored", "on", "on", "is a version in the table's store"),
        Account("unmatched", "unmatched", "kept", "kept-2", "found no version of its key; a left join forwards it"),
        Account("replaced", "replaced", "kept", "kept", "was replaced by a later update of its key while it waited"),
        Account("held", "held", "held", "held", "waits in the state for a later run"),
        Account("duplicate", "duplicate", "dropped", "drop-1", "its id was forwarded before, within the interval"),
        Account("late", "late", "failed", "drop-2", "arrived after its window and the grace period were over"),
        Account("before-first-window", "before the first window", "dropped", "drop-4", "older than any window"),
        Account(
            "quarantined",
            "quarantined",
            "failed",
            "drop-3",
            "cannot be used, or a function failed; went to the quarantine topic",
        ),
        Account(
            "invalid-timestamp",
            "invalid timestamp",
            "dropped",
            "drop-4",
            "its timestamp extractor returned no valid time",
        ),
        Account("refused", "refused", "dropped", "drop-4", "older than the store's history retention"),
        Account("out-of-order", "out of order", "dropped", "drop-4", "not the latest of its key in a versioned table"),
        Account("null-foreign-key", "null foreign key", "dropped", "drop-4", "refers to no row"),
        Account("stale", "stale", "dropped", "drop-4", "the response to a row that has changed since"),
        Account("failed", "failed", "failed", "drop-3", "the response for which the joiner failed where it was made"),
        Account("null-key", "null key", "dropped", "drop-4", "has no key"),
        Account("null-value", "null value", "dropped", "drop-4", "has no value"),
        Account("filtered", "filtered", "dropped", "drop-4", "the filter's condition was not true"),
        Account("empty-list", "without results", "dropped", "drop-4", "its mapper returned an empty list"),
        Account("no-partition", "no partition", "dropped", "drop-4", "its partitioner sent it to no partition"),
        Account("tombstone", "tombstone", "dropped", "drop-4", "deleted a value that had never been emitted"),
    )
}

ORDER = tuple(_ACCOUNTS)


def account(name: str) -> Account:
    """The account of that name; one that is not known here is shown under its own name."""
    return _ACCOUNTS.get(name) or Account(name, name, "dropped", "drop-4", "")


def shares(metrics: NodeMetrics) -> list[tuple[Account, int]]:
    """Where a node's records went: its accounts and what it holds, in a fixed order."""
    counts = {**metrics.accounts, "held": metrics.held_after}
    known = [name for name in ORDER if counts.get(name)]
    others = sorted(name for name in counts if name not in ORDER and counts[name])
    return [(account(name), counts[name]) for name in (*known, *others)]


def lost(metrics: NodeMetrics) -> list[tuple[Account, int]]:
    """Those of `shares` that a reader of results would miss: dropped or failed."""
    return [(kind, count) for kind, count in shares(metrics) if kind.fate in ("dropped", "failed")]
