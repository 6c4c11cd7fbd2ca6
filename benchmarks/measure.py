"""What a command and all its descendants cost: wall-clock and CPU seconds, peak memory. Linux only."""

from __future__ import annotations

import ctypes
import os
import resource
import subprocess
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_SET_CHILD_SUBREAPER = 36
_SAMPLE_SECONDS = 0.1


@dataclass(frozen=True)
class Cost:
    """Of a command with all its descendants.

    Attributes:
        wall_seconds: From its start to the end of its last descendant.
        cpu_seconds: User and system time.
        peak_memory_bytes: The largest sum of their proportional set sizes that was sampled, ten times a second: a page
            that several processes share is counted once.
    """

    wall_seconds: float
    cpu_seconds: float
    peak_memory_bytes: int


def measure(command: Sequence[str], *, environment: dict[str, str]) -> Cost:
    """Runs a command.

    Descendants that outlive their parents, such as Spark's JVM, become children of this process, which waits for them:
    their time is counted too.

    Raises:
        subprocess.CalledProcessError: The command failed.
    """
    ctypes.CDLL(None, use_errno=True).prctl(_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    started = time.perf_counter()
    process = subprocess.Popen(command, env=environment)
    with _PeakMemory(os.getpid()) as memory:
        code = process.wait()
        _reap_orphans()
    wall = time.perf_counter() - started
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if code:
        raise subprocess.CalledProcessError(code, command)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Cost(wall, cpu, memory.peak_bytes)


def _reap_orphans() -> None:
    while True:
        try:
            os.wait()
        except ChildProcessError:
            return


class _PeakMemory:
    """Samples the descendants of a process while the context lasts."""

    def __init__(self, root: int) -> None:
        self.peak_bytes = 0
        self._root = root
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._sample, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def _sample(self) -> None:
        while not self._ended.wait(_SAMPLE_SECONDS):
            self.peak_bytes = max(self.peak_bytes, sum(map(_pss_bytes, _descendants(self._root))))


def _descendants(root: int) -> Iterable[int]:
    children: dict[int, list[int]] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            after_name = stat.read_text().rpartition(")")[2].split()
        except OSError:  # it has just ended
            continue
        children.setdefault(int(after_name[1]), []).append(int(stat.parent.name))
    found, todo = [], [root]
    while todo:
        new = children.get(todo.pop(), [])
        found += new
        todo += new
    return found


def _pss_bytes(pid: int) -> int:
    try:
        rollup = Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="ascii")
    except OSError:  # it has just ended
        return 0
    return next((int(line.split()[1]) * 1024 for line in rollup.splitlines() if line.startswith("Pss:")), 0)
