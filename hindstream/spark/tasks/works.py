"""Runs work on tasks as one Spark stage: a row is the description of a task's work, never a record.

How a task can end:

=======================  ==============================================================================================
a result                 the row's
`RetryableError`, crash  Spark runs it again, up to ``spark.task.maxFailures`` attempts; the last attempt's error counts
any other deliberate     running it again would change nothing: the stage is cancelled at once, and the driver raises
error                    the error as the worker did, with topic, partition and offset
=======================  ==============================================================================================

A task that has failed for good is a success to Spark (it gives no row); its error travels in an accumulator, which
reaches the driver as soon as the task ends, long before the stage does.
"""

from __future__ import annotations

import os
import pickle
import sys
import traceback
import uuid
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeVar

from pyspark import AccumulatorParam, TaskContext, cloudpickle
from pyspark.errors import PySparkException

from py4j.protocol import Py4JError  # isort: skip

from hindstream.spark.session.session import spark_log, task_max_failures
from hindstream.spark.tasks.locations import collect_placed, executor_locations
from hindstream.spark.tasks.progress import StageProgress
from hindstream.spark.tasks.told import Told, telling
from hindstream.spark.tasks.unforeseen import unforeseen
from statelib.errors.kinds import HindstreamError, InternalError, RetryableError
from statelib.job.user_code import is_user_file
from statelib.settings.local_dir import local_state_dir

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from pyspark import Accumulator, SparkContext

    from hindstream.spark.tasks.told import Listener

_Result = TypeVar("_Result")


@dataclass(frozen=True, slots=True)
class Work:
    """What is to be done to one task; travels to a worker.

    Attributes:
        job: The job's name.
        run_id: The run that it is for.
        task_id: The task.
        state_dir: A local directory, see `statelib.settings.local_dir`; where Spark runs locally its log is there.
        do: Does it, and gives what it has made. Its argument is unique among all attempts at all work.
    """

    job: str
    run_id: str
    task_id: str
    state_dir: str
    do: Callable[[str], bytes]


class _ErrorList(AccumulatorParam[list[bytes]]):
    """Pickled errors of tasks that have failed for good."""

    def zero(self, value: list[bytes]) -> list[bytes]:  # noqa: ARG002 - Spark's signature
        return []

    def addInPlace(self, value1: list[bytes], value2: list[bytes]) -> list[bytes]:  # noqa: N802 - Spark's name
        value1.extend(value2)
        return value1


def run_works(
    context: SparkContext,
    works: Sequence[Work],
    *,
    name: str,
    executors: Mapping[str, Sequence[str]] = MappingProxyType({}),
    records: int | None = None,
) -> list[bytes]:
    """Does all of ``works`` and waits for it.

    Args:
        context: Spark's.
        works: One task's each; each becomes one Spark task, in this order.
        name: For Spark's and our own progress.
        executors: By task, those that Spark is to prefer, as ``<host>/<id>``; none: it may run anywhere.
        records: How many records the work will `tell` of. None: progress is that of tasks that have ended.

    Returns:
        What the winning attempts made, in the order of ``works``.

    Raises:
        HindstreamError: What some work has raised.
        RetryableError: Spark has given up for a reason that lies outside the tasks (executors lost, cancelled).
    """
    if not works:
        return []
    payloads = [
        ((n, cloudpickle.dumps(work)), executor_locations(executors.get(work.task_id, ())))  # type: ignore[no-untyped-call]
        for n, work in enumerate(works)
    ]
    errors = TaskErrors(context)
    place = {"job": works[0].job, "run": works[0].run_id}
    with Told(context) as told:
        attempt = _Attempt(errors, nonce=uuid.uuid4().hex[:8], listener=None if records is None else told.listener)
        do = partial(collect_placed, context, payloads, attempt)
        heard = told if attempt.listener is not None else None
        results = run_action(context, do, errors, name=name, tasks=len(works), place=place, told=heard, records=records)
    return [made for _, made in sorted(results)]


class TaskErrors:
    """Collects errors of tasks that have failed for good; travels to the workers, and back what they add."""

    def __init__(self, context: SparkContext) -> None:
        self._errors: Accumulator[list[bytes]] = context.accumulator([], _ErrorList())
        self._max_failures = task_max_failures(context)

    @contextmanager
    def told(self) -> Iterator[None]:
        """In a worker: ends at an error, which goes to the driver unless another attempt may do better."""
        try:
            yield
        except HindstreamError as error:
            if isinstance(error, RetryableError) and not self.is_last_attempt():
                raise
            self.add(error)

    def add(self, error: HindstreamError) -> None:
        """In a worker."""
        self._errors.add([pickle.dumps(error)])

    def is_last_attempt(self) -> bool:
        """In a worker: whether Spark will not run this task again."""
        return _task_context().attemptNumber() + 1 >= self._max_failures

    def __bool__(self) -> bool:
        """Whether there is one; in the driver."""
        return bool(self._errors.value)

    def first(self) -> HindstreamError:
        """The first that came; in the driver."""
        return pickle.loads(self._errors.value[0])  # type: ignore[no-any-return]  # noqa: S301 - from our own workers


def run_action(
    context: SparkContext,
    action: Callable[[], list[_Result]],
    errors: TaskErrors,
    *,
    name: str,
    tasks: int | None,
    place: Mapping[str, str],
    told: Told | None = None,
    records: int | None = None,
) -> list[_Result]:
    """Runs an action of Spark's with a progress bar, and ends it as soon as a task has failed for good.

    Args:
        context: Spark's.
        action: Such as ``collect`` of a frame.
        errors: What its tasks add to.
        name: For Spark's and our own progress.
        tasks: How many it has; None: nobody knows.
        place: For the error where Spark gives up.
        told: What its tasks tell of their records; None: they do not.
        records: How many records there are.

    Returns:
        What the action gives.

    Raises:
        HindstreamError: What a task has added to ``errors``.
        RetryableError: Spark has given up for a reason that lies outside the tasks (executors lost, cancelled).
    """
    group = f"hindstream-{uuid.uuid4().hex}"
    context.setJobGroup(group, name, interruptOnCancel=True)
    results: list[_Result] = []
    try:
        with StageProgress(
            context, group, name, tasks=tasks, has_failed=lambda: bool(errors), told=told, records=records
        ):
            results = action()
    except (Py4JError, PySparkException) as error:
        if not errors:
            raise spark_error(error, **place) from error
    finally:
        context._jsc.clearJobGroup()  # noqa: SLF001 - PySpark has no public counterpart of Scala's method
    if errors:
        raise errors.first()
    return results


def carry_user_code() -> None:
    """Sends what comes from the user's own files along with the work: workers cannot import these files by name."""
    for module in list(sys.modules.values()):
        if is_user_file(module):
            cloudpickle.register_pickle_by_value(module)  # type: ignore[no-untyped-call]


class _Attempt:
    """Runs in a worker: one attempt at the work on one task."""

    def __init__(self, errors: TaskErrors, *, nonce: str, listener: Listener | None) -> None:
        self._errors = errors
        self._nonce = nonce
        self.listener = listener

    def __call__(self, payloads: Iterable[tuple[int, bytes]]) -> Iterator[tuple[int, bytes]]:
        for n, payload in payloads:
            work: Work = pickle.loads(payload)  # noqa: S301 - from our own driver
            try:
                with self._errors.told(), telling(self.listener, n):
                    yield n, work.do(attempt_name(self._nonce))
            except HindstreamError:
                raise  # for another attempt
            except Exception as error:
                if not self._errors.is_last_attempt():
                    raise
                traceback.print_exc(file=sys.stderr)
                log = f"{spark_log(local_state_dir(work.state_dir))} where Spark runs locally, else the executor's log"
                self._errors.add(unforeseen(error, work.task_id, log))


def attempt_name(nonce: str) -> str:
    """In a worker: what no other attempt at any task is called.

    Args:
        nonce: What no other stage is called.
    """
    return f"{nonce}-{_task_context().taskAttemptId()}-{os.getpid()}"


def _task_context() -> TaskContext:
    context = TaskContext.get()
    if context is None:
        raise InternalError("a task runs outside Spark")
    return context


def spark_error(error: Exception, **place: str) -> RetryableError:
    """What to raise when Spark gives up: the first line of what it says, without the stacks of two languages."""
    java: Any = getattr(error, "java_exception", None)
    reason = (java.getMessage() if java is not None else None) or str(error)
    first = next((line.strip() for line in reason.splitlines() if line.strip()), type(error).__name__)
    next_step = "run the same command again; the log of Spark's executors says more"
    return RetryableError(f"Spark has given up: {first}", **place, next_step=next_step)
