"""The rows that tell what a load would come to: some of the new files, and the beginning of each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from statelib.ingest.envelopes import placed
from statelib.ingest.formats.estimate import estimated_rows
from statelib.ingest.records import PARTITION
from statelib.ingest.stages import records_in
from statelib.ingest.values.fields import value_at
from statelib.ingest.values.times import read_times

if TYPE_CHECKING:
    from collections.abc import Iterator

    from statelib.ingest.formats.rows import BadRow, Rows
    from statelib.ingest.plan import LoadPlan
    from statelib.ingest.sources.files import SourceFile

MOST_FILES = 8
_MOST_ROWS = 50_000
MOST_SHOWN = 5
"""Of keys and of bad rows."""

_ANCIENT_US = 631_152_000_000_000  # 1990


@dataclass(frozen=True, slots=True)
class TimeProfile:
    """The timestamps of a sample.

    Attributes:
        read_as: In words, how they are read.
        first_ms: The least one; None: there is none.
        last_ms: The largest one.
        missing: Rows without one.
        unreadable: Rows whose timestamp is none that a record can have.
        ancient: Rows of before 1990.
        future: Rows of after now.
        disordered: Rows whose timestamp is less than one before it in the same file.
        most_late_ms: By how much at most.
    """

    read_as: str
    first_ms: int | None
    last_ms: int | None
    missing: int
    unreadable: int
    ancient: int
    future: int
    disordered: int
    most_late_ms: int


class Sample:
    """Rows of some of a load's files.

    Attributes:
        tables: The fields of rows that have a value.
        keys: Of all records.
        places: Their partitions.
        deletions: How many rows have no value.
        unread: How many rows could not be read.
        bad_rows: How many cannot become records, those included.
        bad: The first of these, with their files.
        rows_in_all: How many rows all files have, about.

    Raises:
        InputError: A file cannot be read.
    """

    def __init__(self, plan: LoadPlan, now_ms: int) -> None:
        self._plan = plan
        self._times = _Times(now_ms)
        self._partitions = np.zeros(plan.shape.partitions, np.int64)
        self.tables: list[pa.Table] = []
        self.keys: list[pa.Array] = []
        self.places: list[pa.Array] = []
        self.deletions = self.unread = self.bad_rows = 0
        self.bad: list[tuple[str, BadRow]] = []
        whole: dict[str, int] = {}
        for file in _spread(plan.files):
            rows = sum(self._add(rows, file) for rows in _some(plan, file))
            self._times.end_file()
            if rows < _MOST_ROWS:  # else there may be more
                whole[file.path] = rows
        self.rows_in_all = sum(
            whole[file.path] if file.path in whole else estimated_rows(file, plan.reader.files) for file in plan.files
        )

    @property
    def rows(self) -> int:
        """How many rows could be read."""
        return int(sum(table.num_rows for table in self.tables)) + self.deletions

    @property
    def partition_rows(self) -> list[int]:
        """By partition, how many records of the sample it gets."""
        return [int(count) for count in self._partitions]

    @property
    def times(self) -> TimeProfile:
        """The timestamps of all rows."""
        return self._times.profile(self._plan.timestamps)

    def _add(self, rows: Rows, file: SourceFile) -> int:
        """Takes rows, and gives their number."""
        records, unusable = records_in(self._plan.shape, rows, file)
        self._times.add(rows, self._plan)
        there = rows.columns
        if placed.TOMBSTONE in there.schema.names:
            there = there.filter(pc.invert(there[placed.TOMBSTONE]))
        own = [name for name in there.schema.names if not placed.is_beside(name)]
        self.tables.append(pa.Table.from_batches([there]).select(own))
        self.keys.append(records["key"])
        self.places.append(records[PARTITION])
        self._partitions += np.bincount(records[PARTITION].to_numpy(), minlength=len(self._partitions))
        self.deletions += len(rows.numbers) - there.num_rows
        self.unread += len(rows.bad)
        bad = [*rows.bad, *unusable]
        self.bad_rows += len(bad)
        self.bad += [(file.path, row) for row in bad][: MOST_SHOWN - len(self.bad)]
        return len(rows.numbers) + len(rows.bad)


def _spread(files: tuple[SourceFile, ...]) -> list[SourceFile]:
    if len(files) <= MOST_FILES:
        return list(files)
    return [files[n * (len(files) - 1) // (MOST_FILES - 1)] for n in range(MOST_FILES)]


def _some(plan: LoadPlan, file: SourceFile) -> Iterator[Rows]:
    done = 0
    for rows in plan.reader.rows(file):
        yield rows
        done += len(rows.numbers) + len(rows.bad)
        if done >= _MOST_ROWS:
            return


class _Times:
    """Collects what is to be said of timestamps."""

    def __init__(self, now_ms: int) -> None:
        self._now_us = now_ms * 1000
        self._first: int | None = None
        self._last: int | None = None
        self._counts = dict.fromkeys(("missing", "unreadable", "ancient", "future", "disordered"), 0)
        self._most_late_us = 0
        self._largest = 0

    def add(self, rows: Rows, plan: LoadPlan) -> None:
        given = value_at(rows.columns, plan.shape.timestamp)
        read = read_times(given, plan.shape.time_rule)
        missing = given.is_null().to_numpy(zero_copy_only=False)
        self._counts["missing"] += int(missing.sum())
        self._counts["unreadable"] += int((~read.known & ~missing).sum())
        times = read.microseconds[read.known]
        if not len(times):
            return
        self._counts["ancient"] += int((times < _ANCIENT_US).sum())
        self._counts["future"] += int((times > self._now_us).sum())
        largest = np.maximum.accumulate(np.maximum(times, self._largest))
        late = largest - times
        self._counts["disordered"] += int((late > 0).sum())
        self._most_late_us = max(self._most_late_us, int(late.max()))
        self._largest = int(largest[-1])
        self._first = int(times.min()) if self._first is None else min(self._first, int(times.min()))
        self._last = int(times.max()) if self._last is None else max(self._last, int(times.max()))

    def end_file(self) -> None:
        self._largest = 0

    def profile(self, read_as: str) -> TimeProfile:
        first = None if self._first is None else self._first // 1000
        last = None if self._last is None else self._last // 1000
        return TimeProfile(read_as, first, last, **self._counts, most_late_ms=self._most_late_us // 1000)
