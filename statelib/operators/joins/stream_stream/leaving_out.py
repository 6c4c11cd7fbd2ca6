"""Joins records, and leaves those out for which the joiner fails: those up to one, then that one, then the others.

What a record meets depends on those before it. So what they have done is undone where the joiner fails for one, and
done again up to it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa

from statelib.operators.asking import tolerated
from statelib.operators.joins.stream_stream.arrays import NO_ROW, NO_STOP, RESULT

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from statelib.operators.asking import Asking
    from statelib.operators.joins.stream_stream.joining import Joining
    from statelib.operators.mappers.function_errors import OnFailure


class Joined(NamedTuple):
    """What some records have given.

    Attributes:
        results: `RESULT`.
        value: The value of each.
        changes: `RESULT`, the results with those for which the joiner has failed, but have changed what is held.
        met_held: How many records were held and have been met.
        left_out: For how many that were held the joiner has failed.
    """

    results: NDArray[Any]
    value: pa.Array
    changes: NDArray[Any]
    met_held: int
    left_out: int


class LeavingOut:
    """See the module's docstring.

    Args:
        joining: Joins.
        ask: Asks the joiner for the values of results (`RESULT`).
        sequence: int64, of the records.
        on_failure: Told of a record for which the joiner fails.
        as_shipped: Whether a record does nothing behind the first result for which it fails. By the KIPs, of the lone
            results that it lets go of others that were held, those are left out for which it fails, and no more.
    """

    def __init__(
        self,
        joining: Joining,
        ask: Callable[[NDArray[Any], OnFailure], tuple[pa.Array, Asking]],
        sequence: NDArray[np.int64],
        on_failure: OnFailure,
        as_shipped: bool,  # noqa: FBT001 - of the settings
    ) -> None:
        self._joining = joining
        self._ask = ask
        self._sequence = sequence
        self._on_failure = on_failure
        self._as_shipped = as_shipped

    def join(self, arrivals: NDArray[Any]) -> Joined:
        """Joins records (`ARRIVAL`)."""
        nothing = np.zeros(0, dtype=RESULT)
        if len(arrivals) == 0:
            return Joined(nothing, self._ask(nothing, tolerated)[0], nothing, 0, 0)
        made = []
        done, at_once = 0, len(arrivals)
        while done < len(arrivals):
            restore = self._joining.saved()
            results, met_held = self._joining.join(arrivals[done : done + at_once])
            results["trigger"] += done
            value, asking = self._ask(results, tolerated)
            if not asking.failed.any():
                made.append(Joined(results, value, results, met_held, 0))
                done, at_once = done + at_once, 2 * at_once
                continue
            restore()
            at_once = int(results["trigger"][np.flatnonzero(asking.failed)[0]]) - done
            if at_once == 0:
                made.append(self._left_behind(arrivals[done : done + 1], done))
                done, at_once = done + 1, 1
        return Joined(
            np.concatenate([each.results for each in made]),
            pa.concat_arrays([each.value for each in made]),
            np.concatenate([each.changes for each in made]),
            sum(each.met_held for each in made),
            sum(each.left_out for each in made),
        )

    def _left_behind(self, arrival: NDArray[Any], row: int) -> Joined:
        """What a record does for one of whose results the joiner fails; ``row``: its, among the records."""
        restore = self._joining.saved()
        results, _ = self._joining.join(arrival)
        results["trigger"] = row
        value, asking = self._ask(results, tolerated)
        is_lone = (results["left"] == NO_ROW) | (results["right"] == NO_ROW)
        of_another = is_lone & (np.maximum(results["left"], results["right"]) != arrival["row"][0])
        if self._as_shipped:
            of_another[:] = False
        ends = np.flatnonzero(asking.failed & ~of_another)
        stop = int(ends[0]) if len(ends) else NO_STOP
        restore()
        changes, met_held = self._joining.join(arrival, stop)
        changes["trigger"] = row
        before = np.arange(len(results)) < (len(results) if stop == NO_STOP else stop)
        for at, what in asking.reasons.items():
            if before[at] or at == stop:
                self._on_failure(int(self._sequence[row]), what)
        given, left_out = before & ~asking.failed, int(np.count_nonzero(before & asking.failed))
        return Joined(results[given], value.filter(pa.array(given)), changes, met_held, left_out)
