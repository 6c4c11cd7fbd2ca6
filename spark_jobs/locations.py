"""Tells Spark where tasks are to run: executors that it prefers, and waits for a while, but may do without."""

from __future__ import annotations

import pickle
from typing import TYPE_CHECKING, Any, TypeVar

from pyspark import RDD
from pyspark.serializers import CPickleSerializer

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pyspark import SparkContext

_Item = TypeVar("_Item")


def executor_locations(executors: Sequence[str]) -> tuple[str, ...]:
    """Spark's task locations for executors that are called ``<host>/<id>``."""
    return tuple(f"executor_{host}_{number}" for host, _, number in (name.rpartition("/") for name in executors))


def placed_items(context: SparkContext, items: Sequence[tuple[_Item, Sequence[str]]]) -> RDD[_Item]:
    """An RDD with a partition for each item.

    Args:
        context: Spark's.
        items: What is pickled, and the task locations that Spark is to prefer for it; none: it may be anywhere.
    """
    if not any(places for _, places in items):
        return context.parallelize([item for item, _ in items], len(items))
    jvm: Any = context._jvm  # noqa: SLF001 - PySpark has no public counterpart of Scala's `SparkContext.makeRDD`
    rows = [jvm.scala.Tuple2(pickle.dumps(item), _scala_seq(jvm, places)) for item, places in items]
    of_bytes = jvm.scala.reflect.ClassTag.apply(jvm.java.lang.Class.forName("[B"))
    made = context._jsc.sc().makeRDD(_scala_seq(jvm, rows), of_bytes)  # noqa: SLF001
    return RDD(jvm.org.apache.spark.api.java.JavaRDD.fromRDD(made, of_bytes), context, CPickleSerializer())


def _scala_seq(jvm: Any, items: Iterable[object]) -> Any:
    found = jvm.java.util.ArrayList()
    for item in items:
        found.add(item)
    return jvm.scala.jdk.javaapi.CollectionConverters.asScala(found).toSeq()
