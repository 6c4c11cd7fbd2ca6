"""Looks at something again and again while something else goes on."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from collections.abc import Callable


class Sampling:
    """Calls ``sample`` from a thread of its own, as long as the context lasts.

    Args:
        sample: What to do each time.
        every_seconds: How long to wait before each.
    """

    def __init__(self, sample: Callable[[], object], every_seconds: float) -> None:
        self._sample = sample
        self._every_seconds = every_seconds
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._is_over.wait(self._every_seconds):
            self._sample()
