"""Finds the records by which stream time leaps: those that are stamped long after their archive got them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from statelib.settings.max_future import NEVER_MS
from statelib.topics.future_records import FutureRecord

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from statelib.topics.slices import SourceSlice
    from statelib.topics.version import TopicVersion

_DAY_MS = 86_400_000


def first_leaps(archives: Mapping[str, TopicVersion], slices: Iterable[SourceSlice]) -> tuple[FutureRecord, ...]:
    """Of each partition the first record in its slice that is stamped a day or more later than its archive got it.

    Only files of which the log says that they may hold one are opened, and of them two columns are read.
    """
    return tuple(
        record
        for part in slices
        if (record := next(leaps(archives[part.topic], part.partition, part.start_offset, part.end_offset), None))
    )


def leaps(
    archive: TopicVersion,
    partition: int,
    start_offset: int = 0,
    end_offset: int | None = None,
    *,
    unknown_ms: int | None = None,
) -> Iterator[FutureRecord]:
    """The first record of each file of a partition that is stamped a day or more later than the archive got it.

    Args:
        archive: The topic.
        partition: The partition.
        start_offset: From which offset on.
        end_offset: Before which offset; None: to the end.
        unknown_ms: Stands for when the archive got a file where it does not say; None: nothing is said of such files.
    """
    for file in archive.files(partition, start_offset, end_offset):
        archived_at_ms = archive.archived_at_ms(file) or unknown_ms
        if archived_at_ms is None or (file.max_timestamp_ms or NEVER_MS) <= archived_at_ms + _DAY_MS:
            continue
        first, end = max(file.first_offset, start_offset), file.last_offset + 1
        reader = archive.reader(partition, first, min(end, end_offset or end), columns=["offset", "timestamp"])
        found: FutureRecord | None = None
        for batch in reader:
            times = batch.column("timestamp").cast(pa.int64()).fill_null(-1).to_numpy()
            far = np.flatnonzero(times > archived_at_ms + _DAY_MS)
            if found is None and len(far):
                found = FutureRecord(
                    topic=archive.topic,
                    partition=partition,
                    offset=batch.column("offset")[int(far[0])].as_py(),
                    timestamp_ms=int(times[far[0]]),
                    in_slice=True,
                )
        if found is not None:
            yield found
