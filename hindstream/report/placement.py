"""Where the tasks of a run ran, what they fetched, and who keeps copies: rows for pages and the command line."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence
    from uuid import UUID

    from hindstream.report.documents import RunDocuments
    from statelib.documents.manifests import Staged, TaskOutcome
    from statelib.placement.documents import CopyUpdate, PlacedHost


@dataclass(frozen=True, slots=True)
class Waiting:
    """How long a run stood still (the "stop the world" of the wiki page), and what it fetched of states.

    Attributes:
        first_seconds: From the run's start to the first task that processes records; None: not known.
        last_seconds: The same of the last one, which may have waited for other tasks as well.
        fetched_bytes: Of states, by tasks before they processed: on the critical path.
        copied_bytes: Of states, by standbys and learners after the commit: off the critical path.
    """

    first_seconds: float | None
    last_seconds: float | None
    fetched_bytes: int
    copied_bytes: int


@dataclass(frozen=True, slots=True)
class HostRow:
    """A host in the round of a run."""

    name: str
    executors: str
    rack: str
    consumers: int
    active: Sequence[str]
    standby: Sequence[str]
    learning: Sequence[str]


@dataclass(frozen=True, slots=True)
class CopyRow:
    """A copy of a task's state.

    Attributes:
        host: Whose it is.
        is_learning: Whether the host gets it in order to run the task later.
        lag_bytes: What it lacks of the newest state that is known; None: all.
        copied_bytes: What came after the run's commit; None: it is not known yet.
        remark: What went wrong or was begun anew; empty: nothing.
    """

    host: str
    is_learning: bool
    lag_bytes: int | None
    copied_bytes: int | None
    remark: str


@dataclass(frozen=True, slots=True)
class TaskRow:
    """A task in the round of a run.

    Attributes:
        owner: The host that was to run it.
        lag_bytes: What that lacked of the state when it was asked; None: all.
        ran_on: The host that did; None: it has not been run.
        is_elsewhere: Whether that was another one.
        fetched_bytes: Of the state, before it processed.
        before: The host that ran it last; empty: nobody knows.
        why: Why that was another one; empty: it was not.
        copies: On other hosts.
    """

    task_id: str
    owner: str
    lag_bytes: int | None
    ran_on: str | None
    is_elsewhere: bool
    fetched_bytes: int
    before: str
    why: str
    copies: Sequence[CopyRow]


def waiting(run: RunDocuments) -> Waiting | None:
    """None: the run has not been replayed."""
    if run.staged is None:
        return None
    began_at_ms = run.staged.began_at_ms
    own = [task for task in run.staged.tasks if task.began_at_ms and not _is_of_earlier_try(task, run.staged)]
    starts = sorted(_processing_at_ms(task) - began_at_ms for task in own)
    is_known = began_at_ms > 0 and starts
    return Waiting(
        first_seconds=max(starts[0], 0) / 1000 if is_known else None,
        last_seconds=max(starts[-1], 0) / 1000 if is_known else None,
        fetched_bytes=sum(task.fetched_bytes for task in run.staged.tasks),
        copied_bytes=sum(copy.fetched_bytes for copy in run.copies.copies) if run.copies else 0,
    )


def _is_of_earlier_try(task: TaskOutcome, staged: Staged) -> bool:
    return staged.done_before > 0 and task.began_at_ms < staged.began_at_ms


def host_rows(run: RunDocuments) -> list[HostRow]:
    """The hosts of the run's round; none: Spark was local."""
    return [
        HostRow(
            host_name(host),
            ", ".join(host.executors),
            host.rack or "",
            host.consumers,
            host.active,
            host.standby,
            host.learning,
        )
        for host in (run.placement.hosts if run.placement else ())
    ]


def task_rows(run: RunDocuments) -> list[TaskRow]:
    """The tasks of the run's round; none: Spark was local."""
    placement = run.placement
    if placement is None:
        return []
    names = {host.process_id: host_name(host) for host in placement.hosts}
    outcomes = {task.task_id: task for task in run.staged.tasks} if run.staged else {}
    updates = {(copy.task_id, copy.process_id): copy for copy in run.copies.copies} if run.copies else {}
    moves = {move.task_id: move for move in placement.moves}
    rows = []
    for task_id, owner in sorted(placement.owners().items(), key=lambda item: _order(item[0])):
        outcome, move = outcomes.get(task_id), moves.get(task_id)
        rows.append(
            TaskRow(
                task_id=task_id,
                owner=host_name(owner),
                lag_bytes=owner.lags.get(task_id),
                ran_on=_ran_on(outcome, names),
                is_elsewhere=outcome is not None and outcome.process_id != owner.process_id,
                fetched_bytes=outcome.fetched_bytes if outcome else 0,
                before=_name(move.before, names) if move else host_name(owner),
                why=move.why if move else "",
                copies=[
                    _copy(host, task_id, updates.get((task_id, host.process_id)))
                    for host in placement.hosts
                    if task_id in host.standby or task_id in host.learning
                ],
            )
        )
    return rows


def host_name(host: PlacedHost) -> str:
    """Enough of the process id, and the machine."""
    machines = sorted({name.rpartition("/")[0] for name in host.executors})
    return f"{str(host.process_id)[:8]} ({', '.join(machines)})"


def _copy(host: PlacedHost, task_id: str, update: CopyUpdate | None) -> CopyRow:
    remark = "" if update is None else update.error or (f"made again: {update.rebuilt}" if update.rebuilt else "")
    return CopyRow(
        host=host_name(host),
        is_learning=task_id in host.learning,
        lag_bytes=update.lag_bytes if update else host.lags.get(task_id),
        copied_bytes=update.fetched_bytes if update else None,
        remark=remark,
    )


def _ran_on(outcome: TaskOutcome | None, names: dict[UUID, str]) -> str | None:
    return None if outcome is None else _name(outcome.process_id, names)


def _name(process_id: UUID | None, names: dict[UUID, str]) -> str:
    """A host that may not be there any more."""
    return "" if process_id is None else names.get(process_id, str(process_id)[:8])


def _processing_at_ms(task: TaskOutcome) -> int:
    return task.began_at_ms + round(1000 * task.seconds.get("restore", 0.0))


def _order(task_id: str) -> tuple[int, ...]:
    return tuple(map(int, task_id.split("_")))
