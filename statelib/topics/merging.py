"""Writes records of a partition that are there already into another file: small files become a large one.

Records, their order, offsets, timestamps and headers stay as they are. Whatever is read is checked as for any reader;
memory is bounded by a row group and a batch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from statelib.errors.counted import counted
from statelib.errors.kinds import CorruptedDataError
from statelib.topics.parquet.writer import FileLimits

if TYPE_CHECKING:
    from collections.abc import Sequence

    from statelib.topics.archive import TopicArchive
    from statelib.topics.files import ArchiveFile

_ONE_FILE = FileLimits(file_rows=1 << 62, file_bytes=1 << 62)


def merge(archive: TopicArchive, files: Sequence[ArchiveFile], *, attempt: str) -> ArchiveFile:
    """Writes the records of neighbouring files of one partition into one file, to be committed later.

    Args:
        archive: A version that has the files.
        files: Ascending by offset.
        attempt: As for `TopicArchive.writer`.

    Raises:
        InputError: A file is missing or damaged.
        CorruptedDataError: There are not as many records as the log says.
    """
    partition = files[0].partition
    reader = archive.reader(partition, files[0].first_offset, files[-1].last_offset + 1)
    with archive.writer(
        partition, attempt=attempt, limits=_ONE_FILE, has_headers=reader.has_headers(), takes_all=True
    ) as writer:
        for batch in reader:
            writer.write(batch)
        (merged,) = writer.close()
        if merged.rows != sum(file.rows for file in files):
            raise CorruptedDataError(
                f"files to be merged have {counted(merged.rows, 'record')}"
                f" instead of {sum(file.rows for file in files)}",
                topic=archive.topic,
                partition=partition,
                file=archive.storage.uri(files[0].path),
                next_step="restore the archive from a copy of the warehouse",
            )
    return merged
