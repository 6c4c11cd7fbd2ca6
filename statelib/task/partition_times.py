"""What an extractor gives that sees its partition's time, which what it has given for the records before decides.

The mapper sees many records at once all the same: with times that are assumed, as far as these turn out to be right.
So what it gives is what it would give record by record, whatever comes in one batch: mappers are pure functions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa

from statelib.columns.stream_time import running_stream_time
from statelib.errors.kinds import HindstreamError
from statelib.operators.mappers.fields import NONE, fields_of_mapper
from statelib.records.batch import NO_TIMESTAMP
from statelib.topology.timestamp_extractors import PARTITION_TIME

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from statelib.operators.mappers.mapping import Mapper
    from statelib.task.future_records import FutureLimit


class Extracted(NamedTuple):
    """The timestamps of some records.

    Attributes:
        times: int64 ms; `NO_TIMESTAMP` where there is none.
        skipped: bool: which records are to be dropped and counted; None: none.
        problems: string: why a record cannot be used, null if it can; None: all can.
    """

    times: NDArray[np.int64]
    skipped: NDArray[np.bool_] | None = None
    problems: pa.Array | None = None

    def first(self, count: int) -> Extracted:
        """Those of the first records."""
        skipped = None if self.skipped is None else self.skipped[:count]
        return Extracted(self.times[:count], skipped, None if self.problems is None else self.problems[:count])

    def moving(self, offset: NDArray[np.int64], future: FutureLimit | None) -> NDArray[np.int64]:
        """int64 ms: the timestamps that the time of the partition follows; `NO_TIMESTAMP` for the others."""
        is_left_out = np.zeros(len(self.times), np.bool_) if self.skipped is None else self.skipped.copy()
        if self.problems is not None:
            is_left_out |= np.asarray(self.problems.is_valid())
        if future is not None and (later := future.later(self.times, offset)) is not None:
            is_left_out |= later
        return np.where(is_left_out, NO_TIMESTAMP, self.times)


def sees_partition_time(of: Mapper) -> bool:
    """Whether a mapper looks at `PARTITION_TIME`; of a function nobody can tell, so it does."""
    return fields_of_mapper(of, PARTITION_TIME) != NONE


def extracted_in_turn(
    extract: Callable[[int, NDArray[np.int64]], Extracted],
    offset: NDArray[np.int64],
    partition_time: int,
    future: FutureLimit | None,
) -> Extracted:
    """What an extractor gives if it sees with each record the time of the partition before it.

    It is asked for many records at once, and again for those of them that have seen a wrong time, with the times that
    came of the first answer: mostly that settles all. Where it does not, it is asked for twice as many as the last
    answer has settled. So it is asked for a record a few times, also if each time depends on the one before.

    Args:
        extract: Gives the timestamps of the records from a place on, by the times (int64 ms) that it sees with them.
        offset: int64: of all records.
        partition_time: Before the first of them, ms.
        future: Tells the records that are no part of the partition's time; None: there are none.

    Raises:
        HindstreamError: The extractor fails for a record with the time that it has to see.
    """
    count = len(offset)
    assumed = np.full(count, partition_time)
    settled: list[Extracted] = []
    start, begin, end, is_again = 0, 0, count, False
    while start < count or not settled:
        try:
            given = extract(start, assumed[start:end])
        except HindstreamError:
            if end - start <= 1:
                raise
            end = start + (end - start) // 2  # maybe it fails for a time that it would never see
            continue
        after = running_stream_time(given.moving(offset[start:end], future), partition_time)
        seen = np.concatenate(([partition_time], after[:-1]))[: end - start]
        wrong = np.flatnonzero(seen != assumed[start:end])
        right = int(wrong[0]) if len(wrong) else end - start
        settled.append(given.first(right))
        assumed[start:end] = seen
        start += right
        partition_time = int(after[right - 1]) if right else partition_time
        if start == end:
            begin, end, is_again = start, min(start + 2 * (end - begin), count), False
            assumed[start:] = np.maximum(assumed[start:], partition_time)
            assumed[start : start + 1] = partition_time
        elif is_again:
            end = min(end, start + 2 * right)
        else:
            is_again = True
    return _joined(settled)


def _joined(parts: Sequence[Extracted]) -> Extracted:
    if len(parts) == 1:
        return parts[0]
    problems = [
        pa.nulls(len(part.times), pa.string()) if part.problems is None else part.problems.cast(pa.string())
        for part in parts
    ]
    return Extracted(
        np.concatenate([part.times for part in parts]),
        np.concatenate(
            [np.zeros(len(part.times), np.bool_) if part.skipped is None else part.skipped for part in parts]
        ),
        pa.concat_arrays(problems),
    )
