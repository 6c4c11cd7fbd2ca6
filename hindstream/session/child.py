"""A fork of the session becomes a client's command."""

from __future__ import annotations

import ctypes
import io
import os
import random
import signal
import sys
import warnings
from typing import Any

_SET_PARENT_DEATH_SIGNAL = 1


def fork() -> int | None:
    """A child dies with the session, since nobody would tell its client of its end. None: there can be no child."""
    session = os.getpid()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # threads: those of OpenBLAS, which knows of forks
        try:
            pid = os.fork()
        except OSError:
            return None
    if pid == 0:
        ctypes.CDLL(None).prctl(_SET_PARENT_DEATH_SIGNAL, signal.SIGKILL, 0, 0, 0)
        if os.getppid() != session:
            os._exit(1)
    return pid


def become(request: dict[str, Any]) -> None:
    """Makes this process, a child, that of a client's command: its streams, directory, environment and arguments."""
    os.setsid()
    for number, descriptor in enumerate(request["descriptors"]):
        os.dup2(descriptor, number, inheritable=True)
        os.close(descriptor)
    os.environ.clear()
    os.environ.update(request["environment"])
    os.umask(request["umask"])
    os.chdir(request["folder"])
    sys.path[:], sys.argv[:] = request["path"], request["argv"]
    sys.modules["__main__"].__package__ = request["package"]  # by which help names the program
    sys.stdin = sys.__stdin__ = _stream(0, "r")  # type: ignore[misc]
    sys.stdout = sys.__stdout__ = _stream(1, "w")  # type: ignore[misc]
    sys.stderr = sys.__stderr__ = _stream(2, "w")  # type: ignore[misc]
    for number in request["ignored"]:
        signal.signal(number, signal.SIG_IGN)
    random.seed()
    if "numpy" in sys.modules:
        sys.modules["numpy"].random.seed()


def _stream(descriptor: int, mode: str) -> io.TextIOWrapper:
    """A standard stream as Python opens it: encoded as the session's own is."""
    own: Any = (sys.__stdin__, sys.__stdout__, sys.__stderr__)[descriptor]
    at_once = mode == "w" and own.write_through  # as by PYTHONUNBUFFERED
    raw: Any = open(descriptor, f"{mode}b", buffering=0 if at_once else -1, closefd=False)  # noqa: SIM115
    by_line = mode == "w" and not at_once and (descriptor == 2 or raw.isatty())  # noqa: PLR2004
    return io.TextIOWrapper(
        raw, encoding=own.encoding, errors=own.errors, line_buffering=by_line, write_through=at_once
    )
