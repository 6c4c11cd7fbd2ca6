"""The compiled loop of joins of a stream with itself; rows and results are those of the join of two streams."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from statelib.kernels.compiled import Int64sOut, Tuple, compiled, helper, i64
from statelib.operators.joins.stream_stream.arrays import (
    EXPIRED,
    FAILED,
    JOINED,
    NO_ROW,
    Arrivals,
    Clocks,
    Policies,
    Results,
    Rows,
)
from statelib.operators.joins.stream_stream.kernel import keep, larger

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_Joined = Tuple((Results, i64))


@helper
def _newest_until(own: Any, greatest: int, newest: NDArray[np.int64], rows: Any) -> int:
    """The newest row of the key that is not later than ``greatest``, else `NO_ROW`."""
    row: int = newest[2 * own.key_code]
    while row != NO_ROW and rows[row].time > greatest:
        row = rows[row].older
    return row


@helper
def _number_from(begin: int, least: int, rows: Any) -> int:
    """How many rows of a list there are from ``begin`` on that are not older than ``least``."""
    count: int = i64(0)
    row = begin
    while row != NO_ROW and rows[row].time >= least:
        count += 1
        row = rows[row].older
    return count


@helper
def _put(result: Any, trigger: int, left: int, right: int, time: int) -> None:
    result.trigger, result.left, result.right, result.time = trigger, left, right, time


@helper
def _meets_itself(time: int, clock: int, policy: Any, clocks: Any) -> bool:
    """Whether a record gives a result with itself."""
    retention = policy.before + policy.after + policy.grace
    if policy.as_shipped:
        shipped: bool = time > clocks.stream_time - retention + 1
        return shipped
    met: bool = policy.before >= 0 and policy.after >= 0 and time > clock - retention
    return met


@compiled(_Joined(Arrivals, Policies, Clocks, Int64sOut, Rows, Results), allocates=True)
def join_with_itself(
    arrivals: Any, policies: Any, all_clocks: Any, newest: NDArray[np.int64], rows: Any, results: Any
) -> tuple[Any, int]:
    """Joins records with those of the same stream, as Kafka's ``KStreamKStreamSelfJoin``.

    Args:
        arrivals: `ARRIVAL`, in order; one for which the joiner has `FAILED` is stored, and no more.
        policies: `POLICY`, one.
        all_clocks: `CLOCKS`, one, brought up to date; the store's is ``left``.
        newest: int64, by ``2 * key code``: the first row of the key's list, else `NO_ROW`.
        rows: `ROW`; those of the arrivals are in no list.
        results: `RESULT`, at least one, to be filled.

    Returns:
        ``results``, or a larger array; how many there are.
    """
    policy, clocks = policies[0], all_clocks[0]
    emitted = i64(0)
    for trigger in range(len(arrivals)):
        arrival = arrivals[trigger]
        number, time = arrival.row, arrival.time
        if number == NO_ROW:
            continue
        own = rows[number]
        if arrival.outcome == FAILED:
            clocks.left = max(clocks.left, time)
            arrival.expired = keep(own, number, clocks.left, policy, newest, rows) == EXPIRED
            arrival.behind = clocks.left - time
            continue
        clocks.stream_time = max(clocks.stream_time, time)
        visible = clocks.left - policy.before - policy.after - policy.grace + 1
        clocks.left = max(clocks.left, time)
        itself = i64(_meets_itself(time, clocks.left, policy, clocks))

        as_left = _newest_until(own, max(0, time + policy.after), newest, rows)
        with_later = _number_from(as_left, max(0, time - policy.before, visible), rows)
        as_right = _newest_until(own, max(0, time + policy.before), newest, rows)
        with_earlier = _number_from(as_right, max(0, time - policy.after, visible), rows)
        total = with_later + itself + with_earlier
        while emitted + total > len(results):
            results = larger(results, emitted)

        at = emitted + with_later
        row = as_left
        while at > emitted:  # from the newest to the oldest, which comes out first
            at -= 1
            _put(results[at], trigger, number, row, max(time, rows[row].time))
            row = rows[row].older
        emitted += with_later
        at = emitted + with_earlier + itself
        row, left_out = as_right, itself
        while at > emitted:
            at -= 1
            if left_out and (at == emitted or rows[row].time <= time):  # the others that are left come before it
                _put(results[at], trigger, number, number, time)
                left_out = i64(0)
            else:
                _put(results[at], trigger, row, number, max(time, rows[row].time))
                row = rows[row].older
        emitted += with_earlier + itself

        stored = keep(own, number, clocks.left, policy, newest, rows)
        arrival.lateness = clocks.stream_time - time
        arrival.behind = clocks.left - time
        arrival.expired = stored == EXPIRED
        arrival.outcome = JOINED if total else stored
    return results, emitted
