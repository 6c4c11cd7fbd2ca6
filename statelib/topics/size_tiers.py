"""Which small files of a partition are worth making one.

Files are of tiers by their size: the largest bound is the target, each other one an eighth of the one before.
Neighbours that are all below a bound are merged where they come to the bound together. What is made of them has left
that tier, so a record is written again about once a tier, however many small files come; what stays is a few files a
tier.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from statelib.topics.files import ArchiveFile

_FACTOR = 8
_SMALLEST_BOUND_BYTES = 64 << 10
"""No tier is divided below this: writing so little again costs less than a request."""


def mergeable(files: Sequence[ArchiveFile], target_bytes: int) -> list[list[ArchiveFile]]:
    """Groups of neighbours, each to be merged into one file of at most twice ``target_bytes``.

    Args:
        files: Of one partition, ascending by offset, none missing in between.
        target_bytes: From this size on a file is never touched again.

    Returns:
        Groups of at least two files each, ascending by offset; a file is in one group or in none.
    """
    groups: list[list[ArchiveFile]] = []
    taken: set[int] = set()
    for bound in _bounds(target_bytes):
        run: list[int] = []
        run_bytes = 0
        for index, file in enumerate(files):
            if index in taken or file.size_bytes >= bound:
                run, run_bytes = [], 0
                continue
            run.append(index)
            run_bytes += file.size_bytes
            if run_bytes >= bound:  # so there are two at least
                groups.append([files[i] for i in run])
                taken.update(run)
                run, run_bytes = [], 0
    return sorted(groups, key=lambda group: group[0].first_offset)


def all_small(files: Sequence[ArchiveFile], target_bytes: int) -> list[list[ArchiveFile]]:
    """As `mergeable`, without tiers: all neighbours below the target, as many to a file as come to it."""
    groups: list[list[ArchiveFile]] = []
    run: list[ArchiveFile] = []
    run_bytes = 0
    for file in files:
        is_small = file.size_bytes < target_bytes
        if is_small:
            run.append(file)
            run_bytes += file.size_bytes
        if not is_small or run_bytes >= target_bytes:
            groups.append(run)
            run, run_bytes = [], 0
    return [group for group in (*groups, run) if len(group) > 1]


def _bounds(target_bytes: int) -> list[int]:
    """The tiers' bounds, descending."""
    bounds = [target_bytes]
    while bounds[-1] > _SMALLEST_BOUND_BYTES:
        bounds.append(bounds[-1] // _FACTOR)
    return bounds
