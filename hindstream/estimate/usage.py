"""What this process and all that it has started have used so far: CPU and memory, from ``/proc``.

On systems without it: of this process, and of its children that have ended.
"""

from __future__ import annotations

import os
import resource
import time
from collections import defaultdict
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from statelib.metrics.peak_memory import peak_memory_bytes
from statelib.task.freed_memory import release_freed_memory

if TYPE_CHECKING:
    from collections.abc import Iterator

_PROC = Path("/proc")


@dataclass(frozen=True, slots=True)
class Usage:
    """Of all processes together.

    Attributes:
        cpu_seconds: User and system time so far.
        memory_bytes: Now, of all but Spark's Python workers: of this process all that is resident, of those that it has
            started their proportional share of pages that several have.
        worker_bytes: Now, of one of those; 0: there are none.
    """

    cpu_seconds: float
    memory_bytes: int
    worker_bytes: int


@dataclass(frozen=True, slots=True)
class _Process:
    pid: int
    name: str
    ticks: int


def usage() -> Usage:
    """Now."""
    if not (_PROC / "self" / "smaps_rollup").exists():
        children = resource.getrusage(resource.RUSAGE_CHILDREN)
        return Usage(time.process_time() + children.ru_utime + children.ru_stime, peak_memory_bytes(), 0)
    children_of = _children()
    ticks, memory_bytes, workers = 0, _resident_bytes(), []
    todo = [(child, 1, False) for child in children_of[os.getpid()]]
    while todo:
        process, depth, below_java = todo.pop()
        ticks += process.ticks
        # Spark's JVM starts a daemon in Python, and that one the workers.
        is_worker = below_java and depth > 2  # noqa: PLR2004
        size = _pss_bytes(process.pid)
        if is_worker:
            workers.append(size)
        else:
            memory_bytes += size
        todo += [(child, depth + 1, below_java or process.name == "java") for child in children_of[process.pid]]
    seconds = time.process_time() + ticks / os.sysconf("SC_CLK_TCK")
    return Usage(seconds, memory_bytes, sum(workers) // len(workers) if workers else 0)


class TaskMemory:
    """How much memory tasks take beyond what this process has before them."""

    def __init__(self) -> None:
        self.peak_bytes = 0

    @contextmanager
    def watching(self) -> Iterator[None]:
        """While a task runs; where the system keeps no peak that can be forgotten, nothing is seen."""
        release_freed_memory()
        watches = _forget_peak()
        before = _resident_bytes() if watches else 0
        yield
        if watches:
            self.peak_bytes = max(self.peak_bytes, peak_memory_bytes() - before)


def _forget_peak() -> bool:
    try:
        (_PROC / "self" / "clear_refs").write_text("5", encoding="ascii")  # proc(5): resets VmHWM
    except OSError:
        return False
    return True


def _resident_bytes() -> int:
    pages = (_PROC / "self" / "statm").read_text(encoding="ascii").split()[1]
    return int(pages) * os.sysconf("SC_PAGE_SIZE")


def _children() -> dict[int, list[_Process]]:
    found: defaultdict[int, list[_Process]] = defaultdict(list)
    for file in _PROC.glob("[0-9]*/stat"):
        try:
            head, _, tail = file.read_text().rpartition(")")
        except OSError:  # it has just ended
            continue
        fields = tail.split()
        # Its own time, and that of children that it has waited for: proc(5).
        ticks = sum(map(int, fields[11:15]))
        found[int(fields[1])].append(_Process(int(file.parent.name), head.partition("(")[2], ticks))
    return found


def _pss_bytes(pid: int) -> int:
    try:
        lines = (_PROC / str(pid) / "smaps_rollup").read_text(encoding="ascii").splitlines()
    except OSError:  # it has just ended
        return 0
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("Pss:")), 0)
