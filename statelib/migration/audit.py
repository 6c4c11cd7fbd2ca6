"""What a migration has to keep: of each key the latest value."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import islice, zip_longest
from typing import TYPE_CHECKING

import numpy as np

from statelib.migration.contents import contents
from statelib.migration.migrate import is_rename
from statelib.operators.suppress.codec import encode_keys, encode_values
from statelib.operators.suppress.snapshot import described_windows
from statelib.operators.suppress.store import SuppressionBufferStore

if TYPE_CHECKING:
    from collections.abc import Iterator

    from statelib.documents.topologies import Migration, StoreDescription
    from statelib.stores.backend import Backend

_NAMED = 10


@dataclass(slots=True)
class Comparison:
    """The latest values of a store before and after.

    Attributes:
        equal: Keys with the same value and timestamp.
        by_order: Keys whose records came in another order than that of their timestamps: a plain store has the value
            that came last, a versioned one that of the largest timestamp (KIP-889).
        different: Keys with another value for no such reason, as hex; at most ten.
        differences: How many these are.
        versions: How many values and tombstones there are now.
        oldest_ms: The smallest timestamp among them: how far the history reaches back. None: there are none.
    """

    equal: int = 0
    by_order: int = 0
    differences: int = 0
    different: list[str] = field(default_factory=list)
    versions: int = 0
    oldest_ms: int | None = None


def compare_latest(migration: Migration, before: Backend, after: Backend) -> Comparison:
    """Compares a store's latest values, key by key; memory does not grow with their number.

    Of a store that has got another name alone, all entries are compared, byte for byte.
    """
    if is_rename(migration):
        return _compare_entries(migration, before, after)
    found = Comparison()
    old, new = _latest(migration, before, None), _latest(migration, after, found)
    was, is_ = next(old, None), next(new, None)
    while was is not None or is_ is not None:
        if is_ is None or (was is not None and was[0] < is_[0]):
            assert was is not None  # noqa: S101 - for the type checker: one of the two is there
            _differs(found, was[0], only_deleted=was[1] is None)
            was = next(old, None)
        elif was is None or is_[0] < was[0]:
            _differs(found, is_[0], only_deleted=is_[1] is None)
            is_ = next(new, None)
        else:
            if was == is_:
                found.equal += 1
            elif (is_[2] > was[2] and migration.before.kind == "key-value" != migration.now.kind) or (
                is_[2] < was[2] and migration.now.kind == "key-value" != migration.before.kind
            ):
                found.by_order += 1
            else:
                _differs(found, was[0], only_deleted=was[1] is None and is_[1] is None)
            was, is_ = next(old, None), next(new, None)
    return found


def _compare_entries(migration: Migration, before: Backend, after: Backend) -> Comparison:
    found = Comparison()
    for old, new in zip_longest(_entries(migration.before, before), _entries(migration.now, after)):
        if old == new:
            found.equal += 1
        else:
            _differs(found, (old or new)[0], only_deleted=False)
    found.versions = found.equal + found.differences
    return found


def _entries(store: StoreDescription, backend: Backend) -> Iterator[tuple[bytes, bytes]]:
    """What a store has, in order; of a buffer of suppress what waits, wherever that is."""
    if store.kind != "suppression-buffer":
        for family in store.families:
            yield from backend.scan(family)
        return
    windows = described_windows(store.settings)
    suffix_words = windows.key_suffix_words if windows else 0
    for rows in SuppressionBufferStore(backend, store.name, suffix_words=suffix_words).everything():
        yield from zip(encode_keys(rows, suffix_words).to_pylist(), encode_values(rows).to_pylist(), strict=True)


def _differs(found: Comparison, key: bytes, *, only_deleted: bool) -> None:
    """A key that is deleted on the one side and unknown on the other has no value on either."""
    if not only_deleted:
        found.differences += 1
        found.different += [key.hex()][: max(0, _NAMED - len(found.different))]


def _latest(
    migration: Migration, backend: Backend, counted: Comparison | None
) -> Iterator[tuple[bytes, bytes | None, int]]:
    """(key, value, timestamp) of each key's last version, in bytewise order of keys."""
    store = migration.before if counted is None else migration.now
    for batch in contents(store, backend):
        timestamp = batch.column("timestamp").to_numpy()
        if counted is not None and len(timestamp):
            oldest = int(timestamp.min())
            counted.versions += len(timestamp)
            counted.oldest_ms = oldest if counted.oldest_ms is None else min(counted.oldest_ms, oldest)
        keys, values = batch.column("key").to_pylist(), batch.column("value").to_pylist()
        is_last = np.array([*(a != b for a, b in zip(keys, islice(keys, 1, None), strict=False)), True][: len(keys)])
        for row in np.flatnonzero(is_last).tolist():
            yield keys[row], values[row], int(timestamp[row])
