"""Tells a driver that was overtaken so, whatever it stumbles over first.

A driver that slept goes on where it was. What it needs may be gone by then: the state that it starts from has expired,
what its attempts staged was removed as the leftovers of a run that lost. That looks like damage, and is none.
"""

from __future__ import annotations

from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from statelib.commits.layout import CommitLog
from statelib.errors.kinds import FencedError, HindstreamError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from statelib.documents.manifests import Commit
    from statelib.storage import Storage


@contextmanager
def fenced(warehouse: Storage, job: str, number: int) -> Iterator[None]:
    """Makes any error of the work on a commit a `FencedError` if the commit has been made meanwhile.

    Args:
        warehouse: Root of all durable data.
        job: The job's name.
        number: The commit's.
    """
    try:
        yield
    except FencedError:
        raise
    except HindstreamError as error:
        standing: Commit | None = None
        with suppress(HindstreamError):
            standing = CommitLog(warehouse, job).read_if_present(number)
        if standing is None:
            raise
        raise FencedError(
            f"another driver has made commit {number} of job {job}, as run {standing.run_id}, while this one was"
            f" working on it; its result counts, and files that this one needed may be gone ({error.what})",
            job=job,
            next_step="nothing needs fixing; the same command continues from there",
        ) from error
