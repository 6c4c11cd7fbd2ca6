"""The session: imports everything once, and forks a child for each command that a client sends.

It has one thread, as a process that forks should. A child leaves `Session.serve` by returning what it is to do, and
ends as any process does. What the session was started from must not change: if a file of the packages has, it refuses
the command and ends.
"""

from __future__ import annotations

import fcntl
import gc
import importlib
import os
import selectors
import signal
import socket
import sys
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from hindstream.garbage import collect_seldom
from hindstream.session import messages
from hindstream.session.child import become, fork
from hindstream.session.imported import COMMAND_LINE, hidden_modules, preload, state_of_code
from hindstream.session.place import socket_path, traits

if TYPE_CHECKING:
    from collections.abc import Callable

_BACKLOG = 16
_STREAMS = 3


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
            pid = fork() if why is None else None
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
