"""Whole files on local disk that outlive a power cut: the bytes are on the disk before the name is."""

from __future__ import annotations

import os
import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def write_file(path: Path, fill: Callable[[Path], object], *, replace: bool) -> bool:
    """Makes a file that appears complete and on the disk, or not at all; directories are made if absent.

    A killed process may leave its unfinished file behind: ``<name>#<number>``, as obstore's does, whose listings leave
    such names out.

    Args:
        path: The file.
        fill: Writes the content to the path that it gets.
        replace: Whether to take the place of a file that is there.

    Returns:
        Whether the file is this one: False if there was one that may not be replaced, whose name is on the disk too.

    Raises:
        OSError: As the file system says.
    """
    make_directories(path.parent)
    unfinished = path.with_name(f"{path.name}#{os.getpid()}{threading.get_ident()}")
    try:
        fill(unfinished)
        sync_file(unfinished)
        if replace:
            unfinished.replace(path)
        else:
            try:
                os.link(unfinished, path)
            except FileExistsError:
                sync_directory(path.parent)  # who made it may have been killed before that
                return False
    finally:
        unfinished.unlink(missing_ok=True)
    sync_directory(path.parent)
    return True


def make_directories(directory: Path) -> None:
    """Makes a directory and those above it, each on the disk with its name."""
    if directory.is_dir():
        return
    make_directories(directory.parent)
    directory.mkdir(exist_ok=True)
    sync_directory(directory.parent)


def sync_file(path: Path) -> None:
    """Brings a file's content to the disk; nothing happens if there is none."""
    try:
        handle = os.open(path, os.O_RDONLY)
    except FileNotFoundError:
        return
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def sync_directory(directory: Path) -> None:
    """Brings a directory's entries to the disk."""
    sync_file(directory)
