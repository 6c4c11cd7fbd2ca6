"""What a command and all its descendants cost: wall-clock and CPU seconds, peak memory. Linux only.

Descendants are sampled from ``/proc``. Resource usage of waited-for children would be exact, but lacks Spark's Python
workers: their daemon ignores SIGCHLD, and whom nobody waits for is not added up. Those that this process waits for are
looked at once more when they have ended. A server that was there before does the work of its clients outside their
tree: it is sampled too, and what it has waited for is exact.
"""

from __future__ import annotations

import ctypes
import os
import subprocess
import threading
import time
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.sampling import Sampling

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

_SET_CHILD_SUBREAPER = 36
_SAMPLE_SECONDS = 0.05
_SAMPLES_OF_TIME_PER_MEMORY = 4
_LINES_SHOWN = 25
_TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Cost:
    """Of a command with all its descendants.

    Attributes:
        wall_seconds: From its start to its end.
        cpu_seconds: User and system time; of a process that ends while its parent lives, what it took since the last
            sample is missed: a twentieth of a second, or more where the samples come late.
        peak_memory_bytes: The largest sum of their proportional set sizes that was sampled, five times a second: a page
            that several processes share is counted once.
    """

    wall_seconds: float
    cpu_seconds: float
    peak_memory_bytes: int


def adopt_orphans() -> None:
    """Lets descendants that outlive their parents, such as Spark's JVM, become children of this process."""
    ctypes.CDLL(None, use_errno=True).prctl(_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def measure(
    command: Sequence[str],
    *,
    environment: Mapping[str, str],
    log: Path,
    folder: Path | None = None,
    server: int | None = None,
) -> Cost:
    """Runs a command, in ``folder`` or the current directory; what it says goes into ``log``.

    Args:
        command: The command with its arguments.
        environment: All its variables.
        log: A file, written anew.
        folder: Where it runs.
        server: The process id of a child of this process that works for the command. What the child and its descendants
            take meanwhile counts as the command's, not what they took before; their memory counts whole.

    Raises:
        subprocess.CalledProcessError: The command failed. The end of the log is among the error's notes.
    """
    adopt_orphans()
    started = time.perf_counter()
    before = frozenset(_children()[os.getpid()])  # others of this process's: they are no part of it, and may stay
    served = None if server is None else _Served(server)
    with log.open("wb") as said:
        process = subprocess.Popen(command, env=environment, stdout=said, stderr=subprocess.STDOUT, cwd=folder)
    with _Descendants(os.getpid(), before, served) as descendants:
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        wall = time.perf_counter() - started
        descendants.look()
        code = process.wait()
        _wait_for_orphans(descendants, before)
    if code:
        error = subprocess.CalledProcessError(code, command)
        error.add_note("\n".join(log.read_text(errors="replace").splitlines()[-_LINES_SHOWN:]))
        raise error
    return Cost(wall, descendants.cpu_seconds, descendants.peak_bytes)


def _wait_for_orphans(descendants: _Descendants, before: frozenset[int]) -> None:
    while orphans := sorted(_children()[os.getpid()].keys() - before):
        os.waitid(os.P_PID, orphans[0], os.WEXITED | os.WNOWAIT)
        descendants.look()
        os.waitpid(orphans[0], 0)


_Children = defaultdict[int, dict[int, list[str]]]
"""By process, its children, each with the fields of its ``stat`` after the name (proc(5): from the state on)."""


class _Ticks:
    """What processes take, by when they were last looked at."""

    def __init__(self) -> None:
        self._of: dict[tuple[int, str], int] = {}

    @property
    def sum(self) -> int:
        """Of all that were ever seen."""
        return sum(self._of.values())

    def take_down(self, pid: int, stat: list[str]) -> None:
        """The time of one."""
        self._of[pid, stat[19]] = int(stat[11]) + int(stat[12])  # by start time: a pid may be used again


class _Served:
    """What a child of this process takes from now on, with its descendants."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self._descendants = _Ticks()
        self._first = self._last = self._own(_children())

    @property
    def ticks(self) -> int:
        """The more of what was seen and of what it has waited for.

        The first lacks what a descendant takes between the last look and its end, the second descendants that nobody
        waited for.
        """
        own, with_ended = (last - first for last, first in zip(self._last, self._first, strict=True))
        return max(own + self._descendants.sum, with_ended)

    def look(self, children: _Children) -> list[int]:
        """Takes down the time of all that there are; gives their process ids."""
        pids = [self.pid]
        for pid, stat in _descendants(children, self.pid, frozenset()):
            pids.append(pid)
            self._descendants.take_down(pid, stat)
        self._last = self._own(children)
        return pids

    def _own(self, children: _Children) -> tuple[int, int]:
        """Its own time, and with that of descendants that have ended and were waited for."""
        stat = children[os.getpid()][self.pid]
        return sum(map(int, stat[11:13])), sum(map(int, stat[11:15]))


class _Descendants(Sampling):
    """Samples the descendants of a process; ``without``: children that do not count, with theirs."""

    def __init__(self, root: int, without: frozenset[int], served: _Served | None) -> None:
        super().__init__(self.look, _SAMPLE_SECONDS)
        self.peak_bytes = 0
        self._looks = 0
        self._ticks = _Ticks()
        self._root, self._without, self._served = root, without, served
        self._one_at_a_time = threading.Lock()

    @property
    def cpu_seconds(self) -> float:
        """Of all descendants that were ever seen."""
        served = 0 if self._served is None else self._served.ticks
        return (self._ticks.sum + served) / _TICKS

    def look(self) -> None:
        """Takes down the time of all that there are, and now and then their memory. For any thread."""
        with self._one_at_a_time:  # so that no older time comes after a newer one
            children = _children()
            pids = [] if self._served is None else self._served.look(children)
            for pid, stat in _descendants(children, self._root, self._without):
                pids.append(pid)
                self._ticks.take_down(pid, stat)
            if self._looks % _SAMPLES_OF_TIME_PER_MEMORY == 0:
                self.peak_bytes = max(self.peak_bytes, sum(map(_pss_bytes, pids)))
            self._looks += 1


def _descendants(children: _Children, root: int, without: frozenset[int]) -> Iterator[tuple[int, list[str]]]:
    todo = [root]
    while todo:
        for pid, fields in children[todo.pop()].items():
            if pid not in without:
                yield pid, fields
                todo.append(pid)


def _children() -> _Children:
    children: _Children = defaultdict(dict)
    for file in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = file.read_text().rpartition(")")[2].split()
        except OSError:  # it has just ended
            continue
        children[int(fields[1])][int(file.parent.name)] = fields
    return children


def _pss_bytes(pid: int) -> int:
    try:
        rollup = Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="ascii")
    except OSError:  # it has just ended
        return 0
    return next((int(line.split()[1]) * 1024 for line in rollup.splitlines() if line.startswith("Pss:")), 0)
