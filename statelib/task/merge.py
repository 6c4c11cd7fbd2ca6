"""The order in which a task takes up the records of its sources.

Kafka Streams takes the record with the lowest timestamp among the heads of its partitions. Over data at rest that is
one stable sort by (order time, source, position in the source), where the order time of a record is the running
maximum of its partition's timestamps: a late record is taken up directly after the one that it arrived behind.

Sources are read in chunks. What may be passed on after each chunk is what certainly comes before everything unread:
the rows up to the smallest order time with which a source's read part ends, those at it only of that source and of the
ones before it. So the order does not depend on the chunks, and a chunk is never joined with the next.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from statelib.columns.merge_ranks import merge_ranks, put_at
from statelib.columns.stream_time import running_stream_time
from statelib.records.batch import NO_TIMESTAMP, Uptake
from statelib.task.source_records import Records, concat

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from numpy.typing import NDArray

    from statelib.topology import Source


@dataclass(frozen=True, slots=True)
class Merged:
    """A run of the merged order: some rows of each source, and the place of each of them.

    Attributes:
        parts: One `Records` a source (possibly of no rows; None if the source has shown no row at all yet).
        rank: For each source int64: the places of its rows in this run, ascending. Together they are 0 to n-1.
    """

    parts: tuple[Records | None, ...]
    rank: tuple[NDArray[np.int64], ...]

    def __len__(self) -> int:
        return sum(len(ranks) for ranks in self.rank)

    def column(self, of: Callable[[int, Records], NDArray[np.int64]]) -> NDArray[np.int64]:
        """What rows have, int64, by their place; ``of`` gives it for the rows of a source, with its index."""
        filled = [(of(index, part), rank) for index, part, rank in self._filled]
        if len(filled) == 1:  # ranks are the places themselves
            return filled[0][0]
        column = np.empty(len(self), np.int64)
        for values, rank in filled:
            put_at(values, rank, column)
        return column

    @property
    def source(self) -> NDArray[np.int16]:
        """int16, by place: the index of the source that the row is of."""
        by_length = sorted(self._filled, key=lambda filled: -len(filled[1]))
        column = np.full(len(self), by_length[0][0] if by_length else 0, np.int16)
        for index, _, rank in by_length[1:]:
            column[rank] = index
        return column

    @property
    def _filled(self) -> list[tuple[int, Records, NDArray[np.int64]]]:
        """The sources that have rows here: index, rows and ranks."""
        parts = enumerate(zip(self.parts, self.rank, strict=True))
        return [(index, part, rank) for index, (part, rank) in parts if part is not None and len(part)]

    def order_time_of(self, places: NDArray[np.int64]) -> NDArray[np.int64]:
        """int64: the order times of ``places`` (int64), which ascend as they do."""
        return self.column(lambda _, part: part.order_time)[places]

    @property
    def last_order_time(self) -> int:
        """That of the last place."""
        return max(int(part.order_time[-1]) for part in self.parts if part is not None and len(part))

    def cut(self, count: int) -> tuple[Merged, Merged]:
        """The first ``count`` places, and the others."""
        at = [int(np.searchsorted(rank, count)) for rank in self.rank]
        parts = list(zip(self.parts, self.rank, at, strict=True))
        first = (None if part is None else part.slice(0, n) for part, _, n in parts)
        others = (None if part is None else part.slice(n, len(part)) for part, _, n in parts)
        return (
            Merged(tuple(first), tuple(rank[:n] for _, rank, n in parts)),
            Merged(tuple(others), tuple(rank[n:] - count for _, rank, n in parts)),
        )


class _Source:
    """A source's chunks, read ahead just as far as the merge needs."""

    def __init__(self, chunks: Iterable[Records]) -> None:
        self._chunks = iter(chunks)
        self.pending: Records | None = None
        self.finished = False

    def extend(self) -> None:
        """Reads one more chunk that has rows, in the place of what was pending and is taken, or finishes."""
        self.pending = next((chunk for chunk in self._chunks if len(chunk)), self.pending)
        self.finished = self.pending is None or len(self.pending) == 0

    def cut(self, until: int | None, side: Literal["left", "right"]) -> Records | None:
        """Takes away the pending rows with an order time below ``until`` (None: all), or also ("right") at it."""
        if self.pending is None:
            return None
        order_time = self.pending.order_time
        count = len(order_time) if until is None else int(np.searchsorted(order_time, until, side))
        taken = self.pending.slice(0, count)
        self.pending = self.pending.slice(count, len(order_time))
        return taken


def merge(sources: Sequence[Iterable[Records]]) -> Iterator[Merged]:
    """Merges ``sources``; of equal order times the earlier source in the list comes first."""
    readers = [_Source(chunks) for chunks in sources]
    while True:
        for reader in readers:
            if not reader.finished and (reader.pending is None or not len(reader.pending)):
                reader.extend()
        unread = [
            (int(reader.pending.order_time[-1]), index)
            for index, reader in enumerate(readers)
            if not reader.finished and reader.pending is not None
        ]
        # What is unread comes behind this time, or at it; there behind all of this source and of those before it.
        until, first = min(unread, default=(None, 0))
        parts = tuple(reader.cut(until, "right" if index <= first else "left") for index, reader in enumerate(readers))
        if not any(part is not None and len(part) for part in parts):
            return
        yield Merged(parts, _ranks(parts))


def merged_records(sources: Sequence[Iterable[Records]]) -> Iterator[Records]:
    """The merged rows themselves, for sources that are parts of one topic (the upstream files of a repartition)."""
    for merged in merge(sources):
        filled = [part for part in merged.parts if part is not None and len(part)]
        ranks = np.concatenate([rank for rank in merged.rank if len(rank)])
        yield filled[0] if len(filled) == 1 else concat(filled).take(np.argsort(ranks, kind="stable"))


def _ranks(parts: Sequence[Records | None]) -> tuple[NDArray[np.int64], ...]:
    nothing = np.empty(0, np.int64)
    return tuple(merge_ranks([nothing if part is None else part.order_time for part in parts]))


@dataclass(slots=True)
class TaskClock:
    """Numbers the records that a task takes up and keeps its stream time.

    Attributes:
        stream_time: The largest timestamp so far.
        timeless: The sources that do not move it: those of global tables.
        is_order_time: Whether order times are the running maxima of the timestamps of all sources: of topics, all of
            which move it. As they ascend, none of them is below the timestamps that were taken up before.
        next_sequence: The number of the next record.
    """

    stream_time: int
    timeless: frozenset[int] = frozenset()
    is_order_time: bool = False
    next_sequence: int = 0

    @classmethod
    def of(cls, sources: Sequence[Source], stream_time: int = NO_TIMESTAMP) -> TaskClock:
        """The clock of a task that takes up ``sources`` and has come to ``stream_time``."""
        timeless = frozenset(index for index, source in enumerate(sources) if source.is_global)
        return cls(stream_time, timeless, not timeless and not any(source.internal for source in sources))

    def uptake(self, merged: Merged, partition: int) -> Uptake:
        """What the task knows at each record of ``merged``; moves the clock behind them."""
        count = len(merged)
        offset = merged.column(lambda _, part: part.offset)
        stream_time = self._running(merged)
        first = self.next_sequence
        self.next_sequence += count
        self.stream_time = int(stream_time[-1]) if count else self.stream_time
        return Uptake(first, stream_time, merged.source, np.full(count, partition, np.int32), offset)

    def _running(self, merged: Merged) -> NDArray[np.int64]:
        """int64: the stream time at each record of ``merged``."""
        if self.is_order_time:
            order_time = merged.column(lambda _, part: part.order_time)
            return np.maximum(order_time, self.stream_time)  # a topic may begin behind what others have come to

        def timestamp_of(index: int, part: Records) -> NDArray[np.int64]:
            return np.full(len(part), NO_TIMESTAMP) if index in self.timeless else part.timestamp

        return running_stream_time(merged.column(timestamp_of), self.stream_time)
