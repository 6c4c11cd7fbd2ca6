"""Makes an earlier commit the head again, by a new commit: nothing is rewritten.

The new commit has the state and the positions of the one that it goes back to. Published, it takes the files of the
commits in between out of the sinks' archives; the next plan goes on where the earlier commit ended. It is a run with a
plan and a commit: it wants the next commit number like any other, and a driver that is still replaying loses to it, or
it to the driver.

The plan says where the rollback goes before it looks whether that state has expired; maintenance, which sets its mark
first and then looks for such plans, can so never delete what a rollback is about to bring back.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from statelib.commits.archives import open_archive_if_present
from statelib.commits.expiry import check_restorable
from statelib.commits.forks import forks_on
from statelib.commits.hold import check_free
from statelib.commits.layout import CommitLog, Runs, rolled_back, run_id
from statelib.commits.open_runs import check_no_replay_open, open_replay
from statelib.commits.publication.lost_plans import ensure_plan
from statelib.commits.publication.publish import publish
from statelib.commits.standing import check_number
from statelib.commits.stored_files import check_state_stored
from statelib.commits.versions.promotion import served_by
from statelib.documents.manifests import sink_files
from statelib.documents.plans import made_again
from statelib.errors.counted import counted
from statelib.errors.kinds import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from statelib.documents.manifests import Commit, CommittedTask
    from statelib.documents.plans import Plan
    from statelib.storage import Storage


@dataclass(frozen=True, slots=True)
class TakenBack:
    """What a rollback takes out of a topic."""

    files: int
    rows: int


@dataclass(frozen=True, slots=True)
class RollbackPreview:
    """What a rollback would do.

    Attributes:
        to: The commit that it goes back to.
        head: The newest commit.
        commits: Those that it takes back; such as have been taken back before, and rollbacks, are not counted.
        topics: By sink topic, what goes.
        records: How many records of the sources will have to be replayed to come as far again; holes not counted.
        open_run: A run that would lose its commit number; None: there is none.
        forks: Forks whose history begins with records that go. They are not touched, but that beginning is lost.
        serves: Jobs whose readers read this one, and go back with it.
    """

    to: int
    head: int
    commits: tuple[int, ...]
    topics: Mapping[str, TakenBack]
    records: int
    open_run: str | None
    forks: tuple[str, ...] = ()
    serves: tuple[str, ...] = ()


def preview_rollback(warehouse: Storage, job: str, to: int) -> RollbackPreview:
    """What a rollback to commit ``to`` would do. Changes nothing.

    Raises:
        ConfigurationError: There is no such commit, it is the head, it has been taken back itself, or its state has
            expired; or a fork that serves readers would lose the beginning of its history.
        CorruptedDataError: A file of its state is missing.
    """
    log = CommitLog(warehouse, job)
    head = log.head_number()
    _check_target(warehouse, log, to, head)
    _check_readers(warehouse, log, to, head)
    taken = _to_take_back(log, to, head)
    topics = {
        topic: TakenBack(len(files), sum(file.rows for file in files)) for topic, files in sink_files(taken).items()
    }
    runs = Runs(warehouse, job)
    plans = [plan for commit in taken if (plan := runs.plan(commit.run_id)) is not None]
    return RollbackPreview(
        to=to,
        head=head,
        commits=tuple(commit.commit for commit in taken),
        topics=topics,
        records=sum(plan.records for plan in plans),
        open_run=open_replay(warehouse, job, head),
        forks=forks_on(warehouse, job, _standing(log, to, head)),
        serves=served_by(warehouse, job),
    )


def rollback(
    warehouse: Storage, job: str, to: int, *, now_ms: int, supersede: bool = False, holder: str | None = None
) -> Commit:
    """Makes commit ``to`` the head again, by a new commit, and publishes it. A repeat changes nothing.

    Args:
        warehouse: Root of all durable data.
        job: The job's name.
        to: The commit to go back to.
        now_ms: The wall clock, for the commit's ``created_at_ms``.
        supersede: Whether to take the commit number of a run that is open: if it is still at work it ends with a
            `FencedError`.
        holder: By which name the caller holds the job; None: it does not (`statelib.commits.hold`).

    Returns:
        The new commit, or the head if that is a rollback to ``to`` already.

    Raises:
        ConfigurationError: See `preview_rollback`; or a run is open, or somebody holds the job.
        CorruptedDataError: A file of the state is missing.
        FencedError: Another run was quicker to commit.
    """
    check_free(warehouse, job, holder)
    log = CommitLog(warehouse, job)
    head = log.head()
    if head is not None and head.rolled_back_to is not None:
        publish(warehouse, job)  # no commit follows a rollback that its readers have not seen
        if head.rolled_back_to == to:
            return head
    number = head.commit if head else 0
    _check_target(warehouse, log, to, number)
    _check_readers(warehouse, log, to, number)
    check_no_replay_open(warehouse, job, number, supersede=supersede)
    _check_sinks(warehouse, log, to, number)
    target = log.read(to)
    plan = plan_again(warehouse, target, number + 1, now_ms)
    _check_target(warehouse, log, to, number)  # now that the plan is there: see the module's docstring
    _check_readers(warehouse, log, to, number)
    return commit_again(warehouse, target, plan, target.tasks, now_ms=now_ms)


def _to_take_back(log: CommitLog, to: int, head: int) -> list[Commit]:
    """The commits after ``to`` that have not been taken back yet, and are no rollbacks."""
    later = [log.read(n) for n in range(to + 1, head + 1)]
    gone_before = rolled_back(later)
    return [commit for commit in later if commit.commit not in gone_before and commit.rolled_back_to is None]


def _standing(log: CommitLog, to: int, head: int) -> set[int]:
    """The commits after ``to`` that have not been taken back yet, rollbacks among them."""
    later = range(to + 1, head + 1)
    return {*later} - rolled_back(map(log.read, later)).keys()


def _check_readers(warehouse: Storage, log: CommitLog, to: int, head: int) -> None:
    """Makes sure that no fork loses the beginning of its history while somebody reads it.

    Raises:
        ConfigurationError: One would.
    """
    for fork in forks_on(warehouse, log.job, _standing(log, to, head)):
        for over in served_by(warehouse, fork):
            raise ConfigurationError(
                f"the readers of {over} read {fork}, whose history begins with records that would go",
                job=log.job,
                commit=to,
                next_step=f"let them read another job first: hindstream promote --back --over {over}",
            )


def _check_sinks(warehouse: Storage, log: CommitLog, to: int, head: int) -> None:
    """Makes sure that what is to be taken back is in files of its own: nobody else may have merged these.

    Raises:
        ConfigurationError: Somebody has.
    """
    for topic, written in sorted(sink_files(_to_take_back(log, to, head)).items()):
        archive = open_archive_if_present(warehouse, topic)
        if archive is None or not archive.has_committed(log.job, head):
            continue
        lost = len(written) - len(archive.present(written))
        if lost:
            raise ConfigurationError(
                f"of the {counted(len(written), 'file')} that the rollback would remove, {lost} are no longer in the"
                " topic's archive: another program has merged or changed them",
                job=log.job,
                topic=topic,
                next_step=f"republish the topic, then roll back: hindstream state republish {log.job} {topic}",
            )


def commit_again(
    warehouse: Storage, target: Commit, plan: Plan, tasks: Mapping[str, CommittedTask], *, now_ms: int
) -> Commit:
    """Makes the commit of ``plan``, a rollback to ``target``, and publishes it.

    Args:
        warehouse: Root of all durable data.
        target: The commit whose state and positions come again.
        plan: The stored plan: see `plan_again`.
        tasks: The same state, in the same files or in others.
        now_ms: The wall clock, for the commit's ``created_at_ms``.

    Returns:
        The commit that is there now.

    Raises:
        FencedError: Another run was quicker to commit.
    """
    new = made_again(
        target,
        commit=plan.commit,
        run_id=plan.run_id,
        tasks=tasks,
        sinks=(),
        created_at_ms=now_ms,
        rolled_back_to=target.commit,
    )
    standing = CommitLog(warehouse, target.job).claim(new, "rollback")
    publish(warehouse, target.job)
    return standing


def _check_target(warehouse: Storage, log: CommitLog, to: int, head: int) -> None:
    place = {"job": log.job, "commit": to}
    look = f"hindstream state {log.job}"
    check_number(warehouse, log.job, to, head)
    if to == head:
        raise ConfigurationError("this commit is the head already", **place, next_step=look)
    later = rolled_back(log.read(n) for n in range(to + 1, head + 1))
    if to in later:
        what = f"this commit has itself been taken back, by commit {later[to]}"
        raise ConfigurationError(what, **place, next_step=f"replay what it replayed; the records are the same; {look}")
    check_restorable(warehouse, log.job, to)
    check_state_stored(warehouse, log.read(to), "go back to another commit")


def plan_again(warehouse: Storage, target: Commit, number: int, now_ms: int) -> Plan:
    """The stored plan of the rollback: that of an interrupted one, if it was the last try, or a new one."""
    runs = Runs(warehouse, target.job)
    ensure_plan(warehouse, target)
    before = runs.plan_of(target)
    plan = made_again(
        before,
        run_id=run_id(number, 1),
        commit=number,
        tasks=(),
        created_at_ms=now_ms,
        rolled_back_to=target.commit,
        begun_anew=None,
    )
    return runs.settle(plan, lambda last: last.rolled_back_to == target.commit, "rollback")
