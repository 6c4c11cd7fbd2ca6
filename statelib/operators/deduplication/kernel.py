"""The hot loop of deduplication (KIP-655)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from statelib.kernels.compiled import BoolsOut, Int16s, Int32s, Int64s, Int64sOut, compiled, helper, i64, several
from statelib.records.batch import NO_OFFSET, NULL_KEY

if TYPE_CHECKING:
    from numpy.typing import NDArray

NO_ENTRY = np.iinfo(np.int64).min
"""The timestamp of an id that has no entry: it is older than any interval."""


@helper
def _place(source: int, partition: int) -> int:
    """Where a record comes from, as one number."""
    place: int = (i64(source) << 32) | i64(partition)
    return place


@compiled(several(i64, 3)(*3 * [Int64s], i64, Int64s, Int16s, Int32s, Int64s, i64, *3 * [Int64sOut], *2 * [BoolsOut]))
def deduplicate(
    codes: NDArray[np.int64],
    timestamps: NDArray[np.int64],
    sequences: NDArray[np.int64],
    first_sequence: int,
    stream_times: NDArray[np.int64],
    sources: NDArray[np.int16],
    partitions: NDArray[np.int32],
    offsets: NDArray[np.int64],
    interval_ms: int,
    entry_timestamps: NDArray[np.int64],
    entry_places: NDArray[np.int64],
    entry_offsets: NDArray[np.int64],
    forwarded: NDArray[np.bool_],
    set_entry: NDArray[np.bool_],
) -> tuple[int, int, int]:
    """Decides for each record, in order, whether it is forwarded, and keeps the entries up to date.

    Args:
        codes: Code of each record's id, `NULL_KEY` for a null one.
        timestamps: Its timestamp, ms.
        sequences: Its sequence.
        first_sequence: That of the first row of the uptake, in which the next four are.
        stream_times: The task's stream time, the record included, ms.
        sources: Index of the record's topic. Two records of one topic, partition and offset are the same.
        partitions: Its partition.
        offsets: Its offset there, `NO_OFFSET` for none.
        interval_ms: The deduplication interval.
        entry_timestamps: By code, timestamp of the id's last forwarded record, `NO_ENTRY` if there is none.
        entry_places: By code, where that record came from: its topic, and in the low 32 bits its partition.
        entry_offsets: By code, its offset there.
        forwarded: The decisions, written.
        set_entry: Written: whether the record has set its id's entry; empty: nobody asks.

    Returns:
        How many records have no id, how many of the others are forwarded, and how often an entry was set.
    """
    null = forwarded_with_id = new_entries = 0
    for i in range(len(codes)):
        code = codes[i]
        forwarded[i] = True
        if code == NULL_KEY:
            null += 1
            continue
        timestamp, row = timestamps[i], sequences[i] - first_sequence
        horizon = stream_times[row] - interval_ms
        known = entry_timestamps[code]
        if known >= horizon and abs(timestamp - known) <= interval_ms:
            offset, place = offsets[row], _place(sources[row], partitions[row])
            forwarded[i] = offset != NO_OFFSET and offset == entry_offsets[code] and place == entry_places[code]
        elif timestamp >= horizon:
            entry_timestamps[code] = timestamp
            entry_places[code] = _place(sources[row], partitions[row])
            entry_offsets[code] = offsets[row]
            new_entries += 1
            if len(set_entry):
                set_entry[i] = True
        forwarded_with_id += forwarded[i]
    return null, forwarded_with_id, new_entries


@compiled(i64(Int64s, BoolsOut, Int64sOut))
def first_seen(codes: NDArray[np.int64], seen: NDArray[np.bool_], first: NDArray[np.int64]) -> int:
    """Finds the codes that were not seen before, and marks them.

    Args:
        codes: Of records, `NULL_KEY` for a null one.
        seen: By code, whether it was; brought up to date.
        first: Written: the new codes, each once, in order. As long as ``codes``.

    Returns:
        How many there are.
    """
    count = 0
    for code in codes:
        if code != NULL_KEY and not seen[code]:
            seen[code] = True
            first[count] = code
            count += 1
    return count
