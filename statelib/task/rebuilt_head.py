"""Makes the newest state anew of its changelogs: the way out where its files are damaged and no older one will do.

The new commit is a rollback to the head itself (`statelib.commits.versions.rollback`), which takes nothing back: the
same positions, the same state, in other files. So it is planned, fenced and published as one, and killed at any instant
and given again it ends as if it had not been. Tasks whose files are whole keep them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from statelib.assignment.model import TaskId
from statelib.changelog import rebuild
from statelib.changelog.rebuild import logged_stores
from statelib.commits.hold import check_free
from statelib.commits.layout import CommitLog, changelog_topic
from statelib.commits.maintenance.verify import Damage, damaged_states
from statelib.commits.open_runs import check_no_replay_open, open_replay
from statelib.commits.publication.publish import publish
from statelib.commits.standing import no_commits
from statelib.commits.versions.rollback import commit_again, plan_again
from statelib.documents.places import place_of
from statelib.storage import Storage
from statelib.task.state_from_changelogs import make_state

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from statelib.documents.manifests import Commit, CommittedTask, TaskPosition
    from statelib.documents.plans import Plan
    from statelib.stores.backend import Backend
    from statelib.task.work import TaskSettings


@dataclass(frozen=True, slots=True)
class RebuildPreview:
    """What a rebuild would do.

    Attributes:
        head: The newest commit, whose state is made anew.
        damages: What is wrong with state files, by task.
        changelogs: By task that is made anew and store, the offset up to which its changelog is read.
        open_run: A run that would lose its commit number; None: there is none.
    """

    head: int
    damages: Mapping[str, tuple[Damage, ...]]
    changelogs: Mapping[str, Mapping[str, int]]
    open_run: str | None


@dataclass(frozen=True, slots=True)
class TaskRebuild:
    """What it takes to make the state of one task anew; travels to where that is done.

    Attributes:
        settings: Where to work, and in how much memory.
        head: The commit whose state it is.
        plan: Of the commit that is to have it.
        task_id: The task; every store of it has a changelog.
    """

    settings: TaskSettings
    head: Commit
    plan: Plan
    task_id: str

    def run(self, attempt: str) -> CommittedTask:
        """The task, its state in files of the plan's run.

        Args:
            attempt: Names the working directory: unique among all attempts at this.

        Raises:
            CorruptedDataError: A changelog is damaged, or does not go as far as the commit.
            RetryableError: The disk is full, or the warehouse does not answer.
        """
        head, task_id = self.head, self.task_id
        warehouse = Storage(self.settings.warehouse, self.settings.storage_options)

        def fill(backend: Backend) -> TaskPosition:
            rebuild(warehouse, head, task_id, backend)
            return head.tasks[task_id].position

        stores = logged_stores(warehouse, head, task_id)
        return make_state(self.settings, self.plan, task_id, stores, fill, attempt=attempt)


def preview_rebuild(warehouse: Storage, job: str, *, everything: bool = False, at_once: int = 4) -> RebuildPreview:
    """What `rebuild_head` would do. Reads every state file of the head; changes nothing.

    Args:
        warehouse: Root of all durable data.
        job: The job's name.
        everything: Rebuild the tasks whose files are whole, too.
        at_once: How many files are read at a time.

    Raises:
        ConfigurationError: The job has no commits, or is held by somebody; or a store of a task that would have to be
            made anew has no changelog.
        CorruptedDataError: A changelog does not go as far as the commit.
    """
    check_free(warehouse, job, None)
    head = _head(warehouse, job)
    damages = damaged_states(warehouse, head, at_once)
    return RebuildPreview(
        head=head.commit,
        damages=damages,
        changelogs={task_id: _ends(warehouse, head, task_id) for task_id in _wanted(head, damages, everything)},
        open_run=open_replay(warehouse, job, head.commit),
    )


def rebuild_head(
    warehouse: Storage,
    job: str,
    settings: TaskSettings,
    *,
    carry_out: Callable[[Sequence[TaskRebuild]], Sequence[CommittedTask]],
    now_ms: int,
    everything: bool = False,
    supersede: bool = False,
) -> Commit:
    """Makes a commit with the head's state, rebuilt where its files are damaged, and publishes it.

    A repeat changes nothing.

    Args:
        warehouse: Root of all durable data.
        job: The job's name.
        settings: Where to work, and in how much memory a task.
        carry_out: Does the work on several tasks, wherever and in whatever order, and gives what each has made.
        now_ms: The wall clock, for the commit's ``created_at_ms``.
        everything: Rebuild the tasks whose files are whole, too, but for those that the head itself has rebuilt.
        supersede: Whether to take the commit number of a run that is open: if it is still at work it ends with a
            `FencedError`.

    Returns:
        The new commit; or the head, if nothing had to be done.

    Raises:
        ConfigurationError: See `preview_rebuild`; or a run is open.
        CorruptedDataError: A changelog is damaged, or does not go as far as the commit.
        FencedError: Another run was quicker to commit.
    """
    check_free(warehouse, job, None)
    head = _head(warehouse, job)
    publish(warehouse, job)  # its changelogs are read as published; and no commit follows an unpublished rollback
    damages = damaged_states(warehouse, head, settings.parallel_transfers)
    wanted = _wanted(head, damages, everything)
    if not wanted:
        return head
    check_no_replay_open(warehouse, job, head.commit, supersede=supersede)
    for task_id in wanted:
        logged_stores(warehouse, head, task_id)
    plan = plan_again(warehouse, head, head.commit + 1, now_ms)
    made = carry_out([TaskRebuild(settings, head, plan, task_id) for task_id in wanted])
    rebuilt = dict(zip(wanted, made, strict=True))
    return commit_again(warehouse, head, plan, {**head.tasks, **rebuilt}, now_ms=now_ms)


def _head(warehouse: Storage, job: str) -> Commit:
    head = CommitLog(warehouse, job).head()
    if head is None:
        raise no_commits(warehouse, job)
    return head


def _wanted(head: Commit, damages: Mapping[str, tuple[Damage, ...]], everything: bool) -> list[str]:  # noqa: FBT001
    """The tasks to make anew."""
    if not everything:
        return sorted(damages)
    return sorted(
        task_id
        for task_id, task in head.tasks.items()
        if task_id in damages
        or not all(head.rebuilds and (file.run_id, file.job) == (head.run_id, None) for file in task.state.files)
    )


def _ends(warehouse: Storage, head: Commit, task_id: str) -> dict[str, int]:
    offsets, partition = head.tasks[task_id].sink_offsets, TaskId.parse(task_id).partition
    return {
        store.name: offsets[place_of(changelog_topic(head.job, store.name), partition)]
        for store in logged_stores(warehouse, head, task_id)
    }
