"""What runs leave behind: files of attempts that did not count, of superseded and of quarantined runs.

A staged file of a topic archive tells its run by its name (`attempt_name`), so leftovers are found also where an
attempt was killed before it could say what it had written::

    topics/<topic>/partition=3/00000000000000000117-<job>.<run id>.<task id>.<attempt>.parquet
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from statelib.commits.layout import Runs, topic_path

if TYPE_CHECKING:
    from collections.abc import Iterator

    from statelib.commits.layout import CommitLog
    from statelib.manifests import Commit, Plan
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


def find_leftovers(warehouse: Storage, log: CommitLog, commits: range, *, quarantine_from: int) -> list[StoredObject]:
    """What the runs at ``commits`` left behind.

    Args:
        warehouse: Root of all durable data.
        log: The job's commits.
        commits: Numbers of commits that exist: no other run can get one of these.
        quarantine_from: Files of quarantined runs at this number and later ones stay.
    """
    runs = Runs(warehouse, log.job)
    dead: set[str] = set()
    topics: set[str] = set()
    committed: list[Commit] = []
    for n in commits:
        committed.append(log.read(n))
        for plan in runs.attempts(n):
            topics.update(plan.sink_partitions)
            if n < quarantine_from or not _is_quarantined(runs, plan):
                dead.add(plan.run_id)
    return [
        *(entry for run_id in sorted(dead) for entry in warehouse.list(log.layout.staging(run_id))),
        *_attempt_files(warehouse, log.job, topics, dead, committed),
    ]


def _attempt_files(
    warehouse: Storage, job: str, topics: set[str], dead: set[str], committed: list[Commit]
) -> Iterator[StoredObject]:
    """Files of the runs in ``dead`` that no commit has."""
    kept = {f"{topic_path(s.topic)}/{s.file.path}" for commit in committed for s in commit.sinks}
    for topic in sorted(topics) if dead else ():
        for entry in warehouse.list(topic_path(topic)):
            match = _ATTEMPT_FILE.fullmatch(entry.path.rpartition("/")[2])
            if match and match["job"] == job and match["run_id"] in dead and entry.path not in kept:
                yield entry


def _is_quarantined(runs: Runs, plan: Plan) -> bool:
    audit = runs.audit(plan.run_id)
    return audit is not None and not audit.success
