"""Whether the files of a task's state and sinks are there, with the size that they were written with."""

from __future__ import annotations

from typing import TYPE_CHECKING

from statelib.commits.layout import topic_path
from statelib.documents.places import state_folder
from statelib.errors.kinds import CorruptedDataError
from statelib.storage.transfers import in_parallel

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from statelib.documents.manifests import Commit, StateManifest, TaskOutcome
    from statelib.storage import Storage


def lost_files(warehouse: Storage, job: str, outcomes: Iterable[TaskOutcome]) -> list[tuple[str, str]]:
    """The files of tasks' states and sinks that are not there with the size that they were written with.

    A task's state is listed, which maintenance keeps small; a sink's partition has the files of all commits, so its new
    ones are looked up.

    Returns:
        Path and what is wrong, as in "is missing".
    """

    def look(outcome: TaskOutcome) -> list[tuple[str, str]]:
        lost = list(lost_state_files(warehouse, job, outcome.task_id, outcome.state))
        for sink in outcome.sinks:
            path = f"{topic_path(sink.topic)}/{sink.file.path}"
            if problem := _problem(warehouse.size_if_present(path), sink.file.size_bytes):
                lost.append((path, problem))
        return lost

    return [lost for found in in_parallel(look, list(outcomes), warehouse.requests_at_once) for lost in found]


def lost_state_files(warehouse: Storage, job: str, task_id: str, state: StateManifest) -> Iterator[tuple[str, str]]:
    """As `lost_files`, of one task's state."""
    folders = {state_folder(file.job or job, task_id) for file in state.files}
    stored = {entry.path: entry.size_bytes for folder in sorted(folders) for entry in warehouse.list(folder)}
    for file in state.files:
        path = file.path(job, task_id)
        if problem := _problem(stored.get(path), file.size_bytes):
            yield path, problem


def check_state_stored(warehouse: Storage, commit: Commit, instead: str) -> None:
    """Makes sure that all files of a commit's state are there.

    Args:
        warehouse: Root of all durable data.
        commit: The commit.
        instead: What else one can do, as in "go back to another commit".

    Raises:
        CorruptedDataError: One is missing, or has another size.
    """
    for task_id, task in commit.tasks.items():
        for path, what in lost_state_files(warehouse, commit.job, task_id, task.state):
            raise CorruptedDataError(
                f"a file of the state of commit {commit.commit} {what}",
                job=commit.job,
                task=task_id,
                file=warehouse.uri(path),
                next_step=f"restore the file from a copy of the warehouse, or {instead}:"
                f" hindstream state verify {commit.job} --all",
            )


def _problem(found: int | None, size_bytes: int) -> str | None:
    if found == size_bytes:
        return None
    return "is missing" if found is None else f"has {found} bytes instead of {size_bytes}"
