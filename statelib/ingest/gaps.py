"""Offsets that are in no file of Kafka Connect's, or in two."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from statelib.errors.kinds import InputError
from statelib.ingest.sources.layouts import CONNECT_NAME

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from statelib.ingest.ledger import IngestedFile
    from statelib.ingest.sources.files import SourceFile


@dataclass(frozen=True, slots=True)
class Gap:
    """Offsets that no file has: Kafka had compacted them, they were no records, or a file is missing.

    Attributes:
        partition: The partition.
        first_offset: The first one.
        last_offset: The last one.
        before: The file that comes after them.
    """

    partition: int
    first_offset: int
    last_offset: int
    before: str


def gaps_between(
    files: Sequence[SourceFile],
    accounts: Sequence[IngestedFile],
    former: Sequence[IngestedFile],
    ends: Mapping[int, int],
) -> tuple[Gap, ...]:
    """The offsets that are missing between files of Kafka Connect, and before the first ones where the topic goes on.

    Args:
        files: The files with their places.
        accounts: Of each of them, how many records it has.
        former: Of the files that were loaded before.
        ends: By partition, where the topic ends; of none that is empty.

    Raises:
        InputError: Two files of one folder overlap: some records are in both.
    """
    rows = {account.path: account.records + account.bad_rows for account in accounts}
    _check_overlaps([*((file.path, rows[file.path]) for file in files), *_counts(former)])
    gaps, reached = [], dict(ends)
    for file in sorted((file for file in files if file.place), key=_start):
        assert file.place is not None  # noqa: S101 - filtered above
        partition, first = file.place.partition, file.place.first_offset
        end = reached.get(partition, first)
        if first > end:
            gaps.append(Gap(partition, end, first - 1, file.path))
        reached[partition] = max(first, end) + rows[file.path]
    return tuple(gaps)


def _counts(accounts: Sequence[IngestedFile]) -> list[tuple[str, int]]:
    return [(account.path, account.records + account.bad_rows) for account in accounts]


def _check_overlaps(counts: Sequence[tuple[str, int]]) -> None:
    """Within a folder files follow one another; over several folders they may interleave."""
    ends: dict[tuple[str, str], tuple[int, str]] = {}
    starts: dict[tuple[str, int], str] = {}
    found = ((path, count, CONNECT_NAME.fullmatch(path.rpartition("/")[2])) for path, count in counts)
    told = [(int(match["first"]), path, count, match["partition"]) for path, count, match in found if match is not None]
    for first, path, count, partition in sorted(told):
        folder = path.rpartition("/")[0]
        end, before = ends.get((folder, partition), (first, ""))
        twin = starts.setdefault((partition, first), path)
        if first < end or twin != path:
            other = before if first < end else twin
            what = f"a file has records that are in another one too: {other}"
            step = (
                "a connector wrote them twice: leave one of the files out, or choose --order timestamp and deduplicate"
            )
            raise InputError(what, file=path, partition=int(partition), offset=first, next_step=step)
        ends[folder, partition] = (first + count, path)


def _start(file: SourceFile) -> tuple[int, int]:
    assert file.place is not None  # noqa: S101 - told by the caller
    return file.place.partition, file.place.first_offset
