"""Work on Spark that goes on while this process does something else: one thread, in turns between which others go."""

from __future__ import annotations

import logging
import threading
import uuid
from contextlib import contextmanager
from typing import TYPE_CHECKING

from statelib.errors.kinds import HindstreamError

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
        """Lets no turn begin in the thread meanwhile.

        One that is under way is not waited for here, but by Spark: who needs all slots gets them when it ends. (To
        cancel it would take its Python workers along, which take longer to start than a turn.)
        """
        with self._changed:
            self._holds += 1
        try:
            yield
        finally:
            with self._changed:
                self._holds -= 1
                self._changed.notify_all()

    @contextmanager
    def turn(self, context: SparkContext) -> Iterator[None]:
        """One turn, as soon as nobody holds; other threads than the background's own are never held."""
        with self._changed:
            while self._holds and threading.current_thread() is self._thread:
                self._changed.wait()
        context.setJobGroup(f"hindstream-{self._pool}-{uuid.uuid4().hex}", self._pool)
        context.setLocalProperty("spark.scheduler.pool", self._pool)
        try:
            yield
        finally:
            context.setLocalProperty("spark.scheduler.pool", None)  # type: ignore[arg-type]
            context._jsc.clearJobGroup()  # noqa: SLF001 - PySpark has no public counterpart of Scala's method

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
