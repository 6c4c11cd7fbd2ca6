"""The plan of a commit whose run's folder is gone, made anew of what other documents say.

A run's folder has three documents. The plan is what later runs need, and a commit, the one before it and the archives
say all that was in it, but for one thing: how many records there were where offsets have holes. What the run has
staged and what the audit said are nowhere else; of these a report goes without.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from statelib.assignment.model import TaskId
from statelib.commits.archives import open_archive_if_present
from statelib.commits.layout import CommitLog, Runs
from statelib.documents.places import topic_and_partition
from statelib.documents.plans import Plan, PlannedTask, SourceRange

if TYPE_CHECKING:
    from statelib.documents.manifests import Commit, CommittedTask
    from statelib.storage import Storage


def ensure_plan(warehouse: Storage, commit: Commit) -> bool:
    """Makes the plan of a commit anew if it is missing; says whether it was.

    Raises:
        CorruptedDataError: The commit before it is missing or damaged, or the plan that is there.
    """
    runs = Runs(warehouse, commit.job)
    if runs.plan(commit.run_id) is not None:
        return False
    warehouse.put_if_absent(runs.layout.plan(commit.run_id), _plan_of(warehouse, commit).encode())
    return True


def _plan_of(warehouse: Storage, commit: Commit) -> Plan:
    log = CommitLog(warehouse, commit.job)
    before = log.read(commit.commit - 1).tasks if commit.commit > 1 else {}
    return Plan(
        job=commit.job,
        run_id=commit.run_id,
        commit=commit.commit,
        fingerprint=commit.fingerprint,
        until_ms=commit.until_ms,
        end_of_input=commit.end_of_input,
        semantics=commit.semantics,
        evolution=commit.evolution,
        sources=commit.sources,
        tasks=tuple(
            PlannedTask(
                task_id=task_id,
                sub_topology=TaskId.parse(task_id).sub_topology,
                partition=TaskId.parse(task_id).partition,
                sources=_ranges(commit, commit.tasks[task_id], before.get(task_id)),
            )
            for task_id in sorted(commit.tasks, key=TaskId.parse)
        ),
        sink_partitions=_sink_partitions(warehouse, commit),
        created_at_ms=commit.created_at_ms,
        rolled_back_to=commit.rolled_back_to,
        taken_over=commit.taken_over,
        forked_from=commit.forked_from,
        repaired_by=commit.repaired_by,
    )


def _ranges(commit: Commit, task: CommittedTask, before: CommittedTask | None) -> tuple[SourceRange, ...]:
    """What a task took up: from where it stood to where it stands, without a look for holes."""
    topics = [source.topic for source in commit.sources]
    ranges = []
    for place, end in task.position.source_offsets.items():
        topic, partition = topic_and_partition(place)
        if topic not in topics:
            continue  # a repartition topic
        start = min(end, before.position.source_offsets.get(place, 0)) if before is not None else 0
        ranges.append(
            SourceRange(topic=topic, partition=partition, start_offset=start, end_offset=end, records=end - start)
        )
    return tuple(sorted(ranges, key=lambda part: (topics.index(part.topic), part.partition)))


def _sink_partitions(warehouse: Storage, commit: Commit) -> dict[str, int]:
    """Partitions of all topics that the job has written to, by their archives, else by what it has written."""
    partitions: dict[str, int] = {}
    for topic, ends in sorted(commit.sink_offsets().items()):
        written = [partition for partition, end in ends.items() if end]
        if written:
            archive = open_archive_if_present(warehouse, topic)
            partitions[topic] = max(written) + 1 if archive is None else archive.partitions
    return partitions
