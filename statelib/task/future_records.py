"""What a task does with records from the future (`statelib.topics.future_records`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from statelib.columns.times import instant_text, unit_hint
from statelib.records.batch import NO_TIMESTAMP

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from statelib.settings.max_future import OnFutureRecord

COUNTER = "future-record"
"""Counts the records that were taken up with their partition's time."""


class FutureLimit:
    """Tells the records of one partition that are from the future.

    Args:
        begins: int64[n], ascending: the first offsets of the partition's files.
        latest_ms: int64[n]: the latest timestamp of each file that is not from the future.
        policy: What becomes of later ones.
    """

    def __init__(self, begins: NDArray[np.int64], latest_ms: NDArray[np.int64], policy: OnFutureRecord) -> None:
        self._begins = begins
        self._latest_ms = latest_ms
        self._least_ms = int(latest_ms.min())
        self.policy = policy

    def later(self, timestamp: NDArray[np.int64], offset: NDArray[np.int64]) -> NDArray[np.bool_] | None:
        """bool[n]: which records are from the future; None: none is."""
        if timestamp.max(initial=NO_TIMESTAMP) <= self._least_ms:
            return None
        later = timestamp > self._latest_of(offset)
        return later if later.any() else None

    def reasons(self, timestamp: NDArray[np.int64], offset: NDArray[np.int64], of: NDArray[np.bool_]) -> pa.Array:
        """string[n]: what is wrong with the records ``of`` (bool[n]), null for the others."""
        rows = np.flatnonzero(of)
        reasons = np.full(len(timestamp), None, np.object_)
        reasons[rows] = [
            f"timestamp from the future: {instant_text(time)}{unit_hint(time)}; later than {instant_text(latest)}"
            for time, latest in zip(timestamp[rows].tolist(), self._latest_of(offset[rows]).tolist(), strict=True)
        ]
        return pa.array(reasons, pa.string())

    def _latest_of(self, offset: NDArray[np.int64]) -> NDArray[np.int64]:
        return self._latest_ms[np.searchsorted(self._begins, offset, "right") - 1]
