"""What a commit to a topic's Delta log does to single files."""

from __future__ import annotations

from typing import TYPE_CHECKING

from deltalake.transaction import AddAction, RemoveAction

from statelib.errors.kinds import ConfigurationError, CorruptedDataError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from statelib.topics.files import ArchiveFile
    from statelib.topics.version import TopicVersion


class OffsetsTakenError(ConfigurationError):
    """Files hold offsets that the topic has already: somebody else writes to it, and these files are not part of it."""


class FileToCommitError(CorruptedDataError):
    """A file that shall become part of the topic is not there, or not as it was written."""


def added(file: ArchiveFile, time_ms: int, *, is_data: bool = True) -> AddAction:
    """The file becomes part of the topic; ``is_data``: with records that the topic did not have."""
    partition = {"partition": str(file.partition)}
    return AddAction(file.path, file.size_bytes, partition, time_ms, is_data, file.delta_statistics)


def removed(file: ArchiveFile, time_ms: int, *, is_data: bool = True) -> RemoveAction:
    """The file leaves the topic; ``is_data``: with records that the topic then lacks."""
    return RemoveAction(file.path, is_data, time_ms, file.size_bytes, {"partition": str(file.partition)})


def check_follows(archive: TopicVersion, files: Sequence[ArchiveFile]) -> None:
    """Checks that in each partition the files come after what is there and after each other.

    Raises:
        OffsetsTakenError: They do not.
    """
    ends = archive.end_offsets()
    for file in sorted(files, key=lambda file: file.first_offset):
        if file.first_offset < ends[file.partition]:
            raise OffsetsTakenError(
                f"the topic has offsets up to {ends[file.partition] - 1} already: somebody else writes to it",
                topic=archive.topic,
                partition=file.partition,
                offset=file.first_offset,
                next_step="let each job write to topics of its own",
            )
        ends[file.partition] = file.last_offset + 1
