"""Joins some records at a time: the kernel with all that it works on, which can be made again what it was."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from statelib.operators.joins.stream_stream.arrays import NO_STOP, RESULT
from statelib.operators.joins.stream_stream.kernel import join

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from statelib.operators.joins.stream_stream.working_set import HeldSets, JoinRows

_FIRST_RESULTS = 1 << 10


class Joining:
    """See the module's docstring.

    Args:
        rows: All rows, those of the records that are to come among them.
        held: Those that are held.
        policy: `POLICY`, one.
        clocks: `CLOCKS`, one, kept up to date.
    """

    def __init__(self, rows: JoinRows, held: HeldSets, policy: NDArray[Any], clocks: NDArray[Any]) -> None:
        self._rows = rows
        self._held = held
        self._policy = policy
        self._clocks = clocks

    def join(self, arrivals: NDArray[Any], stop: int = NO_STOP) -> tuple[NDArray[Any], int]:
        """The results (`RESULT`) of some records, and how many were held and have been met.

        Args:
            arrivals: `ARRIVAL`, of which the results' triggers are counted.
            stop: Of one: the first result for which the joiner fails, see `join`.
        """
        room: NDArray[Any] = np.empty(max(2 * len(arrivals), _FIRST_RESULTS), dtype=RESULT)
        rows = self._rows
        joined, count, met = join(arrivals, self._policy, self._clocks, *self._held, rows.newest, rows.rows, room, stop)
        return joined[:count], int(met)

    def saved(self) -> Callable[[], None]:
        """Remembers everything but the arrivals; gives what makes it again what it is now."""
        changing: list[NDArray[Any]] = [
            self._clocks, self._held.left, self._held.right, self._rows.newest, self._rows.rows,
        ]  # fmt: skip
        before = [array.copy() for array in changing]

        def restore() -> None:
            for array, was in zip(changing, before, strict=True):
                array[:] = was

        return restore
