"""Finds the rows of staged files that a `Screen` lets through: one pass over the files, on Spark or in this process.

As in a replay, Spark's rows describe files, and each task looks through those of one partition
(`hindstream.spark.screening.scan`). In this process the same happens, one partition after the other; that comes out
cheaper for all but large sinks, as a stage of Spark costs as much as millions of rows. For uniqueness over all
partitions equal hashes meet in one task after Spark's shuffle; most screens need none::

    files ──scan──> rows that may fail by themselves ───────────────────────────────────────────┐
                ├─> hashes that are there twice in the partition ───────────────────────────────┤
                └─> hashes by check and bucket ──partitionBy──> hashes that are there twice ────┴─> suspects

Where the rows of a partition ascend, the hashes of its keys go the way of those of its rows: if no other partition has
one of them, all rows differ; else a second pass makes hashes of the rows. Hardly any run has hashes that are there
twice; where there are, another pass fetches their rows.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from hindstream.spark.expectations.flat_tables import flat_schema
from hindstream.spark.screening.search import MOST_SUSPECTS, Kind, PartT, repeated_hashes

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from numpy.typing import NDArray
    from pyspark import SparkContext

    from hindstream.spark.screening.search import Found, Search

_ROWS_OF_A_BUCKET = 4_000_000


def met(found: Iterable[tuple[int, Found]]) -> Iterator[Found]:
    """Runs where all hashes of a bucket are: gives those that are there twice, and the rest as it is.

    Where the rows of all partitions ascend, the keys of these are there instead, which are to be different ones.
    """
    hashes: dict[int, list[NDArray[np.uint64]]] = defaultdict(list)
    keys: dict[int, list[NDArray[np.uint64]]] = defaultdict(list)
    for _, (kind, number, value) in found:
        if kind is Kind.HASHES:
            hashes[number].append(value)
        elif kind is Kind.KEYS:
            keys[number].append(value)
        else:
            yield kind, number, value
    for number, arrays in keys.items():
        if number in hashes or len(repeated_hashes(arrays)):
            yield Kind.UNDECIDED, number, None
            hashes.pop(number, None)
    while hashes:
        number, arrays = hashes.popitem()
        yield Kind.REPEATED, number, repeated_hashes(arrays)


def find_suspects(scan: Search[PartT], files: Sequence[PartT], context: SparkContext | None) -> pa.Table | None:
    """All rows of ``files`` that can fail a check of the screen, and hardly any other.

    Args:
        scan: What to look for, and where.
        files: The staged files, or the parts of a slice.
        context: Where to look through them; None: in this process.

    Returns:
        Flat rows; None if there are more than `MOST_SUSPECTS`.

    Raises:
        CorruptedDataError: A file is missing or damaged.
        RetryableError: Spark has given up.
    """
    rows = sum(file.rows for file in files)
    first = replace(scan, buckets=1 + rows // _ROWS_OF_A_BUCKET)
    tables, repeated, undecided = _run(context, first, files)
    if undecided:
        repeated |= _run(context, replace(first, undecided=undecided), files)[1]
    if any(len(hashes) > MOST_SUSPECTS for hashes in repeated.values()):
        return None
    if repeated:
        tables, *_ = _run(context, replace(scan, repeated=repeated), files)
    suspects = pa.concat_tables([flat_schema(scan.schema).empty_table(), *tables], promote_options="permissive")
    return suspects if len(suspects) <= MOST_SUSPECTS else None


def _run(
    context: SparkContext | None, scan: Search[PartT], files: Sequence[PartT]
) -> tuple[list[pa.Table], dict[int, NDArray[np.uint64]], frozenset[int]]:
    """The rows found, the repeated hashes by check, and the checks that are undecided."""
    partitions: dict[int, list[PartT]] = defaultdict(list)
    for file in files:
        partitions[file.partition].append(file)
    parts = list(partitions.values())
    tables, repeated, undecided = [], defaultdict(list), set()
    for kind, number, value in _found_here(scan, parts) if context is None else _found_on_spark(scan, parts, context):
        if kind is Kind.ERROR:
            raise value
        if kind is Kind.ROWS:
            tables.append(value)
        elif kind is Kind.UNDECIDED:
            undecided.add(number)
        elif len(value):
            repeated[number].append(value)
    return tables, {number: np.concatenate(hashes) for number, hashes in repeated.items()}, frozenset(undecided)


def _found_here(scan: Search[PartT], parts: Sequence[Sequence[PartT]]) -> Iterator[Found]:
    return met(found for part in parts for found in scan(part))


def _found_on_spark(scan: Search[PartT], parts: Sequence[Sequence[PartT]], context: SparkContext) -> list[Found]:
    from hindstream.spark.screening.suspects_on_spark import found_on_spark  # noqa: PLC0415 - Spark: half a second

    return found_on_spark(context, scan, parts, met)
