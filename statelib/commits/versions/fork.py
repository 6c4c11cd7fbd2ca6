"""Makes a fork: a job that goes on from a commit of another one, whose state files it shares.

A fork is a job like any other, whose first commit has the state and the positions of the commit that it stands on.
That is a run with a plan and a commit and nothing in between: no state file is read, written or copied, whatever their
size. Its sinks are its own. They have other names, and begin empty; the topology with the sinks renamed goes on from
the state as after any change (`statelib.commits.topologies.evolution`).

First of all the fork's reference is created below the job that it stands on: from then on maintenance of that job keeps
the files (`statelib.commits.forks`). A call that was stopped is given again, and goes on with its reference and plan.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from statelib.commits.archives import open_archive_if_present
from statelib.commits.expiry import check_restorable
from statelib.commits.forks import begins_empty, check_no_sample, is_being_dropped, read_reference
from statelib.commits.job_names import check_job_name
from statelib.commits.layout import CommitLog, JobLayout, Runs, fork_topic, late_topic, quarantine_topic, run_id
from statelib.commits.standing import standing_commit
from statelib.commits.stored_files import check_state_stored
from statelib.documents.plans import ForkedFrom, Plan, made_again
from statelib.documents.upkeep import ForkReference
from statelib.errors.fault_points import step
from statelib.errors.kinds import ConfigurationError, FencedError

if TYPE_CHECKING:
    from statelib.documents.manifests import Commit
    from statelib.documents.topologies import TopologyDescription
    from statelib.documents.upkeep import Trial
    from statelib.storage import Storage


class _GoneError(ConfigurationError):
    """The job that was to be forked is gone: whoever comes after that drop is told so."""


def fork(
    warehouse: Storage, job: str, new: str, commit: int | None = None, *, now_ms: int, trial: Trial | None = None
) -> Commit:
    """Makes the job ``new``, which goes on from a commit of ``job``. A repeat changes nothing.

    Args:
        warehouse: Root of all durable data.
        job: The job that it stands on; it may be a fork itself.
        new: The fork's name.
        commit: The commit; None: the newest, or where an interrupted call has begun.
        now_ms: The wall clock, for the commit's ``created_at_ms``.
        trial: Of a fork that is dropped when it has been compared.

    Returns:
        The fork's first commit.

    Raises:
        ConfigurationError: There is no such commit, it has been rolled back, is sealed, or its state has expired; the
            job is being dropped; or there is a job of the new name, or an archive of one of its sinks.
        CorruptedDataError: A file of the state is missing.
        FencedError: A run of the new name was quicker to commit.
    """
    check_job_name(new)
    done = _made_already(warehouse, job, new, commit)
    if done is not None:
        return done
    begun = read_reference(warehouse, job, new)
    if begun is not None and commit is None:
        commit = begun.commit
    target = standing_commit(warehouse, job, commit)
    check_no_sample(warehouse, target)
    described = _check_target(warehouse, target)
    _check_kept(warehouse, target)
    _check_new(warehouse, new, described)
    _refer(warehouse, ForkReference(fork=new, commit=target.commit, trial=trial), job)
    try:
        _check_kept(warehouse, target)  # now that the reference is there: see `statelib.commits.forks`
    except _GoneError:
        warehouse.delete(JobLayout(job).fork(new))  # nobody who is told this has made the fork
        raise
    warehouse.put_if_absent(JobLayout(new).topology(target.fingerprint), described.encode())
    plan = _settled_plan(warehouse, target, new, now_ms)
    made = made_again(
        target,
        job=new,
        commit=plan.commit,
        run_id=plan.run_id,
        tasks={task_id: task.within_fork(job) for task_id, task in target.tasks.items()},
        sinks=(),
        created_at_ms=now_ms,
        forked_from=plan.forked_from,
    )
    standing = _claimed(warehouse, made)
    _check_not_dropped(warehouse, target, new)
    return standing


def fork_from_beginning(warehouse: Storage, job: str, new: str, *, trial: Trial | None = None) -> None:
    """Makes a fork that shares nothing with ``job``: it replays from the beginning. A repeat changes nothing.

    Args:
        warehouse: Root of all durable data.
        job: The job, which may be a fork itself.
        new: The fork's name.
        trial: Of a fork that is dropped when it has been compared.

    Raises:
        ConfigurationError: There is no such job, or a job of the new name, or one of them is being dropped.
    """
    check_job_name(new)
    standing_commit(warehouse, job)
    for name in (job, new):
        if is_being_dropped(warehouse, name):
            raise ConfigurationError("the fork is being dropped", job=name, next_step="choose another name")
    begun = read_reference(warehouse, job, new)
    if begun is None:
        if CommitLog(warehouse, new).head_number() or begins_empty(warehouse, new):
            raise ConfigurationError("there is a job of this name already", job=new, next_step="choose another name")
        _check_no_open_run(warehouse, new)
    _refer(warehouse, ForkReference(fork=new, commit=0, trial=trial), job)


def _claimed(warehouse: Storage, made: Commit) -> Commit:
    """The fork's first commit, made by this call or by another one.

    Raises:
        FencedError: A run that makes no such fork has that number.
    """
    log, base = CommitLog(warehouse, made.job), made.forked_from
    try:
        return log.claim(made, "fork")
    except FencedError:
        standing = log.read(made.commit)
        if standing.forked_from == base:
            return standing
        if base is not None:
            warehouse.delete(JobLayout(base.job).fork(made.job))  # it will never be a fork
        raise


def _made_already(warehouse: Storage, job: str, new: str, commit: int | None) -> Commit | None:
    """The fork's first commit, if it has been made.

    Raises:
        ConfigurationError: There is a job of that name which is another one; or it is being dropped.
    """
    if is_being_dropped(warehouse, new):
        step_ = f"let that end, or repeat it: hindstream drop {new}"
        raise ConfigurationError("the former fork of this name is being dropped", job=new, next_step=step_)
    first = CommitLog(warehouse, new).read_if_present(1)
    if first is None:
        return None
    base = first.forked_from
    if base is not None and base.job == job and commit in {None, base.commit}:
        return first
    what = "there is a job of this name already"
    if base is not None:
        what = f"there is a fork of this name already, of {base.job} at commit {base.commit}"
    raise ConfigurationError(what, job=new, next_step="choose another name" + (_or_drop(new) if base else ""))


def _or_drop(new: str) -> str:
    return f", or drop that one first: hindstream drop {new}"


def _check_target(warehouse: Storage, target: Commit) -> TopologyDescription:
    """Makes sure that another topology can go on from a commit; gives what its own is made of."""
    place = {"job": target.job, "commit": target.commit}
    if target.end_of_input == "seal":
        what = "the commit is sealed: its windows are closed, so nothing can go on from it"
        raise ConfigurationError(what, **place, next_step="fork an earlier commit: --commit N")
    described = Runs(warehouse, target.job).topology(target.fingerprint)
    if described is None:
        what = "nobody has written down which topology made the commit, so that no fork can go on from it"
        raise ConfigurationError(what, **place, next_step="run the job once more with this release, which writes it")
    return described


def _check_new(warehouse: Storage, new: str, described: TopologyDescription) -> None:
    """Makes sure that nobody is about to use the fork's name, and that its sinks would begin empty."""
    _check_no_open_run(warehouse, new)
    written = [str(node.settings["topic"]) for node in described.nodes if node.settings["node"] == "sink"]
    for topic in (*(fork_topic(topic, new) for topic in written), late_topic(new), quarantine_topic(new)):
        archive = open_archive_if_present(warehouse, topic)
        if archive is not None and archive.rows:
            what = "a sink of the fork would have this name, and its archive already holds records"
            raise ConfigurationError(what, job=new, topic=topic, next_step="choose another name")


def _check_no_open_run(warehouse: Storage, new: str) -> None:
    runs = Runs(warehouse, new)
    for plan in runs.attempts(1):
        if plan.forked_from is None and not runs.is_quarantined(plan.run_id):
            what = "a run of a job of this name is open"
            raise ConfigurationError(what, job=new, run=plan.run_id, next_step="choose another name")


def _refer(warehouse: Storage, wanted: ForkReference, job: str) -> None:
    """Says that the fork stands on the commit."""
    new = wanted.fork
    step("fork.before-reference")
    warehouse.put_if_absent(JobLayout(job).fork(new), wanted.encode())
    step("fork.referenced")
    standing = read_reference(warehouse, job, new)
    if standing is not None and standing.commit != wanted.commit:
        raise ConfigurationError(
            f"somebody has begun to make this fork of commit {standing.commit}",
            job=new,
            next_step=f"go on with that one: --commit {standing.commit}{_or_drop(new)}",
        )
    if standing is None:
        what = "somebody has dropped the fork meanwhile"
        raise ConfigurationError(what, job=new, next_step="run the same command again")


def _check_not_dropped(warehouse: Storage, target: Commit, new: str) -> None:
    """Makes sure that nobody has dropped the fork while it was made: its files may have gone since."""
    if read_reference(warehouse, target.job, new) is None:
        reference = ForkReference(fork=new, commit=target.commit)
        warehouse.put_if_absent(JobLayout(target.job).fork(new), reference.encode())  # for the drop that follows
        what = "somebody has dropped the fork while it was made"
        raise ConfigurationError(
            what, job=new, next_step=f"drop what is there now, and fork again: hindstream drop {new}"
        )


def _check_kept(warehouse: Storage, target: Commit) -> None:
    if is_being_dropped(warehouse, target.job):
        step_ = "fork the job that it stands on"
        raise ConfigurationError("the job, a fork itself, is being dropped", job=target.job, next_step=step_)
    if CommitLog(warehouse, target.job).read_if_present(target.commit) != target:
        what = "the job, a fork itself, has been dropped"
        raise _GoneError(what, job=target.job, next_step="fork the job that it stood on")
    check_restorable(warehouse, target.job, target.commit)
    check_state_stored(warehouse, target, "fork another commit")


def _settled_plan(warehouse: Storage, target: Commit, new: str, now_ms: int) -> Plan:
    """The stored plan of the fork: that of an interrupted call, if it was the last try, or a new one."""
    base, runs = ForkedFrom(job=target.job, commit=target.commit), Runs(warehouse, new)
    plan = Plan(
        job=new,
        run_id=run_id(1, 1),
        commit=1,
        fingerprint=target.fingerprint,
        until_ms=target.until_ms,
        semantics=target.semantics,
        sources=target.sources,
        tasks=(),
        sink_partitions={},
        created_at_ms=now_ms,
        forked_from=base,
    )
    return runs.settle(plan, lambda last: last.forked_from == base, "fork")
