"""Brings standbys and learners up to the newest commit, on the hosts of a cluster.

Copies have the last call on the cluster: their Spark tasks are in a pool that gets the slots which nobody else wants,
each lasts some seconds and leaves the rest for another, and while a run asks its hosts, or has tasks that are to fetch
state themselves, none begins (`held`). A copy that cannot be made is a warning: it costs time later, nothing else.

::

    maintain:  after_commit ──► update ──► a turn ──► a turn ──► copies.json
                                            ▲
                                            └─ in the background: waits while `held`
"""

from __future__ import annotations

import logging
import time
import uuid
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from pyspark.errors import PySparkException

from py4j.protocol import Py4JError  # isort: skip

from spark_jobs.background import Background
from spark_jobs.hosts import may_be_cluster
from spark_jobs.locations import collect_placed, executor_locations
from spark_jobs.placement import ask_hosts
from spark_jobs.runs import open_warehouse
from spark_jobs.session import is_local, spark_session
from spark_jobs.spark_tasks import spark_error
from statelib.commits import CommitLog, JobLayout
from statelib.errors import HindstreamError
from statelib.local_dir import for_all_hosts, local_state_dir
from statelib.placement.copies import CopyKeeper, CopyOrder, CopyResult
from statelib.placement.documents import Copies, CopyUpdate, read_placement
from statelib.placement.holdings import CopyPosition
from statelib.placement.process import process_id

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from contextlib import AbstractContextManager
    from uuid import UUID

    from pyspark import SparkContext

    from statelib.config import Settings
    from statelib.manifests import Commit
    from statelib.placement.documents import Placement

_log = logging.getLogger(__name__)

_TURN_S = 10.0
_TRIES = 3

_background = Background("standbys")


def after_commit(job: str, settings: Settings) -> Copies | None:
    """Brings the copies of a job up to its newest commit; in the background, if the settings say so.

    Returns:
        What was done; None: there is nothing to do, or it is done in the background.
    """
    if not may_be_cluster(settings):
        return None
    if settings.standby_updates == "background":
        _background.ask(job, partial(update, job, settings))
        return None
    return update(job, settings)


def held() -> AbstractContextManager[None]:
    """Lets no copies be made in the background meanwhile; a turn that is under way is cut short."""
    return _background.held()


def wait() -> None:
    """Returns when nothing is done in the background any more."""
    _background.wait()


def update(job: str, settings: Settings) -> Copies | None:
    """Brings the copies of a job up to its newest commit, in as many turns as that takes.

    Returns:
        What was done, stored as the ``copies.json`` of the commit's run; None: there are no copies to keep.

    Raises:
        HindstreamError: The warehouse does not answer; what hosts cannot do is in the result, and logged.
    """
    warehouse = open_warehouse(settings)
    head = CommitLog(warehouse, job).head()
    placement = read_placement(warehouse, job, head.run_id) if head else None
    if head is None or placement is None or not _orders(placement, head):
        return None
    context = spark_session(settings).sparkContext
    if is_local(str(context.master)):
        return None
    started = time.perf_counter()
    work = _Update(context, settings, placement, head)
    while work.is_open:
        newest = CommitLog(warehouse, job).head_number()
        if newest != head.commit:
            _log.info("%s: commit %d has come: copies go on with that", job, newest)
            return update(job, settings)
        work.turn()
    done = Copies(
        job=job,
        run_id=head.run_id,
        commit=head.commit,
        copies=tuple(work.updates.values()),
        seconds=time.perf_counter() - started,
    )
    warehouse.put(JobLayout(job).copies(head.run_id), done.encode())
    fetched = sum(copy.fetched_bytes for copy in done.copies)
    if done.copies:
        _log.info("%s: %d copies are of commit %d; %d bytes were fetched", job, len(done.copies), head.commit, fetched)
    return done


@dataclass(frozen=True, slots=True)
class _Place:
    """A copy's place: a task on a host."""

    process_id: UUID
    task_id: str


def _orders(placement: Placement, head: Commit) -> dict[_Place, CopyOrder]:
    """What hosts are to do: keep copies and, once tasks are where they are to be, remove those that nobody wants."""
    position = CopyPosition(head.commit, head.run_id)
    orders = {}
    for host in placement.hosts:
        kept = {*host.standby, *host.learning}
        unwanted = host.lags.keys() - kept - {*host.active} if placement.is_final else set()
        for task_id in sorted(kept | unwanted):
            task = head.tasks.get(task_id)
            state = task.state if task and task_id in kept else None
            orders[_Place(host.process_id, task_id)] = CopyOrder(head.job, task_id, state, position)
    return orders


class _Update:
    """Brings copies up to one commit."""

    def __init__(self, context: SparkContext, settings: Settings, placement: Placement, head: Commit) -> None:
        self._context = context
        self._placement = placement
        self._open = _orders(placement, head)
        self._state_dir = for_all_hosts(settings.state_dir)
        transfers = settings.parallel_transfers
        self._keeper = CopyKeeper(open_warehouse(settings).uri(""), settings.store_options, transfers)
        self._executors = self._found(settings)
        self._tries: dict[_Place, int] = {}
        self.updates: dict[_Place, CopyUpdate] = {}
        learning = {_Place(host.process_id, task) for host in placement.hosts for task in host.learning}
        for place, order in self._open.items():
            if order.state is not None:
                self.updates[place] = CopyUpdate(
                    task_id=place.task_id,
                    process_id=place.process_id,
                    is_learning=place in learning,
                    lag_bytes=order.state.size_bytes,
                )

    @property
    def is_open(self) -> bool:
        """Whether anything is left to do."""
        return bool(self._open)

    def turn(self) -> None:
        """Lets every host work for some seconds."""
        for place in [place for place in self._open if not self._executors.get(place.process_id)]:
            self._end(place, "its host is not there")
        if not self._open:
            return
        items = [
            ((place, order), executor_locations(self._executors[place.process_id]))
            for place, order in self._open.items()
        ]
        doing = _Turn(self._keeper, self._state_dir)
        try:
            with _background.turn(self._context):
                done = collect_placed(self._context, items, doing)
        except (Py4JError, PySparkException) as error:
            if not _background.was_cut_short:
                for place in list(self._open):
                    self._failed(place, spark_error(error).what)
            return
        for place, found in done:
            self._take(place, found)

    def _take(self, place: _Place, found: CopyResult | str) -> None:
        """Notes what came of one order."""
        if isinstance(found, str):
            self._failed(place, found)
            return
        if found.rebuilt:
            _log.warning("task %s: its copy was deleted and is made anew: %s", place.task_id, found.rebuilt)
        if place in self.updates:
            before = self.updates[place]
            self.updates[place] = before.model_copy(
                update={
                    "fetched_files": before.fetched_files + found.fetched_files,
                    "fetched_bytes": before.fetched_bytes + found.fetched_bytes,
                    "lag_bytes": found.lag_bytes,
                    "rebuilt": before.rebuilt or found.rebuilt,
                    "error": None,
                }
            )
        if not found.lag_bytes:
            del self._open[place]
        elif not found.fetched_files:
            self._failed(place, "the copy does not grow: its cache may be on another disk than state_dir")

    def _failed(self, place: _Place, why: str) -> None:
        self._tries[place] = self._tries.get(place, 0) + 1
        if self._tries[place] >= _TRIES:
            self._end(place, why)

    def _end(self, place: _Place, why: str) -> None:
        """Gives one up."""
        del self._open[place]
        _log.warning("task %s: its copy on host %s is not up to date: %s", place.task_id, place.process_id, why)
        if place in self.updates:
            self.updates[place] = self.updates[place].model_copy(update={"error": why})

    def _found(self, settings: Settings) -> Mapping[UUID, Sequence[str]]:
        """The executors of each host: those of the round, or in another application those that are here now."""
        if self._placement.application == str(self._context.applicationId):
            return {host.process_id: host.executors for host in self._placement.hosts}
        known = {place.process_id for place in self._open}
        hosts = ask_hosts(self._context, self._placement.job, settings, known=known)
        return {host.report.process_id: host.executors for host in hosts}


@dataclass(frozen=True)
class _Turn:
    """Runs in a worker: some seconds of work on copies."""

    keeper: CopyKeeper
    state_dir: str

    def __call__(self, orders: Iterable[tuple[_Place, CopyOrder]]) -> Iterator[tuple[_Place, CopyResult | str]]:
        import statelib.task  # noqa: F401, PLC0415 - so that the first task of a host that learns need not

        for place, order in orders:
            until = time.monotonic() + _TURN_S
            try:
                local = local_state_dir(self.state_dir)
                if process_id(local, uuid.uuid4) != place.process_id:
                    yield place, "Spark has run it on another host"
                    continue
                yield place, self.keeper.carry_out(order, local, is_over=partial(_is_past, until))
            except HindstreamError as error:
                yield place, str(error)


def _is_past(until: float) -> bool:
    return time.monotonic() >= until
