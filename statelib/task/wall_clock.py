"""The wall clock of a task of a circle, which stands until all that a record causes has been taken up.

Only then does it show the record's timestamp, as that of Kafka's test driver does if a test moves it behind each
record. In any other task nothing that a record causes comes back, so it shows that at once.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from statelib.operators.processors.operator import ProcessOperator

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from statelib.operators.base import Operator
    from statelib.records.batch import Uptake
    from statelib.task.merge import Merged


class HeldWallClock:
    """Puts off the callbacks of custom processors by the wall clock.

    Args:
        operators: All of the task.

    Attributes:
        last: What the task has taken up last; None: nothing since the circle came to rest.
    """

    def __init__(self, operators: Iterable[Operator]) -> None:
        self.last: tuple[Merged, Uptake] | None = None
        self._queues = [one.scheduler.queue for one in operators if isinstance(one, ProcessOperator)]
        self._hold(holds=True)

    def due(self, now_ms: int) -> tuple[Merged, Uptake] | None:
        """What was taken up last, behind which callbacks are due at a time; None: none are, or nothing was taken up."""
        last, self.last = self.last, None
        return last if any(queue.is_held(now_ms) for queue in self._queues) else None

    @contextmanager
    def going(self) -> Iterator[None]:
        """Lets callbacks that are due be called meanwhile."""
        self._hold(holds=False)
        yield
        self._hold(holds=True)

    def _hold(self, *, holds: bool) -> None:
        for queue in self._queues:
            queue.holds_wall_clock = holds
