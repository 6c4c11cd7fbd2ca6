"""Which rows of two sides differ: `statelib.comparison.matches.unmatched`, spread over Spark's tasks."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import numpy as np
from pyspark import StorageLevel

from hindstream.spark.session.session import spark_context
from hindstream.spark.tasks.works import TaskErrors, run_action
from statelib.comparison.buckets import Buckets, HashedRows, bits_for
from statelib.comparison.matches import KeyFilter, hashing_of, joined, keys_of_one_side, matched, rows_to_read
from statelib.comparison.sides import placed_batches

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from numpy.typing import NDArray
    from pyspark import RDD, Broadcast, SparkContext

    from statelib.comparison.fields import Fields
    from statelib.comparison.matches import Hashing, Matcher, Resources, Unmatched, Way
    from statelib.comparison.sides import Side, Stretch
    from statelib.comparison.times import Interval
    from statelib.settings.settings import Settings

_CHUNK_ROWS = 1 << 20
_PART_ROWS = 1 << 22
_TASK_BUDGET_BYTES = 256 * 2**20

_Result = TypeVar("_Result")

_Slice = tuple[int, int, HashedRows]
"""A side (0 or 1), the number of a chunk, and those of its rows that belong to a part."""


@dataclass(frozen=True, slots=True)
class _Chunk:
    """Rows of a stretch, for one task.

    Attributes:
        side: 0 or 1; of shared rows any.
        number: Chunks with higher numbers have later rows.
        stretch: Where they are.
        start: The index of the first row.
        end: The index behind the last one.
    """

    side: int
    number: int
    stretch: Stretch
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class _Split:
    """Reads a chunk and gives its rows by the part that they belong to; runs in a worker.

    Attributes:
        hashing: How rows become hashes.
        bits: There are ``1 << bits`` parts.
        errors: What goes wrong.
        shared: Only rows with one of these keys, for both sides; None: the chunk's rows are those of its side.
    """

    hashing: Hashing
    bits: int
    errors: TaskErrors
    shared: Broadcast[KeyFilter] | None = None

    def __call__(self, chunk: _Chunk) -> Iterator[tuple[int, _Slice]]:
        with (
            self.errors.told(),
            tempfile.TemporaryDirectory() as scratch,
            Buckets(self.bits, Path(scratch) / "rows", _TASK_BUDGET_BYTES) as parts,
        ):
            for place, batch in placed_batches(chunk.stretch, chunk.start, chunk.end):
                rows = self.hashing.rows(place, batch, shared=self.shared is not None)
                parts.add(rows if self.shared is None else self.shared.value.of(rows))
            for number in range(parts.count) if parts.rows else ():
                rows = parts.bucket(number)
                for side in (chunk.side,) if self.shared is None else (0, 1):
                    if len(rows.keys):
                        yield number, (side, chunk.number, rows)


@dataclass(frozen=True, slots=True)
class _Part:
    """Brings the rows of a part together; runs in a worker.

    Attributes:
        way: How rows are compared.
        part_bits: There are ``1 << part_bits`` parts.
        bits: There are ``1 << bits`` buckets; a part has those whose numbers begin with its own.
    """

    way: Way
    part_bits: int
    bits: int

    def match(self, part: int, slices: Iterable[tuple[int, _Slice]]) -> Iterator[Unmatched]:
        """The rows that differ."""
        yield self._of_both(part, slices, lambda a, b, numbers: matched(a, b, self.way, numbers))

    def keys_of_one_side(self, part: int, slices: Iterable[tuple[int, _Slice]]) -> Iterator[NDArray[np.uint64]]:
        """The hashes of keys that only one side has."""

        def found(a: Buckets, b: Buckets, numbers: range) -> NDArray[np.uint64]:
            return np.concatenate([keys_of_one_side(a.bucket(number), b.bucket(number)) for number in numbers])

        yield self._of_both(part, slices, found)

    def _of_both(
        self,
        part: int,
        slices: Iterable[tuple[int, _Slice]],
        do: Callable[[Buckets, Buckets, range], _Result],
    ) -> _Result:
        more = self.bits - self.part_bits
        with (
            tempfile.TemporaryDirectory() as scratch,
            Buckets(self.bits, Path(scratch) / "a", _TASK_BUDGET_BYTES) as a,
            Buckets(self.bits, Path(scratch) / "b", _TASK_BUDGET_BYTES) as b,
        ):
            for _, (side, _, rows) in sorted(slices, key=lambda each: each[1][:2]):
                (a, b)[side].add(rows)
            return do(a, b, range(part << more, (part + 1) << more))


def matcher_on_spark(settings: Settings) -> Matcher:
    """A matcher for `Resources`, which starts Spark when it is asked for the first time."""

    def match(a: Side, b: Side, fields: Fields, way: Way, resources: Resources, within: Interval) -> Unmatched:
        return unmatched_on_spark(spark_context(settings), a, b, fields, way, resources, within)

    return match


def unmatched_on_spark(
    context: SparkContext,
    a: Side,
    b: Side,
    fields: Fields,
    way: Way,
    resources: Resources,
    within: Interval,
    *,
    chunk_rows: int = _CHUNK_ROWS,
    part_rows: int = _PART_ROWS,
) -> Unmatched:
    """What `statelib.comparison.matches.unmatched` gives, of sides that know how many rows they have.

    Args:
        context: Spark's.
        a: See there.
        b: See there.
        fields: See there.
        way: See there.
        resources: See there; a task has memory of its own for its rows.
        within: See there.
        chunk_rows: How many rows a task reads.
        part_rows: About how many rows of both sides are matched by a task.

    Raises:
        InputError: A record cannot be read.
        RetryableError: Spark has given up.
    """
    errors = TaskErrors(context)
    rows = rows_to_read(a, b)
    part_bits = bits_for(rows, part_rows)
    hashing = hashing_of(a, b, fields, way, within)
    part = _Part(way, part_bits, max(part_bits, bits_for(rows, resources.rows_a_bucket)))
    own = [
        chunk for number, side in enumerate((a, b)) for chunk in _chunks(side.own, number, chunk_rows)
    ]  # fmt: skip

    def read(chunks: Sequence[_Chunk], shared: Broadcast[KeyFilter] | None = None) -> RDD[tuple[int, _Slice]]:
        split = _Split(hashing, part_bits, errors, shared)
        return context.parallelize(chunks, max(len(chunks), 1)).flatMap(split)

    def by_part(
        split: RDD[tuple[int, _Slice]], do: Callable[[int, Iterable[tuple[int, _Slice]]], Iterator[_Result]]
    ) -> list[_Result]:
        together = split.partitionBy(1 << part_bits, lambda number: number).mapPartitionsWithIndex(do)
        return run_action(context, together.collect, errors, name="comparing records", tasks=None, place={})

    split = read(own)
    if way == "set" or not a.shared:
        return joined(by_part(split, part.match))
    split.persist(StorageLevel.DISK_ONLY)
    try:
        wanted = KeyFilter.for_rows(rows)
        for keys in by_part(split, part.keys_of_one_side):
            wanted.add(keys)
        if wanted:
            split = split.union(read(list(_chunks(a.shared, 0, chunk_rows)), context.broadcast(wanted)))
        return joined(by_part(split, part.match))
    finally:
        split.unpersist()


def _chunks(stretches: Iterable[Stretch], side: int, rows: int) -> Iterator[_Chunk]:
    number = 0
    for stretch in stretches:
        for start in range(stretch.start, stretch.end or stretch.start, rows):
            yield _Chunk(side, number, stretch, start, min(start + rows, stretch.end or start))
            number += 1
