"""Hands a command to the session, and stands for it in its terminal: signals go there, the exit code comes back."""

from __future__ import annotations

import os
import signal
import sys
from contextlib import suppress
from typing import TYPE_CHECKING

from hindstream.session.place import is_ours, socket_path

if TYPE_CHECKING:
    import socket
    from types import FrameType

_OF_THE_PROCESS = {"session", "--install-completion", "--show-completion"}
"""First arguments of commands that are about this process: the session, and the shell that it was typed into."""

_FORWARDED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2)


def run_in_session() -> int | None:
    """Runs this process's command in the session.

    Returns:
        The exit code. None: there is no session, or it would not do the very same; the command has not begun.
    """
    path = socket_path()
    if not _OF_THE_PROCESS.isdisjoint(sys.argv[1:2]) or not is_ours(path) or not path.exists():
        return None
    if None in {sys.stdin, sys.stdout, sys.stderr} or (folder := _folder()) is None:
        return None  # without a stream, our connection would be it
    from hindstream.session import messages  # noqa: PLC0415 - json and socket, only where there is a session
    from hindstream.session.place import traits  # noqa: PLC0415

    connection = messages.connect(str(path))
    if connection is None:
        return None
    with connection:
        mask = os.umask(0)
        os.umask(mask)
        request = {
            "do": "run",
            "traits": traits(),
            "package": sys.modules["__main__"].__package__,
            "argv": sys.argv,
            "path": sys.path,
            "environment": dict(os.environ),
            "folder": folder,
            "umask": mask,
            "ignored": [number for number in _FORWARDED if signal.getsignal(number) is signal.SIG_IGN],
        }
        sys.stdout.flush()
        if not messages.send(connection, request, (0, 1, 2)):
            return None
        answer, _ = messages.receive(connection)
        if answer is None or "pid" not in answer:
            return None
        return _wait(connection, answer["pid"])


def _folder() -> str | None:
    """The current directory; None: a fork could not go there by its name."""
    try:
        name = os.getcwd()  # noqa: PTH109 - as a text
        return name if os.path.samefile(name, ".") else None  # noqa: PTH121 - as a text
    except OSError:
        return None


def _wait(connection: socket.socket, pid: int) -> int:
    """The exit code of the child, which gets the signals of this process."""
    from hindstream.session import messages  # noqa: PLC0415

    def forward(number: int, _: FrameType | None) -> None:
        with suppress(ProcessLookupError):  # it has ended just now
            os.kill(pid, number)

    def pause(_: int, __: FrameType | None) -> None:
        forward(signal.SIGSTOP, None)
        os.kill(os.getpid(), signal.SIGSTOP)

    for number in _FORWARDED:
        if signal.getsignal(number) is not signal.SIG_IGN:  # as after nohup
            signal.signal(number, forward)
    if signal.getsignal(signal.SIGTSTP) is not signal.SIG_IGN:
        signal.signal(signal.SIGTSTP, pause)
    signal.signal(signal.SIGCONT, forward)
    ended, _ = messages.receive(connection)
    code = int(ended["exit"]) if ended else -signal.SIGKILL  # the session was killed, and all its children
    if code < 0:
        signal.signal(-code, signal.SIG_DFL) if -code not in {signal.SIGKILL, signal.SIGSTOP} else None
        os.kill(os.getpid(), -code)
    return code
