"""Files of a partition whose records are not in the order of offsets, as `OPTIMIZE` and `ZORDER` make them.

Other programs merge files that are not neighbours, and put rows in an order of their own; the records are all there.
Files whose offsets interleave are read together and put in order: whole, so they have to fit into memory.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from statelib.topics.files import ArchiveFile


def groups_in_order(files: Sequence[ArchiveFile]) -> list[list[ArchiveFile]]:
    """Files, ascending by first offset, in groups: no group has offsets before those of the one before it."""
    groups: list[list[ArchiveFile]] = []
    end = -1
    for file in files:
        if groups and file.first_offset <= end:
            groups[-1].append(file)
        else:
            groups.append([file])
        end = max(end, file.last_offset)
    return groups


def has_room(files: Sequence[ArchiveFile]) -> bool:
    """Whether there are as many offsets from the first to the last as there are records, so that none need be twice."""
    first, last = min(file.first_offset for file in files), max(file.last_offset for file in files)
    return sum(file.rows for file in files) <= last - first + 1


def in_order(batches: Iterable[pa.RecordBatch], batch_rows: int) -> Iterator[pa.RecordBatch]:
    """The same records, ascending by offset; of records at one offset the order stays."""
    table = pa.Table.from_batches(list(batches)).combine_chunks()
    order = np.argsort(table.column("offset").to_numpy(), kind="stable")
    yield from table.take(pa.array(order)).to_batches(max_chunksize=batch_rows)


def repeated_offset(batches: Sequence[pa.RecordBatch]) -> int | None:
    """An offset that more than one record has; None: there is none."""
    offsets = np.sort(np.concatenate([batch.column("offset").to_numpy() for batch in batches]))
    again = np.flatnonzero(offsets[1:] == offsets[:-1])
    return int(offsets[again[0]]) if len(again) else None
