"""Forks that stand on a job, and the state files that they need of it.

::

    jobs/<job>/forks/<fork>.json    see `statelib.documents.upkeep.ForkReference`

A fork's commits name files in the folders of the jobs that it comes from, so their maintenance has to know of it.
Whoever makes a fork creates its reference *before* looking whether the commit has expired, or the job is being dropped.
Maintenance sets its mark, and a drop leaves its record, *before* they look for references. Whoever comes second sees
the other: the fork is refused, or the files stay. A fork of a fork has its reference at the fork; maintenance of the
first job finds it there, and looks at each job's mark before it looks which forks stand on that job.

A fork of commit 0 replays from the beginning. It has nothing of the job but this reference, by which it can be dropped.

A fork's later commits name files of its own runs, and files that its restorable commits have: what a job's folder holds
for it only becomes less. A reference goes when the fork is dropped, or when its name has become another job's.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from statelib.commits.expiry import restorable_commits
from statelib.commits.layout import CommitLog, JobLayout, Runs
from statelib.documents.upkeep import ForkReference
from statelib.errors.kinds import ConfigurationError, CorruptedDataError

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from statelib.documents.manifests import Commit
    from statelib.documents.plans import ForkedFrom
    from statelib.storage import Storage

_REFERENCE = re.compile(r"(?P<fork>.+)\.json")


def forks_of(warehouse: Storage, job: str) -> tuple[str, ...]:
    """The forks that stand on a job, or are being made or dropped; by name."""
    names = (entry.path.rpartition("/")[2] for entry in warehouse.list(f"{JobLayout(job).root}/forks"))
    return tuple(sorted(match["fork"] for match in map(_REFERENCE.fullmatch, names) if match))


def forks_on(warehouse: Storage, job: str, commits: Collection[int]) -> tuple[str, ...]:
    """The forks whose sinks go on from some commits of a job, and those that stand on these; by name."""
    found = set()
    for fork in forks_of(warehouse, job):
        reference = read_reference(warehouse, job, fork)
        if reference is not None and reference.commit in commits:
            found |= {fork, *_forks_below(warehouse, fork)}
    return tuple(sorted(found))


def _forks_below(warehouse: Storage, job: str) -> Iterator[str]:
    for fork in forks_of(warehouse, job):
        yield fork
        yield from _forks_below(warehouse, fork)


def forked_from(warehouse: Storage, job: str) -> ForkedFrom | None:
    """Which commit a job stands on; None: it is no fork, or there is no such job."""
    first = CommitLog(warehouse, job).read_if_present(1)
    return first.forked_from if first is not None else None


def read_reference(warehouse: Storage, job: str, fork: str) -> ForkReference | None:
    """Which commit of ``job`` the fork stands on; None: it does not."""
    return ForkReference.read_if_present(warehouse, JobLayout(job).fork(fork))


def holder_of(warehouse: Storage, fork: str) -> str | None:
    """The job in whose folder the reference of a fork lies; None: nobody has made such a fork."""
    jobs = (path.rpartition("/")[2] for path in warehouse.folders("jobs"))
    return next((job for job in jobs if warehouse.exists(JobLayout(job).fork(fork))), None)


def begins_empty(warehouse: Storage, fork: str) -> bool:
    """Whether a job is a fork that replays from the beginning."""
    holder = holder_of(warehouse, fork)
    reference = None if holder is None else read_reference(warehouse, holder, fork)
    return reference is not None and reference.commit == 0


def sample_of(warehouse: Storage, fork: str) -> float | None:
    """The share of the keys that a trial's fork replays; None: all of them, or there is no such fork."""
    holder = holder_of(warehouse, fork)
    reference = None if holder is None else read_reference(warehouse, holder, fork)
    return None if reference is None or reference.trial is None else reference.trial.sample_keys


def check_no_sample(warehouse: Storage, commit: Commit) -> None:
    """Makes sure that a commit has the results of all keys.

    Raises:
        ConfigurationError: It is of a trial's fork that has replayed a part of them.
    """
    plan = Runs(warehouse, commit.job).plan(commit.run_id)
    if plan is not None and plan.sample_keys is not None:
        what = "the fork has replayed a part of the keys only, for a trial"
        step = "make a fork that replays all keys: hindstream fork JOB NEW"
        raise ConfigurationError(what, job=commit.job, next_step=step)


def ancestors(warehouse: Storage, job: str) -> Iterator[str]:
    """A job, the one that it is a fork of, and so on."""
    yield job
    base = forked_from(warehouse, job)
    of = holder_of(warehouse, job) if base is None else base.job
    if of is not None:
        yield from ancestors(warehouse, of)


def is_being_dropped(warehouse: Storage, job: str) -> bool:
    """Whether somebody has begun to drop a job: nothing may be made of it any more."""
    return warehouse.exists(JobLayout(job).dropping)


def files_held_by_forks(warehouse: Storage, job: str) -> set[str]:
    """The paths of the state files that the forks of a job need, and those that stand on these; in whatever folder.

    Raises:
        CorruptedDataError: A document of a fork is missing or damaged.
    """
    return {path for fork in forks_of(warehouse, job) for path in _held(warehouse, job, fork)}


def _held(warehouse: Storage, job: str, fork: str) -> Iterator[str]:
    try:
        yield from sorted(_own(warehouse, job, fork))
    except CorruptedDataError:
        is_there = read_reference(warehouse, job, fork) is not None and not is_being_dropped(warehouse, fork)
        if is_there:
            raise  # else its documents have gone while they were read
    yield from files_held_by_forks(warehouse, fork)  # after its mark: see the module's docstring


def _own(warehouse: Storage, job: str, fork: str) -> set[str]:
    """The files that a fork's own commits need, or the one that it is about to have."""
    reference = read_reference(warehouse, job, fork)
    if reference is None or is_being_dropped(warehouse, fork):
        return set()
    if CommitLog(warehouse, fork).head_number() == 0:
        if reference.commit == 0:
            return set()
        return set(CommitLog(warehouse, job).read(reference.commit).state_files())
    return {path for commit in restorable_commits(warehouse, fork) for path in commit.state_files()}
