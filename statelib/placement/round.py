"""One round: from what hosts report to who runs what, who keeps copies, and why tasks move."""

from __future__ import annotations

import base64
from dataclasses import dataclass
from typing import TYPE_CHECKING

from statelib.assignment.assignment_info import AssignmentInfo, TopicPartition
from statelib.assignment.high_availability import assign_highly_available
from statelib.assignment.model import NOTHING_HELD, RUNNING, AssignmentConfig, HostState, TaskId
from statelib.assignment.sticky import assign_sticky
from statelib.assignment.subscription_info import SubscriptionInfo
from statelib.commits.layout import changelog_topic
from statelib.placement.documents import Move, PlacedHost, Placement

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from uuid import UUID

    from statelib.assignment.model import Assignment, Assignor, AssignorName
    from statelib.documents.manifests import Commit
    from statelib.documents.plans import Plan
    from statelib.placement.holdings import HostReport

ASSIGNORS: Mapping[AssignorName, Assignor] = {
    "sticky": assign_sticky,
    "high-availability": assign_highly_available,
}


@dataclass(frozen=True, slots=True)
class Host:
    """A host of a cluster.

    Attributes:
        report: What it holds.
        executors: Spark's names of its executors, ``<host>/<id>``.
        consumers: How many tasks it runs at a time.
    """

    report: HostReport
    executors: tuple[str, ...]
    consumers: int


@dataclass(frozen=True, slots=True)
class Former:
    """What is known from the commit before.

    Attributes:
        commit: The commit; None: the run is the job's first.
        ran: By task, the process id of the host that ran it, where that is known.
        placement: The last round; None: there was none.
    """

    commit: Commit | None = None
    ran: Mapping[str, UUID] | None = None
    placement: Placement | None = None


def place(
    plan: Plan,
    stores: Mapping[int, Sequence[str]],
    hosts: Sequence[Host],
    former: Former,
    config: AssignmentConfig,
    assignor: AssignorName,
    *,
    application: str,
    now_ms: int,
) -> Placement:
    """The round of a run.

    Args:
        plan: Of the run.
        stores: Names of the stores of each sub-topology that has some.
        hosts: At least one, each process id once.
        former: See there.
        config: With ``acceptable_recovery_lag`` in bytes.
        assignor: Which rule.
        application: Spark's id of the application.
        now_ms: The wall clock.
    """
    tasks = [TaskId(task.sub_topology, task.partition) for task in plan.tasks]
    stateful = [task for task in tasks if stores.get(task.sub_topology)]
    states = [_state(host, stateful, former) for host in hosts]
    assignment = ASSIGNORS[assignor](states, tasks, stateful, config)
    placed = {
        state.process_id: _placed(host, state, assignment, stores, plan.job)
        for host, state in zip(hosts, states, strict=True)
    }
    return Placement(
        job=plan.job,
        run_id=plan.run_id,
        commit=former.commit.commit if former.commit else 0,
        application=application,
        assignor=assignor,
        num_standby_replicas=config.num_standby_replicas,
        max_warmup_replicas=config.max_warmup_replicas,
        acceptable_recovery_lag=config.acceptable_recovery_lag,
        is_final=assignment.is_final,
        hosts=tuple(placed[process_id] for process_id in assignment.hosts),
        moves=tuple(_moves(assignment, states, stateful, former)),
        created_at_ms=now_ms,
    )


def _state(host: Host, stateful: Iterable[TaskId], former: Former) -> HostState:
    """A host's report as assignors want it. Only a task that it ran to the end, and still has, is a previous one."""
    report, ran = host.report, former.ran or {}
    committed = former.commit.tasks if former.commit else {}
    lags: dict[TaskId, int] = {}
    running = {TaskId.parse(task_id) for task_id, by in ran.items() if by == report.process_id}
    for task in stateful:
        task_id = str(task)
        if task_id not in committed:
            continue
        state = committed[task_id].state
        lag = report.lacks(task_id, state)
        if lag == 0 and task in running:
            lags[task] = RUNNING
        else:
            running.discard(task)
            if lag < state.size_bytes:
                lags[task] = lag
    before = former.placement.hosts if former.placement else ()
    learned = next((its.learned for its in before if its.process_id == report.process_id), frozenset())
    return HostState(
        report.process_id,
        host.consumers,
        previous_active=frozenset(running),
        previous_standby=frozenset(lags) - running,
        previous_learning=learned & lags.keys(),
        lags=lags,
        rack=report.rack,
    )


def _placed(
    host: Host, state: HostState, assignment: Assignment, stores: Mapping[int, Sequence[str]], job: str
) -> PlacedHost:
    got = assignment.hosts[state.process_id]
    reported = SubscriptionInfo(
        state.process_id, tuple(sorted(state.previous_active)), tuple(sorted(state.previous_standby))
    )
    copies = {
        task: tuple(TopicPartition(changelog_topic(job, store), task.partition) for store in stores[task.sub_topology])
        for task in sorted((*got.standby, *got.learning))
    }
    return PlacedHost(
        executors=host.executors,
        consumers=host.consumers,
        rack=state.rack,
        subscription=base64.b64encode(reported.encode()).decode(),
        assignment=base64.b64encode(AssignmentInfo(got.active, copies).encode()).decode(),
        learning=tuple(map(str, got.learning)),
        lags={str(task): max(lag, 0) for task, lag in sorted(state.lags.items())},
    )


def _moves(
    assignment: Assignment, states: Sequence[HostState], stateful: Iterable[TaskId], former: Former
) -> Iterable[Move]:
    """The tasks that have another owner than the host that ran them last."""
    by_id, ran, with_state = {state.process_id: state for state in states}, former.ran or {}, frozenset(stateful)
    for task, owner in sorted(assignment.owners().items()):
        before = ran.get(str(task))
        if before != owner:
            why = _why(task, by_id[owner], by_id.get(before) if before else None, is_known=before is not None)
            if task in with_state and former.commit is not None:
                why = f"{why}; {_with(by_id[owner].lag(task))}"
            yield Move(task_id=str(task), before=before, now=owner, why=why)


def _why(task: TaskId, owner: HostState, before: HostState | None, *, is_known: bool) -> str:
    if task in owner.previous_learning:
        return "learned by its new owner"
    if before is None:
        return "its host is gone" if is_known else "nobody is known to have run it"
    if task not in before.previous_active:
        return "its host has lost the state"
    return "evens out the load"


def _with(lag: int) -> str:
    if lag == NOTHING_HELD:
        return "all of its state is to be fetched"
    return "its state is there" if lag <= 0 else f"{lag} bytes of its state are to be fetched"
