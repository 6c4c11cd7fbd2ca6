"""How far something long has come: records, rate and time left, on the standard error.

In a terminal it is a bar, in a notebook a line that changes, and elsewhere a line every ten seconds, into a log.
Whatever begins inside something long is shown beside it: a stage of Spark beside the slices of a backfill.
"""

from __future__ import annotations

import sys
import threading
import time
from collections import deque
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Protocol, Self, TextIO

from rich.console import Console
from rich.progress import BarColumn, SpinnerColumn, TextColumn
from rich.progress import Progress as Bars

from hindstream.console.numbers import bytes_text, count_text, percent_text, seconds_text

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

EVERY_SECONDS = 10.0
"""How often a line is written where there is no terminal."""

_WINDOW_SECONDS = 30.0
"""What the rate is of: the time before now."""

_TICK_SECONDS = 0.5


class Meter:
    """What is known of something long, as figures. Knows nothing of screens.

    Args:
        label: What is going on.
        total: How much there is to do; None: nobody knows.
        unit: Of what: ``records``, ``bytes``, ``slices``, ...
        clock: Seconds.
    """

    def __init__(self, label: str, total: int | None, *, unit: str, clock: Callable[[], float]) -> None:
        self.label = label
        self.total = total
        self.unit = unit
        self.done = 0
        self._clock = clock
        self._began = clock()
        self._seen = deque([(self._began, 0)])

    def update(self, done: int) -> None:
        """``done``: how much has been done in all. A count that goes back is an attempt that begins anew."""
        now = self._clock()
        self.done = done
        if done < self._seen[-1][1]:
            self._seen = deque([(now, done)])  # another thread may look meanwhile
        self._seen.append((now, done))
        while len(self._seen) > 2 and self._seen[1][0] <= now - _WINDOW_SECONDS:  # noqa: PLR2004 - a line has two ends
            self._seen.popleft()

    @property
    def rate(self) -> float:
        """So much a second, lately; 0: not known."""
        (since, before), now = self._seen[0], self._clock()
        return (self.done - before) / (now - since) if now > since else 0.0

    @property
    def seconds_left(self) -> float | None:
        """By the rate; None: not known."""
        if self.total is None or not self.rate or self.done > self.total:
            return None
        return (self.total - self.done) / self.rate

    @property
    def figures(self) -> str:
        """``1,200 of 3,000 records (40.0 %), 250 a second, 7.20 s left``; else the time so far."""
        amount = bytes_text if self.unit == "bytes" else count_text
        unit = "" if self.unit == "bytes" else f" {self.unit}"
        of = "" if self.total is None else f" of {amount(self.total)}"
        parts = [f"{amount(self.done)}{of}{unit}"] if self.done or self.total is not None else []
        if self.total:
            parts[0] += f" ({percent_text(self.done, self.total)})"
        if self.rate >= 1:
            parts.append(f"{amount(self.rate)} a second")
        if self.done and self.seconds_left:
            parts.append(f"{seconds_text(self.seconds_left)} left")
        if len(parts) <= 1:
            parts.append(f"{seconds_text(self._clock() - self._began)} so far")
        return ", ".join(parts)


class _Shows(Protocol):
    """Shows meters, the outermost first."""

    def start(self) -> None: ...
    def show(self, meters: list[Meter]) -> None: ...
    def stop(self) -> None: ...


class _Lines:
    """A line every ten seconds; the stream is kept, since Airflow takes the process' own."""

    def __init__(self, stream: TextIO, clock: Callable[[], float]) -> None:
        self._stream = stream
        self._clock = clock
        self._said = clock()

    def start(self) -> None:
        self._said = self._clock()

    def show(self, meters: list[Meter]) -> None:
        if self._clock() - self._said >= EVERY_SECONDS:
            self._said = self._clock()
            with suppress(OSError, ValueError):  # nobody reads it any more
                self._stream.write("; ".join(f"{meter.label}: {meter.figures}" for meter in meters) + "\n")
                self._stream.flush()

    def stop(self) -> None:
        pass


class _Terminal:
    """Bars, which vanish when it ends."""

    def __init__(self, console: Console) -> None:
        self._rows: dict[Meter, Any] = {}
        columns = (
            SpinnerColumn(),
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            TextColumn("{task.fields[figures]}", markup=False),
        )
        self._bars = Bars(*columns, console=console, transient=True)

    def start(self) -> None:
        self._bars.start()

    def show(self, meters: list[Meter]) -> None:
        for meter in [meter for meter in self._rows if meter not in meters]:
            self._bars.remove_task(self._rows.pop(meter))
        for meter in meters:
            if meter not in self._rows:
                self._rows[meter] = self._bars.add_task(meter.label, total=meter.total, figures="")
            row = self._rows[meter]
            total = meter.total
            self._bars.update(row, description=meter.label, total=total, completed=meter.done, figures=meter.figures)

    def stop(self) -> None:
        self._bars.stop()


class _Notebook:
    """Lines below the cell, which change, and are gone when it ends."""

    def __init__(self, display: Callable[..., Any]) -> None:
        self._display = display
        self._handle: Any = None

    def start(self) -> None:
        self._handle = self._display({"text/plain": ""}, raw=True, display_id=True)

    def show(self, meters: list[Meter]) -> None:
        text = "\n".join(f"{meter.label}: {meter.figures}" for meter in meters)
        self._handle.update({"text/plain": text}, raw=True)

    def stop(self) -> None:
        self._handle.update({"text/plain": ""}, raw=True)


class _Screen:
    """What is shown now: the meters of everything that is going on, and the thread that shows them."""

    def __init__(self, shows: _Shows) -> None:
        self._shows = shows
        self._meters: list[Meter] = []
        self._lock = threading.Lock()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="progress", daemon=True)
        shows.start()
        self._thread.start()

    def add(self, meter: Meter) -> None:
        with self._lock:
            self._meters.append(meter)
            self._shows.show(self._meters)

    def remove(self, meter: Meter) -> bool:
        """Whether it was the last one: then it has ended."""
        with self._lock:
            self._meters.remove(meter)
            if self._meters:
                self._shows.show(self._meters)
                return False
        self._ended.set()
        self._thread.join()
        self._shows.stop()
        return True

    def _run(self) -> None:
        while not self._ended.wait(_TICK_SECONDS):
            with self._lock:
                if self._meters:
                    self._shows.show(self._meters)


_screen: _Screen | None = None
_begins = threading.Lock()


class Progress:
    """Something long that is shown while it goes on.

    ::

        with Progress("load clicks", total=3_000_000) as progress:
            for batch in batches:
                ...
                progress.advance(len(batch))

    Args:
        label: What is going on.
        total: How much there is to do; None: nobody knows.
        unit: Of what: ``records``, ``bytes``, ``slices``, ...
        console: Where results are printed meanwhile: if it is a terminal, bars go there. None: the standard error.
        clock: Seconds.
    """

    def __init__(
        self,
        label: str,
        total: int | None = None,
        *,
        unit: str = "records",
        console: Console | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._meter = Meter(label, total, unit=unit, clock=clock)
        self._console = console
        self._clock = clock

    def __enter__(self) -> Self:
        global _screen  # noqa: PLW0603 - there is one screen a process
        with _begins:
            if _screen is None:
                _screen = _Screen(_shown(self._console, self._clock))
            _screen.add(self._meter)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        global _screen  # noqa: PLW0603 - there is one screen a process
        with _begins:
            if _screen is not None and _screen.remove(self._meter):
                _screen = None

    def advance(self, count: int = 1) -> None:
        """So much more is done."""
        self._meter.update(self._meter.done + count)

    def update(self, done: int) -> None:
        """So much is done in all."""
        self._meter.update(done)

    def label(self, text: str) -> None:
        """What is going on now."""
        self._meter.label = text


def _shown(console: Console | None, clock: Callable[[], float]) -> _Shows:
    display = _notebook_display()
    if display is not None:
        return _Notebook(display)
    if console is not None and console.is_terminal:
        return _Terminal(console)
    errors = Console(file=sys.stderr)
    return _Terminal(errors) if errors.is_terminal else _Lines(sys.stderr, clock)


def _notebook_display() -> Callable[..., Any] | None:
    """IPython's ``display`` where this process is a notebook's kernel."""
    ipython: Any = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    if shell is None or not hasattr(shell, "kernel"):
        return None
    from IPython.display import display  # type: ignore[import-not-found,unused-ignore]  # noqa: PLC0415

    found: Callable[..., Any] = display
    return found
