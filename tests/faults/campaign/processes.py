"""Processes of this host, by what Linux says in ``/proc``."""

from __future__ import annotations

import itertools
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


def descendants(of: int, wanted: Callable[[bytes], bool]) -> list[int]:
    """All processes below one whose command line, its words ended by zero bytes, is wanted; in ascending order."""
    found, waiting = [], children(of)
    while waiting:
        pid = waiting.pop()
        waiting += children(pid)
        with suppress(OSError):
            if wanted(Path(f"/proc/{pid}/cmdline").read_bytes()):
                found.append(pid)
    return sorted(found)


def children(of: int) -> list[int]:
    """Those that a process has started and that live, none if it is gone."""
    with suppress(OSError):
        tasks = Path(f"/proc/{of}/task").glob("*/children")
        return [int(pid) for pid in itertools.chain.from_iterable(task.read_text().split() for task in tasks)]
    return []


def parent(of: int) -> int | None:
    """Who has started a process, or init if that is gone; None: it is gone itself."""
    status = _status(of)
    return int(status[1]) if status else None


def state(of: int) -> str:
    """``R``, ``S``, ``T`` (stopped) and so on, as ``man 5 proc_pid_stat`` says; ``Z``: it has ended."""
    status = _status(of)
    return status[0] if status else "Z"


def _status(of: int) -> list[str]:
    """What follows the name in ``/proc/PID/stat``; empty: there is no such process."""
    with suppress(OSError):
        return Path(f"/proc/{of}/stat").read_text().rpartition(")")[2].split()
    return []
