"""Does something on every host that works for a job: here, and on a cluster in every executor."""

from __future__ import annotations

import os
import socket
from typing import TYPE_CHECKING, TypeVar

from pyspark.errors import PySparkException

from py4j.protocol import Py4JError  # isort: skip

from spark_jobs.session import is_local, spark_session
from spark_jobs.stage import spark_error

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from statelib.config import Settings

T = TypeVar("T")


def on_every_host(settings: Settings, do: Callable[[], T]) -> list[tuple[str, T]]:
    """Calls ``do`` in this process and, where Spark's master is a cluster, in every slot for a task of it.

    A barrier stage with a task for each slot runs in all of them at once, so none is left out. A host with several
    slots does it as often; executors that start later have not done it.

    Args:
        settings: For the Spark session.
        do: Picklable; several processes of a host may be at it at once.

    Returns:
        (host, result), that of this process first.

    Raises:
        RetryableError: Spark has given up, for example because an executor was lost.
        HindstreamError: That of ``do`` in this process.
    """
    here = [(socket.gethostname(), do())]
    submitted = "PYSPARK_GATEWAY_PORT" in os.environ
    if is_local(settings.spark_master) and not submitted:
        return here
    context = spark_session(settings).sparkContext
    if is_local(str(context.master)):
        return here

    def task(_: Iterable[int]) -> Iterator[tuple[str, T]]:
        yield socket.gethostname(), do()

    scala = context._jsc.sc()  # noqa: SLF001 - PySpark has no public counterpart
    slots = scala.maxNumConcurrentTasks(scala.resourceProfileManager().defaultResourceProfile())
    try:
        return here + context.parallelize(range(slots), slots).barrier().mapPartitions(task).collect()
    except (Py4JError, PySparkException) as error:
        raise spark_error(error) from error
