"""Notices that a source has taken back records which this job has taken up.

An archive says by an application transaction which rollback it has seen last, and a plan writes that down with the rest
of what it found. Where there is a newer one than the head knew, the notices that rollbacks leave with the topic say
where it ended then: behind what this job has taken up, or before. Records may have come to the same offsets since; they
need not be the same records.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from statelib.commits.expiry import oldest_restorable
from statelib.commits.layout import CommitLog, rollback_path, rolled_back
from statelib.documents.upkeep import Rollback
from statelib.errors.kinds import CorruptedDataError, InputError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from statelib.documents.manifests import Commit
    from statelib.documents.plans import SourceTopic
    from statelib.storage import Storage


def check_rollbacks(warehouse: Storage, head: Commit, sources: Sequence[SourceTopic]) -> None:
    """Makes sure that all that the job has taken up is still there.

    Args:
        warehouse: Root of all durable data.
        head: The job's newest commit.
        sources: The sources as they are now.

    Raises:
        InputError: A source has taken back records that the job has taken up; says how to go on.
        CorruptedDataError: The notice of a rollback is missing or damaged.
    """
    known = {source.topic: source.rollback for source in head.sources}
    for source in sources:
        if source.topic not in known or source.rollback <= known[source.topic]:
            continue
        notices = rollback_notices(warehouse, source.topic, after=known[source.topic], newest=source.rollback)
        for notice in notices:
            if _has_passed(head, notice):
                raise _told(warehouse, head, notice)


def rollback_notices(warehouse: Storage, topic: str, *, after: int, newest: int) -> Iterator[Rollback]:
    """Of the rollbacks of a topic's records since that of one commit (0: all), up to and with that of another.

    Raises:
        CorruptedDataError: The newest notice is missing, or one is damaged.
    """
    if newest <= after:
        return
    folder = rollback_path(topic, 0).rpartition("/")[0]
    last = rollback_path(topic, newest)
    found = [entry.path for entry in warehouse.list(folder, after=rollback_path(topic, after))]
    if last not in found:
        raise CorruptedDataError(
            "the notice of a rollback is missing",
            topic=topic,
            file=warehouse.uri(last),
            next_step="restore the file from a copy of the warehouse, or give the job a new name:"
            " it then replays from the beginning",
        )
    for path in found:
        if path <= last:
            yield Rollback.decode(warehouse.get(path), file=warehouse.uri(path))


def _has_passed(commit: Commit, notice: Rollback) -> bool:
    taken_up = commit.source_offsets().get(notice.topic, {})
    return any(offset > notice.end_offsets.get(partition, 0) for partition, offset in taken_up.items())


def _told(warehouse: Storage, head: Commit, notice: Rollback) -> InputError:
    taken_up = head.source_offsets()[notice.topic]
    partition, ended = next((p, end) for p, o in taken_up.items() if o > (end := notice.end_offsets.get(p, 0)))
    log = CommitLog(warehouse, head.job)
    gone = rolled_back(log.history())
    limit = log.head_number() - oldest_restorable(warehouse, head.job) + 1
    restorable = (commit for commit in log.history(limit) if commit.commit not in gone)
    good = next((commit.commit for commit in restorable if not _has_passed(commit, notice)), None)
    go_on = (
        f"roll this job back to before them: hindstream state rollback {head.job} --to {good}"
        if good is not None
        else "give the job a new name: it then replays from the beginning"
    )
    return InputError(
        f"commit {notice.commit} of job {notice.job} rolled the topic back to offset {ended}, and this job has already"
        f" read it up to offset {taken_up[partition]}: the records in between have been removed",
        job=head.job,
        topic=notice.topic,
        partition=partition,
        next_step=go_on,
    )
