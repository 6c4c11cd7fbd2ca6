"""What leaves a suppression buffer, in order."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from statelib.kernels.suppression_buffer import departure_order
from statelib.kernels.suppression_layout import INPUT

if TYPE_CHECKING:
    import pyarrow as pa
    from numpy.typing import NDArray

    from statelib.kernels.key_table import KeyTable
    from statelib.stores.suppression_codec import BufferedRows


@dataclass(frozen=True, slots=True)
class Departures:
    """Keys that have left the buffer.

    Attributes:
        key_code: int64.
        start: int64, of the window; 0 without one.
        end: int64.
        time: int64, buffer time, ms.
        updated: int64, the stream time at the latest record, ms.
        trigger: int64, the record of the batch that made each leave.
        rows: The latest row of each.
        prior: The value that each replaces downstream; None if the rows do not say what they replace.
    """

    key_code: NDArray[np.int64]
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
    def of(cls, slots: NDArray[Any], trigger: NDArray[np.int64], rows: pa.RecordBatch, prior: pa.Array | None) -> Self:
        """Those of ``slots`` (`SLOT`)."""
        fields = ("key_code", "start", "end", "time", "updated")
        columns = {name: np.ascontiguousarray(slots[name]) for name in fields}
        return cls(**columns, trigger=trigger, rows=rows, prior=prior)


def as_inputs(rows: BufferedRows, key_code: NDArray[np.int64]) -> NDArray[Any]:
    """Stored keys (``key_code``: int64) as `INPUT`, as if they came now."""
    inputs = np.zeros(len(rows), dtype=INPUT)
    inputs["key_code"] = key_code
    inputs["start"], inputs["end"], inputs["time"] = rows.start, rows.end, rows.time
    inputs["timestamp"], inputs["bytes"] = rows.updated, rows.counted_bytes
    return inputs


_NAMES = {"updated": "timestamp"} | {name: name for name in ("key_code", "start", "end", "time", "bytes")}
"""What is known of a key that leaves: its name in a `SLOT`, and in an `INPUT`."""


def merged(
    slots: NDArray[Any], inputs: NDArray[Any], through: NDArray[np.int64], due: NDArray[Any], keys: KeyTable
) -> tuple[dict[str, NDArray[np.int64]], NDArray[np.int64]]:
    """Windows that leave the buffer, and those that leave without having been in it, in one order.

    Column by column: to choose and to join whole records costs numpy twenty times as much.

    Args:
        slots: `SLOT`, those that leave the buffer.
        inputs: `INPUT`.
        through: int64: which of ``inputs`` leave at once.
        due: `INPUT`, those that leave the store.
        keys: The dictionary of the keys.

    Returns:
        The columns of `Departures` that all have, and their ``bytes``; and the order, as indices of ``slots``
        followed by ``through`` and ``due``.
    """
    columns = {of: np.concatenate([slots[of], inputs[name][through], due[name]]) for of, name in _NAMES.items()}
    order = departure_order(columns["time"], columns["key_code"], keys)
    return {name: column[order] for name, column in columns.items()}, order
