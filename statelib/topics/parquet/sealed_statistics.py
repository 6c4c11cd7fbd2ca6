"""What the sealed footer of a topic's file says of its records, so that they need not be looked at.

A file with a seal was written by this package's writer, which refuses offsets that do not ascend; and whoever changes
its footer breaks the seal (`statelib.topics.parquet.footer`).
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import pyarrow as pa

from statelib.topics.parquet.schema import TIMESTAMP

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow.parquet as pq


def first_of_dense_offsets(metadata: pq.FileMetaData, groups: Sequence[int]) -> int | None:
    """The first offset of some row groups (at least one) if they have no holes: each record has the next one.

    Numbers that ascend from the least to the greatest, and are as many as there are from the one to the other, can be
    no others. None: there are holes, or the footer does not tell.
    """
    known = _bounds(metadata, groups, "offset")
    if known is None:
        return None
    rows = [metadata.row_group(group).num_rows for group in groups]
    is_dense = all(last - first + 1 == count for (first, last), count in zip(known, rows, strict=True))
    return known[0][0] if is_dense and all(after[0] == before[1] + 1 for before, after in pairwise(known)) else None


def timestamp_bounds(metadata: pq.FileMetaData, groups: Sequence[int]) -> tuple[int, int] | None:
    """The least and the greatest timestamp of some row groups (at least one), ms; None: the footer does not tell."""
    known = _bounds(metadata, groups, "timestamp")
    if known is None:
        return None
    kind = metadata.schema.to_arrow_schema().field("timestamp").type
    ends = (min(first for first, _ in known), max(last for _, last in known))
    first, last = (pa.scalar(end, pa.int64()).cast(kind).cast(TIMESTAMP, safe=False).value for end in ends)
    return first, last


def _bounds(metadata: pq.FileMetaData, groups: Sequence[int], column: str) -> list[tuple[int, int]] | None:
    """By row group the least and the greatest value of a column that holds integers of 64 bits, none of them missing.

    None: it does not, or of one group the footer does not tell.
    """
    place = metadata.schema.names.index(column)
    bounds = []
    for group in groups:
        chunk = metadata.row_group(group).column(place)
        found = chunk.statistics
        if found is None or not found.has_min_max or found.null_count != 0 or chunk.physical_type != "INT64":
            return None
        bounds.append((int(found.min_raw), int(found.max_raw)))
    return bounds
