"""Kills this process at a named step: nothing is closed, flushed or handed back."""

from __future__ import annotations

import os
import signal
import threading
from collections import Counter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


def killer(at: tuple[str, int] | None, note: Callable[[str], None] = lambda _: None) -> Callable[[str], None]:
    """An observer of steps that kills this process when it comes to the n-th step of a name.

    Args:
        at: The step's name, and which one of that name. None: nothing is killed.
        note: Told of each step before.
    """
    return at_step(at, lambda: os.kill(os.getpid(), signal.SIGKILL), note)


def at_step(
    at: tuple[str, int] | None, do: Callable[[], None], note: Callable[[str], None] = lambda _: None
) -> Callable[[str], None]:
    """An observer that does something when it comes to the n-th step of a name; arguments as for `killer`."""
    seen: Counter[str] = Counter()
    one_at_a_time = threading.Lock()  # files are stored by several threads, and each of them tells of its own

    def observe(name: str) -> None:
        with one_at_a_time:
            seen[name] += 1
            note(name)
            if (name, seen[name]) == at:
                do()

    return observe
