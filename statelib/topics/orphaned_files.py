"""Files that copies of topics and loads of frames have left behind: written, and never part of the archive.

Who adds to an archive from outside of a job names its files ``<offset>-kafka.<...>.parquet`` or
``<offset>-load.<...>.parquet`` and commits only at the very end of what is there. So such a file that begins before the
end and is not part of the archive can never be: the one who wrote it was stopped, or would find that somebody was
quicker.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from statelib.topics.archive import TopicArchive

_FILE = re.compile(r"(?P<offset>\d{20})-(kafka|load)\.[^/]*\.parquet")


def delete_passed(archive: TopicArchive, ranges: Mapping[int, tuple[int, int]]) -> None:
    """Deletes such files that begin in the ranges, by partition, of offsets that have been passed.

    Raises:
        RetryableError: The store did not answer.
    """
    for partition, (start, end) in ranges.items():
        held = {file.path for file in archive.files(partition, start)}
        folder = f"partition={partition}"
        found = archive.storage.list(folder, after=f"{folder}/{start:020d}")
        passed = [entry.path for entry in found if (_offset_of(entry.path) or 0) < end]
        archive.storage.delete([path for path in passed if path not in held and _offset_of(path) is not None])


def _offset_of(path: str) -> int | None:
    """The first offset of a file that a copy or a load has written; None: it is another one."""
    match = _FILE.fullmatch(path.rpartition("/")[2])
    return int(match["offset"]) if match else None
