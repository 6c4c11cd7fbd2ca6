"""Entries of a deduplication that have outgrown memory: on disk, until they expire, come again or are to be kept."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from statelib.columns.key_filter import hashes_of
from statelib.operators.deduplication.codec import Entries
from statelib.operators.deduplication.store import Changes
from statelib.stores.byte_columns import joined
from statelib.stores.spilled_table import SpilledTable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from numpy.typing import NDArray

    from statelib.stores.byte_columns import Column


@dataclass(frozen=True, slots=True)
class _Table:
    table: SpilledTable
    last_ms: int  # of its entries


class DeduplicationSpill:
    """Tables on disk, the oldest first. An id is in one of them at most, and not in the working set then."""

    def __init__(self) -> None:
        self._tables: deque[_Table] = deque()

    def __bool__(self) -> bool:
        return bool(self._tables)

    def add(self, file: Path, changes: Changes, words: Callable[[NDArray[np.int64]], NDArray[np.int64]]) -> None:
        """Puts aside some entries, one at least, in a new file; see `SpilledTable`.

        Args:
            file: Where.
            changes: Which.
            words: `WorkingSet.words` of codes.
        """
        codes = changes.codes
        table = SpilledTable(
            file, len(codes), lambda rows: joined(*changes.ids(codes[rows])), lambda rows: words(codes[rows])
        )
        self._tables.append(_Table(table, int(changes.timestamp[codes].max())))

    def take_out(self, ids: Column, *, since_ms: int) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
        """Which of some ids are here, some at a time, and their `WorkingSet.words`; they are not here any more.

        Tables of which all entries are from before ``since_ms`` are left out.
        """
        hashes = hashes_of(ids)
        for spilled in reversed(self._tables):  # what comes again mostly does so soon
            if spilled.last_ms >= since_ms:
                yield spilled.table.take_out(ids, hashes)

    def expire(self, first_ms: int) -> None:
        """Forgets tables of which all entries are from before ``first_ms``."""
        alive = [spilled for spilled in self._tables if spilled.last_ms >= first_ms]
        for spilled in self._tables:
            if spilled.last_ms < first_ms:
                spilled.table.close()
        self._tables = deque(alive)

    def drain(self, first_ms: int, *, most: int) -> Iterator[Changes]:
        """Gives up tables, the oldest first, until there are ``most``: their entries from ``first_ms`` on."""
        while len(self._tables) > most:
            table = self._tables.popleft().table
            yield _changes(table, first_ms)
            table.close()

    def memory_bytes(self) -> int:
        """What the tables take in memory."""
        return sum(spilled.table.memory_bytes() for spilled in self._tables)


def _changes(table: SpilledTable, first_ms: int) -> Changes:
    places = table.left()
    timestamp = table.values(places, 0)
    kept = timestamp >= first_ms
    places, timestamp = places[kept], timestamp[kept]

    def entries(codes: NDArray[np.int64]) -> Entries:
        return Entries.of_places(*(table.values(places[codes], word) for word in range(3)))

    return Changes(
        np.arange(len(places)), timestamp, table.values(places, 3), lambda codes: [table.keys(places[codes])], entries
    )
