"""How a Parquet file is read without holding a row group however large: other writers may make one of all rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypedDict

if TYPE_CHECKING:
    import pyarrow.parquet as pq

LARGE_GROUP_BYTES = 64 << 20
"""A row group with more is read piece by piece; Arrow would hold all of it otherwise."""

PIECE_BYTES = 4 << 20


class Buffering(TypedDict):
    """Arguments of `pyarrow.parquet.ParquetFile`."""

    buffer_size: int
    pre_buffer: bool


def buffering(metadata: pq.FileMetaData, *, is_local: bool) -> Buffering:
    """What to open a file with; small row groups of an object store are fetched whole, in few requests."""
    groups = range(metadata.num_row_groups)
    largest = max((metadata.row_group(n).total_byte_size for n in groups), default=0)
    if largest > LARGE_GROUP_BYTES:
        return {"buffer_size": PIECE_BYTES, "pre_buffer": False}
    return {"buffer_size": 0, "pre_buffer": not is_local}
