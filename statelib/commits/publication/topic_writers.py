"""Which job writes a topic: for those who look for one that is not there yet."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from statelib.commits.layout import CommitLog, Runs, late_topic, quarantine_topic
from statelib.errors.kinds import ConfigurationError
from statelib.topics.delta.log import ArchiveNotFoundError
from statelib.topics.places import with_nearest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from statelib.storage import Storage


def writer_of(warehouse: Storage, topic: str) -> str | None:
    """The job that writes a topic, by its name or by the job's newest plans; None: no job does.

    Raises:
        CorruptedDataError: A document of a job is damaged.
    """
    jobs = [path.rpartition("/")[2] for path in warehouse.folders("jobs")]
    return next((job for job in jobs if _writes(warehouse, job, topic)), None)


@contextmanager
def sought(warehouse: Storage, topic: str) -> Iterator[None]:
    """What is inside opens a topic's archive. If there is none, but a job writes it, the error says so.

    Raises:
        ConfigurationError: Nothing has been written to the topic yet.
        ArchiveNotFoundError: There is no such archive, and no job writes it.
    """
    try:
        yield
    except ArchiveNotFoundError as error:
        job = writer_of(warehouse, topic)
        if job is None:
            raise with_nearest(error, warehouse, topic) from None
        what = "nothing has been written to this topic yet"
        raise ConfigurationError(what, topic=topic, job=job, next_step=_next_step(topic, job)) from None


def _writes(warehouse: Storage, job: str, topic: str) -> bool:
    if topic in {late_topic(job), quarantine_topic(job)}:
        return True
    runs, log = Runs(warehouse, job), CommitLog(warehouse, job)
    head = log.head()
    committed = None if head is None else runs.plan(head.run_id)
    plans = [*([] if committed is None else [committed]), *runs.attempts(1 if head is None else head.commit + 1)]
    return any(topic in plan.sink_partitions for plan in plans)


def _next_step(topic: str, job: str) -> str:
    if topic == late_topic(job):
        return f"late records go there in runs with --set on_late_record=topic; hindstream status {job} counts them"
    if topic == quarantine_topic(job):
        return "records that cannot be used go there in runs with --set on_bad_record=quarantine"
    return f"the job writes it when it has something to write: hindstream status {job} shows its runs"
