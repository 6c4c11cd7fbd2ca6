"""The records that the kernels of suppress share: what a buffered key is, what reaches it, what rules and what counts.

A key of the buffer is a record key and 0, 1 or 2 *suffix words*, the 64-bit integers that Kafka writes behind the key's
bytes, big-endian: none, a window's start, or a session's end and start.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from statelib.kernels.compiled import records_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

EMPTY = -1
NOT_STORED = np.iinfo(np.int64).min
NO_LIMIT = np.iinfo(np.int64).max
NO_ROW = -1

FROM_FIRST, FROM_RECORD, FROM_LAST = range(3)
"""What an update does to the buffer time of its key: nothing; sets it; moves it on, but never back."""

SLOT = np.dtype(
    [
        ("key_code", np.int64),
        ("start", np.int64),  # of the window, else 0
        ("end", np.int64),
        ("tag", np.int64),  # 31 bits of the key's hash
        ("prefix", np.uint64),  # the first 8 bytes of the serialised key, as a big-endian number
        ("time", np.int64),  # buffer time
        ("updated", np.int64),  # stream time at the latest record
        ("row", np.int64),  # the latest record
        ("first_row", np.int64),  # the record that was buffered first: its prior is what is known downstream
        ("bytes", np.int64),  # of the latest record and its key
        ("prior_bytes", np.int64),
        ("prior_code", np.int64),
        ("stored_time", np.int64),  # the buffer time under which the store has the key, else NOT_STORED
        ("changed", np.int64),  # 1: the store does not have the latest record
        ("heap_index", np.int64),
    ]
)
HEAP = np.dtype(
    [
        ("time", np.int64),  # as the slot's, to decide most comparisons without it
        ("prefix", np.uint64),
        ("slot", np.int64),
    ]
)
FIGURES = np.dtype(
    [
        ("stream_time", np.int64),
        ("records", np.int64),  # in memory
        ("bytes", np.int64),
        ("spilled_records", np.int64),  # in the store alone
        ("spilled_bytes", np.int64),
        ("max_records", np.int64),  # the largest number ever, wherever they were
        ("max_bytes", np.int64),
        ("sum_records", np.int64),  # of the last put: how many waited, added up after each record
        ("sum_bytes", np.int64),
        ("replaced", np.int64),  # of the last put: how many buffered records an update has replaced
        ("free", np.int64),  # how many slot numbers are on the stack
    ]
)
POLICY = np.dtype(
    [
        ("wait", np.int64),  # a key leaves when its buffer time <= stream time - wait
        ("max_records", np.int64),
        ("max_bytes", np.int64),
        ("strict", np.int64),  # 1: stop where a bound is exceeded, instead of emitting early
        ("clock", np.int64),  # FROM_FIRST, FROM_RECORD or FROM_LAST
        ("suffix_words", np.int64),
    ]
)
INPUT = np.dtype(
    [
        ("key_code", np.int64),
        ("start", np.int64),
        ("end", np.int64),
        ("time", np.int64),  # buffer time that the record asks for
        ("timestamp", np.int64),
        ("bytes", np.int64),
        ("old_bytes", np.int64),  # size of the value that the record replaces upstream, and a code for its content
        ("old_code", np.int64),
    ]
)

PUT = np.dtype(
    [
        ("time", np.int64),  # the buffer time that the record's key had after it
        ("first_row", np.int64),  # as the slot's
    ]
)

Slots, Heap, Figures, Policies, Inputs = (records_of(dtype) for dtype in (SLOT, HEAP, FIGURES, POLICY, INPUT))
Puts = records_of(PUT)


def buffer_keys(
    keys: pa.Array, start: NDArray[np.int64], end: NDArray[np.int64], suffix_words: int
) -> pa.LargeBinaryArray:
    """The serialised keys of the buffer: record keys (binary of any layout) with their suffix words."""
    kind = pa.large_binary()
    if suffix_words == 0:
        return keys.cast(kind)
    words = [start] if suffix_words == 1 else [end, start]
    suffixes = np.stack(words, axis=1).astype(">i8")
    joined = pa.Array.from_buffers(pa.binary(8 * suffix_words), len(keys), [None, pa.py_buffer(suffixes.tobytes())])
    return pc.binary_join_element_wise(keys.cast(kind), joined.cast(kind), pa.scalar(b"", kind))
