"""What the state of a job rests on: the plans of all runs that led to a commit."""

from __future__ import annotations

from typing import TYPE_CHECKING

from statelib.commits.layout import CommitLog, Runs, rolled_back
from statelib.errors.kinds import ConfigurationError

if TYPE_CHECKING:
    from statelib.documents.manifests import Commit, TaskPosition
    from statelib.documents.plans import Plan
    from statelib.storage import Storage


def past_plans(warehouse: Storage, job: str, commit: int) -> list[Plan]:
    """The plans of the replays on which a commit rests, first one first; of a fork, those of the job before it too.

    What has been rolled back before the commit is left out; what was rolled back later is not. After a repair, state
    rests on what the fork has replayed: the same records. Where the fork is gone, the job's own slices stand for that
    if all of them end at times, since the answer then is the same however the history is cut.

    Args:
        warehouse: Root of all durable data.
        job: The job's name.
        commit: The number of its commit.

    Raises:
        ConfigurationError: The state came from a live application, or from a fork that is gone.
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
            raise _elsewhere(one, "so the history lacks its beginning")
        if one.forked_from is not None:
            plans += past_plans(warehouse, one.forked_from.job, one.forked_from.commit)
        elif one.repaired_by is not None:
            by = one.repaired_by
            if _is_state_of(CommitLog(warehouse, by.job).read_if_present(by.commit), one):
                plans = past_plans(warehouse, by.job, by.commit)
            elif any(plan.until_ms is None for plan in plans):
                raise _elsewhere(one, "and that fork is gone, with the record of the slices that it has replayed")
        else:
            plans.append(runs.plan_of(one))
    return plans


def _is_state_of(made: Commit | None, repaired: Commit) -> bool:
    """Whether a repair has the state of a commit: another fork may have got the name since."""
    return made is not None and _content(made) == _content(repaired)


def _content(commit: Commit) -> dict[str, tuple[TaskPosition, list[tuple[str, str]]]]:
    return {
        task_id: (task.position, [(file.name, file.sha256) for file in task.state.files])
        for task_id, task in commit.tasks.items()
    }


def _elsewhere(commit: Commit, so: str) -> ConfigurationError:
    return ConfigurationError(
        f"stores cannot be filled: the state of commit {commit.commit} was {commit.instead_of_replay}, {so}",
        job=commit.job,
        next_step="let the stores begin empty: leave them out of fill_stores, and name changed ones in reset_stores",
    )
