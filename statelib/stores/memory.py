"""A backend in memory: for tests, notebooks and small state.

The same contract as RocksDB's, but nothing survives `close`.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING
from weakref import WeakSet

import numpy as np
from sortedcontainers import SortedDict

from statelib.errors.kinds import InternalError
from statelib.stores.backend import in_large_lists

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from statelib.stores.backend import WriteBatch

_ENTRY_OVERHEAD_BYTES = 130
"""Two bytes objects, their dictionary slot and the sorted list's reference."""


class _Scan:
    """Items in order, as of when the scan began: the first write after that copies what is left."""

    def __init__(self, items: Iterator[tuple[bytes, bytes]]) -> None:
        self._items = items

    def __iter__(self) -> _Scan:
        return self

    def __next__(self) -> tuple[bytes, bytes]:
        return next(self._items)

    def detach(self) -> None:
        """Copies the rest, because the map is about to change."""
        self._items = iter(list(self._items))

    def fail(self) -> None:
        """Lets the next step raise, because the map is gone."""
        self._items = _closed()


def _closed() -> Iterator[tuple[bytes, bytes]]:
    raise InternalError("the scan's backend is closed")
    yield


class MemoryBackend:
    """`Backend` over sorted maps."""

    def __init__(self) -> None:
        self._families: dict[str, SortedDict[bytes, bytes]] = {}
        self._scans: WeakSet[_Scan] = WeakSet()
        self._open = True
        self.writes = 0

    def copy(self) -> MemoryBackend:
        """Another one that holds the same."""
        other = MemoryBackend()
        other._families = {name: family.copy() for name, family in self._families.items()}
        other.writes = self.writes
        return other

    def get(self, family: str, key: bytes) -> bytes | None:
        """See `Backend`."""
        value: bytes | None = self._map(family).get(key)
        return value

    def multi_get(self, family: str, keys: Sequence[bytes]) -> list[bytes | None]:
        """See `Backend`."""
        return list(map(self._map(family).get, keys))

    def scan(
        self, family: str, first: bytes = b"", end: bytes | None = None, *, reverse: bool = False
    ) -> Iterator[tuple[bytes, bytes]]:
        """See `Backend`; writes after the scan began do not show in it."""
        entries = self._map(family)
        keys = entries.irange(first, end, inclusive=(True, False), reverse=reverse)
        scan = _Scan((key, entries[key]) for key in keys)
        self._scans.add(scan)
        return scan

    def scan_lists(
        self, family: str, first: bytes = b"", end: bytes | None = None
    ) -> Iterator[tuple[list[bytes], list[bytes]]]:
        """See `Backend`."""
        return in_large_lists(([key], [value]) for key, value in self.scan(family, first, end))

    def count(self, family: str, first: bytes = b"") -> int:
        """See `Backend`."""
        entries = self._map(family)
        return len(entries) - int(entries.bisect_left(first))

    def is_empty(self, family: str) -> bool:
        """See `Backend`."""
        return not self._map(family)

    def write(self, batch: WriteBatch) -> None:
        """See `Backend`."""
        self._check_open()
        self.writes += 1
        for scan in self._scans:
            scan.detach()
        self._scans.clear()
        for family, first, end in batch.ranges:
            entries = self._families.setdefault(family, SortedDict())
            for key in list(entries.irange(first, end, inclusive=(True, False))):
                del entries[key]
        for family, key, value in batch.operations:
            entries = self._families.setdefault(family, SortedDict())
            if value is None:
                entries.pop(key, None)
            else:
                entries[key] = value
        for family, rows in batch.rows:
            entries = self._families.setdefault(family, SortedDict())
            everything = np.arange(rows.count)
            keys = rows.keys(everything).to_pylist()
            if rows.values is None:
                for key in keys:
                    entries.pop(key, None)
            else:
                entries.update(zip(keys, rows.values(everything).to_pylist(), strict=True))

    def approximate_bytes(self, family: str) -> int:
        """See `Backend`; extrapolated from the first thousand entries."""
        entries = self._map(family)
        sample = [len(key) + len(value) for key, value in islice(entries.items(), 1000)]
        if not sample:
            return 0
        return len(entries) * (sum(sample) // len(sample) + _ENTRY_OVERHEAD_BYTES)

    def approximate_keys(self, family: str) -> int:
        """See `Backend`."""
        return len(self._map(family))

    def close(self) -> None:
        """See `Backend`; a second call does nothing."""
        for scan in self._scans:
            scan.fail()
        self._scans.clear()
        self._families.clear()
        self._open = False

    def _map(self, family: str) -> SortedDict[bytes, bytes]:
        self._check_open()
        return self._families.get(family) or SortedDict()

    def _check_open(self) -> None:
        if not self._open:
            raise InternalError("the memory backend is closed")
