"""Publishes a sink's archive anew from the commits: after it was deleted, or changed by another program.

Commits name the files that they have written, and the documents of rewrites those that have taken their places; these
are what the topic holds. One Delta commit puts them there again, in the place of whatever else is there, so a reader
sees the archive before or after it. Nothing is computed: files that are gone are not made anew.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from statelib.commits.archives import open_archive_if_present
from statelib.commits.layout import CommitLog, rolled_back, topic_path
from statelib.commits.publication.publish import create_archive, tell_readers
from statelib.commits.rewriting.rewrite_log import RewriteLog, standing_files
from statelib.documents.manifests import sink_files
from statelib.documents.upkeep import REWRITES, ROLLBACKS
from statelib.errors.counted import counted
from statelib.errors.fault_points import step
from statelib.errors.kinds import ConfigurationError, CorruptedDataError
from statelib.topics.files import not_as_written
from statelib.topics.version import CLEANED

if TYPE_CHECKING:
    from statelib.documents.manifests import Commit
    from statelib.storage import Storage
    from statelib.topics.files import ArchiveFile

_REPUBLISHED = "hindstream.republished"
"""The application whose transaction is the Delta version before the archive was last published anew."""


@dataclass(frozen=True, slots=True)
class Republished:
    """What was done to a topic's archive.

    Attributes:
        topic: The topic.
        added: How many files came.
        removed: How many files left.
        rows: How many records the archive has now.
    """

    topic: str
    added: int
    removed: int
    rows: int


def republish(warehouse: Storage, job: str, topic: str, *, now_ms: int, dry_run: bool = False) -> Republished:
    """Lets a sink's archive hold what the job's commits have written to it, and nothing else.

    Args:
        warehouse: Root of all durable data.
        job: The job's name.
        topic: One that the job writes.
        now_ms: The wall clock.
        dry_run: Only says what would be done.

    Raises:
        ConfigurationError: The job has written nothing to the topic.
        CorruptedDataError: A file that a commit has written is gone.
    """
    log = CommitLog(warehouse, job)
    commits = [log.read(n) for n in range(1, log.head_number() + 1)]
    taken_back = rolled_back(commits)
    written = sink_files(commits)
    kept = sink_files(made for made in commits if made.commit not in taken_back).get(topic, [])
    if topic not in written:
        step_ = f"name one of: {', '.join(sorted(written))}" if written else "run the job first"
        raise ConfigurationError("the job has written nothing to this topic", job=job, topic=topic, next_step=step_)
    rewrites = RewriteLog(warehouse, topic)
    last = rewrites.last()
    files = standing_files(warehouse, topic, kept, through=last)
    _check_there(warehouse, job, topic, files)
    archive = open_archive_if_present(warehouse, topic)
    present = [] if archive is None else archive.all_files()
    wanted, there = {file.path for file in files}, {file.path for file in present}
    gone = [file for file in present if file.path not in wanted]
    more = [file for file in files if file.path not in there]
    done = Republished(topic, len(more), len(gone), sum(file.rows for file in files))
    is_whole = archive is not None and not gone and not more and archive.last_transaction(job) is not None
    if dry_run or is_whole:
        return done
    if archive is None:
        first = next(made for made in commits if any(sink.topic == topic for sink in made.sinks))
        archive = create_archive(warehouse, first, topic, files[0] if files else written[topic][0])
    for made in commits:
        if made.rolled_back_to is not None:
            tell_readers(warehouse, made, archive)
    transactions = [(_REPUBLISHED, archive.version + 1), (job, commits[-1].commit)]
    transactions += _marks(rewrites, last, commits)
    step("republish.before-commit")
    archive.replace(gone, more, transactions, time_ms=now_ms, drops_records=True)
    step("republish.committed")
    return done


def _marks(rewrites: RewriteLog, last: int, commits: list[Commit]) -> list[tuple[str, int]]:
    """What the archive says of rewrites and rollbacks: the last ones."""
    marks: list[tuple[str, int]] = []
    cleaned: dict[int, int] = {}
    for n in range(1, last + 1):
        cleaned |= rewrites.read(n).cleaned
    if last:
        marks.append((REWRITES, last))
        marks += [(f"{CLEANED}/{partition}", end) for partition, end in sorted(cleaned.items())]
    rollbacks = [made.commit for made in commits if made.rolled_back_to is not None]
    return [*marks, *((ROLLBACKS, n) for n in rollbacks[-1:])]


def _check_there(warehouse: Storage, job: str, topic: str, files: list[ArchiveFile]) -> None:
    """Makes sure that all files can be shown again."""
    lost = not_as_written(warehouse.within(topic_path(topic)), files)
    if lost:
        file, _ = lost[0]
        raise CorruptedDataError(
            f"the topic cannot be republished: of the {counted(len(files), 'file')} that the job has written to it,"
            f" {len(lost)} are gone or have changed",
            job=job,
            topic=topic,
            partition=file.partition,
            file=warehouse.uri(f"{topic_path(topic)}/{file.path}"),
            next_step="restore them from a copy of the warehouse, or give the job a new name: it then replays from the"
            " beginning (docs/runbooks/damaged-data.md)",
        )
