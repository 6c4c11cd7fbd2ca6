"""A session of Hindstream's own (``hindstream session start``), and what commands cost that run in it."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.measure import Cost, adopt_orphans, measure

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

HINDSTREAM = str(Path(sys.executable).with_name("hindstream"))
"""The program of this environment."""

_IDLE_MINUTES = "1"
"""It ends by itself where nobody stops it, because the benchmark was killed."""

_STOP_SECONDS = 10.0


@dataclass(frozen=True)
class WarmSession:
    """A session that has imported everything and waits for commands; `warm_session` starts one.

    Attributes:
        pid: Of its process, a child of this one.
        environment: Of the session, and of the commands that find it.
    """

    pid: int
    environment: dict[str, str]

    def measure(self, command: Sequence[str], *, log: Path, folder: Path | None = None) -> Cost:
        """What ``hindstream``, the first of ``command``, takes in the session: client, session and the command's fork.

        The memory is that of all of them.

        Raises:
            subprocess.CalledProcessError: See `benchmarks.measure.measure`.
            RuntimeError: The session has not run the command, which ran in a process of its own.
        """
        before = self._commands()
        cost = measure(command, environment=self.environment, log=log, folder=folder, server=self.pid)
        if self._commands() != before + 1:
            raise RuntimeError(f"the session {self.pid} has not run: {' '.join(command)}")
        return cost

    def _commands(self) -> int:
        """How many it has run."""
        return int(_session("status", self.environment).get("commands", -1))


@contextmanager
def warm_session(environment: Mapping[str, str]) -> Iterator[WarmSession]:
    """A session with these variables, in a place of its own, which nobody else uses; stopped at the end in any case.

    Raises:
        subprocess.CalledProcessError: It has not started.
    """
    adopt_orphans()  # so that it becomes a child of this process, whose id is nobody else's until it is waited for
    with tempfile.TemporaryDirectory(prefix="hindstream-session-") as place:  # with it the session goes too
        inside = {**environment, "XDG_RUNTIME_DIR": place}
        pid = int(_session("start", inside, "--idle-minutes", _IDLE_MINUTES)["pid"])
        try:
            yield WarmSession(pid, inside)
        finally:
            _stop(pid)


def _session(what: str, environment: dict[str, str], *options: str) -> dict[str, str | int]:
    command = [HINDSTREAM, "session", what, "--output", "json", *options]
    said = subprocess.run(command, env=environment, stdout=subprocess.PIPE, check=True).stdout
    answer: dict[str, str | int] = json.loads(said)
    return answer


def _stop(pid: int) -> None:
    """It lets its command come to an end; if that takes long, it is killed, and the command with it."""
    ending = os.pidfd_open(pid)
    try:
        os.kill(pid, signal.SIGTERM)
        if not select.select([ending], [], [], _STOP_SECONDS)[0]:
            os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
    finally:
        os.close(ending)
