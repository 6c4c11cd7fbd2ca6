"""Which windows a store can have, roughly and in memory: most look-ups are for windows that nobody has seen before."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from statelib.columns.key_filter import KeyFilter, hashes_of
from statelib.operators.windows.codec import encode_start_keys

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from statelib.stores.byte_columns import Column

_PARTS = 4


class WindowFilter:
    """Remembers the windows that are written to a store, in parts that are forgotten as they expire.

    Args:
        after_ms: Of windows that start up to this time, ms, nothing is known; may be raised.
        span_ms: How long a window is remembered, ms.
    """

    def __init__(self, *, after_ms: int, span_ms: int) -> None:
        self.after_ms = after_ms
        self._width_ms = max(span_ms // _PARTS, 1)
        self._parts: dict[int, KeyFilter] = {}

    def expect(self, start: NDArray[np.int64]) -> None:
        """Says which windows are about to be added, some at a time."""
        for number, rows in self._by_part(start):
            self._parts.setdefault(number, KeyFilter()).expect(len(rows))

    def add(self, keys: Column, start: NDArray[np.int64]) -> None:
        """Adds windows that the store does not have yet (``start``: int64, ms)."""
        hashes = hashes_of(encode_start_keys(keys, start))
        for number, rows in self._by_part(start):
            self._parts.setdefault(number, KeyFilter()).add(hashes[rows])

    def may_have(self, keys: Column, start: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Of each window: False if the store cannot have it."""
        found = start <= self.after_ms
        hashes = hashes_of(encode_start_keys(keys, start))
        for number, rows in self._by_part(start):
            if number in self._parts:
                found[rows] |= self._parts[number].may_have(hashes[rows])
        return found

    def _by_part(self, start: NDArray[np.int64]) -> list[tuple[int, NDArray[np.int64]]]:
        """The part of each window that anything is known of, as (number, indices)."""
        known = np.flatnonzero(start > self.after_ms)
        part = start[known] // self._width_ms
        return [(number, known[part == number]) for number in np.unique(part).tolist()]

    def forget(self, start_ms: int) -> None:
        """Forgets parts of which all windows start up to ``start_ms``."""
        for number in [number for number in self._parts if (number + 1) * self._width_ms <= start_ms + 1]:
            del self._parts[number]

    def memory_bytes(self) -> int:
        """Size of the filters."""
        return sum(part.memory_bytes() for part in self._parts.values())
