"""A commit that stands: it was made, and no rollback has taken it back."""

from __future__ import annotations

from typing import TYPE_CHECKING

from statelib.commits.job_names import check_job_name
from statelib.commits.layout import CommitLog, rolled_back
from statelib.errors.did_you_mean import next_to
from statelib.errors.kinds import ConfigurationError

if TYPE_CHECKING:
    from statelib.documents.manifests import Commit
    from statelib.storage import Storage


def standing_commit(warehouse: Storage, job: str, n: int | None = None) -> Commit:
    """Commit ``n`` of a job, None: the newest, whose records are those that the sinks have.

    Raises:
        ConfigurationError: No job can have that name; or there is no such commit, or it has been rolled back since.
        CorruptedDataError: The document of a commit is damaged.
    """
    check_job_name(job)
    log = CommitLog(warehouse, job)
    head = log.head_number()
    wanted = head if n is None else n
    check_number(warehouse, job, wanted, head)
    later = rolled_back(log.read(number) for number in range(wanted + 1, head + 1))
    if wanted in later:
        what = f"this commit has been rolled back by commit {later[wanted]}: its records have left the sinks"
        raise ConfigurationError(
            what, job=job, commit=wanted, next_step=f"name a commit that stands: hindstream state {job}"
        )
    return log.read(wanted)


def check_number(warehouse: Storage, job: str, n: int, head: int) -> None:
    """Makes sure that a job whose newest commit is ``head`` (0: it has none) has commit ``n``.

    Raises:
        ConfigurationError: It has not.
    """
    if not head:
        raise no_commits(warehouse, job)
    if not 1 <= n <= head:
        what = f"there is no such commit: the job has the commits 1 to {head}"
        raise ConfigurationError(what, job=job, commit=n, next_step=f"name one of them: hindstream state {job}")


def no_commits(warehouse: Storage, job: str) -> ConfigurationError:
    """What to raise where a job has no commits: of those that there are, another one may be meant."""
    otherwise = "name a job that has run: hindstream jobs lists them; --warehouse says of which warehouse"
    return ConfigurationError("the job has no commits", job=job, next_step=job_meant(warehouse, job) or otherwise)


def job_meant(warehouse: Storage, job: str) -> str:
    """The question whether a job of a name like this is meant; empty: there is none."""
    return next_to(job, {path.rpartition("/")[2] for path in warehouse.folders("jobs")} - {job})
