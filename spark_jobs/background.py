"""Work on Spark that goes on while this process does something else: one thread, in turns that others may cut short."""

from __future__ import annotations

import logging
import threading
import uuid
from contextlib import contextmanager
from typing import TYPE_CHECKING

from spark_jobs.locations import cancel_group
from statelib.errors import HindstreamError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pyspark import SparkContext

_log = logging.getLogger(__name__)


class Background:
    """A thread that is there as long as something is asked for.

    Args:
        pool: The pool of Spark's scheduler that its jobs go to (``fairscheduler.xml``).
    """

    def __init__(self, pool: str) -> None:
        self._pool = pool
        self._changed = threading.Condition()
        self._asked: dict[str, Callable[[], object]] = {}
        self._thread: threading.Thread | None = None
        self._holds = 0
        self._turn: tuple[SparkContext, str] | None = None
        self._was_cut_short = False

    def ask(self, name: str, do: Callable[[], object]) -> None:
        """Has ``do`` called in the thread, once what was asked for before is done; an error is a warning.

        Args:
            name: What it is for: of several that wait under one name, the last one is called.
            do: Does its work on Spark inside of `turn`.
        """
        with self._changed:
            self._asked[name] = do
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name=self._pool)  # no daemon: the process waits
                self._thread.start()

    def wait(self) -> None:
        """Returns when nothing is left to do."""
        with self._changed:
            thread = self._thread
        if thread is not None:
            thread.join()

    @contextmanager
    def held(self) -> Iterator[None]:
        """Lets no turn begin in the thread meanwhile; cuts the one short that is under way."""
        with self._changed:
            self._holds += 1
            if self._turn is not None:
                context, group = self._turn
                self._was_cut_short = True
                cancel_group(context, group)
        try:
            yield
        finally:
            with self._changed:
                self._holds -= 1
                self._changed.notify_all()

    @contextmanager
    def turn(self, context: SparkContext) -> Iterator[None]:
        """One turn, as soon as nobody holds; other threads than the background's own are never held or cut short."""
        group = f"hindstream-{self._pool}-{uuid.uuid4().hex}"
        with self._changed:
            is_own = threading.current_thread() is self._thread
            while is_own and self._holds:
                self._changed.wait()
            self._was_cut_short = False
            self._turn = (context, group) if is_own else None
        context.setJobGroup(group, self._pool, interruptOnCancel=True)
        context.setLocalProperty("spark.scheduler.pool", self._pool)
        try:
            yield
        finally:
            with self._changed:
                self._turn = None
            context.setLocalProperty("spark.scheduler.pool", None)  # type: ignore[arg-type]
            context._jsc.clearJobGroup()  # noqa: SLF001 - PySpark has no public counterpart of Scala's method

    @property
    def was_cut_short(self) -> bool:
        """Whether the last turn was, so that Spark's error means nothing."""
        with self._changed:
            return self._was_cut_short

    def _run(self) -> None:
        try:
            while (asked := self._next()) is not None:
                name, do = asked
                try:
                    do()
                except HindstreamError as error:
                    _log.warning("%s: %s in the background: %s", name, self._pool, error)
        finally:
            with self._changed:
                if self._thread is threading.current_thread():  # it has failed
                    self._thread = None

    def _next(self) -> tuple[str, Callable[[], object]] | None:
        with self._changed:
            if not self._asked:
                self._thread = None  # who asks from now on starts another
                return None
            return self._asked.popitem()
