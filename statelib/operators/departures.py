"""What leaves a suppression buffer, in order."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import pyarrow as pa

from statelib.kernels.counting import distinct
from statelib.kernels.key_ranks import bytes_ranks, distinct_key_ranks
from statelib.kernels.suppression_buffer import departure_order
from statelib.kernels.suppression_layout import INPUT

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from statelib.kernels.key_ranks import AllKeys
    from statelib.kernels.key_table import KeyTable
    from statelib.stores.suppression_codec import BufferedRows


@dataclass(frozen=True, slots=True)
class Departures:
    """Keys that have left the buffer.

    Attributes:
        keys: Serialised record keys: binary, or a dictionary of them.
        key_code: int64, their codes; None: not all of them have one.
        start: int64, of the window; 0 without one.
        end: int64.
        time: int64, buffer time, ms.
        updated: int64, the stream time at the latest record, ms; None: nobody asks (of final results).
        trigger: int64, the record of the batch that made each leave.
        rows: The latest row of each.
        prior: The value that each replaces downstream; None if the rows do not say what they replace.
    """

    keys: pa.Array
    key_code: NDArray[np.int64] | None
    start: NDArray[np.int64]
    end: NDArray[np.int64]
    time: NDArray[np.int64]
    updated: NDArray[np.int64] | None
    trigger: NDArray[np.int64]
    rows: pa.RecordBatch
    prior: pa.Array | None = None

    def __len__(self) -> int:
        return len(self.trigger)

    @classmethod
    def of(
        cls,
        slots: NDArray[Any],
        trigger: NDArray[np.int64],
        rows: pa.RecordBatch,
        prior: pa.Array | None,
        keys: KeyTable,
    ) -> Self:
        """Those of ``slots`` (`SLOT`); ``keys``: the dictionary of their keys."""
        fields = ("key_code", "start", "end", "time", "updated")
        columns = {name: np.ascontiguousarray(slots[name]) for name in fields}
        return cls(keys.take(columns["key_code"]), **columns, trigger=trigger, rows=rows, prior=prior)


@dataclass(frozen=True, slots=True)
class LastUpdates:
    """The last update of each of some windows, which leaves when its window has closed.

    Attributes:
        key_code: int64, of the key.
        start: int64, of the window, ms.
        end: int64; also the buffer time.
        counted_bytes: int64, what it counts.
    """

    key_code: NDArray[np.int64]
    start: NDArray[np.int64]
    end: NDArray[np.int64]
    counted_bytes: NDArray[np.int64]

    def inputs(self, numbers: NDArray[np.int64], stream_time: NDArray[np.int64]) -> NDArray[Any]:
        """`INPUT`, of some of them; ``stream_time``: int64, at each of these, ms."""
        inputs = np.zeros(len(numbers), dtype=INPUT)
        inputs["key_code"] = self.key_code[numbers]
        inputs["start"] = self.start[numbers]
        inputs["end"] = inputs["time"] = self.end[numbers]
        inputs["timestamp"] = stream_time
        inputs["bytes"] = self.counted_bytes[numbers]
        return inputs


def merged(
    slots: NDArray[Any],
    updates: LastUpdates,
    through: NDArray[np.int64],
    due: Sequence[BufferedRows],
    all_keys: AllKeys,
) -> tuple[dict[str, Any], NDArray[np.int64], NDArray[np.int64]]:
    """Windows that leave the buffer, and those that leave without having been in it, in one order.

    Column by column: to choose and to join whole records costs numpy twenty times as much. What comes from the store
    gets no codes, since its keys leave as soon as they have come.

    Args:
        slots: `SLOT`, those that leave the buffer.
        updates: What came.
        through: int64: which of ``updates`` leave at once.
        due: Those that leave the store.
        all_keys: Those of the dictionary of ``slots`` and ``updates``.

    Returns:
        The columns of `Departures` that all have; what each counts, in bytes; and the order, as indices of ``slots``
        followed by ``through`` and ``due``.
    """

    def column(name: str, of_slot: str) -> NDArray[np.int64]:
        given: NDArray[np.int64] = getattr(updates, name)
        return np.concatenate([slots[of_slot], given[through], *(getattr(rows, name) for rows in due)])

    keys = all_keys.table
    codes: NDArray[np.int64] = np.concatenate([slots["key_code"], updates.key_code[through]])
    end = column("end", "end")
    if due:
        serialized = pa.concat_arrays([keys.take(codes), *(rows.key for rows in due)])
        order = departure_order(end, bytes_ranks(serialized), len(serialized))
        of_keys = {"keys": serialized.take(pa.array(order)), "key_code": None}
    else:
        # What is the same for all windows of a key is worked out once: of all keys, which are mostly the same ones in
        # every batch and so have one dictionary, or of those that leave.
        if len(keys) <= len(codes):
            number, ranks, dictionary = codes, all_keys.ranks, all_keys.serialized
        else:
            found, number = distinct(codes)
            ranks, dictionary = distinct_key_ranks(found, keys), keys.take(found)
        order = departure_order(end, ranks[number], len(ranks))
        indices = pa.array(number[order].astype(np.int32))
        of_keys = {"keys": pa.DictionaryArray.from_arrays(indices, dictionary), "key_code": codes[order]}
    end = end[order]
    columns: dict[str, Any] = {**of_keys, "start": column("start", "start")[order], "end": end, "time": end}
    return {**columns, "updated": None}, column("counted_bytes", "bytes")[order], order
