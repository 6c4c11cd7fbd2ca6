"""The offsets of records whose files tell only the first one of each file.

A connector's partitioner may spread neighbouring records of a partition over several folders, by a field or by time.
Then files interleave: one begins at an offset that lies within another. What is certain is the order within a file, and
the offset at which each begins. So offsets are given one after the other; at one where a file begins comes its first
record, and elsewhere, of the records that are next in their files, the one with the least timestamp. Where no record is
left before the next file begins there is a gap.

The row of a file is at least as far as its number says: ``first + row`` is the least offset that it can have. Records
come in the order of that number (``order``), so whatever can have an offset has come when it is given.
"""

from __future__ import annotations

import heapq
from collections import deque
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from statelib.ingest.records import FIRST, ORDER

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from numpy.typing import NDArray


class Sequencer:
    """Gives records of one partition their offsets.

    Args:
        next_offset: The least that may be given.
    """

    def __init__(self, next_offset: int) -> None:
        self._next = next_offset
        self._waiting: pa.Table | None = None

    def sequence(self, batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[pa.RecordBatch, NDArray[np.int64]]]:
        """The records in their order, and int64: their offsets.

        Args:
            batches: Records in the order of ``order``, with ``first``: the offset at which their file begins.
        """
        for batch in batches:
            least = batch[ORDER].to_numpy(zero_copy_only=False)
            if self._waiting is not None and self._next + self._waiting.num_rows <= least[0]:
                yield from self._mixed(None, is_last=True)
            if self._waiting is None and least[0] >= self._next and bool((np.diff(least) > 0).all()):
                if len(batch) > 1:
                    yield batch.slice(0, len(batch) - 1), least[:-1]
                self._next = int(least[-1])  # another file may begin where the last one is
                self._waiting = pa.Table.from_batches([batch.slice(len(batch) - 1)])
                continue
            yield from self._mixed(pa.Table.from_batches([batch]), is_last=False)
        yield from self._mixed(None, is_last=True)

    def _mixed(self, more: pa.Table | None, *, is_last: bool) -> Iterator[tuple[pa.RecordBatch, NDArray[np.int64]]]:
        parts = [part for part in (self._waiting, more) if part is not None]
        if not parts:
            return
        records = pa.concat_tables(parts, promote_options="default").combine_chunks()
        rows, offsets, left = self._arranged(records, is_last=is_last)
        self._waiting = records.take(pa.array(left)).combine_chunks() if left else None
        if rows:
            taken = records.take(pa.array(rows)).combine_chunks().to_batches()[0]
            yield taken, np.array(offsets, np.int64)

    def _arranged(self, records: pa.Table, *, is_last: bool) -> tuple[list[int], list[int], list[int]]:
        """Which rows come now and with which offsets, and which have to wait for more."""
        least: list[int] = records[ORDER].to_pylist()
        first: list[int] = records[FIRST].to_pylist()
        times: list[int] = records["timestamp"].fill_null(0).to_pylist()
        files: dict[int, deque[int]] = {}
        heads: list[tuple[bool, int, int, int]] = []  # not where its file begins; time, file, row
        rows: list[int] = []
        offsets: list[int] = []

        def give() -> None:
            file, row = heapq.heappop(heads)[2:]
            rows.append(row)
            offsets.append(self._next)
            self._next += 1
            queue = files[file]
            queue.popleft()
            if queue:
                heapq.heappush(heads, (True, times[queue[0]], file, queue[0]))
            else:
                del files[file]

        for row, at in enumerate(least):
            while heads and self._next < at:
                give()
            self._next = max(self._next, at) if not heads else self._next
            file = first[row]
            if file in files:
                files[file].append(row)
            else:
                files[file] = deque([row])
                heapq.heappush(heads, (at != file, times[row], file, row))
        while is_last and heads:
            give()
        return rows, offsets, sorted(row for queue in files.values() for row in queue)
