"""What is done on every host that works for a job: here, and on a cluster in every executor."""

from __future__ import annotations

import socket
import time
import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, TypeVar

from pyspark import TaskContext
from pyspark.errors import PySparkException

from py4j.protocol import Py4JError  # isort: skip

from hindstream.runs import open_warehouse
from hindstream.spark.session.session import is_local, may_be_cluster, spark_context
from hindstream.spark.tasks.works import spark_error
from statelib.commits import CommitLog
from statelib.commits.local_state import LocalState, clean_local_state
from statelib.commits.standing import no_commits
from statelib.errors.kinds import InternalError
from statelib.settings.local_dir import for_all_hosts, local_state_dir

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from pyspark import SparkContext

    from statelib.settings.settings import Settings

T = TypeVar("T")

_SETTLED_S = 3.0


@dataclass(frozen=True, slots=True)
class Slot(Generic[T]):
    """What was done in one slot for a task.

    Attributes:
        host: As Spark calls it.
        executor_id: The executor's.
        result: What came of it.
    """

    host: str
    executor_id: str
    result: T

    @property
    def executor(self) -> str:
        """Name of the executor: ``<host>/<id>``."""
        return f"{self.host}/{self.executor_id}"


def clean_hosts(job: str, settings: Settings) -> list[tuple[str, LocalState]]:
    """Removes all local state of a job from all hosts that its newest commit does not name (`clean_local_state`).

    Returns:
        (host, what was there): this one, and on a cluster one for each slot of each executor.

    Raises:
        ConfigurationError: The job has no commits.
        HindstreamError: See `on_every_host` and `clean_local_state`.
    """
    warehouse = open_warehouse(settings)
    head = CommitLog(warehouse, job).head()
    if head is None:
        raise no_commits(warehouse, job)
    state_dir = for_all_hosts(settings.state_dir)
    return on_every_host(settings, lambda: clean_local_state(local_state_dir(state_dir), head))


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
    if not may_be_cluster(settings):
        return here
    context = spark_context(settings)
    if is_local(str(context.master)):
        return here
    return here + [(slot.host, slot.result) for slot in in_every_slot(context, settled_slots(context), do)]


def in_every_slot(context: SparkContext, slots: int, do: Callable[[], T]) -> list[Slot[T]]:
    """Calls ``do`` in every slot for a task at once.

    Args:
        context: Of a cluster.
        slots: How many there are; Spark waits until all are free.
        do: Picklable.

    Raises:
        RetryableError: Spark has given up, for example because an executor was lost.
    """

    def task(_: Iterable[int]) -> Iterator[tuple[int, T]]:
        found = TaskContext.get()
        if found is None:
            raise InternalError("a task runs outside Spark")
        yield found.partitionId(), do()

    group = f"hindstream-{uuid.uuid4().hex}"
    context.setJobGroup(group, "asks every host")
    try:
        done = dict(context.parallelize(range(slots), slots).barrier().mapPartitions(task).collect())
        executors = _executors(context, group)
    except (Py4JError, PySparkException) as error:
        raise spark_error(error) from error
    finally:
        context._jsc.clearJobGroup()  # noqa: SLF001 - PySpark has no public counterpart of Scala's method
    return [Slot(*executors[number], result) for number, result in sorted(done.items())]


def settled_slots(context: SparkContext) -> int:
    """How many tasks can run at once, when no more executors have come for a while."""
    slots, since = slots_now(context), time.monotonic()
    while time.monotonic() - since < _SETTLED_S:
        now = slots_now(context)
        if now != slots:
            slots, since = now, time.monotonic()
        time.sleep(0.1)
    return slots


def slots_now(context: SparkContext) -> int:
    """How many tasks can run at once, as soon as there is an executor.

    Raises:
        RetryableError: Spark has given up.
    """
    scala = context._jsc.sc()  # noqa: SLF001 - PySpark has no public counterpart
    profile = scala.resourceProfileManager().defaultResourceProfile()
    try:
        if not (slots := int(scala.maxNumConcurrentTasks(profile))):
            context.parallelize([0], 1).count()  # waits for the first
            slots = int(scala.maxNumConcurrentTasks(profile))
    except (Py4JError, PySparkException) as error:
        raise spark_error(error) from error
    return slots


def _executors(context: SparkContext, group: str) -> dict[int, tuple[str, str]]:
    """Host and id of the executor that ran each partition of a job, by the successful attempt."""
    scala = context._jsc.sc()  # noqa: SLF001 - Python's tasks are not told whose they are
    scala.listenerBus().waitUntilEmpty()
    found: dict[int, tuple[str, str]] = {}
    for job in context.statusTracker().getJobIdsForGroup(group):
        info = context.statusTracker().getJobInfo(job)
        for stage in info.stageIds if info is not None else ():
            last = scala.statusStore().lastStageAttempt(stage)
            tasks = scala.statusStore().taskList(stage, last.attemptId(), last.numTasks())
            for n in range(tasks.size()):
                task = tasks.apply(n)
                found[task.index()] = task.host(), task.executorId()
    return found
