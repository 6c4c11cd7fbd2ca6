"""What a host's disk holds of a job's state, and of which commit a copy is.

::

    <state_dir>/cache/<job>/<task>/<sha256>        files of state (`statelib.checkpoint.cache`)
    <state_dir>/cache/<job>/<task>.position.json   {"commit": <n>, "format_version": 1, "run_id": "<run id>"}

The position says which commit a standby or learner was brought up to. What a copy lacks is found by its files, whatever
the position says; it tells whether the commit is still one of the job's. A position that cannot be read is none.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from statelib.assignment.model import TaskId
from statelib.checkpoint.local_errors import local_errors
from statelib.errors.kinds import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path
    from uuid import UUID

    from statelib.documents.manifests import StateManifest

FORMAT_VERSION = 1


class CopyPosition(NamedTuple):
    """The commit that a copy was brought up to."""

    commit: int
    run_id: str


@dataclass(frozen=True, slots=True)
class HostReport:
    """What a host holds of one job; picklable.

    Attributes:
        process_id: The host's.
        rack: What may be lost at once with it; None: not known.
        files: Size in bytes of each file of state, by task and SHA-256.
        positions: By task, of copies that have one.
    """

    process_id: UUID
    rack: str | None
    files: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    positions: Mapping[str, CopyPosition] = field(default_factory=dict)

    def lacks(self, task_id: str, state: StateManifest) -> int:
        """Bytes of a task's state that are not here."""
        held = self.files.get(task_id, {})
        return sum(file.size_bytes for file in state.files if held.get(file.sha256) != file.size_bytes)


def encode_position(position: CopyPosition) -> bytes:
    """The record's bytes; see the module's docstring."""
    return (json.dumps({**position._asdict(), "format_version": FORMAT_VERSION}, sort_keys=True) + "\n").encode()


def decode_position(data: bytes) -> CopyPosition | None:
    """What `encode_position` was given; None for a record that is damaged or of another version."""
    try:
        raw: Any = json.loads(data)
        if raw["format_version"] != FORMAT_VERSION:
            return None
        return CopyPosition(int(raw["commit"]), str(raw["run_id"]))
    except (ValueError, KeyError, TypeError):
        return None


def cache_folder(state_dir: Path, job: str, task_id: str) -> Path:
    """Where a host keeps a task's files of state."""
    return state_dir / "cache" / job / task_id


def position_file(state_dir: Path, job: str, task_id: str) -> Path:
    """Where it is written down which commit they were brought up to."""
    return state_dir / "cache" / job / f"{task_id}.position.json"


def report_holdings(state_dir: Path, job: str, process_id: UUID, rack: str | None) -> HostReport:
    """What is in a state directory of a job, whichever application or release has put it there.

    Raises:
        ConfigurationError: It may not be read.
        RetryableError: The disk fails.
    """
    files: dict[str, dict[str, int]] = {}
    positions: dict[str, CopyPosition] = {}
    with local_errors("look at the files of state", state_dir):
        for folder in _folders(state_dir / "cache" / job):
            files[folder.name] = dict(_sizes(folder))
            if (position := read_position(state_dir, job, folder.name)) is not None:
                positions[folder.name] = position
    return HostReport(process_id, rack, files, positions)


def read_position(state_dir: Path, job: str, task_id: str) -> CopyPosition | None:
    """Which commit a copy was brought up to; None: nobody says.

    Raises:
        OSError: As the file system says.
    """
    try:
        return decode_position(position_file(state_dir, job, task_id).read_bytes())
    except FileNotFoundError:
        return None


def _folders(cache: Path) -> Iterator[Path]:
    for folder in sorted(cache.iterdir()) if cache.is_dir() else ():
        try:
            TaskId.parse(folder.name)
        except ConfigurationError:
            continue
        if folder.is_dir():
            yield folder


def _sizes(folder: Path) -> Iterator[tuple[str, int]]:
    for entry in folder.iterdir():
        try:
            yield entry.name, entry.stat().st_size
        except FileNotFoundError:  # attempts clear the cache as they end
            continue
