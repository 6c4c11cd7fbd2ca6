"""What runs leave behind: files of attempts that did not count, of superseded, quarantined and rolled back runs.

A staged file of a topic archive tells its run by its name (`attempt_name`), so leftovers are found also where an
attempt was killed before it could say what it had written::

    topics/<topic>/partition=3/00000000000000000117-<job>.<run id>.<task id>.<attempt>.parquet

The name begins with the file's first offset, so what former commits have written is not even listed.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from statelib.commits.layout import Runs, rolled_back, topic_path
from statelib.storage.transfers import look_ahead

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from statelib.commits.layout import CommitLog
    from statelib.documents.manifests import Commit
    from statelib.documents.plans import Plan
    from statelib.storage import Storage, StoredObject

_ATTEMPT_FILE = re.compile(r"\d{20}-(?P<job>.+)\.(?P<run_id>\d{8,}-\d+)\.\d+_\d+\.[^/]*\.parquet")


def attempt_name(job: str, run_id: str, task_id: str, attempt: str) -> str:
    """What a task names its attempt's staged files by: ``<job>.<run id>.<task id>.<attempt>``.

    Args:
        job: The job's name.
        run_id: The run.
        task_id: The task.
        attempt: Unique among all attempts at this task in this run; letters, digits, ``_`` and ``-``.
    """
    return f"{job}.{run_id}.{task_id}.{attempt}"


def find_leftovers(warehouse: Storage, log: CommitLog, commits: range, *, kept_from: int) -> list[StoredObject]:
    """What the runs at ``commits`` left behind.

    Args:
        warehouse: Root of all durable data.
        log: The job's commits.
        commits: Numbers of commits that exist: no other run can get one of these. Every rollback among them has been
            published.
        kept_from: Files of runs that are in quarantine, or have been rolled back, at this number and later ones stay.
    """
    runs = Runs(warehouse, log.job)
    dead: set[str] = set()
    topics: dict[str, int] = {}
    committed: list[Commit] = []
    starting_points = [log.read(commits.start - 1)] if commits.start > 1 else []

    def look(n: int) -> tuple[Commit, list[tuple[Plan, bool]]]:
        return log.read(n), [(plan, n < kept_from or not runs.is_quarantined(plan.run_id)) for plan in runs.attempts(n)]

    for commit, attempts in look_ahead(look, commits, warehouse.requests_at_once):
        committed.append(commit)
        for plan, is_dead in attempts:
            topics |= plan.sink_partitions
            if is_dead:
                dead.add(plan.run_id)
    starting_points += [commit for commit in committed if commit.rolled_back_to is not None]
    gone = {n for n in rolled_back(committed) if n < kept_from}
    kept = {
        f"{topic_path(s.topic)}/{s.file.path}"
        for commit in committed
        if commit.commit not in gone
        for s in commit.sinks
    }
    return [
        *_listed(warehouse, [log.layout.staging(run_id) for run_id in sorted(dead)]),
        *(
            entry
            for topic, partitions in sorted(topics.items() if dead else ())
            for entry in _written_since(starting_points, warehouse, topic, partitions)
            if _run_of(entry, log.job) in dead and entry.path not in kept
        ),
    ]


def _written_since(
    commits: Sequence[Commit], warehouse: Storage, topic: str, partitions: int
) -> Iterator[StoredObject]:
    """The files of a topic that begin where the job stood at the first of some commits, or further on."""
    offsets = [commit.sink_offsets().get(topic, {}) for commit in commits]
    starts = [min((at.get(partition, 0) for at in offsets), default=0) for partition in range(partitions)]
    if not any(starts):
        yield from warehouse.list(topic_path(topic))
        return
    folders = [f"{topic_path(topic)}/partition={partition}" for partition in range(partitions)]
    yield from _listed(warehouse, folders, after=[f"{start:020d}" for start in starts])


def _listed(warehouse: Storage, folders: Sequence[str], after: Sequence[str] | None = None) -> Iterator[StoredObject]:
    """What lies in folders; ``after``: in each only what comes after this name."""

    def look(number: int) -> list[StoredObject]:
        folder = folders[number]
        return warehouse.list(folder, after=f"{folder}/{after[number]}" if after else None)

    for found in look_ahead(look, range(len(folders)), warehouse.requests_at_once):
        yield from found


def _run_of(entry: StoredObject, job: str) -> str | None:
    """The run of ``job`` that wrote a file; None: it is none of that job's."""
    match = _ATTEMPT_FILE.fullmatch(entry.path.rpartition("/")[2])
    return match["run_id"] if match and match["job"] == job else None
