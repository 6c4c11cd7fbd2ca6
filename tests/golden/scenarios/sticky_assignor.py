"""``sticky-assignor``: rounds of Kafka's two assignors, each round fed with what came out of the one before.

High availability is compared whole. The sticky assignor is the wiki page's, which the shipped one follows in part: here
is compared what both leave no choice in. A host keeps the tasks that it ran if they are no more than it has room for by
either rule; a task whose owner is gone goes to the only host with a copy if that has room for all such tasks; each task
with state has as many standbys as there are hosts for.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any
from uuid import UUID

from statelib.assignment.high_availability import assign_highly_available
from statelib.assignment.model import AssignmentConfig, HostState, TaskId
from statelib.assignment.sticky import sticky_target

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from statelib.assignment.model import Assignment
    from tests.golden.scenario import Compare
    from tests.golden.trace import Case


def check(case: Case, compare: Compare) -> None:
    """Each step by itself: the trace has the reports."""
    tasks, stateful = _tasks(case.params["tasks"]), _tasks(case.params["stateful_tasks"])
    config = AssignmentConfig(
        case.params["num_standby_replicas"], case.params["max_warmup_replicas"], case.params["acceptable_recovery_lag"]
    )
    for step in case.steps:
        hosts = [_host(client) for client in step["clients"]]
        if "HighAvailability" in case.params["assignor"]:
            assignment = assign_highly_available(hosts, tasks, stateful, config)
            compare(step["i"], "assignment", step["assignment"], _as_traced(assignment))
            compare(step["i"], "probing_rebalance_needed", step["probing_rebalance_needed"], not assignment.is_final)
        else:
            target = sticky_target(hosts, tasks, stateful, config).done(is_final=True)
            expected, got = (
                _without_choice(hosts, tasks, stateful, assigned)
                for assigned in (step["assignment"], _as_traced(target))
            )
            compare(step["i"], "what leaves no choice", expected, got)


def _host(client: Mapping[str, Any]) -> HostState:
    return HostState(
        UUID(int=client["id"]),
        client["threads"],
        frozenset(_tasks(client["prev_active"])),
        frozenset(_tasks(client["prev_standby"])),
        lags={TaskId.parse(task): lag for task, lag in client["lags"].items()},
    )


def _as_traced(assignment: Assignment) -> list[dict[str, object]]:
    """Learners are standbys there."""
    return [
        {
            "id": process_id.int,
            "active": [str(task) for task in assigned.active],
            "standby": [str(task) for task in sorted(assigned.standby + assigned.learning)],
        }
        for process_id, assigned in assignment.hosts.items()
    ]


def _without_choice(
    hosts: list[HostState], tasks: list[TaskId], stateful: list[TaskId], assigned: list[dict[str, Any]]
) -> dict[str, object]:
    active = {host["id"]: set(_tasks(host["active"])) for host in assigned}
    standbys = Counter(task for host in assigned for task in _tasks(host["standby"]))
    share = len(tasks) // sum(host.consumers for host in hosts)
    room = {host.process_id.int: share * host.consumers for host in hosts}
    ran = {host.process_id.int: host.previous_active for host in hosts}
    fitting = [host for host in ran if len(ran[host]) <= room[host]]
    kept = {task for host in fitting for task in ran[host]}
    owned = {task for host in ran for task in ran[host]}
    copies = {task: [host.process_id.int for host in hosts if task in host.previous_standby] for task in tasks}
    inherited = {}
    for host in fitting:
        wanted = {task for task in tasks if task not in kept and host in copies[task]}
        if len(ran[host]) + len(wanted) <= room[host]:
            inherited[host] = {task for task in wanted - owned if copies[task] == [host]}
    return {
        "keep": {host: sorted(ran[host] & active[host]) for host in fitting},
        "inherit": {host: sorted(active[host] & its) for host, its in inherited.items()},
        "standbys": {str(task): standbys[task] for task in stateful},
        "owners": sorted(task for host in assigned for task in _tasks(host["active"])),
    }


def _tasks(texts: Iterable[str]) -> list[TaskId]:
    return sorted(map(TaskId.parse, texts))
