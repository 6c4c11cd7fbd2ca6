"""Cuts topics into slices: what one run replays.

A slice that ends at time T holds, of each partition, the records before its first record with timestamp >= T, in offset
order. So where the largest timestamp so far is below T: a prefix of the order in which a task takes up records, which
orders by just that. A late record belongs to the slice in which it arrived. Consecutive cuts never overlap, never leave
anything out, and however many there are, together they are the topic.

Files are looked at in the Delta log only; of each partition at most the file in which the cut lies is opened, and of
it two columns are read.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np
import pyarrow as pa

from statelib.counted import counted
from statelib.errors import ConfigurationError, InputError
from statelib.storage.transfers import in_parallel
from statelib.topics.interleaved import groups_in_order

if TYPE_CHECKING:
    from collections.abc import Mapping

    from statelib.topics.archive import TopicArchive
    from statelib.topics.files import ArchiveFile

OnLost = Literal["refuse", "accept"]


@dataclass(frozen=True, slots=True)
class SourceSlice:
    """The records of one partition with offsets from ``start_offset`` (inclusive) to ``end_offset`` (exclusive).

    ``records`` is their exact number; offsets may have holes.
    """

    topic: str
    partition: int
    start_offset: int
    end_offset: int
    records: int


def plan_slice(
    archive: TopicArchive,
    start_offsets: Mapping[int, int] | None = None,
    *,
    until_ms: int | None = None,
    end_offsets: Mapping[int, int] | None = None,
    on_lost: OnLost = "refuse",
) -> list[SourceSlice]:
    """The next slice of a topic.

    Args:
        archive: The topic.
        start_offsets: By partition, the offset at which the slice before ended; None: there was none, start at the
            first offset that the archive holds.
        until_ms: End before the first record with this timestamp or a later one.
        end_offsets: End before these offsets, by partition. With neither: at the end of the archive.
        on_lost: What to do if the archive does not go back to ``start_offsets`` any more: ``refuse``, or ``accept``
            the loss and start at the first offset that it holds.

    Returns:
        One slice a partition, by partition; a partition without new records has an empty one.

    Raises:
        ConfigurationError: The number of partitions has changed, or ``end_offsets`` lie outside of what there is.
        InputError: The archive lacks offsets that the job needs, or has shrunk; a file of it is damaged.
    """
    if until_ms is not None and end_offsets is not None:
        raise ConfigurationError("a slice ends either at a time or at offsets", setting="until_ms, end_offsets")
    starts = _starts(archive, start_offsets, on_lost)
    if until_ms is not None:
        ends = {p: max(starts[p], end) for p, end in cut_at(archive, until_ms).items()}
    elif end_offsets is not None:
        ends = _checked_ends(archive, starts, end_offsets)
    else:
        ends = {p: max(starts[p], end) for p, (_, end) in archive.spans().items()}
    return [
        SourceSlice(archive.topic, p, starts[p], ends[p], _count(archive, p, starts[p], ends[p]))
        for p in range(archive.partitions)
    ]


def cut_at(archive: TopicArchive, until_ms: int) -> dict[int, int]:
    """By partition, the offset of the first record with timestamp >= ``until_ms``; without one, the end offset.

    Raises:
        InputError: A file of the archive is damaged.
    """
    spans = archive.spans()
    cut = in_parallel(
        lambda partition: _cut_partition(archive, partition, until_ms, spans[partition][1]),
        list(spans),
        archive.storage.requests_at_once,
    )
    return dict(zip(spans, cut, strict=True))


def _cut_partition(archive: TopicArchive, partition: int, until_ms: int, end_offset: int) -> int:
    for file in archive.files_reaching(partition, until_ms):
        offset = _first_at_or_after(archive, file, until_ms)
        if offset is not None:
            return offset
    return end_offset


def _first_at_or_after(archive: TopicArchive, file: ArchiveFile, until_ms: int) -> int | None:
    """The offset of the file's first record with timestamp >= ``until_ms``; a record without timestamp is none."""
    columns = ["offset", "timestamp"]
    found: int | None = None
    for batch in archive.reader(file.partition, file.first_offset, file.last_offset + 1, columns=columns):
        timestamps = batch.column("timestamp").cast(pa.int64()).fill_null(np.iinfo(np.int64).min).to_numpy()
        reached = timestamps >= until_ms
        if found is None and reached.any():
            found = int(batch.column("offset")[int(reached.argmax())].as_py())
    return found  # not before the end: only there it is known that no page was left out


def _starts(archive: TopicArchive, given: Mapping[int, int] | None, on_lost: OnLost) -> dict[int, int]:
    """Where the slice starts, after checking that the archive still has what comes then."""
    spans = archive.spans()
    first, end = ({partition: span[n] for partition, span in spans.items()} for n in (0, 1))
    if given is None:
        return first
    if sorted(given) != list(range(archive.partitions)):
        what = f"the topic has {counted(archive.partitions, 'partition')} now, the job has positions in {len(given)}"
        step = "replay the topic with a new job, or archive it with the number of partitions that the job knows"
        raise ConfigurationError(what, topic=archive.topic, next_step=step)
    starts = {}
    for partition, start in sorted(given.items()):
        if start > end[partition]:
            what = f"the topic archive ends at offset {end[partition]}, but the job has replayed up to {start}"
            step = (
                f"restore the archive's former version: hindstream topic {archive.topic}; or replay what it holds with"
                " a new job (docs/runbooks/damaged-data.md)"
            )
            raise InputError(what, topic=archive.topic, partition=partition, file=archive.uri, next_step=step)
        is_lost = start < first[partition] and first[partition] > archive.cleaned_offset(partition)
        if is_lost and on_lost == "refuse":
            what = f"the job needs offset {start}, but the topic archive starts at {first[partition]}"
            step = "archive what is missing, replay with a new job, or accept the loss"
            raise InputError(what, topic=archive.topic, partition=partition, file=archive.uri, next_step=step)
        starts[partition] = max(start, first[partition])
    return starts


def _checked_ends(archive: TopicArchive, starts: Mapping[int, int], ends: Mapping[int, int]) -> dict[int, int]:
    last = {partition: end for partition, (_, end) in archive.spans().items()}
    if sorted(ends) != list(range(archive.partitions)):
        what = (
            f"a slice that ends at offsets needs one for each of the topic's {counted(archive.partitions, 'partition')}"
        )
        raise ConfigurationError(what, topic=archive.topic, setting="end_offsets")
    for partition, end in ends.items():
        if not starts[partition] <= end <= max(last[partition], starts[partition]):
            what = f"a slice cannot end at offset {end}: it may end from {starts[partition]} to {last[partition]}"
            raise ConfigurationError(what, topic=archive.topic, partition=partition, setting="end_offsets")
    return dict(ends)


def _count(archive: TopicArchive, partition: int, start: int, end: int) -> int:
    """The number of records from ``start`` to before ``end``."""
    if start >= end:
        return 0
    records = 0
    files = archive.files(partition, start, end)
    if len(groups_in_order(files)) < len(files):
        return sum(batch.num_rows for batch in archive.reader(partition, start, end, columns=["offset"]))
    for file in files:
        first, last = max(file.first_offset, start), min(file.last_offset, end - 1)
        if (first, last) == (file.first_offset, file.last_offset):
            records += file.rows
        elif file.is_dense:
            records += last - first + 1
        else:
            reader = archive.reader(partition, first, last + 1, columns=["offset"])
            records += sum(batch.num_rows for batch in reader)
    return records
