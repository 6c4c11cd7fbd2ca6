"""The working set of a stream-stream join: the records that it works with, by row number.

A row is a `statelib.operators.joins.stream_stream.arrays.ROW`; its value is in the pool of its side. Held records come
here at the first batch after a flush, all of them; of those that may be met the ones of the keys that are asked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa

from statelib.columns.growing import grown
from statelib.columns.ordered_set import ordered_set
from statelib.columns.scatter import scatter
from statelib.operators.joins.stream_stream.arrays import NO_ROW, ROW, SIDES
from statelib.operators.joins.stream_stream.kernel import link
from statelib.records.key_ranks import key_ranks
from statelib.records.row_pool import RowPool

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from statelib.records.key_table import KeyTable

_COMPACT_FROM_ROWS = 1 << 14


class HeldSets(NamedTuple):
    """What the kernel needs to know of held records: int64, the row of each rank; the ordered sets of both sides."""

    by_rank: NDArray[np.int64]
    left: NDArray[np.uint8]
    right: NDArray[np.uint8]


class JoinRows:
    """See the module's docstring.

    Args:
        keys: The task's.
        value_types: Of the left side and of the right.
    """

    def __init__(self, keys: KeyTable, value_types: Sequence[pa.DataType]) -> None:
        self._keys = keys
        self._pools = [RowPool(pa.schema([("value", of)])) for of in value_types]
        self._rows = np.empty(0, dtype=ROW)
        self._count = 0
        self._kept = 0  # how many rows there were when the others were last dropped
        self._newest = np.empty(0, dtype=np.int64)
        self._loaded = np.empty(0, dtype=np.bool_)

    @property
    def rows(self) -> NDArray[Any]:
        """`ROW` (a view, good until the next change)."""
        return self._rows[: self._count]

    @property
    def newest(self) -> NDArray[np.int64]:
        """By ``2 * key code + side`` the first row of its list (a view, good until there are new keys)."""
        return self._newest

    @property
    def held(self) -> NDArray[np.int64]:
        """The rows that are held."""
        return np.flatnonzero(self.rows["held"])

    def reserve_keys(self) -> None:
        """Makes room for all keys of the task."""
        self._newest = grown(self._newest, 2 * len(self._keys), NO_ROW)
        self._loaded = grown(self._loaded, 2 * len(self._keys))

    def add(
        self, side: int | NDArray[np.int64], key_code: NDArray[np.int64], time: NDArray[np.int64],
        arrival: NDArray[np.int64], value: NDArray[np.int64],
    ) -> NDArray[np.int64]:  # fmt: skip
        """Adds rows, in no list, not held.

        Args:
            side: `LEFT` or `RIGHT`, of each or of all.
            key_code: int64.
            time: int64, ms.
            arrival: int64.
            value: int64, as given by `add_values`.

        Returns:
            int64, their numbers.
        """
        first, self._count = self._count, self._count + len(time)
        if self._count > len(self._rows):
            rows = np.zeros(1 << (self._count - 1).bit_length(), dtype=ROW)
            rows[:first] = self._rows[:first]
            self._rows = rows
        added = self._rows[first : self._count]
        added[:] = np.zeros(1, dtype=ROW)
        added["side"], added["key_code"], added["time"] = side, key_code, time
        added["arrival"], added["value"] = arrival, value
        added["older"] = NO_ROW
        return np.arange(first, self._count)

    def add_values(self, side: int, values: pa.Array) -> int:
        """Keeps values; gives the number of the first."""
        pool = self._pools[side]
        return pool.append(pa.RecordBatch.from_arrays([values], schema=pool.schema))

    def values(self, side: int, rows: NDArray[np.int64]) -> pa.Array:
        """The values of rows of one side; null for `NO_ROW`."""
        there = rows != NO_ROW
        numbers = self.rows["value"][rows[there]]
        return scatter(self._pools[side].take(numbers).column("value"), there)

    def not_loaded(self, places: NDArray[np.int64]) -> NDArray[np.int64]:
        """Those of ``places`` (``2 * key code + side``), each once, that are asked for for the first time."""
        new = np.unique(places[~self._loaded[places]])
        self._loaded[new] = True
        return new

    def row_of_held(self, arrival: NDArray[np.int64]) -> NDArray[np.int64]:
        """The rows of records that came from the store of held ones, by arrival; `NO_ROW` for others."""
        known = np.flatnonzero(self.rows["in_held_store"])
        known = known[np.argsort(self.rows["arrival"][known])]
        arrivals = self.rows["arrival"][known]
        at = np.searchsorted(arrivals, arrival)
        found = at < len(known)
        found[found] = arrivals[at[found]] == arrival[found]
        rows = np.full(len(arrival), NO_ROW, dtype=np.int64)
        rows[found] = known[at[found]]
        return rows

    def link(self, rows: NDArray[np.int64]) -> None:
        """Lets others meet these rows."""
        link(rows, self._newest, self._rows)

    def in_order(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """Rows, given by number, by time, right before left, key bytes, arrival.

        Those of one time, side and key are numbered in the order of their arrival.
        """
        place = 2 * self._rows["time"][rows] + 1 - self._rows["side"][rows]
        order = np.argsort(place, kind="stable")
        place, code = place[order], self._rows["key_code"][rows[order]]
        alike = place[1:] == place[:-1]
        differ = np.flatnonzero(alike & (code[1:] != code[:-1]))
        if len(differ):  # keys are looked at only where they matter
            group = np.cumsum(np.concatenate([[True], ~alike]))
            among = np.zeros(group[-1] + 1, dtype=np.bool_)
            among[group[differ]] = True
            tied = np.flatnonzero(among[group])
            order[tied] = order[tied[np.lexsort((key_ranks(code[tied], self._keys), group[tied]))]]
        return rows[order]

    def give_up(self, rows: NDArray[np.int64]) -> None:
        """Ends the wait of held rows."""
        self._rows["held"][rows] = 0

    def held_sets(self, may_be_held: NDArray[np.int64]) -> HeldSets:
        """Ranks the rows that are held, and others that may come to be."""
        by_rank = self.in_order(np.concatenate([self.held, may_be_held]))
        self._rows["rank"][by_rank] = np.arange(len(by_rank))
        held, side = self._rows["held"][by_rank] == 1, self._rows["side"][by_rank]
        return HeldSets(by_rank, *(ordered_set(held & (side == of)) for of in SIDES))

    def compact(self, last_expired: Sequence[int]) -> None:
        """Drops what nobody needs any more, whenever the rows have doubled.

        Args:
            last_expired: By side, the largest time that is out of retention, ms.
        """
        if self._count < max(_COMPACT_FROM_ROWS, 2 * self._kept):
            return
        rows = self.rows
        visible = (rows["linked"] == 1) & (rows["time"] > np.array(last_expired)[rows["side"]])
        needed = visible | (rows["held"] == 1) | (rows["in_held_store"] == 1)
        kept = rows[needed]
        kept["linked"] = visible[needed]
        for side, pool in zip(SIDES, self._pools, strict=True):
            own = kept["side"] == side
            pool.keep(kept["value"][own])
            kept["value"][own] = np.arange(np.count_nonzero(own))
        self._rows, self._count, self._kept = kept, len(kept), len(kept)
        self._newest[:] = NO_ROW
        linked = np.flatnonzero(kept["linked"])
        self.link(linked[np.lexsort((kept["arrival"][linked], kept["time"][linked]))])

    def memory_bytes(self) -> int:
        """Size of the working set."""
        arrays = self._rows.nbytes + self._newest.nbytes + self._loaded.nbytes
        return arrays + sum(pool.memory_bytes() for pool in self._pools)
