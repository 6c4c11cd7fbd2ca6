"""Which state files can go: those that no checkpoint needs which anybody may still restore."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from statelib.manifests import StateManifest
    from statelib.storage import StoredObject


def oldest_kept(head: int, keep_commits: int) -> int:
    """The oldest commit whose state stays, if the newest ``keep_commits`` (at least 1) do; commit numbers from 1."""
    return max(1, head - max(1, keep_commits) + 1)


def unneeded_files(
    stored: Iterable[StoredObject], kept: Iterable[Mapping[str, StateManifest]], prefix: str
) -> list[StoredObject]:
    """The state files of a job that none of the checkpoints to keep has.

    Args:
        stored: A listing of the job's state folder, ``<prefix>/<task>/<sha256>``.
        kept: The checkpoints to keep: manifests by task id.
        prefix: The state folder.
    """
    needed = {
        f"{prefix}/{task_id}/{file.sha256}"
        for checkpoint in kept
        for task_id, manifest in checkpoint.items()
        for file in manifest.files
    }
    return [entry for entry in stored if entry.path not in needed]
