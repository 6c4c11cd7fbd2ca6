"""Reads every byte that commits point to, and compares it with what was written: state files and sinks' files.

Damage in one place does not hide that in another: all of it is told, and which commit is whole.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from statelib.commits.expiry import check_restorable, oldest_restorable
from statelib.commits.layout import CommitLog, rolled_back, topic_path
from statelib.commits.rewriting.rewrite_log import rewrite_of, standing_files
from statelib.commits.standing import check_number
from statelib.errors.kinds import CorruptedDataError
from statelib.storage import ObjectNotFoundError
from statelib.storage.transfers import in_parallel

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from statelib.documents.manifests import Commit
    from statelib.storage import Storage
    from statelib.topics.files import ArchiveFile


@dataclass(frozen=True, slots=True)
class Damage:
    """A file that is not what was written.

    Attributes:
        file: Its address.
        what: What is wrong.
        where: What it belongs to, such as ``state of task 0_3``.
    """

    file: str
    what: str
    where: str


@dataclass(frozen=True, slots=True)
class Verification:
    """What was found.

    Attributes:
        commits: The commits that were verified.
        files: How many files were read, each once.
        size_bytes: How large they are together.
        damages: What is wrong with them.
        whole: The newest commit of all restorable ones in whose state nothing is damaged, where something is.
    """

    job: str
    commits: tuple[int, ...]
    files: int
    size_bytes: int
    damages: tuple[Damage, ...]
    whole: int | None = None

    @property
    def way_out(self) -> str:
        """What to do about the damages."""
        restore = "restore these files from a copy of the warehouse"
        if self.whole is None:
            return f"{restore}, or replay the job under a new name"
        if self.whole == self.commits[-1]:
            return f"{restore}: the newest state is whole"
        return f"{restore}, or go back to a whole commit: hindstream state rollback {self.job} --to {self.whole}"


@dataclass(frozen=True, slots=True)
class _File:
    path: str
    size_bytes: int
    sha256: str | None
    where: str


def verify(
    warehouse: Storage, job: str, commit: int | None = None, *, everything: bool = False, at_once: int = 4
) -> Verification:
    """Verifies the state of a commit and what its run has written to the sinks.

    Args:
        warehouse: Root of all durable data.
        job: The job's name.
        commit: The commit; None: the newest.
        everything: Verify all commits instead: their documents, the states that can be restored, and what they have
            written, but for what has been taken back by a rollback, which maintenance deletes.
        at_once: How many files are read at a time.

    Returns:
        What was found. Where there is damage and not everything was verified, the other restorable states are looked
        at too, for one that is whole.

    Raises:
        ConfigurationError: There is no such commit, or its state has expired.
    """
    log = CommitLog(warehouse, job)
    head = log.head_number()
    wanted = head if commit is None else commit
    check_number(warehouse, job, wanted, head)
    if not everything:
        check_restorable(warehouse, job, wanted)
    numbers = range(1, head + 1) if everything else range(wanted, wanted + 1)
    commits, damages = _read(warehouse, log, numbers)
    oldest = oldest_restorable(warehouse, job)
    taken_back = rolled_back(commits) if everything else {}
    files: dict[str, _File] = {}
    for made in commits:
        if made.commit >= oldest:
            files |= {file.path: file for file in _state_files(made)}
    for topic, sunk in _by_topic(made for made in commits if made.commit not in taken_back).items():
        try:
            files |= {file.path: file for file in _sink_files(warehouse, topic, sunk)}
        except CorruptedDataError as error:  # of the topic's log, or of a rewrite's document
            damages.append(Damage(str(error.place["file"]), error.what, f"topic {topic}"))
    bad = _damaged(warehouse, list(files.values()), at_once)
    damages += bad.values()
    whole = _newest_whole(warehouse, log, range(oldest, head + 1), set(files) - set(bad), set(bad)) if damages else None
    return Verification(
        job=job,
        commits=tuple(numbers),
        files=len(files),
        size_bytes=sum(file.size_bytes for file in files.values()),
        damages=tuple(damages),
        whole=whole,
    )


def damaged_states(warehouse: Storage, commit: Commit, at_once: int = 4) -> dict[str, tuple[Damage, ...]]:
    """What is wrong with the state files of a commit, by task; tasks whose state is whole are not there."""
    damaged: dict[str, list[Damage]] = {}
    files = {file.path: task_id for task_id in commit.tasks for file in _state_files_of(commit, task_id)}
    for path, damage in _damaged(warehouse, list(_state_files(commit)), at_once).items():
        damaged.setdefault(files[path], []).append(damage)
    return {task_id: tuple(damages) for task_id, damages in damaged.items()}


def _read(warehouse: Storage, log: CommitLog, numbers: range) -> tuple[list[Commit], list[Damage]]:
    """The commits whose documents are whole, and what is wrong with the others'."""
    commits: list[Commit] = []
    damages: list[Damage] = []
    for n in numbers:
        try:
            commits.append(log.read(n))
        except CorruptedDataError as error:
            damages.append(Damage(warehouse.uri(log.layout.commit(n)), error.what, f"commit {n}"))
    return commits, damages


def _state_files(commit: Commit) -> Iterator[_File]:
    for task_id in sorted(commit.tasks):
        yield from _state_files_of(commit, task_id)


def _state_files_of(commit: Commit, task_id: str) -> Iterator[_File]:
    for file in commit.tasks[task_id].state.files:
        yield _File(
            file.path(commit.job, task_id),
            file.size_bytes,
            file.sha256,
            f"state of task {task_id}, commit {commit.commit}",
        )


def _by_topic(commits: Iterable[Commit]) -> dict[str, dict[str, tuple[ArchiveFile, int]]]:
    """By topic and path, what commits have written, and the commit."""
    found: dict[str, dict[str, tuple[ArchiveFile, int]]] = {}
    for commit in commits:
        for sink in commit.sinks:
            found.setdefault(sink.topic, {})[sink.file.path] = sink.file, commit.commit
    return found


def _sink_files(warehouse: Storage, topic: str, sunk: Mapping[str, tuple[ArchiveFile, int]]) -> Iterator[_File]:
    """The files that have the records now: those that were written, or what they have been merged into."""
    for file in standing_files(warehouse, topic, [file for file, _ in sunk.values()]):
        by = f"commit {sunk[file.path][1]}" if file.path in sunk else f"rewrite {rewrite_of(file.path)}"
        where = f"topic {topic}, partition {file.partition}, {by}"
        yield _File(f"{topic_path(topic)}/{file.path}", file.size_bytes, file.sha256, where)


def _damaged(warehouse: Storage, files: list[_File], at_once: int) -> dict[str, Damage]:
    """What is wrong with files, by path."""

    def look(file: _File) -> str | None:
        try:
            size_bytes, sha256 = warehouse.digest(file.path)
        except ObjectNotFoundError:
            return "is missing"
        if size_bytes != file.size_bytes:
            return f"has {size_bytes} bytes instead of {file.size_bytes}"
        if file.sha256 not in {None, sha256}:
            return "its SHA-256 is not that of what was written"
        return None

    found = zip(files, in_parallel(look, files, at_once), strict=True)
    return {file.path: Damage(warehouse.uri(file.path), what, file.where) for file, what in found if what is not None}


def _newest_whole(
    warehouse: Storage, log: CommitLog, restorable: range, known_good: set[str], known_bad: set[str]
) -> int | None:
    """The newest restorable commit, not taken back, whose state has no damage; files are read once."""
    commits, _ = _read(warehouse, log, restorable)
    taken_back = rolled_back(commits)
    for commit in sorted(commits, key=lambda commit: -commit.commit):
        files = [file for file in _state_files(commit) if file.path not in known_good]
        if commit.commit in taken_back or any(file.path in known_bad for file in files):
            continue
        bad = _damaged(warehouse, files, at_once=1)
        known_bad |= bad.keys()
        known_good |= {file.path for file in files} - bad.keys()
        if not bad:
            return commit.commit
    return None
