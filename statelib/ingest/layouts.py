"""Files whose names say where their records stand in a topic, and files that belong together.

Kafka Connect's sinks for object stores and HDFS write, for a partition of a topic::

    topics/<topic>/<folders of the partitioner>/<topic>+<partition>+<first offset>.<ext>            values
                                                <topic>+<partition>+<first offset>.keys.<ext>       their keys
                                                <topic>+<partition>+<first offset>.headers.<ext>    their headers
                                                <topic>+<partition>+<first>+<last offset>.<ext>     HDFS: values

Records without a value are in files of keys alone. Aiven's sinks write ``<topic>-<partition>-<first offset>``.

Sources: ``TopicPartitionWriter`` of kafka-connect-storage-cloud, ``FileUtils`` of kafka-connect-hdfs, the README of
Aiven's connectors ("File name format").
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from statelib.errors.counted import counted
from statelib.errors.kinds import ConfigurationError, InputError
from statelib.ingest.source_files import Place

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from statelib.ingest.ledger import IngestedFile
    from statelib.ingest.source_files import SourceFile

_CONNECT = re.compile(
    r"(?P<topic>.+)\+(?P<partition>\d+)\+(?P<first>\d+)(\+(?P<last>\d+))?(\.(?P<part>keys|headers))?\.(?P<ext>[^+]+)"
)
_AIVEN = re.compile(r"(?P<topic>.+)-(?P<partition>\d+)-(?P<first>\d+)(\.[^-]*)?")


def placed_by_connect(files: Sequence[SourceFile]) -> list[SourceFile] | None:
    """The files of Kafka Connect with their places, keys and headers; None: others are among them.

    Raises:
        ConfigurationError: They are of several topics.
    """
    matches = [(file, _CONNECT.fullmatch(file.name)) for file in files]
    if not files or not all(match for _, match in matches):
        return None
    _check_one_topic({match["topic"] for _, match in matches if match})
    groups: dict[tuple[str, str], dict[str, SourceFile]] = {}
    for file, match in matches:
        assert match is not None  # noqa: S101 - looked at above
        stem = f"{match['topic']}+{match['partition']}+{match['first']}+{match['last']}"
        groups.setdefault((file.path.rpartition("/")[0], stem), {})[match["part"] or "values"] = file
    placed = []
    for parts in groups.values():
        main = parts.get("values") or parts.get("keys") or parts["headers"]
        match = _CONNECT.fullmatch(main.name)
        assert match is not None  # noqa: S101 - looked at above
        place = Place(
            partition=int(match["partition"]),
            first_offset=int(match["first"]),
            keys=parts.get("keys"),
            headers=parts.get("headers"),
            is_tombstones="values" not in parts,
        )
        placed.append(replace(main, place=place))
    return sorted(placed, key=lambda file: file.path)


def placed_by_aiven(files: Sequence[SourceFile]) -> list[SourceFile] | None:
    """The files of Aiven's connectors with their places; None: others are among them.

    Raises:
        ConfigurationError: They are of several topics.
    """
    matches = [(file, _AIVEN.fullmatch(file.name)) for file in files]
    if not files or not all(match for _, match in matches):
        return None
    _check_one_topic({match["topic"] for _, match in matches if match})
    return [
        replace(file, place=Place(int(match["partition"]), int(match["first"]))) for file, match in matches if match
    ]


def _check_one_topic(topics: Iterable[str]) -> None:
    found = sorted(topics)
    if len(found) > 1:
        what = f"the files are of {counted(len(found), 'topic')}: {', '.join(found[:5])}"
        step = "load each topic by itself: name its folder"
        raise ConfigurationError(what, next_step=step)


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
    found = ((path, count, _CONNECT.fullmatch(path.rpartition("/")[2])) for path, count in counts)
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
