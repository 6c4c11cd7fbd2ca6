"""The suppression buffer in memory: the arrays that the kernel of `statelib.kernels.suppress` works on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from statelib.batch import NO_TIMESTAMP
from statelib.kernels.suppress import EMISSION, EMPTY, FIGURES, HEAP, NO_LIMIT, NO_ROW, POLICY, SLOT, place_slots, run

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from statelib.kernels.key_table import KeyTable


def policy(
    *,
    wait_ms: int,
    suffix_words: int,
    max_records: int | None = None,
    max_bytes: int | None = None,
    strict: bool = True,
    restart: bool = False,
) -> NDArray[Any]:
    """A `POLICY`; None: no bound."""
    bounds = [NO_LIMIT if bound is None else bound for bound in (max_records, max_bytes)]
    return np.array([(wait_ms, *bounds, strict, restart, suffix_words)], dtype=POLICY)


class SuppressionBuffer:
    """Keys in order of buffer time, with the row number of each one's latest record.

    Args:
        policy: See `policy`.
        stream_time: The largest timestamp so far, ms.
    """

    def __init__(self, policy: NDArray[Any], stream_time: int = NO_TIMESTAMP) -> None:
        self._policy = policy
        self._start(stream_time)

    def _start(self, stream_time: int) -> None:
        """An empty buffer."""
        self._figures = np.zeros(1, dtype=FIGURES)
        self._figures["stream_time"] = stream_time
        self._slots = np.empty(0, dtype=SLOT)
        self._heap = np.empty(0, dtype=HEAP)
        self._free = np.empty(0, dtype=np.int64)
        self._places = np.empty(0, dtype=np.int64)

    def figure(self, name: str) -> int:
        """One of `FIGURES`, such as ``records``, ``bytes``, ``stream_time``."""
        return int(self._figures[name][0])

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

    def put(self, inputs: NDArray[Any], first_row: int, keys: KeyTable) -> tuple[NDArray[Any], int | None]:
        """Takes up records in order.

        Args:
            inputs: `INPUT`.
            first_row: Row number of the first one; the others follow.
            keys: The dictionary of their keys.

        Returns:
            What leaves, in order (`EMISSION`); and the record that exceeded a bound of a strict buffer, where it
            stopped, else None.
        """
        return self._run(inputs, first_row, keys, self._policy)

    def drain(self, keys: KeyTable) -> NDArray[Any]:
        """Takes everything out; gives the slots (`SLOT`) in the order in which they would have left."""
        slots = self._slots[self.held()]
        names = {0: (), 1: ("start",), 2: ("end", "start")}[int(self._policy["suffix_words"][0])]
        suffix = np.stack([slots[name] for name in names], axis=1) if names else np.empty((len(slots), 0), np.int64)
        order = pa.table({
            "time": slots["time"],
            "key": _suffixed(keys.take(np.ascontiguousarray(slots["key_code"])), suffix.astype(">i8")),
        })  # fmt: skip
        self._start(self.figure("stream_time"))
        drained: NDArray[Any] = slots[pc.sort_indices(order, [("time", "ascending"), ("key", "ascending")]).to_numpy()]
        return drained

    def restore(self, inputs: NDArray[Any], keys: KeyTable) -> None:
        """Takes up keys that the store has: ``time`` is the stored buffer time; nothing leaves, no clock moves.

        Args:
            inputs: `INPUT`, row numbers from 0; ``bytes`` is all that a key counts.
            keys: The dictionary of their keys.
        """
        hold = self._policy.copy()
        hold["wait"] = hold["max_records"] = hold["max_bytes"] = NO_LIMIT
        self._run(inputs, 0, keys, hold)
        held = self.held()
        self._slots["changed"][held] = 0
        self._slots["stored_time"][held] = self._slots["time"][held]

    def _run(
        self, inputs: NDArray[Any], first_row: int, keys: KeyTable, policy_: NDArray[Any]
    ) -> tuple[NDArray[Any], int | None]:
        records = self.figure("records")
        self._reserve(records + len(inputs))
        emissions = np.empty(records + len(inputs), dtype=EMISSION)
        emitted, failed = run(
            inputs, first_row, policy_, keys.data, keys.offsets, self._slots, self._places, self._heap, self._free,
            self._figures, emissions,
        )  # fmt: skip
        return emissions[:emitted], None if failed == NO_ROW else failed

    def _reserve(self, records: int) -> None:
        """Makes room for ``records`` keys."""
        old = len(self._slots)
        if records <= old:
            return
        new = 1 << (max(records, 1 << 10) - 1).bit_length()
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

    def memory_bytes(self) -> int:
        """What the arrays take."""
        return self._slots.nbytes + self._heap.nbytes + self._free.nbytes + self._places.nbytes


def _suffixed(keys: pa.Array, words: NDArray[np.int64]) -> pa.Array:
    """Keys with big-endian words behind them."""
    width = words.shape[1] * words.itemsize
    suffixes = pa.Array.from_buffers(pa.binary(width), len(keys), [None, pa.py_buffer(words.tobytes())])
    kind = pa.large_binary()
    return pc.binary_join_element_wise(keys.cast(kind), suffixes.cast(kind), pa.scalar(b"", kind))
