"""The session: imports everything once, and forks a child for each command that a client sends.

It has one thread, as a process that forks should. A child leaves `Session.serve` by returning what it is to do, and
ends as any process does. What the session was started from must not change: if a file of the packages has, it refuses
the command and ends.
"""

from __future__ import annotations

import ctypes
import fcntl
import gc
import importlib
import importlib.machinery
import io
import os
import random
import selectors
import signal
import socket
import sys
import time
import warnings
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from hindstream.garbage import collect_seldom
from hindstream.session import messages
from hindstream.session.place import PACKAGES, socket_path, traits

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

COMMAND_LINE = "hindstream.cli.main"

PRELOADED = (
    COMMAND_LINE,
    "hindstream.cli.show",
    "hindstream.cli.status",
    "hindstream.cli.run",
    "hindstream.interactive.run",
    "hindstream.report.write",
    "hindstream.spark.phases.data_docs",
    "hindstream.spark.phases.pipeline",
    "hindstream.spark.phases.replay_here",
    "pandas",
    "statelib.dsl",
    "statelib.ingest",
    "statelib.task",
)
"""What commands import that wait for it; they import the rest as ever."""

_SET_PARENT_DEATH_SIGNAL = 1
_BACKLOG = 16
_STREAMS = 3
_MODULES = {ending.removeprefix(".") for ending in importlib.machinery.all_suffixes()}


def preload() -> None:
    """Imports all modules that matter, and loads the kernels; nothing of it starts a thread or opens a file."""
    for name in PRELOADED:
        importlib.import_module(name)
    from statelib.kernels.compiled import load_kernels  # noqa: PLC0415

    load_kernels()


def state_of_code() -> tuple[int, int]:
    """How many files the packages have, and when the newest was changed: also whether others were installed."""
    root = Path(__file__).parents[2]
    changed = [time_ns for package in PACKAGES for time_ns in _changed(str(root / package))]
    folders = [Path(path) for path in sys.path if path.endswith("-packages")]
    installed = [path.stat().st_mtime_ns for path in folders if path.exists()]
    return len(changed), max(changed + installed)


def _changed(folder: str) -> Iterator[int]:
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.endswith(".py"):
                yield entry.stat().st_mtime_ns
            elif entry.is_dir(follow_symlinks=False) and entry.name != "__pycache__":
                yield from _changed(entry.path)


@dataclass
class Session:
    """A session, from when it listens.

    Attributes:
        listener: Where clients connect.
        idle_seconds: It ends when no command has run for so long.
        code: `state_of_code` before the imports.
        look: Tells it anew.
        lock: Held for as long as it takes commands.
    """

    listener: socket.socket
    idle_seconds: float
    code: tuple[int, int]
    look: Callable[[], tuple[int, int]]
    lock: IO[str]
    started: float = field(default_factory=time.time)
    commands: int = 0
    ending: bool = False
    _socket: tuple[int, int] | None = None
    _children: dict[int, socket.socket] = field(default_factory=dict)
    _selector: selectors.DefaultSelector = field(default_factory=selectors.DefaultSelector)

    def __post_init__(self) -> None:
        self._socket = self._found()

    def serve(self) -> dict[str, Any] | None:
        """Serves until it is stopped, or idle for too long, and all commands have ended.

        Returns:
            None; or, in a child, the request that it is to be.
        """
        woken, wake = socket.socketpair()
        for end in (woken, wake):
            end.setblocking(False)
        signal.set_wakeup_fd(wake.fileno(), warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.signal(signal.SIGTERM, lambda *_: self._end())
        self.listener.setblocking(False)
        self._selector.register(self.listener, selectors.EVENT_READ, self._accept)
        self._selector.register(woken, selectors.EVENT_READ, lambda: woken.recv(4096) and None)
        idle_since = time.monotonic()
        while self._children or not self.ending:
            for key, _ in self._selector.select(1.0):
                if (request := key.data()) is not None:
                    self._leave(woken, wake)
                    return dict(request)
            self._reap()
            if self._children:
                idle_since = time.monotonic()
            if time.monotonic() - idle_since > self.idle_seconds or self._found() != self._socket:
                self._end()
        return None

    def _accept(self) -> None:
        with suppress(OSError):
            connection, _ = self.listener.accept()
            self._selector.register(connection, selectors.EVENT_READ, lambda: self._hear(connection))

    def _hear(self, connection: socket.socket) -> dict[str, Any] | None:
        """Does what a client asks; in a child, gives the request."""
        request, descriptors = messages.receive(connection, 3)
        if request is None:  # it is gone, and takes its command along
            for child in [child for child, of in self._children.items() if of is connection]:
                os.kill(child, signal.SIGKILL)
                del self._children[child]
            self._forget(connection)
        elif request.get("do") == "run":
            why = self._refused(request, descriptors)
            pid = _fork() if why is None else None
            if pid == 0:
                return {**request, "descriptors": descriptors}
            if pid is None:
                messages.send(connection, {"refused": why or "there can be no more processes"})
                self._forget(connection)
            else:
                self.commands += 1
                self._children[pid] = connection
                messages.send(connection, {"pid": pid})
        else:
            if request.get("do") == "stop":
                self._end()
            messages.send(connection, self._status())
            self._forget(connection)
        for descriptor in descriptors:
            os.close(descriptor)
        return None

    def _refused(self, request: dict[str, Any], descriptors: list[int]) -> str | None:
        if self.ending:
            return "the session ends"
        if self._has_changed():
            self._end()
            return "files of the packages have changed"
        if len(descriptors) != _STREAMS:
            return "too many files are open"
        mine = traits()
        differing = [name for name, value in request["traits"].items() if mine.get(name) != value]
        if not differing and (hidden := hidden_modules(request["path"])):
            return f"another {', '.join(sorted(hidden))}"
        return f"another {', '.join(differing)}" if differing else None

    def _has_changed(self) -> bool:
        try:
            return self.look() != self.code
        except OSError:  # they are being replaced
            return True

    def _status(self) -> dict[str, Any]:
        return {
            "pid": os.getpid(),
            "started": self.started,
            "commands": self.commands,
            "busy": len(self._children),
            "idle_seconds": self.idle_seconds,
        }

    def _reap(self) -> None:
        """Tells clients whose commands have ended."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            connection = self._children.pop(pid, None)
            if connection is not None:
                messages.send(connection, {"exit": os.waitstatus_to_exitcode(status)})
                self._forget(connection)

    def _end(self) -> None:
        """Takes no more commands, and lets another session begin."""
        if not self.ending:
            self.ending = True
            with suppress(OSError):
                if self._found() == self._socket:  # or it is of another session already
                    Path(self.listener.getsockname()).unlink()
            fcntl.flock(self.lock, fcntl.LOCK_UN)

    def _found(self) -> tuple[int, int] | None:
        """Which file is where clients look; None: none, somebody has deleted it."""
        try:
            of = Path(self.listener.getsockname()).lstat()
        except OSError:
            return None
        return of.st_dev, of.st_ino

    def _forget(self, connection: socket.socket) -> None:
        self._selector.unregister(connection)
        connection.close()

    def _leave(self, *others: socket.socket) -> None:
        """In a child: closes all that is the session's."""
        signal.set_wakeup_fd(-1)
        for number in (signal.SIGCHLD, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
            signal.signal(number, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        for key in list(self._selector.get_map().values()):
            if isinstance(key.fileobj, socket.socket):
                key.fileobj.close()
        self._selector.close()
        for one in others:
            one.close()


def hidden_modules(path: Iterable[str]) -> set[str]:
    """Imported modules in whose place a process with that path for modules would have imported others."""
    imported = {name for name in sys.modules if "." not in name}
    mine = {os.path.realpath(folder) for folder in sys.path}
    found = set[str]()
    for folder in path:
        if os.path.realpath(folder) in mine:
            continue
        with suppress(OSError), os.scandir(folder) as entries:
            for entry in entries:
                name, _, ending = entry.name.partition(".")
                is_module = ending in _MODULES or (not ending and Path(entry.path, "__init__.py").exists())
                if name in imported and is_module:
                    found.add(name)
    return found


def _fork() -> int | None:
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


def main() -> None:
    """``python -m hindstream.session.server IDLE_SECONDS``: says ``ready`` on its standard output when it listens."""
    path = socket_path()
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with path.with_suffix(".lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            sys.exit("a session runs already")
        code = state_of_code()
        preload()
        path.unlink(missing_ok=True)
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
            listener.bind(str(path))
            listener.listen(_BACKLOG)
            sys.stdout.write("ready\n")
            sys.stdout.flush()
            null = os.open(os.devnull, os.O_RDWR)
            os.dup2(null, 1)
            gc.freeze()  # or the collector of each child would copy all pages
            request = Session(listener, float(sys.argv[1]), code, state_of_code, lock).serve()
        if request is None:
            return
    become(request)
    collect_seldom()
    importlib.import_module(COMMAND_LINE).main()


if __name__ == "__main__":
    main()
