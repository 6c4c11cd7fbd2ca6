"""Whether a fork can repair its job."""

from __future__ import annotations

from typing import TYPE_CHECKING

from statelib.commits.forks import check_no_sample, forked_from, read_reference
from statelib.commits.layout import CommitLog, JobLayout, Runs, changelog_topic
from statelib.commits.open_runs import check_no_replay_open
from statelib.commits.standing import standing_commit
from statelib.documents.places import place_of
from statelib.errors.kinds import ConfigurationError, CorruptedDataError
from statelib.settings.semantics import rules_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from statelib.documents.manifests import Commit
    from statelib.documents.plans import RepairedBy
    from statelib.documents.topologies import TopologyDescription
    from statelib.storage import Storage


def check_no_other_run(warehouse: Storage, head: Commit, by: RepairedBy, *, supersede: bool) -> None:
    """Makes sure that no run but this repair, begun before, would lose its commit number.

    Raises:
        ConfigurationError: One would.
    """
    last = [None, *(plan.repaired_by for plan in Runs(warehouse, head.job).attempts(head.commit + 1))][-1]
    is_over = last is not None and not CommitLog(warehouse, last.job).head_number()  # its fork has been dropped
    if last != by and not is_over:
        check_no_replay_open(warehouse, head.job, head.commit, supersede=supersede)


def check_fork(warehouse: Storage, head: Commit, made: Commit) -> None:
    """Makes sure that the fork stands on the job, and has come exactly as far."""
    job, fork = head.job, made.job
    reference = read_reference(warehouse, job, fork)
    if reference is None:
        base = forked_from(warehouse, fork)
        what = "the job that is to repair it is no fork of it" if base is None else f"it is a fork of {base.job}"
        step_ = f"fork the job at a commit before the fault: hindstream fork {job} NEW --commit N"
        raise ConfigurationError(what, job=job, fork=fork, next_step=step_)
    if forked_from(warehouse, job) is not None:
        what = "the job is a fork itself, and only what its readers have can be corrected"
        raise ConfigurationError(what, job=job, next_step="repair the job that it stands on")
    if reference.commit:  # else it has replayed from the beginning
        standing_commit(warehouse, job, reference.commit)  # else its sinks have not what the fork begins with
    check_no_sample(warehouse, made)
    _check_offsets(head, made)
    for what, of_job, of_fork in (
        ("semantics", _rules(head), _rules(made)),
        ("end of input", head.end_of_input, made.end_of_input),
    ):
        if of_job != of_fork:
            raise ConfigurationError(
                f"the job's last run has the {what} {of_job}, the fork's {of_fork}",
                job=job,
                fork=fork,
                next_step=f"run the fork with the same: --fork {fork}",
            )


def _rules(commit: Commit) -> str | None:
    return None if commit.semantics is None else rules_of(commit.semantics)


def check_topologies(warehouse: Storage, head: Commit, made: Commit) -> TopologyDescription:
    """Makes sure that the job's tasks can go on from those of the fork; gives what the fork's topology is made of."""
    job = head.job
    if head.tasks.keys() != made.tasks.keys():
        odd = min(head.tasks.keys() ^ made.tasks.keys())
        raise ConfigurationError(
            "the fork's topology has other tasks than the job's",
            job=job,
            fork=made.job,
            task=odd,
            next_step="give the readers the fork's sinks instead",
        )
    before = Runs(warehouse, job).topology(head.fingerprint)
    logged = [changelog_topic(job, store.name) for store in before.stores] if before is not None else []
    kept = [topic for topic in logged if topic in head.sink_offsets()]
    if kept:
        raise ConfigurationError(
            "the job keeps changelogs, and a repair would not be in them",
            job=job,
            topic=kept[0],
            next_step="roll the job back to before the fault, and run the corrected topology:"
            f" hindstream state rollback {job} --to N",
        )
    described = Runs(warehouse, made.job).topology(made.fingerprint)
    if described is None:
        file = warehouse.uri(JobLayout(made.job).topology(made.fingerprint))
        raise CorruptedDataError(
            "the description of the topology is missing", file=file, next_step="run the fork again"
        )
    return described


def _check_offsets(head: Commit, made: Commit) -> None:
    of_job, of_fork = (_flat(commit.source_offsets()) for commit in (head, made))
    for place in sorted(of_job.keys() | of_fork.keys()):
        if of_job.get(place, 0) != of_fork.get(place, 0):
            raise ConfigurationError(
                "the fork has not replayed what the job has:"
                f" of {place} the job has come to offset {of_job.get(place, 0)}, the fork to {of_fork.get(place, 0)}",
                job=head.job,
                fork=made.job,
                next_step="let a new fork go exactly as far: hindstream repair FILE.py:NAME --from TIME",
            )


def _flat(offsets: Mapping[str, Mapping[int, int]]) -> dict[str, int]:
    return {place_of(topic, partition): end for topic, ends in offsets.items() for partition, end in ends.items()}
