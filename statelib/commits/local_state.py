"""What a host has of a job below ``state_dir``, and how it is made to be no more than a commit names.

::

    cache/<job>/<task>/<sha256>   files of checkpoints: opened only where a commit names their content
    attempts/<job>/<attempt>/     the working copy of one attempt, made of the commit before it; nobody else opens it
    inspect/<job>/<folder>/       the copy of one reader
    copies/<job>/<folder>/        files on their way into the cache, of a standby or learner (`statelib.placement`)
    process-metadata.json         which host this is (`statelib.placement.process`); nobody removes it

So a state of an older format, or of another topology, cannot be met by a job that has neither in its commit: nothing is
opened because it lies here. What lies here too long costs space, nothing else.
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from typing import TYPE_CHECKING

from statelib.checkpoint.cache import FileCache
from statelib.checkpoint.local_errors import local_errors
from statelib.checkpoint.scratch import remove_dead
from statelib.commits.layout import parse_run_id

if TYPE_CHECKING:
    from pathlib import Path

    from statelib.documents.manifests import Commit


@dataclass(frozen=True, slots=True)
class LocalState:
    """What `clean_local_state` has found on a host.

    Attributes:
        kept_files: Files of the commit's state, each read and found to be what the commit names.
        removed_files: Cached files that the commit does not name, or that were not what their names say.
        removed_folders: Working copies of attempts, readers and copies of standbys that are dead.
    """

    kept_files: int = 0
    removed_files: int = 0
    removed_folders: int = 0


def clean_local_state(state_dir: Path, commit: Commit) -> LocalState:
    """Leaves nothing of a job on this host but what ``commit`` names, and what living attempts and readers use.

    Safe beside anything: who misses a cached file fetches it.

    Args:
        state_dir: As the setting of that name.
        commit: The job's newest.

    Raises:
        RetryableError: The disk fails.
        ConfigurationError: The files may not be read or removed.
    """
    cache = state_dir / "cache" / commit.job
    kept = removed = 0
    with local_errors("clean up the local state", state_dir):
        for folder in [path for path in cache.iterdir() if path.is_dir()] if cache.is_dir() else []:
            task = commit.tasks.get(folder.name)
            left, gone = FileCache(folder).clean({file.sha256 for file in task.state.files} if task else set())
            kept, removed = kept + left, removed + gone
        folders = remove_dead_attempts(state_dir / "attempts" / commit.job, before_commit=commit.commit + 1)
        folders += remove_dead(readers_folder(state_dir, commit.job))
        folders += remove_dead(copies_folder(state_dir, commit.job))
    return LocalState(kept, removed, folders)


def readers_folder(state_dir: Path, job: str) -> Path:
    """Holds the `ScratchFolder` of each reader of a job's state."""
    return state_dir / "inspect" / job


def copies_folder(state_dir: Path, job: str) -> Path:
    """Holds the `ScratchFolder` of each copy of a task's state that is being made."""
    return state_dir / "copies" / job


def remove_dead_attempts(attempts: Path, *, before_commit: int) -> int:
    """Removes what killed attempts at earlier commits have left on this host: they can no longer win. How many."""
    removed = 0
    for directory in attempts.glob("*"):
        run_id = directory.name.rsplit(".", 3)[1:2]  # of job, run id, task, attempt
        run = parse_run_id(*run_id) if run_id else None
        if run is not None and run[0] < before_commit:
            shutil.rmtree(directory, ignore_errors=True)
            removed += 1
    return removed
