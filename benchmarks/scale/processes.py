"""Functions in a process of their own, and how much memory it took."""

from __future__ import annotations

import multiprocessing
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.sampling import Sampling
from hindstream.spark.session.imports import importing

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_SAMPLE_SECONDS = 0.01

_begun: list[Iterator[Any]] = []
"""In a process of `steps_in_fresh_process`: its one generator."""


def in_fresh_process(function: Callable[..., Any], *arguments: Any) -> Any:
    """What a function of a module gives, called in a new interpreter that imports the engine as Spark's workers do."""
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(max_workers=1, mp_context=spawn, initializer=_import_engine) as executor:
        return executor.submit(function, *arguments).result()


@contextmanager
def steps_in_fresh_process(function: Callable[..., Iterator[Any]], *arguments: Any) -> Iterator[Callable[[], Any]]:
    """A generator of a module in a new interpreter, as `in_fresh_process`; each call of what this gives is a step.

    Two that are compared can take turns so: a machine that is now faster, now slower, is mostly the same for both.
    """
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(
        max_workers=1, mp_context=spawn, initializer=_begin, initargs=(function, *arguments)
    ) as executor:
        yield lambda: executor.submit(_step).result()


def _begin(function: Callable[..., Iterator[Any]], *arguments: Any) -> None:
    _import_engine()
    _begun.append(function(*arguments))


def _step() -> Any:
    return next(_begun[0])


def _import_engine() -> None:
    with importing():
        import statelib.task  # noqa: F401, PLC0415


def anonymous_bytes() -> int:
    """What this process has in memory now that no file holds: unlike shared libraries it is its own alone."""
    return _field("status", "RssAnon") * 1024


class PeakMemory(Sampling):
    """The most `anonymous_bytes` while this context is open, sampled: Linux keeps the peak of all pages only.

    Attributes:
        at_begin_bytes: When it was opened.
        peak_bytes: The most so far.
    """

    def __init__(self) -> None:
        super().__init__(self._look, _SAMPLE_SECONDS)
        self.at_begin_bytes = self.peak_bytes = anonymous_bytes()

    def _look(self) -> None:
        self.peak_bytes = max(self.peak_bytes, anonymous_bytes())


def read_bytes() -> int:
    """What this process has read from files so far, by calls; what is mapped into memory does not count."""
    return _field("io", "rchar")


def _field(file: str, name: str) -> int:
    lines = Path(f"/proc/self/{file}").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(f"{name}:"))
