"""What is done on every host that works for a job: here, and on a cluster in every executor."""

from __future__ import annotations

import os
import socket
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from pyspark.errors import PySparkException

from py4j.protocol import Py4JError  # isort: skip

from spark_jobs.runs import open_warehouse
from spark_jobs.session import is_local, spark_session
from spark_jobs.spark_tasks import spark_error
from statelib.commits import CommitLog
from statelib.commits.local_state import LocalState, clean_local_state
from statelib.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from pyspark import SparkContext

    from statelib.config import Settings

T = TypeVar("T")

_SETTLED_S = 3.0


def clean_hosts(job: str, settings: Settings) -> list[tuple[str, LocalState]]:
    """Removes all local state of a job from all hosts that its newest commit does not name (`clean_local_state`).

    Returns:
        (host, what was there): this one, and on a cluster one for each slot of each executor.

    Raises:
        ConfigurationError: The job has no commits.
        HindstreamError: See `on_every_host` and `clean_local_state`.
    """
    head = CommitLog(open_warehouse(settings), job).head()
    if head is None:
        raise ConfigurationError("the job has no commits", job=job, next_step="check --warehouse and the job's name")
    return on_every_host(settings, partial(clean_local_state, Path(settings.state_dir).absolute(), head))


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
    return here if is_local(str(context.master)) else here + _in_every_slot(context, do)


def _in_every_slot(context: SparkContext, do: Callable[[], T]) -> list[tuple[str, T]]:
    def task(_: Iterable[int]) -> Iterator[tuple[str, T]]:
        yield socket.gethostname(), do()

    try:
        slots = _slots(context)
        return list(context.parallelize(range(slots), slots).barrier().mapPartitions(task).collect())
    except (Py4JError, PySparkException) as error:
        raise spark_error(error) from error


def _slots(context: SparkContext) -> int:
    """How many tasks can run at once, when no more executors have come for a while."""
    context.parallelize([0], 1).count()  # the first executor is there
    scala = context._jsc.sc()  # noqa: SLF001 - PySpark has no public counterpart
    profile = scala.resourceProfileManager().defaultResourceProfile()
    slots, since = 0, time.monotonic()
    while time.monotonic() - since < _SETTLED_S:
        now = int(scala.maxNumConcurrentTasks(profile))
        if now != slots:
            slots, since = now, time.monotonic()
        time.sleep(0.1)
    return slots
