"""Reads one partition's records. SIGNATURES; bodies follow."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa

from statelib.storage import Storage
from statelib.topics.files import ArchiveFile


class PartitionReader:
    """Streams the records of one partition with offsets in [start_offset, end_offset), ascending, as record batches.

    Works on committed files (TopicArchive.files) and on staged ones (manifests) alike. Iterate it, again if need be.
    """

    def __init__(self, storage: Storage, files: Sequence[ArchiveFile], schema: pa.Schema, *, topic: str, partition: int,
                 start_offset: int = 0, end_offset: int | None = None, columns: Sequence[str] | None = None,
                 batch_rows: int = 65_536) -> None:
        """columns: names such as "key", "value", "value.amount" (only that field of the struct), "offset"; None: all."""
        raise NotImplementedError

    @property
    def schema(self) -> pa.Schema:
        """Of the batches: the archive's columns in the archive's order, as far as asked for."""
        raise NotImplementedError

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        """Batches of 1 to batch_rows records.

        Raises InputError: a file is missing, truncated, unreadable, has another schema, or its offsets do not ascend.
        """
        raise NotImplementedError

    def read_all(self) -> pa.Table:
        raise NotImplementedError
