"""The round of a run on a cluster: asks hosts what they hold, assigns tasks, and tells Spark where they are to run."""

from __future__ import annotations

import logging
import time
import uuid
from datetime import timedelta
from typing import TYPE_CHECKING

from hindstream.runs import now_ms
from hindstream.spark.placement.hosts import in_every_slot, settled_slots, slots_now
from hindstream.spark.session.session import is_local
from statelib.assignment.model import AssignmentConfig
from statelib.commits import CommitLog, Runs
from statelib.errors.counted import counted
from statelib.errors.kinds import CorruptedDataError, RetryableError
from statelib.placement.documents import read_placement
from statelib.placement.holdings import report_holdings
from statelib.placement.process import process_id
from statelib.placement.round import Former, Host, place
from statelib.settings.local_dir import for_all_hosts, local_state_dir, on_this_host

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from uuid import UUID

    from pyspark import SparkContext

    from hindstream.spark.placement.hosts import Slot
    from statelib.documents.manifests import TaskOutcome
    from statelib.documents.plans import Plan
    from statelib.job.job import Job
    from statelib.placement.documents import Placement
    from statelib.placement.holdings import HostReport
    from statelib.settings.settings import Settings
    from statelib.storage import Storage

_log = logging.getLogger(__name__)


def place_run(context: SparkContext, job: Job, plan: Plan, warehouse: Storage, settings: Settings) -> Placement | None:
    """Makes the round of a run, and stores it with the run; None: Spark is local, there is nothing to place.

    A run that is replayed again has another round: other hosts may be there.

    Raises:
        HindstreamError: A host cannot read its disk, or Spark has given up.
    """
    if is_local(str(context.master)):
        return None
    former = former_round(warehouse, plan)
    known = {host.process_id for host in former.placement.hosts} if former.placement else set()
    hosts = ask_hosts(context, job.name, settings, known=known)
    config = AssignmentConfig(
        num_standby_replicas=settings.num_standby_replicas,
        max_warmup_replicas=settings.max_warmup_replicas,
        acceptable_recovery_lag=settings.acceptable_recovery_lag,
    )
    stores = {sub.index: [store.name for store in sub.stores] for sub in job.topology.sub_topologies if sub.stateful}
    made = place(
        plan, stores, hosts, former, config, settings.assignor, application=str(context.applicationId), now_ms=now_ms()
    )
    warehouse.put(Runs(warehouse, job.name).layout.placement(plan.run_id), made.encode())
    lost = known - {host.process_id for host in made.hosts}
    if lost:
        _log.warning(
            "%s: %s not there", job.name, counted(len(lost), "host of the last run is", "hosts of the last run are")
        )
    tasks, moved = counted(len(plan.tasks), "task"), sum(move.before is not None for move in made.moves)
    _log.info("%s: %s on %s, %d elsewhere than before", job.name, tasks, counted(len(hosts), "host"), moved)
    return made


def restores(placement: Placement | None, tasks: Iterable[str]) -> bool:
    """Whether any of these tasks, which have state, is with a host that lacks some of it."""
    owners = placement.owners() if placement else {}
    return any(owners[task_id].lags.get(task_id) != 0 for task_id in tasks if task_id in owners)


def elsewhere(placement: Placement | None, outcomes: Iterable[TaskOutcome]) -> list[str]:
    """The tasks that Spark has run on other hosts than was asked for."""
    owners = placement.owners() if placement else {}
    return [
        task.task_id
        for task in outcomes
        if task.task_id in owners and task.process_id != owners[task.task_id].process_id
    ]


def former_round(warehouse: Storage, plan: Plan) -> Former:
    """What is known from the commit before a run."""
    if plan.commit <= 1:
        return Former()
    commit = CommitLog(warehouse, plan.job).read(plan.commit - 1)
    staged = Runs(warehouse, plan.job).staged(commit.run_id)
    ran = {task.task_id: task.process_id for task in staged.tasks if task.process_id} if staged else {}
    return Former(commit, ran, last_placement(warehouse, plan.job, commit.run_id))


def last_placement(warehouse: Storage, job: str, run_id: str) -> Placement | None:
    """The round of a run; a damaged one is a warning, since nothing rests on it."""
    try:
        return read_placement(warehouse, job, run_id)
    except CorruptedDataError as error:
        _log.warning("%s: tasks may move: %s", job, error)
        return None


def ask_hosts(context: SparkContext, job: str, settings: Settings, *, known: set[UUID] | None = None) -> list[Host]:
    """What each host of a cluster holds of a job, by process id.

    Args:
        context: Of the cluster.
        job: The job's name.
        settings: See `Settings`.
        known: Hosts that are waited for, for as long as ``wait_for_hosts`` says; empty: until no more executors come.

    Raises:
        RetryableError: Spark has given up: a host cannot read its disk, or was lost meanwhile.
    """
    state_dir, rack = for_all_hosts(settings.state_dir), settings.rack

    def report() -> HostReport:
        local = local_state_dir(state_dir)
        its_rack = None if rack is None else on_this_host(rack, setting="rack")
        return report_holdings(local, job, process_id(local, uuid.uuid4), its_rack)

    until = time.monotonic() + settings.wait_for_hosts / timedelta(seconds=1)
    slots = slots_now(context) if known else settled_slots(context)
    while True:
        try:
            hosts = _hosts(in_every_slot(context, slots, report))
        except RetryableError:
            if (now := slots_now(context)) == slots:
                raise
            slots = now  # an executor was lost meanwhile, or has come
            continue
        if not known or known <= {host.report.process_id for host in hosts}:
            return hosts
        while (now := slots_now(context)) == slots:
            if time.monotonic() >= until:
                return hosts
            time.sleep(0.1)
        slots = now


def _hosts(slots: Sequence[Slot[HostReport]]) -> list[Host]:
    """One for each process id, whose executors may be several and have several slots each."""
    of_each: dict[UUID, list[Slot[HostReport]]] = {}
    for slot in slots:
        of_each.setdefault(slot.result.process_id, []).append(slot)
    return [
        Host(its[0].result, tuple(sorted({slot.executor for slot in its})), len(its))
        for _, its in sorted(of_each.items())
    ]
