"""A topic archive that copies a topic of a Kafka cluster: how far it has come, and what became of every offset.

Records keep their partitions, offsets and timestamps. How far the copy has come stands in the archive's Delta log, as
application transactions of the very commit that adds the records, so that the two cannot disagree::

    hindstream.kafka.format                 1: these
    hindstream.kafka.topic                  which topic: 63 bits of a digest of the ids of cluster and topic
    hindstream.kafka.begin/<partition>      the first offset that was there when the copy began
    hindstream.kafka.position/<partition>   the next offset to copy
    hindstream.kafka.lost/<partition>       how many offsets Kafka had deleted before they were copied, so far

Records that cannot be decoded go to a second archive, with the same partitions and offsets, which has positions of its
own and is always committed first. Offsets that hold none of these are those that Kafka gives to no reader: compacted
records, aborted ones and the markers of transactions.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

from statelib.errors.kinds import ConfigurationError
from statelib.topics.version import COPY_BEGIN, COPY_POSITION

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from statelib.topics.archive import TopicArchive
    from statelib.topics.files import ArchiveFile

FORMAT_VERSION = 1

_FORMAT = "hindstream.kafka.format"
_TOPIC = "hindstream.kafka.topic"
_LOST = "hindstream.kafka.lost"


@dataclass(frozen=True, slots=True)
class CopiedRange:
    """The next offsets of a partition, from ``start`` to before ``end``, of which Kafka had deleted ``lost``."""

    start: int
    end: int
    lost: int = 0


@dataclass(frozen=True, slots=True)
class CopiedPartition:
    """What became of the offsets from ``begin`` to before ``position``.

    Attributes:
        partition: Its number.
        begin: The first offset that was there when the copy began.
        position: The next offset to copy.
        read: Offsets whose records are in the archive.
        quarantined: Offsets whose records could not be decoded.
        lost: Offsets that Kafka had deleted before they were copied.
    """

    partition: int
    begin: int
    position: int
    read: int
    quarantined: int
    lost: int

    @property
    def absent(self) -> int:
        """Offsets that Kafka gives to no reader: compacted or aborted records, markers of transactions."""
        return self.position - self.begin - self.read - self.quarantined - self.lost


class KafkaCopy:
    """One version of an archive that copies a topic.

    Args:
        archive: The archive.
        quarantine: That of records that could not be decoded; None: there is none yet.
    """

    def __init__(self, archive: TopicArchive, quarantine: TopicArchive | None = None) -> None:
        self.archive = archive
        self.quarantine = quarantine

    def position(self, partition: int) -> int | None:
        """The next offset to copy; None: the partition has not been begun."""
        return self.archive.copied_to(partition)

    def quarantine_position(self, partition: int) -> int | None:
        """The offset from which on undecodable records are not in quarantine yet; None: none of them is.

        It is further than `position` where a copy was stopped in between.
        """
        return None if self.quarantine is None else self.quarantine.last_transaction(f"{COPY_POSITION}/{partition}")

    def partitions(self) -> list[CopiedPartition]:
        """Those that have been begun, ascending."""
        found = []
        for partition in range(self.archive.partitions):
            position = self.position(partition)
            if position is None:
                continue
            found.append(
                CopiedPartition(
                    partition,
                    begin=self.archive.copied_from(partition) or 0,
                    position=position,
                    read=_rows(self.archive, partition, position),
                    quarantined=_rows(self.quarantine, partition, position),
                    lost=self.archive.last_transaction(f"{_LOST}/{partition}") or 0,
                )
            )
        return found

    def check_origin(self, origin: str) -> None:
        """Checks that the archive copies this topic and nothing else.

        Args:
            origin: What tells the topic from all others: the ids of cluster and topic.

        Raises:
            ConfigurationError: It copies another one, or was written by somebody else, or by a newer Hindstream.
        """
        version = self.archive.last_transaction(_FORMAT)
        if version is not None and version > FORMAT_VERSION:
            what = f"the copy of the topic has format {version}, this Hindstream knows up to {FORMAT_VERSION}"
            step = "install the newer Hindstream that wrote it"
            raise ConfigurationError(what, topic=self.archive.topic, file=self.archive.uri, next_step=step)
        recorded = self.archive.last_transaction(_TOPIC)
        if recorded == _number_of(origin) or (recorded is None and not self.archive.rows):
            return
        what = "the topic archive has records of another origin"
        if recorded is not None:
            what = "the topic archive copies another topic: of another cluster, or deleted since and created again"
        step = "copy into another archive: KafkaTopic(..., archive=NAME)"
        raise ConfigurationError(what, topic=self.archive.topic, file=self.archive.uri, next_step=step)

    def advance(
        self, files: Sequence[ArchiveFile], ranges: Mapping[int, CopiedRange], *, origin: str, time_ms: int = 0
    ) -> None:
        """Adds the records of ``ranges``, by partition, which begin at the positions that this version has.

        Args:
            files: Their files, none where all offsets are absent.
            ranges: By partition.
            origin: As for `check_origin`.
            time_ms: What the log says of the files' age.

        Raises:
            FencedError: Another copy has been quicker; nothing has changed.
            HindstreamError: As `TopicArchive.append_at`.
        """
        also = [(_FORMAT, FORMAT_VERSION), (_TOPIC, _number_of(origin))]
        moves = {}
        for partition, copied in ranges.items():
            position = self.position(partition)
            moves[f"{COPY_POSITION}/{partition}"] = (position, copied.end)
            if position is None:
                also.append((f"{COPY_BEGIN}/{partition}", copied.start))
            if copied.lost:
                lost = self.archive.last_transaction(f"{_LOST}/{partition}") or 0
                also.append((f"{_LOST}/{partition}", lost + copied.lost))
        self.archive.append_at(files, moves, also=also, time_ms=time_ms)


def set_aside(
    quarantine: TopicArchive,
    files: Sequence[ArchiveFile],
    moves: Mapping[int, tuple[int | None, int]],
    *,
    time_ms: int = 0,
) -> None:
    """Adds undecodable records to their archive, before `KafkaCopy.advance` does the others.

    Args:
        quarantine: Their archive.
        files: Their files.
        moves: By partition, `KafkaCopy.quarantine_position` as it was when the records were read, and the end of what
            was read; those that are there already are passed over.
        time_ms: What the log says of the files' age.

    Raises:
        FencedError: Another copy has been quicker; nothing has changed.
        HindstreamError: As `TopicArchive.append_at`.
    """
    wanted = {
        f"{COPY_POSITION}/{partition}": (start, end)
        for partition, (start, end) in moves.items()
        if start is None or start < end
    }
    if wanted:
        quarantine.append_at(files, wanted, time_ms=time_ms)


def _rows(archive: TopicArchive | None, partition: int, position: int) -> int:
    """Records before ``position``; a quarantine may be further than that, by whole files."""
    if archive is None:
        return 0
    return sum(file.rows for file in archive.files(partition, 0, position) if file.last_offset < position)


def _number_of(origin: str) -> int:
    return int.from_bytes(hashlib.sha256(origin.encode()).digest()[:8]) >> 1
