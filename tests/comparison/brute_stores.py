"""Two stores compared entry by entry, in plain Python."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from tests.comparison.tables import plain

if TYPE_CHECKING:
    from statelib.comparison.difference import Difference
    from statelib.snapshots import StoreSnapshot

IDENTITY = ("key", "id", "foreign_key", "window_start", "window_end", "valid_from")


def counts_of(found: Difference) -> tuple[int, ...]:
    return found.equal, found.changed, found.only_a, found.only_b


def brute(a: StoreSnapshot, b: StoreSnapshot, partitions: set[int]) -> tuple[int, ...]:
    """Equal, changed, only in A, only in B; of ``partitions`` alone."""
    sides = [_entries(store, partitions) for store in (a, b)]
    equal = sum((sides[0] & sides[1]).values())
    left = [Counter() for _ in sides]
    for side, other, rest in ((sides[0], sides[1], left[0]), (sides[1], sides[0], left[1])):
        for (identity, _), count in (side - other).items():
            rest[identity] += count
    changed = sum((left[0] & left[1]).values())
    return equal, changed, sum(left[0].values()) - changed, sum(left[1].values()) - changed


def _entries(store: StoreSnapshot, partitions: set[int]) -> Counter[tuple[Any, Any]]:
    view = "history" if "history" in store.views else "latest"
    found: Counter[tuple[Any, Any]] = Counter()
    for row in store.read(view).to_pylist():
        if row.pop("partition") in partitions:
            named = [name for name in row if name in IDENTITY] or list(row)
            identity = tuple(plain(row[name]) for name in named)
            found[identity, tuple(plain(value) for name, value in row.items() if name not in named)] += 1
    return found
