"""Finds the rows of staged files that a `Screen` lets through: one pass over the files, on Spark.

As in a replay, Spark's rows describe files, and each task reads its own with pyarrow. For uniqueness a task gives a
64-bit hash of each row's values; equal hashes meet in one task after Spark's shuffle::

    file ──scan──> rows that may fail by themselves ────────────────────────────────────────┐
               └─> hashes by check and bucket ──groupByKey──> hashes that are there twice ──┴─> suspects

Hardly any run has the latter; where there are, a second pass fetches their rows.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field, replace
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
_SUSPECT_ROWS = -1
_ERROR = -2
"""In place of a check's number: what is keyed by these are rows, and what is wrong with a file. Trying again would not
mend a file, so to Spark that is a result like others."""

_Keyed = tuple[tuple[int, int], Any]


@dataclass(frozen=True, slots=True)
class Scan:
    """Looks through one staged file of a topic; runs in a worker.

    Attributes:
        warehouse: Where the file is.
        topic: Whose records it holds.
        schema: Of the topic.
        screen: What to look for.
        buckets: Over how many tasks the hashes of a check are spread.
        repeated: By the number of a uniqueness check, the hashes to fetch rows of; without them all hashes are given.
    """

    warehouse: Storage
    topic: str
    schema: pa.Schema
    screen: Screen
    buckets: int = 1
    repeated: Mapping[int, NDArray[np.uint64]] = field(default_factory=dict)

    def __call__(self, file: ArchiveFile) -> Iterator[_Keyed]:
        """Gives ``((check, bucket), hashes)``, ``((_SUSPECT_ROWS, 0), rows)`` and ``((_ERROR, 0), error)``."""
        try:
            yield from self._scan(file)
        except CorruptedDataError as error:
            yield (_ERROR, 0), error

    def _scan(self, file: ArchiveFile) -> Iterator[_Keyed]:
        found = 0
        for table in read_flat(self.warehouse, self.topic, self.schema, file):
            suspect = np.zeros(len(table), np.bool_)
            if self.screen.failing is not None:
                suspect[_rows(table, self.screen.failing)] = True
            for number, unique in enumerate(self.screen.unique):
                counted = _rows(table, unique.counted())
                hashes = hash_rows([table.column(name).combine_chunks().take(counted) for name in unique.columns])
                if self.repeated:
                    suspect[counted[np.isin(hashes, self.repeated.get(number, ()))]] = True
                else:
                    yield from self._by_bucket(number, hashes)
            if suspect.any() and found <= MOST_SUSPECTS:
                found += int(suspect.sum())
                yield (_SUSPECT_ROWS, 0), table.filter(suspect)

    def _by_bucket(self, number: int, hashes: NDArray[np.uint64]) -> Iterator[_Keyed]:
        if self.buckets == 1:
            yield (number, 0), hashes
            return
        bucket = (hashes % np.uint64(self.buckets)).astype(np.intp)
        for n in range(self.buckets):
            yield (number, n), hashes[bucket == n]


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


def _reduced(keyed: tuple[tuple[int, int], Iterable[Any]]) -> Iterator[_Keyed]:
    (number, bucket), values = keyed
    if number < 0:
        yield from (((number, bucket), value) for value in values)
    elif len(repeated := repeated_hashes(values)):
        yield (number, bucket), repeated


def find_suspects(spark: SparkSession, scan: Scan, files: Sequence[ArchiveFile]) -> pa.Table | None:
    """All rows of ``files`` that can fail a check of the screen, and hardly any other.

    Returns:
        Flat rows; None if there are more than `MOST_SUSPECTS`.

    Raises:
        CorruptedDataError: A file is missing or damaged.
        RetryableError: Spark has given up.
    """
    rows = sum(file.rows for file in files)
    found = _run(spark, replace(scan, buckets=1 + rows // _ROWS_OF_A_BUCKET), files)
    repeated: dict[int, list[NDArray[np.uint64]]] = defaultdict(list)
    tables: list[pa.Table] = []
    for (number, _), value in found:
        if number == _SUSPECT_ROWS:
            tables.append(value)
        else:
            repeated[number].append(value)
    if repeated:
        merged = {number: np.concatenate(hashes) for number, hashes in repeated.items()}
        if any(len(hashes) > MOST_SUSPECTS for hashes in merged.values()):
            return None
        tables = [table for _, table in _run(spark, replace(scan, repeated=merged), files)]
    suspects = pa.concat_tables([flat_schema(scan.schema).empty_table(), *tables], promote_options="permissive")
    return suspects if len(suspects) <= MOST_SUSPECTS else None


def _run(spark: SparkSession, scan: Scan, files: Sequence[ArchiveFile]) -> list[_Keyed]:
    if not files:
        return []
    described = spark.sparkContext.parallelize(list(files), len(files))
    tasks = max(1, len(scan.screen.unique)) * scan.buckets
    try:
        found = described.flatMap(scan).groupByKey(tasks).flatMap(_reduced).collect()
    except (Py4JError, PySparkException) as error:
        raise spark_error(error, topic=scan.topic) from error
    for (number, _), value in found:
        if number == _ERROR:
            raise value
    return found
