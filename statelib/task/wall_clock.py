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


class HeldWallClock:
    """Puts off the calls of custom processors by the wall clock.

    Args:
        operators: All of the task.
    """

    def __init__(self, operators: Iterable[Operator]) -> None:
        self._queues = [one.scheduler.queue for one in operators if isinstance(one, ProcessOperator)]
        self._hold(holds=True)

    def holds_calls(self, now_ms: int) -> bool:
        """Whether any has been put off that is due at a time."""
        return any(queue.is_held(now_ms) for queue in self._queues)

    @contextmanager
    def going(self) -> Iterator[None]:
        """Makes the calls that are due meanwhile."""
        self._hold(holds=False)
        yield
        self._hold(holds=True)

    def _hold(self, *, holds: bool) -> None:
        for queue in self._queues:
            queue.holds_wall_clock = holds
