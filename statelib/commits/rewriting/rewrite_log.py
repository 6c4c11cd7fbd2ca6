"""The rewrites of a topic's files: documents with contiguous numbers from 1, which the topic's table follows.

::

    topics/<topic>/_rewrites/<n, 20 digits>.json                    Rewrite: created, never overwritten
    topics/<topic>/partition=3/<offset, 20 digits>-<job>.rewrite.<n>.<attempt>.parquet    a file of rewrite n

It is as with commits and their publishing. Files are written under names that nobody else uses; the document, created
only if absent, makes them rewrite n; then one Delta commit puts them in the place of the files that they replace, with
the application transaction `REWRITES`: a repeat does nothing. Whoever is killed between the two has left a document
that the next one carries out. Files that carry the number of a rewrite which does not name them are of somebody who was
killed or too late: nobody will ever name them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from statelib.commits.archives import open_archive
from statelib.commits.layout import numbers_in, rewrite_path
from statelib.documents.upkeep import REWRITES, Rewrite
from statelib.errors.fault_points import step
from statelib.errors.kinds import CorruptedDataError
from statelib.topics.version import CLEANED

if TYPE_CHECKING:
    from collections.abc import Sequence

    from statelib.storage import Storage
    from statelib.topics.archive import TopicArchive
    from statelib.topics.files import ArchiveFile

_WRITTEN = re.compile(r"\d{20}-(?P<job>.+)\.rewrite\.(?P<n>[1-9]\d*)\.[A-Za-z0-9_-]+\.parquet")


def rewrite_name(job: str, n: int, attempt: str) -> str:
    """What a rewrite names its files by, as `PartitionWriter` wants it."""
    return f"{job}.rewrite.{n}.{attempt}"


def rewrite_of(path: str) -> int | None:
    """The number of the rewrite for which a file was written; None: for none."""
    match = _WRITTEN.fullmatch(path.rpartition("/")[2])
    return int(match["n"]) if match else None


@dataclass
class RewriteLog:
    """The rewrites of one topic.

    Attributes:
        warehouse: Root of all durable data.
        topic: The topic.
    """

    warehouse: Storage
    topic: str
    _read: dict[int, Rewrite] = field(default_factory=dict)

    def last(self) -> int:
        """The newest one's number; 0: there is none."""
        return max(numbers_in(self.warehouse, rewrite_path(self.topic, 0).rpartition("/")[0]), default=0)

    def read(self, n: int) -> Rewrite:
        """Rewrite ``n``.

        Raises:
            CorruptedDataError: It is damaged, or not there.
        """
        if n not in self._read:
            path = rewrite_path(self.topic, n)
            rewrite = Rewrite.read_if_present(self.warehouse, path)
            if rewrite is None:
                raise CorruptedDataError(
                    f"rewrite {n} of the topic's files is missing",
                    topic=self.topic,
                    file=self.warehouse.uri(path),
                    next_step="restore the file from a copy of the warehouse: it is never deleted by Hindstream",
                )
            self._read[n] = rewrite
        return self._read[n]

    def create(self, rewrite: Rewrite) -> bool:
        """Makes ``rewrite`` the one of its number, unless there is one; says whether this call did it."""
        return self.warehouse.put_if_absent(rewrite_path(self.topic, rewrite.rewrite), rewrite.encode())

    def cleaned_before(self, partition: int, time_ms: int, done: int) -> int:
        """The offset up to which a partition had been cleaned at a time, by rewrites up to number ``done``."""
        for n in range(done, 0, -1):
            rewrite = self.read(n)
            if rewrite.created_at_ms <= time_ms and partition in rewrite.cleaned:
                return rewrite.cleaned[partition]
        return 0

    def carry_out(self, archive: TopicArchive, n: int) -> TopicArchive:
        """Lets the topic's table follow rewrite ``n``, the last one, if it has not; gives the newest version."""
        if archive.has_committed(REWRITES, n):
            return archive
        rewrite = self.read(n)
        self.warehouse.sync(rewrite_path(self.topic, n).rpartition("/")[0])  # who made it may have been killed
        step("rewrite.before-commit")
        archive.replace(
            rewrite.replaced,
            rewrite.files,
            [(REWRITES, n), *((f"{CLEANED}/{p}", end) for p, end in sorted(rewrite.cleaned.items()))],
            time_ms=rewrite.created_at_ms,
            drops_records=bool(rewrite.cleaned),
        )
        step("rewrite.committed")
        return archive.refresh()


def standing_files(
    warehouse: Storage, topic: str, files: Sequence[ArchiveFile], *, through: int | None = None
) -> list[ArchiveFile]:
    """The files that hold the records of ``files`` now: these, or what rewrites have put in their place.

    Args:
        warehouse: Root of all durable data.
        topic: A topic that has been published.
        files: Files that were published to it, as their commits describe them.
        through: The last rewrite that counts; None: that which the topic's table has followed.
    """
    log = RewriteLog(warehouse, topic)
    last = log.last()
    done = through
    if done is None:
        done = (open_archive(warehouse, topic).last_transaction(REWRITES) or 0) if last else 0
    standing = {file.path: file for file in files}
    for n in range(1, min(last, done) + 1):
        rewrite = log.read(n)
        gone = [file for gone in rewrite.replaced if (file := standing.pop(gone.path, None)) is not None]
        standing |= {new.path: new for new in rewrite.files if any(map(new.overlaps, gone))}
    return list(standing.values())
