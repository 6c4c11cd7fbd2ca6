"""Events on their way: made and sent by a thread of their own, which no run waits for for long."""

from __future__ import annotations

import logging
import os
import time
from dataclasses import dataclass, field
from queue import SimpleQueue
from threading import Event, Lock, Thread
from typing import TYPE_CHECKING

from openlineage.client import OpenLineageClient

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from openlineage.client.event_v2 import RunEvent

_log = logging.getLogger(__name__)

WAIT_SECONDS = 5.0
"""How long a process waits, in all, for events to be sent."""

_NEXT_STEP = "check OPENLINEAGE_URL or openlineage.yml (docs/lineage.md); the run goes on without"


@dataclass
class Emission:
    """Sends events one after the other.

    Attributes:
        left_seconds: How long somebody may still wait.
    """

    client: OpenLineageClient
    left_seconds: float = WAIT_SECONDS
    _waiting: SimpleQueue[Callable[[], Iterable[RunEvent]] | Event] = field(default_factory=SimpleQueue)
    _lock: Lock = field(default_factory=Lock)
    _has_told: bool = False

    def __post_init__(self) -> None:
        """Starts the thread, which ends with the process."""
        Thread(target=self._work, name="openlineage", daemon=True).start()

    def submit(self, make: Callable[[], Iterable[RunEvent]]) -> None:
        """Has events made and sent, at some time."""
        self._waiting.put(make)

    def wait(self) -> None:
        """Waits until all have been sent, or the time is up."""
        done = Event()
        self._waiting.put(done)
        began = time.monotonic()
        if not done.wait(self.left_seconds):
            self._tell(f"no answer within {WAIT_SECONDS:.0f} s")
        self.left_seconds = max(0.0, self.left_seconds - (time.monotonic() - began))

    def _work(self) -> None:
        while True:
            item = self._waiting.get()
            if isinstance(item, Event):
                item.set()
                continue
            try:
                for event in item():
                    self.client.emit(event)
            except Exception as error:  # noqa: BLE001 - whatever it is, the run is worth more
                self._tell(f"{type(error).__name__}: {error}")

    def _tell(self, reason: str) -> None:
        """Says once what is wrong: all later events have the same fate, most likely."""
        with self._lock:
            if not self._has_told:
                _log.warning("events of OpenLineage could not be sent: %s. Next: %s", reason, _NEXT_STEP)
            self._has_told = True


_of_process: dict[int, Emission] = {}


def emission() -> Emission:
    """That of this process; a fork has its own."""
    return _of_process.setdefault(os.getpid(), _of_process.get(os.getpid()) or Emission(OpenLineageClient()))
