"""What a manifest and the Delta log say of one file of a topic archive."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from pydantic import BaseModel, ConfigDict, Field

from statelib.storage.transfers import in_parallel

if TYPE_CHECKING:
    from collections.abc import Sequence

    from statelib.storage import Storage

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_FIRST_ISO_MS = -62_135_596_800_000  # 0001-01-01
_END_ISO_MS = 253_402_300_800_000  # 10000-01-01


class ArchiveFile(BaseModel):
    """A Parquet file with a run of one partition's records, ascending by offset.

    Equal records give an equal description but for ``path``, which names the attempt that wrote the file.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    path: str = Field(description="relative to the archive's root, such as partition=3/00000000000000000117-a1.parquet")
    partition: int
    rows: int
    size_bytes: int
    first_offset: int = Field(description="of the first record")
    last_offset: int = Field(description="of the last record; more than rows - 1 further on if offsets have holes")
    min_timestamp_ms: int | None = Field(description="None: no record has a timestamp, or it is not known")
    max_timestamp_ms: int | None = Field(description="None: no record has a timestamp, or it is not known")
    null_keys: int | None = Field(default=None, description="records without a key; None: not known")
    null_values: int | None = Field(default=None, description="tombstones; None: not known")
    sha256: str | None = Field(default=None, description="of the file's bytes, in hex; None: not known")

    @property
    def is_dense(self) -> bool:
        """Whether its offsets have no holes, so that rows can be counted by subtraction."""
        return self.last_offset - self.first_offset + 1 == self.rows

    def overlaps(self, other: ArchiveFile) -> bool:
        """Whether both are of one partition, and some offset lies between the first and the last one of either."""
        return (
            self.partition == other.partition
            and self.first_offset <= other.last_offset
            and other.first_offset <= self.last_offset
        )

    @property
    def in_log(self) -> ArchiveFile:
        """The file as the Delta log says it.

        Timestamps outside the years 1 to 9999 cannot be written there: such a file has none and is always opened.
        """
        bounds = (self.min_timestamp_ms, self.max_timestamp_ms)
        if all(bound is not None and _FIRST_ISO_MS <= bound < _END_ISO_MS for bound in bounds):
            return self
        return self.model_copy(update={"min_timestamp_ms": None, "max_timestamp_ms": None})

    @property
    def delta_statistics(self) -> str:
        """The statistics of its add action, as JSON (Delta protocol, "Per-file Statistics")."""
        least: dict[str, int | str] = {"offset": self.first_offset}
        most: dict[str, int | str] = {"offset": self.last_offset}
        logged = self.in_log
        if logged.min_timestamp_ms is not None and logged.max_timestamp_ms is not None:
            least["timestamp"] = iso_timestamp(logged.min_timestamp_ms)
            most["timestamp"] = iso_timestamp(logged.max_timestamp_ms)
        counts = {"numRecords": self.rows, "nullCount": {"offset": 0}}
        return json.dumps({**counts, "minValues": least, "maxValues": most})


def not_as_written(storage: Storage, files: Sequence[ArchiveFile]) -> list[tuple[ArchiveFile, int | None]]:
    """Those of some files that have another size in an archive's ``storage``, and that size; None: they are missing."""
    sizes = in_parallel(storage.size_if_present, [file.path for file in files], storage.requests_at_once)
    return [(file, size) for file, size in zip(files, sizes, strict=True) if size != file.size_bytes]


def iso_timestamp(timestamp_ms: int) -> str:
    """Milliseconds since 1970 as ISO 8601 in UTC, such as ``2013-01-01T05:15:00.000Z``; years 1 to 9999."""
    text = (_EPOCH + timedelta(milliseconds=timestamp_ms)).isoformat(timespec="milliseconds")
    return text.replace("+00:00", "Z")
