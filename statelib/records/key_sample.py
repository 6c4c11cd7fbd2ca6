"""A sample of keys: by a hash of the key, so that it is the same wherever the key turns up."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from statelib.columns.arrow_buffers import byte_buffers, indices_of
from statelib.columns.hashing import hash_spans
from statelib.columns.windowed_type import is_windowed_struct
from statelib.records.key_column import KeyColumn

if TYPE_CHECKING:
    from numpy.typing import NDArray

TAKEN = "sample-record"
"""The counter of a node for records of a sample that came to it from a node which takes all keys."""

MOVES_TIME = "sample-time-record"
"""The counter for records of other keys that it has taken for the sake of time."""

LEFT_OUT = "sample-left-out-record"
"""The counter for those that it has not."""

TAKES_SAMPLE = "sample-only"
"""The gauge of a node that takes a sample of the keys alone."""

_HASHES = 2.0**64


@dataclass(frozen=True, slots=True)
class KeySample:
    """Some of all keys. All windows of a key are in it, or none.

    Attributes:
        share: How large it is among all keys, between 0 and 1.
        seen: Takes the hashes of its keys that are met; None: nobody asks.
    """

    share: float
    seen: set[int] | None = field(default=None, compare=False, repr=False)

    def has(self, keys: KeyColumn) -> NDArray[np.bool_]:
        """bool[n]: which keys are in it. A null never is."""
        serialized, valid = _without_windows(keys).serialized(), keys.valid()
        if isinstance(serialized, pa.DictionaryArray):
            hashes = _hashes(serialized.dictionary)
            hashes = hashes[indices_of(serialized)] if len(hashes) else np.zeros(len(keys), np.uint64)
        else:
            hashes = _hashes(serialized)
        chosen = (hashes < np.uint64(self.share * _HASHES)) & valid
        if self.seen is not None:
            self.seen.update(np.unique(hashes[chosen]).tolist())
        return chosen


def _without_windows(keys: KeyColumn) -> KeyColumn:
    """The keys alone; those that were read from the archive of a windowed result are structs."""
    while keys.windows is not None:
        keys = keys.without_windows
    while is_windowed_struct(keys.type):
        keys = KeyColumn(pc.struct_field(keys.plain, "key"))
    return keys


def _hashes(serialized: pa.Array) -> NDArray[np.uint64]:
    data, offsets, _ = byte_buffers(serialized)
    hashes = np.empty(len(serialized), np.uint64)
    hash_spans(data, offsets[:-1].astype(np.int64), np.diff(offsets).astype(np.int64), hashes)
    return hashes
