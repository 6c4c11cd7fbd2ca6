"""Which state files can go: those that no checkpoint needs which anybody may still restore."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable

    from statelib.storage import StoredObject

_RUN = re.compile(r"[0-9a-f]{64}\.(\d{8,})-[1-9]\d*")


def oldest_kept(
    head: int, *, keep_commits: int, oldest: int, made_ms: Callable[[int], int], kept_since_ms: int | None
) -> int:
    """The oldest commit whose state stays, because it is one of the newest, or was the newest not long ago.

    Args:
        head: The newest commit; numbers begin at 1.
        keep_commits: How many of the newest stay, at least 1.
        oldest: The oldest one that can be restored now.
        made_ms: When a commit was made. Asked for few: those after ``oldest`` that expire.
        kept_since_ms: States that were the newest at this time or later stay too; None: age keeps nothing.
    """
    by_count = max(1, head - max(1, keep_commits) + 1)
    if kept_since_ms is None:
        return max(oldest, by_count)
    while oldest < by_count and made_ms(oldest + 1) <= kept_since_ms:
        oldest += 1
    return oldest


def unneeded_files(stored: Iterable[StoredObject], needed: Collection[str], *, head: int) -> list[StoredObject]:
    """The state files of a job that none of the checkpoints to keep has, nor will have.

    Args:
        stored: A listing of the job's state folder.
        needed: The paths of the files of the checkpoints to keep.
        head: A commit number that is taken. Files of runs for later numbers stay: they may yet be committed.
    """
    return [entry for entry in stored if entry.path not in needed and (_number(entry) or 0) <= head]


def is_named_by_content(entry: StoredObject) -> bool:
    """Whether a file was stored without its run's name, up to version 3 of the documents: others may store it again."""
    return _number(entry) is None


def _number(entry: StoredObject) -> int | None:
    """For which commit number the run was that stored a file."""
    match = _RUN.fullmatch(entry.path.rpartition("/")[2])
    return int(match[1]) if match else None
