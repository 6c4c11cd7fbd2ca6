"""Brings standbys and learners up to the newest commit, on the hosts of a cluster.

Copies have the last call on the cluster: their Spark tasks, one a host, are in a pool that gets the slots which nobody
else wants, each lasts some seconds and leaves the rest for another, and while a run asks its hosts, or has tasks that
are to fetch state themselves, none begins (`held`). A copy that cannot be made is a warning: it costs time later,
nothing else.

::

    maintain:  after_commit ──► update ──► a turn ──► a turn ──► copies.json
                                            ▲
                                            └─ in the background: waits while `held`
"""

from __future__ import annotations

import logging
import time
import uuid
from collections import Counter
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from pyspark.errors import PySparkException

from py4j.protocol import Py4JError  # isort: skip

from hindstream.runs import open_warehouse
from hindstream.spark.placement.round import ask_hosts, last_placement
from hindstream.spark.session.session import is_local, may_be_cluster, spark_context
from hindstream.spark.tasks.background import Background
from hindstream.spark.tasks.locations import collect_placed, executor_locations
from hindstream.spark.tasks.works import spark_error
from statelib.commits import CommitLog, JobLayout
from statelib.errors.kinds import CorruptedDataError, HindstreamError
from statelib.placement.copies import CopyKeeper, CopyOrder, CopyResult
from statelib.placement.documents import Copies, CopyUpdate, read_copies
from statelib.placement.holdings import CopyPosition
from statelib.placement.process import process_id
from statelib.settings.local_dir import for_all_hosts, local_state_dir

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from contextlib import AbstractContextManager
    from pathlib import Path
    from uuid import UUID

    from pyspark import SparkContext

    from statelib.documents.manifests import Commit
    from statelib.placement.documents import Placement
    from statelib.settings.settings import Settings
    from statelib.storage import Storage

_log = logging.getLogger(__name__)

_TURN_S = 2.0
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
    """Lets no turn begin in the background meanwhile; one that is under way ends soon."""
    return _background.held()


def wait() -> None:
    """Returns when nothing is done in the background any more."""
    _background.wait()


def update(job: str, settings: Settings) -> Copies | None:
    """Brings the copies of a job up to its newest commit, in as many turns as that takes.

    If another commit comes meanwhile, they go on with that.

    Returns:
        What was done, stored as the ``copies.json`` of the commit's run; None: there is nothing to do.

    Raises:
        HindstreamError: The warehouse does not answer; what hosts cannot do is in the result, and logged.
    """
    warehouse, done = open_warehouse(settings), None
    log = CommitLog(warehouse, job)
    while (head := log.head()) is not None and (done is None or done.commit != head.commit):
        placement = last_placement(warehouse, job, head.run_id)
        orders = _orders(placement, head) if placement else {}
        if placement is None or not orders or _are_done(warehouse, head):
            break
        context = spark_context(settings)
        if is_local(str(context.master)):
            break
        done = _brought_up(_Update(context, settings, placement, head, orders), log)
        warehouse.put(JobLayout(job).copies(head.run_id), done.encode())
    return done


def _brought_up(work: _Update, log: CommitLog) -> Copies:
    """Lets hosts work until they are done, or there is another commit."""
    started, head = time.perf_counter(), work.head
    while work.is_open and log.head_number() == head.commit:
        work.turn()
    copies = tuple(work.updates.values())
    if copies:
        fetched, open_ = sum(copy.fetched_bytes for copy in copies), sum(copy.lag_bytes > 0 for copy in copies)
        what = "%s: %d copies are of commit %d, %d are not yet; %d bytes were fetched"
        _log.info(what, head.job, len(copies) - open_, head.commit, open_, fetched)
    seconds = time.perf_counter() - started
    return Copies(job=head.job, run_id=head.run_id, commit=head.commit, copies=copies, seconds=seconds)


def _are_done(warehouse: Storage, head: Commit) -> bool:
    """Whether all copies have the commit already; damage to the record of it says nothing."""
    try:
        done = read_copies(warehouse, head.job, head.run_id)
    except CorruptedDataError:
        return False
    return done is not None and all(copy.lag_bytes == 0 for copy in done.copies)


def _orders(placement: Placement, head: Commit) -> _ByHost:
    """What each host is to do, by task: keep copies and, once tasks are where they are to be, remove unwanted ones."""
    position = CopyPosition(head.commit, head.run_id)
    orders: _ByHost = {}
    for host in placement.hosts:
        kept = {*host.standby, *host.learning}
        unwanted = host.lags.keys() - kept - {*host.active} if placement.is_final else set()
        for task_id in sorted(kept | unwanted):
            task = head.tasks.get(task_id)
            state = task.state if task and task_id in kept else None
            orders.setdefault(host.process_id, {})[task_id] = CopyOrder(head.job, task_id, state, position)
    return orders


class _Update:
    """Brings copies up to one commit.

    Attributes:
        head: The commit.
        updates: What has come of each copy so far, by process id and task.
    """

    def __init__(
        self, context: SparkContext, settings: Settings, placement: Placement, head: Commit, orders: _ByHost
    ) -> None:
        self.head = head
        self._context = context
        self._open = orders
        self._state_dir = for_all_hosts(settings.state_dir)
        transfers = settings.parallel_transfers
        self._keeper = CopyKeeper(open_warehouse(settings).uri(""), settings.store_options, transfers)
        self._executors = self._found(placement, settings)
        self._tries: Counter[tuple[UUID, str]] = Counter()
        self.updates = {
            (host.process_id, order.task_id): CopyUpdate(
                task_id=order.task_id,
                process_id=host.process_id,
                is_learning=order.task_id in host.learning,
                lag_bytes=order.state.size_bytes,
            )
            for host in placement.hosts
            for order in self._open.get(host.process_id, {}).values()
            if order.state is not None
        }

    @property
    def is_open(self) -> bool:
        """Whether anything is left to do."""
        return bool(self._open)

    def turn(self) -> None:
        """Lets every host work for some seconds."""
        for host in [host for host in self._open if not self._executors.get(host)]:
            for task_id in list(self._open[host]):
                self._give_up(host, task_id, "its host is not there")
        items = [
            ((host, tuple(orders.values())), executor_locations(self._executors[host]))
            for host, orders in self._open.items()
        ]
        if not items:
            return
        try:
            with _background.turn(self._context):
                done = collect_placed(self._context, items, _Turn(self._keeper, self._state_dir))
        except (Py4JError, PySparkException) as error:
            done = [(host, spark_error(error).what) for host in self._open]
        for host, found in done:
            if isinstance(found, str):
                for task_id in list(self._open[host]):
                    self._failed(host, task_id, found)
            else:
                for task_id, result in found:
                    self._take(host, task_id, result)

    def _take(self, host: UUID, task_id: str, result: CopyResult | str) -> None:
        """Notes what came of one order."""
        if isinstance(result, str):
            self._failed(host, task_id, result)
            return
        if result.rebuilt:
            _log.warning("task %s: its copy was deleted and is made again: %s", task_id, result.rebuilt)
        if (before := self.updates.get((host, task_id))) is not None:
            self.updates[host, task_id] = before.model_copy(
                update={
                    "fetched_files": before.fetched_files + result.fetched_files,
                    "fetched_bytes": before.fetched_bytes + result.fetched_bytes,
                    "lag_bytes": result.lag_bytes,
                    "rebuilt": before.rebuilt or result.rebuilt,
                }
            )
        if not result.lag_bytes:
            self._end(host, task_id)
        elif not result.fetched_files:
            self._failed(host, task_id, "the copy does not grow: its cache may be on another disk than state_dir")

    def _failed(self, host: UUID, task_id: str, why: str) -> None:
        """Counts a failure; after several the copy is left to the next commit."""
        self._tries[host, task_id] += 1
        if self._tries[host, task_id] >= _TRIES:
            self._give_up(host, task_id, why)

    def _give_up(self, host: UUID, task_id: str, why: str) -> None:
        _log.warning("task %s: its copy on host %s is not up to date: %s", task_id, host, why)
        if (before := self.updates.get((host, task_id))) is not None:
            self.updates[host, task_id] = before.model_copy(update={"error": why})
        self._end(host, task_id)

    def _end(self, host: UUID, task_id: str) -> None:
        del self._open[host][task_id]
        if not self._open[host]:
            del self._open[host]

    def _found(self, placement: Placement, settings: Settings) -> Mapping[UUID, Sequence[str]]:
        """The executors of each host: those of the round, or in another application those that are here now."""
        if placement.application == str(self._context.applicationId):
            return {host.process_id: host.executors for host in placement.hosts}
        hosts = ask_hosts(self._context, placement.job, settings, known={*self._open})
        return {host.report.process_id: host.executors for host in hosts}


_ByHost = dict["UUID", dict[str, CopyOrder]]
_Orders = tuple["UUID", tuple[CopyOrder, ...]]
_Results = tuple["UUID", "list[tuple[str, CopyResult | str]] | str"]


@dataclass(frozen=True)
class _Turn:
    """Runs in a worker: a host's orders, one after the other, as far as a turn goes."""

    keeper: CopyKeeper
    state_dir: str

    def __call__(self, hosts: Iterable[_Orders]) -> Iterator[_Results]:
        import statelib.task  # noqa: F401, PLC0415 - so that the first task of a host that learns need not

        for host, orders in hosts:
            try:
                local = local_state_dir(self.state_dir)
                is_here = process_id(local, uuid.uuid4) == host
            except HindstreamError as error:
                yield host, str(error)
                continue
            yield host, self._carried_out(orders, local) if is_here else "Spark has run it on another host"

    def _carried_out(self, orders: Sequence[CopyOrder], state_dir: Path) -> list[tuple[str, CopyResult | str]]:
        until, done = time.monotonic() + _TURN_S, list[tuple[str, CopyResult | str]]()
        for order in orders:
            try:
                found = self.keeper.carry_out(order, state_dir, is_over=partial(_is_past, until))
                done.append((order.task_id, found))
            except HindstreamError as error:
                done.append((order.task_id, str(error)))
            if _is_past(until):
                break
        return done


def _is_past(until: float) -> bool:
    return time.monotonic() >= until
