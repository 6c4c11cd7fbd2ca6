"""The pass of `hindstream.spark.screening.suspects` over staged files as a stage of Spark."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.errors import PySparkException

from py4j.protocol import Py4JError  # isort: skip

from hindstream.spark.tasks.works import spark_error

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from pyspark import SparkContext

    from hindstream.spark.screening.search import Found, PartT, Search


def found_on_spark(
    context: SparkContext,
    scan: Search[PartT],
    parts: Sequence[Sequence[PartT]],
    met: Callable[[Iterable[tuple[int, Found]]], Iterator[Found]],
) -> list[Found]:
    """What ``scan`` finds in each of ``parts``, brought together by ``met``.

    Raises:
        RetryableError: Spark has given up.
    """
    if not parts:
        return []
    scanned = context.parallelize(parts, len(parts)).flatMap(scan)
    if not scan.repeated and not all(unique.is_within_partition for unique in scan.screen.unique):
        scanned = scanned.partitionBy(len(scan.screen.unique) * scan.buckets, lambda task: task)
    try:
        return scanned.mapPartitions(met).collect()
    except (Py4JError, PySparkException) as error:
        raise spark_error(error, topic=scan.topic) from error
