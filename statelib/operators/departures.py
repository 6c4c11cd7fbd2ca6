"""What leaves a suppression buffer, in order."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import pyarrow as pa

from statelib.kernels.counting import distinct
from statelib.kernels.key_ranks import bytes_ranks, distinct_key_ranks
from statelib.kernels.suppression_buffer import departure_order

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
        updated: int64, the stream time at the latest record, ms.
        trigger: int64, the record of the batch that made each leave.
        rows: The latest row of each.
        prior: The value that each replaces downstream; None if the rows do not say what they replace.
    """

    keys: pa.Array
    key_code: NDArray[np.int64] | None
    start: NDArray[np.int64]
    end: NDArray[np.int64]
    time: NDArray[np.int64]
    updated: NDArray[np.int64]
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


_NAMES = {"updated": "timestamp", "counted_bytes": "bytes"} | {name: name for name in ("start", "end", "time")}
"""What is known of a key that leaves: its name in `BufferedRows`, and in an `INPUT`."""


def merged(
    slots: NDArray[Any],
    inputs: NDArray[Any],
    through: NDArray[np.int64],
    due: Sequence[BufferedRows],
    all_keys: AllKeys,
) -> tuple[dict[str, Any], NDArray[np.int64], NDArray[np.int64]]:
    """Windows that leave the buffer, and those that leave without having been in it, in one order.

    Column by column: to choose and to join whole records costs numpy twenty times as much. What comes from the store
    gets no codes, since its keys leave as soon as they have come.

    Args:
        slots: `SLOT`, those that leave the buffer.
        inputs: `INPUT`.
        through: int64: which of ``inputs`` leave at once.
        due: Those that leave the store.
        all_keys: Those of the dictionary of ``slots`` and ``inputs``.

    Returns:
        The columns of `Departures` that all have; what each counts, in bytes; and the order, as indices of ``slots``
        followed by ``through`` and ``due``.
    """

    def column(stored: str, given: str) -> NDArray[np.int64]:
        held = "bytes" if stored == "counted_bytes" else stored
        return np.concatenate([slots[held], inputs[given][through], *(getattr(rows, stored) for rows in due)])

    keys = all_keys.table
    codes: NDArray[np.int64] = np.concatenate([slots["key_code"], inputs["key_code"][through]])
    time = column("time", "time")
    if due:
        serialized = pa.concat_arrays([keys.take(codes), *(rows.key for rows in due)])
        order = departure_order(time, bytes_ranks(serialized))
        of_keys = {"keys": serialized.take(pa.array(order)), "key_code": None}
    else:
        # What is the same for all windows of a key is worked out once: of all keys, which are mostly the same ones in
        # every batch and so have one dictionary, or of those that leave.
        if len(keys) <= len(codes):
            number, ranks, dictionary = codes, all_keys.ranks, all_keys.serialized
        else:
            found, number = distinct(codes)
            ranks, dictionary = distinct_key_ranks(found, keys), keys.take(found)
        order = departure_order(time, ranks[number])
        indices = pa.array(number[order].astype(np.int32))
        of_keys = {"keys": pa.DictionaryArray.from_arrays(indices, dictionary), "key_code": codes[order]}
    columns: dict[str, Any] = {**of_keys, **{name: column(name, given)[order] for name, given in _NAMES.items()}}
    return columns, columns.pop("counted_bytes"), order
