"""Folders of a process, which others recognise as left behind once it is dead.

A process locks its folder (``flock`` on the folder itself) for as long as it uses it, and the kernel lets the lock go
when the process ends, however it ends. A process id would not do: it comes again, and containers that share a disk have
the same ones. Where the file system knows no such locks, nothing is ever taken to be left behind.
"""

from __future__ import annotations

import fcntl
import os
import shutil
from contextlib import suppress
from itertools import count
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

_numbers = count()


class ScratchFolder:
    """A new folder that nobody else has, removed by `close`; what dead processes left beside it is removed first.

    Args:
        parent: Holds such folders only; made if absent.

    Attributes:
        path: The folder.

    Raises:
        OSError: As the file system says.
    """

    def __init__(self, parent: Path) -> None:
        remove_dead(parent)
        self.path, self._descriptor = _locked(parent)
        self._open = True

    def close(self) -> None:
        """Removes the folder; a second call does nothing."""
        if self._open:
            self._open = False
            shutil.rmtree(self.path, ignore_errors=True)
            os.close(self._descriptor)


def remove_dead(parent: Path) -> int:
    """Removes the folders in ``parent`` whose processes are dead; how many there were. Safe beside living ones."""
    removed = 0
    for folder in parent.iterdir() if parent.is_dir() else ():
        try:
            descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        except OSError:  # gone meanwhile, or no folder
            continue
        with suppress(OSError):  # somebody uses it, or there are no locks here
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(folder, ignore_errors=True)
            removed += 1
        os.close(descriptor)
    return removed


def _locked(parent: Path) -> tuple[Path, int]:
    """A new folder in ``parent``, and the descriptor that holds its lock."""
    while True:
        folder = parent / f"{os.getpid()}-{next(_numbers)}"
        try:
            folder.mkdir(parents=True)
            descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        except (FileExistsError, FileNotFoundError):  # of a dead process with this id; or removed before it was locked
            continue
        try:
            fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
            is_ours = _is_at(folder, descriptor)
        except BlockingIOError:  # it is being removed
            is_ours = False
        except OSError:  # no locks here, so nobody removes it
            is_ours = True
        if is_ours:
            return folder, descriptor
        os.close(descriptor)


def _is_at(folder: Path, descriptor: int) -> bool:
    """Whether the folder that is open is still where it was made."""
    try:
        return os.path.samestat(folder.stat(), os.fstat(descriptor))
    except FileNotFoundError:
        return False
