"""Folders of living and dead processes; the processes are real."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from statelib.checkpoint import scratch
from statelib.checkpoint.scratch import ScratchFolder, remove_dead

if TYPE_CHECKING:
    from pathlib import Path

READER = """
import sys
from pathlib import Path
from statelib.checkpoint.scratch import ScratchFolder
folder = ScratchFolder(Path(sys.argv[1]))
(folder.path / "db").mkdir()
print(folder.path, flush=True)
sys.stdin.read()
"""


def test_a_folder_stays_as_long_as_its_process_lives(tmp_path: Path) -> None:
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", READER, str(tmp_path / "inspect")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environ) as reader:
        assert reader.stdout is not None
        theirs = tmp_path / "inspect" / reader.stdout.readline().strip()
        ours = ScratchFolder(tmp_path / "inspect")
        assert remove_dead(tmp_path / "inspect") == 0
        assert (theirs / "db").is_dir()
        assert ours.path.is_dir()
        reader.kill()
    ours.close()
    ours.close()
    assert [theirs] == list((tmp_path / "inspect").iterdir())
    assert ScratchFolder(tmp_path / "inspect").path.is_dir()  # which removes what was left behind
    assert not theirs.exists()


def test_what_is_no_folder_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert remove_dead(tmp_path) == 0
    assert remove_dead(tmp_path / "nowhere") == 0
    assert (tmp_path / "file").exists()


def test_a_folder_removed_before_it_was_locked_is_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Somebody sweeps between each of the two steps by which a folder is made, once."""
    real_open, real_flock, swept = os.open, fcntl.flock, []

    def open_late(path: Path, flags: int) -> int:
        if "open" not in swept:
            swept.append("open")
            path.rmdir()
        return real_open(path, flags)

    def lock_late(descriptor: int, operation: int) -> None:
        if "lock" not in swept:
            swept.append("lock")
            next(iter(tmp_path.iterdir())).rmdir()
        real_flock(descriptor, operation)

    monkeypatch.setattr(scratch.os, "open", open_late)
    monkeypatch.setattr(scratch.fcntl, "flock", lock_late)
    folder = ScratchFolder(tmp_path)
    assert swept == ["open", "lock"]
    assert list(tmp_path.iterdir()) == [folder.path]
    folder.close()


def test_a_folder_that_is_being_removed_is_not_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real_flock, held = fcntl.flock, []

    def somebody_was_quicker(descriptor: int, operation: int) -> None:
        if not held:
            held.append(os.open(next(iter(tmp_path.iterdir())), os.O_RDONLY))
            real_flock(held[0], fcntl.LOCK_EX)
        real_flock(descriptor, operation)

    monkeypatch.setattr(scratch.fcntl, "flock", somebody_was_quicker)
    folder = ScratchFolder(tmp_path)
    assert folder.path in list(tmp_path.iterdir())
    assert len(list(tmp_path.iterdir())) == 2
    os.close(held[0])
    folder.close()


def test_without_locks_nothing_is_taken_to_be_left_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_locks(descriptor: int, operation: int) -> None:
        raise OSError(95, "Operation not supported")

    monkeypatch.setattr(scratch.fcntl, "flock", no_locks)
    folder = ScratchFolder(tmp_path)
    assert remove_dead(tmp_path) == 0
    assert folder.path.is_dir()
    folder.close()
    assert list(tmp_path.iterdir()) == []
