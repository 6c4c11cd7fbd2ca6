"""Forks of this process that do some work and tell what has come of it, disturbed or not."""

from __future__ import annotations

import os
import pickle
import signal
import traceback
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from statelib.errors.kinds import HindstreamError
from tests.faults.calls import traced

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.faults.calls import Call, Kill


@dataclass(frozen=True)
class Ended:
    """How a child has ended.

    Attributes:
        code: Its exit code; negative: the signal that has killed it.
        value: What its work gave.
        error: What its work raised; a text: nothing that Hindstream raises on purpose.
    """

    code: int
    value: Any = None
    error: HindstreamError | str | None = None

    @property
    def killed(self) -> bool:
        return self.code == -signal.SIGKILL

    def __str__(self) -> str:
        said = f"{type(self.error).__name__}: {self.error}" if isinstance(self.error, HindstreamError) else self.error
        return f"exit code {self.code}: {said or 'no error'}"


class Child:
    """A fork of this process, which must have one thread only.

    Args:
        folder: For what it prints and tells.
        work: Its result, which is pickled, becomes `Ended.value`.
    """

    def __init__(self, folder: Path, work: Callable[[], Any]) -> None:
        self._report = folder / f"ended{os.urandom(4).hex()}"
        self._work = work
        self._folder = folder

    def run(self) -> Ended:
        """Runs it to its end."""
        self.start()
        return self.wait()

    def run_traced(
        self, root: Path, before: Callable[[Call], Kill | int | None], after: Callable[[Call, int], None] | None = None
    ) -> Ended:
        """Runs it as `tests.faults.calls.traced` does."""
        return self._ended(traced(self._body, root, before, after))

    def start(self) -> None:
        """Starts it."""
        self.pid = os.fork()
        if self.pid == 0:
            os._exit(self._body())

    def wait_until_stopped(self) -> bool:
        """Waits until it has stopped itself; False: it has ended instead."""
        _, status = os.waitpid(self.pid, os.WUNTRACED)
        if not os.WIFSTOPPED(status):
            self._status = status
        return os.WIFSTOPPED(status)

    def go_on(self) -> Ended:
        """Lets it go on to its end."""
        os.kill(self.pid, signal.SIGCONT)
        return self.wait()

    def wait(self) -> Ended:
        """Waits for its end."""
        _, status = os.waitpid(self.pid, 0)
        return self._ended(os.waitstatus_to_exitcode(status))

    def _body(self) -> int:
        errors = os.open(self._folder / "stderr", os.O_CREAT | os.O_WRONLY | os.O_APPEND)
        os.dup2(errors, 2)
        value: Any = None
        error: HindstreamError | str | None = None
        code = 0
        try:
            value = self._work()
        except HindstreamError as raised:
            error, code = raised, raised.exit_code
        except BaseException:  # noqa: BLE001 - a child has nobody to raise it to
            error, code = traceback.format_exc(), 1
        self._report.write_bytes(pickle.dumps((value, error)))
        return code

    def _ended(self, code: int) -> Ended:
        if not self._report.exists():
            return Ended(code)
        value, error = pickle.loads(self._report.read_bytes())
        return Ended(code, value, error)
