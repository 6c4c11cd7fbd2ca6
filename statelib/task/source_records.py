"""Records of one source as columns, before they become a `Batch`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from statelib.records.key_column import KeyColumn, concat_keys

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Records:
    """A run of records of one source partition, all columns of one length, in offset order.

    Attributes:
        keys: Keys, any Arrow type.
        value: Values, any Arrow type.
        timestamp: int64 milliseconds.
        offset: int64.
        headers: list<struct<key: string, value: binary>>.
        order_time: int64, ascending: what the task merges its sources by. For a topic the running maximum of its
            partition's timestamps; for a repartition topic the order time of the upstream task at emission.
    """

    keys: KeyColumn
    value: pa.Array
    timestamp: NDArray[np.int64]
    offset: NDArray[np.int64]
    headers: pa.Array
    order_time: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.timestamp)

    def slice(self, start: int, end: int) -> Records:
        """Rows ``start`` (inclusive) to ``end`` (exclusive), without copying."""
        length = end - start
        return Records(
            self.keys.slice(start, length),
            self.value.slice(start, length),
            self.timestamp[start:end],
            self.offset[start:end],
            self.headers.slice(start, length),
            self.order_time[start:end],
        )

    def take(self, indices: NDArray[np.int64]) -> Records:
        """The rows at ``indices``, in that order."""
        chosen = pa.array(indices)
        return Records(
            self.keys.take(chosen),
            self.value.take(chosen),
            self.timestamp[indices],
            self.offset[indices],
            self.headers.take(chosen),
            self.order_time[indices],
        )


def concat(parts: Sequence[Records]) -> Records:
    """One run after the other."""
    if len(parts) == 1:
        return parts[0]
    return Records(
        concat_keys([part.keys for part in parts]),
        pa.concat_arrays([part.value for part in parts]),
        np.concatenate([part.timestamp for part in parts]),
        np.concatenate([part.offset for part in parts]),
        pa.concat_arrays([part.headers for part in parts]),
        np.concatenate([part.order_time for part in parts]),
    )


HEADERS_TYPE = pa.list_(pa.struct([pa.field("key", pa.string()), pa.field("value", pa.binary())]))
"""The type of the ``headers`` column."""
