"""Cuts topics into slices: what one run replays.

A slice that ends at time T holds, of each partition, the records before its first record with timestamp >= T, in offset
order. So where the largest timestamp so far is below T: a prefix of the order in which a task takes up records, which
orders by just that. A late record belongs to the slice in which it arrived. Consecutive cuts never overlap, never leave
anything out, and however many there are, together they are the topic.

A record from the future (`statelib.topics.future_records`) ends no slice, where such records are told apart; nor does
one whose timestamp no topic can hold, which former versions let in: whoever takes it up cannot use it.

Files are looked at in the Delta log only; of each partition at most the file in which the cut lies is opened, and of
it two columns are read.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple

import pyarrow as pa

from statelib.columns.times import LAST_TIME_MS
from statelib.errors.counted import counted
from statelib.errors.kinds import ConfigurationError, InputError
from statelib.settings.max_future import NEVER_MS
from statelib.storage.transfers import in_parallel
from statelib.topics.future_records import FutureRecord
from statelib.topics.parquet.interleaved import groups_in_order

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from statelib.topics.archive import TopicArchive
    from statelib.topics.files import ArchiveFile

OnLost = Literal["refuse", "accept"]

_FAR_MS = 86_400_000
"""A record that is so much later than the slice's end, and that older ones wait behind, is told of at once."""


@dataclass(frozen=True, slots=True)
class SourceSlice:
    """The records of one partition with offsets from ``start_offset`` (inclusive) to ``end_offset`` (exclusive).

    ``records`` is their exact number; offsets may have holes. ``stopped_by`` is a record from the future at which the
    slice ends too early: see `FutureRecord`.
    """

    topic: str
    partition: int
    start_offset: int
    end_offset: int
    records: int
    stopped_by: FutureRecord | None = None


class _Cut(NamedTuple):
    """The offset before which a slice ends.

    ``timestamp_ms`` is that of the record there, None if there is none; ``is_followed``: whether records with
    timestamps before the slice's end are known to come behind it.
    """

    offset: int
    timestamp_ms: int | None = None
    is_followed: bool = False


def plan_slice(
    archive: TopicArchive,
    start_offsets: Mapping[int, int] | None = None,
    *,
    until_ms: int | None = None,
    end_offsets: Mapping[int, int] | None = None,
    on_lost: OnLost = "refuse",
    latest_of: Callable[[ArchiveFile], int] | None = None,
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
        latest_of: The latest timestamp, ms, of a file's records that is not from the future; None: none is.

    Returns:
        One slice a partition, by partition; a partition without new records has an empty one.

    Raises:
        ConfigurationError: The number of partitions has changed, or ``end_offsets`` lie outside of what there is.
        InputError: The archive lacks offsets that the job needs, or has shrunk; a file of it is damaged.
    """
    if until_ms is not None and end_offsets is not None:
        raise ConfigurationError("a slice ends either at a time or at offsets", setting="until_ms, end_offsets")
    starts = starting_offsets(archive, start_offsets, on_lost)
    stopped: dict[int, FutureRecord | None] = {}
    if until_ms is not None:
        cuts = _cuts(archive, until_ms, latest_of)
        ends = {p: max(starts[p], cut.offset) for p, cut in cuts.items()}
        stopped = {p: _stopped_by(archive.topic, p, starts[p], cut, until_ms) for p, cut in cuts.items()}
    elif end_offsets is not None:
        ends = _checked_ends(archive, starts, end_offsets)
    else:
        ends = {p: max(starts[p], end) for p, (_, end) in archive.spans().items()}
    return [
        SourceSlice(archive.topic, p, starts[p], ends[p], count_records(archive, p, starts[p], ends[p]), stopped.get(p))
        for p in range(archive.partitions)
    ]


def _cuts(archive: TopicArchive, until_ms: int, latest_of: Callable[[ArchiveFile], int] | None) -> dict[int, _Cut]:
    spans = archive.spans()
    cuts = in_parallel(
        lambda partition: _cut_partition(archive, partition, until_ms, latest_of) or _Cut(spans[partition][1]),
        list(spans),
        archive.storage.requests_at_once,
    )
    return dict(zip(spans, cuts, strict=True))


def _cut_partition(
    archive: TopicArchive, partition: int, until_ms: int, latest_of: Callable[[ArchiveFile], int] | None
) -> _Cut | None:
    """Where a partition has its first record with timestamp >= ``until_ms`` that is not from the future, if it has."""
    for file in archive.files_reaching(partition, until_ms):
        latest_ms = LAST_TIME_MS if latest_of is None else min(latest_of(file), LAST_TIME_MS)
        found = _first_at_or_after(archive, file, until_ms, latest_ms) if latest_ms >= until_ms else None
        if found is not None:
            return found
    return None


def _first_at_or_after(archive: TopicArchive, file: ArchiveFile, until_ms: int, latest_ms: int) -> _Cut | None:
    """The file's first record with a timestamp from ``until_ms`` to ``latest_ms``; one without timestamp is none."""
    columns = ["offset", "timestamp"]
    found: _Cut | None = None
    for batch in archive.reader(file.partition, file.first_offset, file.last_offset + 1, columns=columns):
        column = batch.column("timestamp").cast(pa.int64())
        timestamps = column.fill_null(NEVER_MS).to_numpy()
        behind = timestamps
        if found is None:
            reached = (
                (timestamps >= until_ms) & (timestamps <= latest_ms) & column.is_valid().to_numpy(zero_copy_only=False)
            )
            if not reached.any():
                continue
            at = int(reached.argmax())
            found = _Cut(int(batch.column("offset")[at].as_py()), int(timestamps[at]))
            behind = timestamps[at:]
        if not found.is_followed and behind.min(initial=NEVER_MS) < until_ms:
            found = found._replace(is_followed=True)
    # Not before the end: only there it is known that no page was left out.
    if found is None or found.is_followed:
        return found
    return found._replace(is_followed=archive.holds_before(file.partition, file.last_offset + 1, until_ms))


def _stopped_by(topic: str, partition: int, start_offset: int, cut: _Cut, until_ms: int) -> FutureRecord | None:
    """The record at which the slice ends, if older ones wait behind it for longer than such as are merely late.

    That is so where it is far from the end of the slice, and where the slice has nothing of the partition at all.
    """
    if cut.timestamp_ms is None or not cut.is_followed or cut.offset < start_offset:
        return None
    if cut.timestamp_ms < until_ms + _FAR_MS and cut.offset > start_offset:
        return None
    return FutureRecord(
        topic=topic, partition=partition, offset=cut.offset, timestamp_ms=cut.timestamp_ms, in_slice=False
    )


def starting_offsets(
    archive: TopicArchive, given: Mapping[int, int] | None, on_lost: OnLost = "refuse"
) -> dict[int, int]:
    """Where a slice starts, after checking that the archive still has what comes then.

    Args:
        archive: Of the topic.
        given: By partition, the offsets to go on from; None: all that the archive has.
        on_lost: What if it no longer has them: see `plan_slice`.

    Raises:
        ConfigurationError: The number of partitions has changed.
        InputError: The archive lacks offsets that the job needs, or has shrunk.
    """
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


def count_records(archive: TopicArchive, partition: int, start: int, end: int) -> int:
    """The number of a partition's records with offsets from ``start`` to before ``end``."""
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
