"""The suppression buffer in memory: the arrays that the kernels of `statelib.operators.suppress.kernel` work on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from statelib.columns.counting import distinct, sort_pairs
from statelib.operators.suppress.kernel import find, insert, place_slots, run
from statelib.operators.suppress.layout_kernel import (
    EMPTY,
    FIGURES,
    FROM_FIRST,
    HEAP,
    NO_LIMIT,
    NO_ROW,
    POLICY,
    PUT,
    SLOT,
    buffer_keys,
)
from statelib.records.batch import NO_TIMESTAMP

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from statelib.records.key_table import KeyTable

_FIRST_SLOTS = 1 << 10
_SPARSE_FROM = 8  # slots a record
_NOBODY_ASKS = np.empty(0, dtype=PUT)


def policy(
    *,
    wait_ms: int,
    suffix_words: int,
    max_records: int | None = None,
    max_bytes: int | None = None,
    strict: bool = True,
    clock: int = FROM_FIRST,
) -> NDArray[Any]:
    """A `POLICY`; None: no bound."""
    bounds = [NO_LIMIT if bound is None else bound for bound in (max_records, max_bytes)]
    return np.array([(wait_ms, *bounds, strict, clock, suffix_words)], dtype=POLICY)


def departure_order(time: NDArray[np.int64], rank: NDArray[np.int64], ranks: int) -> NDArray[np.int64]:
    """The order in which windows leave: by buffer time, then by the bytes of the key.

    Args:
        time: int64, buffer times; windows of one key have different ones.
        rank: int64, less than ``ranks``, in the order of the keys' bytes.
        ranks: How many there are.

    Returns:
        int64: indices.
    """
    times, time_of = distinct(time)  # few: windows end on a grid
    time_rank = np.empty(len(times), dtype=np.int64)
    time_rank[np.argsort(times)] = np.arange(len(times))
    return sort_pairs(time_rank[time_of], len(times), rank, ranks)


class SuppressionBuffer:
    """Keys in order of buffer time, with the row number of each one's latest record.

    Args:
        policy: See `policy`.
        stream_time: The largest timestamp so far, ms.
    """

    def __init__(self, policy: NDArray[Any], stream_time: int = NO_TIMESTAMP) -> None:
        self._policy = policy
        self._figures = np.zeros(1, dtype=FIGURES)
        self._figures["stream_time"] = stream_time
        self._clear()

    def _clear(self) -> None:
        for name in ("records", "bytes", "free"):
            self._figures[name] = 0
        self._most = 0  # for how many keys there had to be room
        self._slots = np.empty(0, dtype=SLOT)
        self._heap = np.empty(0, dtype=HEAP)
        self._free = np.empty(0, dtype=np.int64)
        self._places = np.full(1, EMPTY, dtype=np.int64)

    def figure(self, name: str) -> int:
        """One of `FIGURES`, such as ``records``, ``bytes``, ``stream_time``."""
        return int(self._figures[name][0])

    def add_spilled(self, records: int, size: int) -> None:
        """Says that keys are in the store alone from now on, or (negative) that they no longer are."""
        self._figures["spilled_records"] += records
        self._figures["spilled_bytes"] += size

    @property
    def is_sparse(self) -> bool:
        """Whether it has far more room than it needs: `keep` gives memory back."""
        return len(self._slots) > _SPARSE_FROM * max(self.figure("records"), _FIRST_SLOTS)

    @property
    def oldest_time(self) -> int | None:
        """The smallest buffer time, ms; None if the buffer is empty."""
        return int(self._heap["time"][0]) if self.figure("records") else None

    def held(self) -> NDArray[np.int64]:
        """The numbers of the slots in use, in no order that means anything."""
        return np.ascontiguousarray(self._heap["slot"][: self.figure("records")])

    @property
    def slots(self) -> NDArray[Any]:
        """`SLOT`, by slot number: what is set here is set in the buffer."""
        return self._slots

    def put(
        self, inputs: NDArray[Any], first_row: int, keys: KeyTable, puts: NDArray[Any] = _NOBODY_ASKS
    ) -> tuple[NDArray[Any], NDArray[np.int64], int | None]:
        """Takes up records in order.

        Args:
            inputs: `INPUT`.
            first_row: Row number of the first one; the others follow.
            keys: The dictionary of their keys.
            puts: Written, `PUT` as many as records: what each has put. Empty: nobody asks.

        Returns:
            What leaves, in order (`SLOT`); int64, for each the record that made it leave; and the record that exceeded
            a bound of a strict buffer, where it stopped, else None.
        """
        for name in ("sum_records", "sum_bytes", "replaced"):
            self._figures[name] = 0
        room = self.figure("records") + len(inputs)
        self._reserve(room)
        left, triggers = np.empty(room, dtype=SLOT), np.empty(room, dtype=np.int64)
        gone, failed = run(
            inputs, first_row, self._policy, keys.data, keys.offsets, self._slots, self._places, self._heap, self._free,
            self._figures, left, triggers, puts,
        )  # fmt: skip
        return left[:gone], triggers[:gone], None if failed == NO_ROW else failed

    def drain(self, keys: KeyTable) -> NDArray[Any]:
        """Takes everything out; gives the slots (`SLOT`) in the order in which they would have left."""
        slots = self._slots[self.held()]
        self._clear()
        codes, start, end = (np.ascontiguousarray(slots[name]) for name in ("key_code", "start", "end"))
        serialized = buffer_keys(keys.take(codes), start, end, int(self._policy["suffix_words"][0]))
        columns = pa.table({"time": slots["time"], "key": serialized})
        order = pc.sort_indices(columns, [("time", "ascending"), ("key", "ascending")])
        drained: NDArray[Any] = slots[order.to_numpy()]
        return drained

    def find(self, key_code: NDArray[np.int64], start: NDArray[np.int64], end: NDArray[np.int64]) -> NDArray[np.int64]:
        """int64: the slot number of each key, `EMPTY` for one that is not in the buffer."""
        numbers = np.empty(len(key_code), dtype=np.int64)
        key_code, start, end = (np.ascontiguousarray(column) for column in (key_code, start, end))
        find(key_code, start, end, self._slots, self._places, numbers)
        return numbers

    def insert(self, slots: NDArray[Any], keys: KeyTable) -> None:
        """Takes up keys as they are (`SLOT`), which are not in the buffer; nothing leaves, no clock moves."""
        self._reserve(self.figure("records") + len(slots))
        insert(
            slots, self._policy, keys.data, keys.offsets, self._slots, self._places, self._heap, self._free,
            self._figures,
        )  # fmt: skip

    def keep(self, numbers: NDArray[np.int64], keys: KeyTable) -> None:
        """Forgets all but these slots, and gives memory back."""
        kept = self._slots[numbers]
        self._clear()
        self.insert(kept, keys)

    def _reserve(self, records: int) -> None:
        """Makes room for ``records`` keys."""
        old = len(self._slots)
        self._most = max(self._most, records)
        if records <= old:
            return
        new = 1 << (max(records, _FIRST_SLOTS) - 1).bit_length()
        slots = np.empty(new, dtype=SLOT)
        slots[:old] = self._slots
        self._slots = slots
        self._heap = np.concatenate([self._heap, np.empty(new - old, dtype=HEAP)])
        free = self.figure("free")
        self._free = np.concatenate(
            [self._free[:free], np.arange(new - 1, old - 1, -1), np.empty(old - free, np.int64)]
        )
        self._figures["free"] += new - old
        self._places = np.full(2 * new, EMPTY, dtype=np.int64)
        place_slots(self._slots, self.held(), self._places)

    def memory_bytes(self, more: int = 0) -> int:
        """What the arrays take, or will with so many more keys; room that was never used takes nothing."""
        of_records = (self._most + more) * (self._slots.itemsize + self._heap.itemsize)
        return of_records + self._free.nbytes + self._places.nbytes
