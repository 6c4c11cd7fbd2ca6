"""What the sealed footer of a topic's file says of its records, so that they need not be looked at.

A file with a seal was written by this package's writer, which refuses offsets that do not ascend; and whoever changes
its footer breaks the seal (`statelib.topics.footer`).
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import pyarrow as pa

from statelib.topics.schema import TIMESTAMP

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow.parquet as pq


def first_of_dense_offsets(metadata: pq.FileMetaData, groups: Sequence[int]) -> int | None:
    """The first offset of some row groups (at least one) if they have no holes: each record has the next one.

    Numbers that ascend from the least to the greatest, and are as many as there are from the one to the other, can be
    no others. None: there are holes, or the footer does not tell.
    """
    bounds = [_bounds(metadata, group, "offset") for group in groups]
    known = [found for found in bounds if found is not None]
    rows = [metadata.row_group(group).num_rows for group in groups]
    is_dense = len(known) == len(bounds) and all(
        last - first + 1 == count for (first, last), count in zip(known, rows, strict=True)
    )
    return known[0][0] if is_dense and all(after[0] == before[1] + 1 for before, after in pairwise(known)) else None


def timestamp_bounds(metadata: pq.FileMetaData, groups: Sequence[int]) -> tuple[int, int] | None:
    """The least and the greatest timestamp of some row groups (at least one), ms; None: the footer does not tell."""
    bounds = [_bounds(metadata, group, "timestamp") for group in groups]
    known = [found for found in bounds if found is not None]
    if len(known) < len(bounds):
        return None
    kind = metadata.schema.to_arrow_schema().field("timestamp").type
    ends = (min(first for first, _ in known), max(last for _, last in known))
    first, last = (pa.scalar(end, pa.int64()).cast(kind).cast(TIMESTAMP, safe=False).value for end in ends)
    return first, last


def _bounds(metadata: pq.FileMetaData, group: int, column: str) -> tuple[int, int] | None:
    """The least and the greatest value of a column that holds integers of 64 bits, none of them missing."""
    chunk = metadata.row_group(group).column(metadata.schema.names.index(column))
    found = chunk.statistics
    if found is None or not found.has_min_max or found.null_count != 0 or chunk.physical_type != "INT64":
        return None
    return int(found.min_raw), int(found.max_raw)
