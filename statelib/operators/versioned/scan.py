"""A versioned store read as a whole: the versions of all keys as columns, some hundred keys at a time.

What expires goes segment by segment, later than it may. Here it shows no longer than it can be asked for: a value until
it ended before the history retention, a tombstone until it is older than that itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from statelib.operators.versioned.codec import decode_latests
from statelib.operators.versioned.many_keys import load
from statelib.stores.column_scan import scan_columns

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from statelib.operators.versioned.segments import VersionedFamilies

NO_END = (1 << 63) - 1
"""The end of a version that has no later one."""

_KEYS_AT_ONCE = 1 << 9


@dataclass(frozen=True, slots=True)
class Versions:
    """Versions of several keys, as columns of one length.

    Attributes:
        keys: Serialised keys.
        valid_from: int64, ms.
        valid_to: int64, ms; `NO_END`: it is the latest version.
        is_tombstone: bool.
        values: Serialised values; null where it is a tombstone.
        remembered: bool: it is its key's latest version, and `statelib.operators.versioned.store`, rule 4, is true of
            it.
    """

    keys: pa.Array
    valid_from: NDArray[np.int64]
    valid_to: NDArray[np.int64]
    is_tombstone: NDArray[np.bool_]
    values: pa.Array
    remembered: NDArray[np.bool_]

    def filter(self, keep: NDArray[np.bool_]) -> Versions:
        """Those for which ``keep`` is true."""
        chosen = pa.array(keep)
        return Versions(
            self.keys.filter(chosen),
            self.valid_from[keep],
            self.valid_to[keep],
            self.is_tombstone[keep],
            self.values.filter(chosen),
            self.remembered[keep],
        )


def latest_values(families: VersionedFamilies, key: bytes | None = None) -> Iterator[Versions]:
    """The latest value of each key that has one, in bytewise order of keys; ``key``: of this one only."""
    first, end = (b"", None) if key is None else (key, key + b"\x00")
    for keys, raws in scan_columns(families.backend, families.latest, first, end):
        timestamp, values, remembered = decode_latests(raws, families.name)
        count = len(keys)
        yield Versions(keys, timestamp, np.full(count, NO_END), np.zeros(count, np.bool_), values, remembered)


def values_at(
    families: VersionedFamilies, time_ms: int, history_retention_ms: int, key: bytes | None = None
) -> Iterator[Versions]:
    """What a look-up ``as_of`` gives for each key, in bytewise order of keys; ``key``: for this one only.

    Of a time older than the retention only latest values.
    """
    if time_ms < families.header.stream_time - history_retention_ms:
        found = latest_values(families, key)
    else:
        found = _versions(families, max(time_ms, 0), key)
    for versions in found:
        is_valid = (versions.valid_from <= time_ms) & (time_ms < versions.valid_to)
        yield versions.filter(is_valid & ~versions.is_tombstone)


def history(families: VersionedFamilies, history_retention_ms: int, key: bytes | None = None) -> Iterator[Versions]:
    """All versions within the retention, in bytewise order of keys and then in order of time.

    Args:
        families: Of the store.
        history_retention_ms: The store's.
        key: Of this key only; None: of all.
    """
    horizon = max(families.header.stream_time - history_retention_ms, 0)
    for versions in _versions(families, horizon, key):
        kept = np.where(versions.is_tombstone, versions.valid_from >= horizon, versions.valid_to > horizon)
        yield versions.filter(kept)


def _versions(families: VersionedFamilies, from_ms: int, key: bytes | None) -> Iterator[Versions]:
    """All versions that are valid at or after ``from_ms``, and maybe some older ones."""
    keys = families.keys(b"", None, from_ms) if key is None else iter([key])
    while some := list(islice(keys, _KEYS_AT_ONCE)):
        column = pa.array(some, pa.binary())
        found = load(families, column, np.full(len(some), from_ms)).versions
        ends = np.append(found.valid_from[1:], NO_END)
        there = np.diff(found.offsets) > 0
        last = found.offsets[1:][there] - 1
        ends[last] = NO_END
        remembered = np.zeros(len(found.valid_from), np.bool_)
        remembered[last] = found.remembered[there]
        keys_of = column.take(pa.array(found.key_of()))
        yield Versions(keys_of, found.valid_from, ends[: len(keys_of)], found.is_tombstone, found.values, remembered)
