"""Tells Spark where tasks are to run: executors that it prefers, and waits for a while, but may do without."""

from __future__ import annotations

import pickle
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from typing import TYPE_CHECKING, Any, TypeVar

from pyspark import RDD, inheritable_thread_target
from pyspark.serializers import CPickleSerializer
from pyspark.sql import SparkSession

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from pyspark import SparkContext

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")


def executor_locations(executors: Sequence[str]) -> tuple[str, ...]:
    """Spark's task locations for executors that are called ``<host>/<id>``."""
    return tuple(f"executor_{host}_{number}" for host, _, number in (name.rpartition("/") for name in executors))


def collect_placed(
    context: SparkContext,
    items: Sequence[tuple[_Item, Sequence[str]]],
    do: Callable[[Iterable[_Item]], Iterator[_Result]],
) -> list[_Result]:
    """Does something with each item, a Spark task each, on executors that it prefers.

    What prefers the same executors is a Spark job of its own, and all of them run at once. Spark goes by the executors
    of all tasks of a stage when it waits for one of them: in one stage, tasks whose executor is lost would wait for it
    as long as those of others.

    Args:
        context: Spark's; its job group is that of the calling thread.
        items: Each is pickled; the task locations that Spark is to prefer for it; none: it may be anywhere.
        do: What ``mapPartitions`` takes; gets one item.

    Returns:
        What came of it, in no order.

    Raises:
        Py4JError, PySparkException: Of the job that failed first; the others are cancelled.
    """
    by_places: dict[tuple[str, ...], list[_Item]] = {}
    for item, places in items:
        by_places.setdefault(tuple(places), []).append(item)
    frames = [_rdd(context, its, places).mapPartitions(do) for places, its in by_places.items()]
    if len(frames) == 1:
        return frames[0].collect()
    here = inheritable_thread_target(SparkSession(context))  # the job group and the pool
    with ThreadPoolExecutor(len(frames), thread_name_prefix="stage") as pool:
        collected = [pool.submit(here(frame.collect)) for frame in frames]
        done, _ = wait(collected, return_when=FIRST_EXCEPTION)
        failed = [future for future in done if future.exception() is not None]
        if failed:
            cancel_group(context, context.getLocalProperty("spark.jobGroup.id") or "")
            failed[0].result()
    return [result for future in collected for result in future.result()]


def cancel_group(context: SparkContext, group: str) -> None:
    """Cancels the jobs of a group, and those that are still to come."""
    context._jsc.sc().cancelJobGroupAndFutureJobs(group)  # noqa: SLF001 - PySpark has no public counterpart


def _rdd(context: SparkContext, items: Sequence[_Item], places: Sequence[str]) -> RDD[_Item]:
    """With a partition for each item."""
    if not places:
        return context.parallelize(items, len(items))
    jvm: Any = context._jvm  # noqa: SLF001 - PySpark has no public counterpart of Scala's `SparkContext.makeRDD`
    rows = [jvm.scala.Tuple2(pickle.dumps(item), _scala_seq(jvm, places)) for item in items]
    of_bytes = jvm.scala.reflect.ClassTag.apply(jvm.java.lang.Class.forName("[B"))
    made = context._jsc.sc().makeRDD(_scala_seq(jvm, rows), of_bytes)  # noqa: SLF001
    return RDD(jvm.org.apache.spark.api.java.JavaRDD.fromRDD(made, of_bytes), context, CPickleSerializer())


def _scala_seq(jvm: Any, items: Iterable[object]) -> Any:
    found = jvm.java.util.ArrayList()
    for item in items:
        found.add(item)
    return jvm.scala.jdk.javaapi.CollectionConverters.asScala(found).toSeq()
