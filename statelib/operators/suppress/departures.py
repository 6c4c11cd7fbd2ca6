"""What leaves a suppression buffer, in order."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import pyarrow as pa

from statelib.columns.counting import distinct
from statelib.columns.times import LAST_TIME_MS
from statelib.operators.suppress.buffer_kernel import departure_order
from statelib.operators.suppress.layout_kernel import buffer_keys
from statelib.records.key_ranks import bytes_behind_decide, bytes_ranks

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from statelib.records.key_ranks import AllKeys
    from statelib.records.key_table import KeyTable

_FIRST_BYTE = 1 << 56
"""A start from which on its first byte is not zero."""


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


def in_departure_order(
    codes: NDArray[np.int64],
    stored: Sequence[pa.Array],
    start: NDArray[np.int64],
    end: NDArray[np.int64],
    all_keys: AllKeys,
) -> tuple[NDArray[np.int64], pa.Array, NDArray[np.int64] | None]:
    """The order in which windows leave: by their end, then by the bytes of their keys in the buffer.

    Windows that end together start together, so what is behind the bytes of a record key hardly ever matters; but for
    the end of time, where ends are cut off.

    Args:
        codes: int64, the keys of some windows.
        stored: The keys (binary) of others, which come from a store. They get no codes, since they leave at once.
        start: int64, of the ones and of the others, ms.
        end: int64, ms.
        all_keys: Those of the dictionary of ``codes``.

    Returns:
        int64, indices of the ones followed by the others; in this order the serialised record keys, and int64, their
        codes (None: not all of them have one).
    """

    def ranks(keys: pa.Array, *, behind_decides: bool) -> NDArray[np.int64]:
        return bytes_ranks(buffer_keys(keys, start, end, suffix_words=1) if behind_decides else keys)

    table, late = all_keys.table, int(start.max(initial=0)) >= _FIRST_BYTE or int(end.max(initial=0)) >= LAST_TIME_MS
    if stored:
        keys = pa.concat_arrays([table.take(codes), *stored])
        order = departure_order(end, ranks(keys, behind_decides=late or bytes_behind_decide(keys)), len(keys))
        return order, keys.take(pa.array(order)), None
    # What is the same for all windows of a key is worked out once: of all keys, which are mostly the same ones in every
    # batch and so have one dictionary, or of those that leave.
    if len(table) <= len(codes):
        number, dictionary, behind_decides = codes, all_keys.serialized, all_keys.bytes_behind_decide
    else:
        found, number = distinct(codes)
        dictionary = table.take(found)
        behind_decides = bytes_behind_decide(dictionary)
    if late or behind_decides:
        keys = dictionary.take(pa.array(number))
        order = departure_order(end, ranks(keys, behind_decides=True), len(keys))
    else:
        rank = all_keys.ranks if number is codes else bytes_ranks(dictionary)
        order = departure_order(end, rank[number], len(rank))
    indices = pa.array(number[order].astype(np.int32))
    return order, pa.DictionaryArray.from_arrays(indices, dictionary), codes[order]
