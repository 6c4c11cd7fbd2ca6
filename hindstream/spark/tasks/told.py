"""What tasks on Spark tell of their records while they run: a datagram a second to the driver, which may be lost.

Spark's own accumulators reach the driver when a task ends, which may be hours later. Where no datagram comes
through, the figures of a stage stay where they are until it ends.
"""

from __future__ import annotations

import socket
import time
import uuid
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import TracebackType

    from pyspark import SparkContext

_EVERY_SECONDS = 1.0
_LONGEST_BYTES = 256


@dataclass(frozen=True, slots=True)
class Listener:
    """Where tasks tell it; ``key`` is what nobody else knows."""

    host: str
    port: int
    key: str


class Told:
    """In the driver: how many records the tasks of a stage have done so far."""

    def __init__(self, context: SparkContext) -> None:
        conf = context.getConf()
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.setblocking(False)
        self._records: dict[int, int] = {}
        self._key = uuid.uuid4().hex
        self.listener: Listener | None = None
        with suppress(OSError):  # then nothing is told
            self._socket.bind((conf.get("spark.driver.bindAddress") or conf.get("spark.driver.host") or "", 0))
            host = conf.get("spark.driver.host") or "127.0.0.1"
            self.listener = Listener(host, self._socket.getsockname()[1], self._key)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._socket.close()

    def records(self) -> int:
        """By all that has come."""
        with suppress(BlockingIOError, OSError):
            while True:
                key, _, rest = self._socket.recv(_LONGEST_BYTES).decode("ascii", "replace").partition(" ")
                task, _, records = rest.partition(" ")
                if key == self._key and task.isdecimal() and records.isdecimal():
                    self._records[int(task)] = int(records)
        return sum(self._records.values())


class _Teller:
    """In a worker: tells of one task."""

    def __init__(self, listener: Listener, task: int, sender: socket.socket) -> None:
        self._listener = listener
        self._task = task
        self._sender = sender
        self._records = 0
        self._last = 0.0

    def add(self, records: int) -> None:
        self._records += records
        now = time.monotonic()
        if now - self._last >= _EVERY_SECONDS:
            self._last = now
            self.send()

    def send(self) -> None:
        message = f"{self._listener.key} {self._task} {self._records}".encode()
        with suppress(OSError):  # nothing depends on it
            self._sender.send(message)


_teller: _Teller | None = None


@contextmanager
def telling(listener: Listener | None, task: int) -> Iterator[None]:
    """In a worker: what `tell` says meanwhile is of this task."""
    global _teller  # noqa: PLW0603 - a worker runs one task at a time
    if listener is None:
        yield
        return
    with closing(socket.socket(socket.AF_INET, socket.SOCK_DGRAM)) as sender:
        with suppress(OSError):  # a host of no such name: then nothing is told
            sender.connect((listener.host, listener.port))
        sender.setblocking(False)
        _teller = _Teller(listener, task, sender)
        try:
            yield
            _teller.send()
        finally:
            _teller = None


def tell(records: int) -> None:
    """In a worker: so many more records are done; nothing happens where nobody asks."""
    if _teller is not None:
        _teller.add(records)
