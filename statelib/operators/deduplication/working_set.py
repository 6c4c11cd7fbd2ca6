"""The working set of a deduplication: its entries in memory, by the code of their id."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from statelib.operators.deduplication.codec import Entries
from statelib.operators.deduplication.kernel import NO_ENTRY, first_seen

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from statelib.operators.deduplication.ids import DeduplicationIds
    from statelib.operators.deduplication.spill import DeduplicationSpill
    from statelib.operators.deduplication.store import DeduplicationStore


class WorkingSet:
    """The entries of all ids seen since the last flush: columns indexed by the id's code, with room at the end."""

    def __init__(self) -> None:
        self._timestamps = np.empty(0, dtype=np.int64)
        self._places = np.empty(0, dtype=np.int64)
        self._offsets = np.empty(0, dtype=np.int64)
        self._stored = np.empty(0, dtype=np.int64)  # the timestamps that the store has
        self._looked_up = np.empty(0, dtype=np.bool_)
        self._known = 0
        self.kept = 0
        """How many ids there were when expired ones were last dropped."""

    @property
    def columns(self) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """Timestamps, places and offsets, for the kernel."""
        return self._timestamps, self._places, self._offsets

    def look_up(
        self,
        codes: NDArray[np.int64],
        ids: DeduplicationIds,
        spill: DeduplicationSpill,
        store: DeduplicationStore,
        since_ms: int,
    ) -> None:
        """Makes room for all codes of ``ids`` and gets the entries of ``codes``, once each: from disk, or the store."""
        self._make_room(len(ids))
        if not spill and len(store) == 0:
            return
        wanted = np.empty_like(codes)
        wanted = wanted[: first_seen(codes, self._looked_up, wanted)]
        keys = ids.take(wanted)
        if spill:
            missing = np.ones(len(wanted), np.bool_)
            for found, words in spill.take_out(keys, since_ms=since_ms):
                self._put_back(wanted[found], words)
                missing[found] = False
            wanted, keys = wanted[missing], keys.filter(pa.array(missing))
        if len(store):
            found, entries = store.load(keys, since_ms=since_ms)
            self._fill(wanted[found], entries)

    @property
    def timestamp(self) -> NDArray[np.int64]:
        """That of each entry, by code, ms."""
        return self._timestamps[: self._known]

    @property
    def stored_ms(self) -> NDArray[np.int64]:
        """The timestamp of the entry that the store has, by code."""
        return self._stored[: self._known]

    def of(self, codes: NDArray[np.int64]) -> Entries:
        """The entries of codes."""
        return Entries.of_places(self._timestamps[codes], self._places[codes], self._offsets[codes])

    def words(self, codes: NDArray[np.int64]) -> NDArray[np.int64]:
        """int64[codes, 4]: timestamp, place and offset of their entries, and the timestamp that the store has."""
        words = np.empty((len(codes), 4), dtype=np.int64)
        for word, column in enumerate(self._words):
            words[:, word] = column[codes]
        return words

    def changed_since(self, first_ms: int) -> NDArray[np.int64]:
        """The codes of the entries from ``first_ms`` on that the store does not have."""
        return np.flatnonzero((self.timestamp >= first_ms) & (self.timestamp != self.stored_ms))

    def alive(self, first_ms: int) -> NDArray[np.int64]:
        """The codes whose entries are from ``first_ms`` on."""
        return np.flatnonzero(self._timestamps[: self._known] >= first_ms)

    def keep(self, codes: NDArray[np.int64]) -> None:
        """Forgets all codes but these, which become 0, 1, 2, ... in this order."""
        for column, _ in self._all:
            column[: len(codes)] = column[codes]
        self.kept = self._known = len(codes)

    def memory_bytes(self, more: int) -> int:
        """What the columns will take with so many more ids; room that they leave takes nothing."""
        return (self._known + more) * sum(column.itemsize for column, _ in self._all)

    @property
    def _all(self) -> list[tuple[NDArray[Any], Any]]:
        """Each column, and what it has where there is no entry."""
        columns = (self._timestamps, self._places, self._offsets, self._stored, self._looked_up)
        return list(zip(columns, (NO_ENTRY, 0, 0, NO_ENTRY, False), strict=True))

    @property
    def _words(self) -> tuple[NDArray[np.int64], ...]:
        return self._timestamps, self._places, self._offsets, self._stored

    def _put_back(self, codes: NDArray[np.int64], words: NDArray[np.int64]) -> None:
        for word, column in enumerate(self._words):
            column[codes] = words[:, word]

    def _fill(self, codes: NDArray[np.int64], entries: Entries) -> None:
        self._timestamps[codes] = self._stored[codes] = entries.timestamp
        self._places[codes] = entries.places
        self._offsets[codes] = entries.offset

    def _make_room(self, known: int) -> None:
        """For as many codes; the new ones have no entry."""
        if known > len(self._timestamps):
            size = max(known, 2 * len(self._timestamps))
            for name in ("_timestamps", "_places", "_offsets", "_stored", "_looked_up"):  # one is there twice at a time
                column = getattr(self, name)
                larger = np.empty(size, dtype=column.dtype)
                larger[: self._known] = column[: self._known]
                setattr(self, name, larger)
        for column, unset in self._all:
            column[self._known : known] = unset
        self._known = known
