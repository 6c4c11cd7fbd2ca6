"""What the state of a job rests on: the plans of all runs that led to a commit."""

from __future__ import annotations

from typing import TYPE_CHECKING

from statelib.commits.layout import CommitLog, Runs, rolled_back
from statelib.errors.kinds import ConfigurationError

if TYPE_CHECKING:
    from statelib.documents.manifests import Plan
    from statelib.storage import Storage


def past_plans(warehouse: Storage, job: str, commit: int) -> list[Plan]:
    """The plans of the replays on which a commit rests, first one first; of a fork, those of the job before it too.

    What has been rolled back before the commit is left out; what was rolled back later is not.

    Args:
        warehouse: Root of all durable data.
        job: The job's name.
        commit: The number of its commit.

    Raises:
        ConfigurationError: The state came from a live application.
        CorruptedDataError: A document is missing or damaged.
    """
    log, runs = CommitLog(warehouse, job), Runs(warehouse, job)
    commits = [log.read(number) for number in range(1, commit + 1)]
    gone = rolled_back(commits)
    plans: list[Plan] = []
    for one in commits:
        if one.commit in gone or one.rolled_back_to is not None:
            continue
        if one.taken_over is not None:
            what = f"the state of commit {one.commit} was {one.instead_of_replay}, so the history lacks its beginning"
            step = "let the stores begin empty: leave them out of fill_stores, and name changed ones in reset_stores"
            raise ConfigurationError(what, job=job, next_step=step)
        if one.forked_from is not None:
            plans += past_plans(warehouse, one.forked_from.job, one.forked_from.commit)
        else:
            plans.append(runs.plan_of(one))
    return plans
