"""Writes the files of one partition. SIGNATURES; bodies follow."""

from __future__ import annotations

from dataclasses import dataclass
from types import TracebackType
from typing import Self

import pyarrow as pa

from statelib.storage import Storage
from statelib.topics.files import ArchiveFile


@dataclass(frozen=True, slots=True)
class FileLimits:
    """When a row group and a file end: whichever bound comes first. Deterministic in the rows alone."""

    row_group_rows: int = 131_072
    row_group_bytes: int = 64 << 20
    file_rows: int = 8_388_608
    file_bytes: int = 512 << 20


class PartitionWriter:
    """Writes one partition's records, ascending by offset, into attempt-unique files that nobody sees until committed.

    A context manager: leaving it with an error deletes what was written. Same rows, same bytes.
    """

    def __init__(self, storage: Storage, schema: pa.Schema, partition: int, *, attempt: str,
                 limits: FileLimits = FileLimits()) -> None:
        """storage is rooted at the archive; schema as topic_schema gives it; attempt [A-Za-z0-9._-]+."""
        raise NotImplementedError

    def write(self, records: pa.RecordBatch | pa.Table) -> None:
        """Columns offset, key, value, timestamp (timestamp or int64 ms), optionally headers, in any order."""
        raise NotImplementedError

    def close(self) -> tuple[ArchiveFile, ...]:
        """Ends the last file; descriptions of all files, ascending. A second call returns the same."""
        raise NotImplementedError

    def abort(self) -> None:
        """Deletes everything written."""
        raise NotImplementedError

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        raise NotImplementedError
