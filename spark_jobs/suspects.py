"""Finds the rows of staged files that a `Screen` lets through: one pass over the files, on Spark.

As in a replay, Spark's rows describe files, and each task reads those of one partition with pyarrow. For uniqueness a
task makes a 64-bit hash of each row's values. Rows that differ in their partition cannot agree; for all other columns
equal hashes meet in one task after Spark's shuffle::

    files ──scan──> rows that may fail by themselves ───────────────────────────────────────────┐
                ├─> hashes that are there twice in the partition ───────────────────────────────┤
                └─> hashes by check and bucket ──partitionBy──> hashes that are there twice ────┴─> suspects

Hardly any run has hashes that are there twice; where there are, a second pass fetches their rows.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field, replace
from enum import Enum
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from pyspark.errors import PySparkException

from py4j.protocol import Py4JError  # isort: skip

from spark_jobs.frames import flat_schema, read_flat
from spark_jobs.stage import spark_error
from statelib.errors import CorruptedDataError
from statelib.row_hash import hash_rows

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray
    from pyspark.sql import SparkSession

    from spark_jobs.screen import Screen
    from statelib.storage import Storage
    from statelib.topics.files import ArchiveFile

MOST_SUSPECTS = 10_000
"""Where a screen lets more rows through than this, something is wrong with the data or the checks at large."""

_ROWS_OF_A_BUCKET = 4_000_000


class _Kind(Enum):
    """Of what a task gives: a value, and the number of the check that it is about."""

    ROWS = "flat rows that may fail"
    HASHES = "hashes that may be in other partitions too"
    REPEATED = "hashes that are there twice"
    ERROR = "what is wrong with a file; trying again would not mend it, so to Spark it is a result like others"


_Found = tuple[_Kind, int, Any]


@dataclass(frozen=True, slots=True)
class Scan:
    """Looks through the staged files of one partition of a topic; runs in a worker.

    Attributes:
        warehouse: Where the files are.
        topic: Whose records they hold.
        schema: Of the topic.
        screen: What to look for.
        buckets: Over how many tasks the hashes of a check are spread.
        repeated: By the number of a uniqueness check, the hashes to fetch rows of; without them hashes are made.
    """

    warehouse: Storage
    topic: str
    schema: pa.Schema
    screen: Screen
    buckets: int = 1
    repeated: Mapping[int, NDArray[np.uint64]] = field(default_factory=dict)

    def __call__(self, files: Sequence[ArchiveFile]) -> Iterator[tuple[int, _Found]]:
        """Gives what it finds, with the number of the task that is to have it."""
        within: dict[int, list[NDArray[np.uint64]]] = defaultdict(list)
        rows = 0
        try:
            for table in chain.from_iterable(
                read_flat(self.warehouse, self.topic, self.schema, file) for file in files
            ):
                suspect = np.zeros(len(table), np.bool_)
                suspect[_rows(table, self.screen.failing)] = self.screen.failing is not None
                for number, unique in enumerate(self.screen.unique):
                    counted = _rows(table, unique.counted())
                    hashes = hash_rows([table.column(name).combine_chunks().take(counted) for name in unique.columns])
                    if self.repeated:
                        suspect[counted[np.isin(hashes, self.repeated.get(number, ()))]] = True
                    elif "partition" in unique.columns:
                        within[number].append(hashes)
                    else:
                        yield from self._by_bucket(number, hashes)
                if suspect.any() and rows <= MOST_SUSPECTS:
                    rows += int(suspect.sum())
                    yield 0, (_Kind.ROWS, 0, table.filter(suspect))
        except CorruptedDataError as error:
            yield 0, (_Kind.ERROR, 0, error)
        for number, arrays in within.items():
            yield 0, (_Kind.REPEATED, number, repeated_hashes(arrays))

    def _by_bucket(self, number: int, hashes: NDArray[np.uint64]) -> Iterator[tuple[int, _Found]]:
        bucket = (hashes % np.uint64(self.buckets)).astype(np.intp)
        for n in range(self.buckets):
            yield number * self.buckets + n, (_Kind.HASHES, number, hashes[bucket == n])


def _rows(table: pa.Table, condition: Any) -> NDArray[np.intp]:
    """Where the condition is true; None: everywhere."""
    if condition is None:
        return np.arange(len(table))
    numbered = table.append_column("", pa.array(np.arange(len(table))))
    rows: NDArray[np.intp] = numbered.filter(condition).column("").to_numpy()
    return rows


def repeated_hashes(arrays: Iterable[NDArray[np.uint64]]) -> NDArray[np.uint64]:
    """Those that are there more than once, each once, in order."""
    ordered = np.sort(np.concatenate(list(arrays)))
    return np.unique(ordered[1:][ordered[1:] == ordered[:-1]])


def _met(found: Iterable[tuple[int, _Found]]) -> Iterator[_Found]:
    """Runs in a worker that has all hashes of its buckets: gives those that are there twice, and the rest as it is."""
    hashes: dict[int, list[NDArray[np.uint64]]] = defaultdict(list)
    for _, (kind, number, value) in found:
        if kind is _Kind.HASHES:
            hashes[number].append(value)
        else:
            yield kind, number, value
    while hashes:
        number, arrays = hashes.popitem()
        yield _Kind.REPEATED, number, repeated_hashes(arrays)


def find_suspects(spark: SparkSession, scan: Scan, files: Sequence[ArchiveFile]) -> pa.Table | None:
    """All rows of ``files`` that can fail a check of the screen, and hardly any other.

    Returns:
        Flat rows; None if there are more than `MOST_SUSPECTS`.

    Raises:
        CorruptedDataError: A file is missing or damaged.
        RetryableError: Spark has given up.
    """
    rows = sum(file.rows for file in files)
    tables, repeated = _run(spark, replace(scan, buckets=1 + rows // _ROWS_OF_A_BUCKET), files)
    if any(len(hashes) > MOST_SUSPECTS for hashes in repeated.values()):
        return None
    if repeated:
        tables, _ = _run(spark, replace(scan, repeated=repeated), files)
    suspects = pa.concat_tables([flat_schema(scan.schema).empty_table(), *tables], promote_options="permissive")
    return suspects if len(suspects) <= MOST_SUSPECTS else None


def _run(
    spark: SparkSession, scan: Scan, files: Sequence[ArchiveFile]
) -> tuple[list[pa.Table], dict[int, NDArray[np.uint64]]]:
    """The rows found, and the repeated hashes by check."""
    partitions: dict[int, list[ArchiveFile]] = defaultdict(list)
    for file in files:
        partitions[file.partition].append(file)
    if not partitions:
        return [], {}
    described = spark.sparkContext.parallelize(list(partitions.values()), len(partitions))
    tasks = max(1, len(scan.screen.unique)) * scan.buckets
    try:
        found = described.flatMap(scan).partitionBy(tasks, lambda task: task).mapPartitions(_met).collect()
    except (Py4JError, PySparkException) as error:
        raise spark_error(error, topic=scan.topic) from error
    tables, repeated = [], defaultdict(list)
    for kind, number, value in found:
        if kind is _Kind.ERROR:
            raise value
        if kind is _Kind.ROWS:
            tables.append(value)
        elif len(value):
            repeated[number].append(value)
    return tables, {number: np.concatenate(hashes) for number, hashes in repeated.items()}
