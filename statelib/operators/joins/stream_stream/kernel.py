"""The hot loop of stream-stream joins: whom each record meets, and who has met nobody.

The records of a working set lie in one array, a *row* each. Those of a key and side that may be met form a list from
the newest to the oldest (by time, then arrival). Records that nobody has met yet are *held*: they are also in the
ordered set of their side, under their *rank*, their place among all that are or may be held, in order of time, right
before left, key bytes, arrival.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from statelib.columns.ordered_set import ABSENT, first_from, insert, last, remove
from statelib.kernels.compiled import BytesOut, Int64s, Int64sOut, Tuple, compiled, helper, i64, nothing
from statelib.operators.joins.stream_stream.arrays import (
    EXPIRED,
    FAILED,
    HELD,
    JOINED,
    LEFT,
    LONE,
    NEVER,
    NO_ROW,
    NO_STOP,
    RESULT,
    RIGHT,
    STORED,
    UNMATCHED,
    Arrivals,
    Clocks,
    Policies,
    Results,
    Rows,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

_Joined = Tuple((Results, i64, i64))


@helper
def larger(results: Any, emitted: int) -> Any:
    """Twice as much room, with the results so far."""
    larger = np.empty(2 * len(results), RESULT)
    larger[:emitted] = results[:emitted]
    return larger


@helper
def _emit_lone(results: Any, emitted: int, trigger: int, number: int, row: Any) -> Any:
    """Adds the lone result of a row; gives the array, which may have grown."""
    if emitted == len(results):
        results = larger(results, emitted)
    result = results[emitted]
    result.trigger = trigger
    result.left = number if row.side == LEFT else NO_ROW
    result.right = NO_ROW if row.side == LEFT else number
    result.time = row.time
    return results


@helper
def _may_scan(policy: Any, clocks: Any, ahead: int, wall_clock: int) -> bool:
    """Whether the shipped library looks for lone results now (``KStreamKStreamJoin.emitNonJoinedOuterRecords``)."""
    if clocks.least_held == NEVER:  # there its sum overflows
        if ahead + policy.grace <= 0:
            return False
    elif clocks.least_held + ahead + policy.grace >= clocks.stream_time:
        return False
    if wall_clock < clocks.next_scan:
        return False
    clocks.next_scan = wall_clock + policy.emit_interval
    return True


@helper
def _least_after_scan(
    first_left: int, first_right: int, newest: int, by_rank: NDArray[np.int64], rows: Any,
    left_held: NDArray[np.uint8], right_held: NDArray[np.uint8],
) -> int:  # fmt: skip
    """The time of the last record that the shipped library's scan looks at: it ends behind an open one of each side."""
    seen = newest
    if ABSENT not in (first_left, first_right):
        seen = max(first_left, first_right)
        next_left, next_right = first_from(left_held, seen + 1), first_from(right_held, seen + 1)
        if next_left != ABSENT and (next_right == ABSENT or next_left < next_right):
            seen = next_left
        elif next_right != ABSENT:
            seen = next_right
    time: int = rows[by_rank[seen]].time
    return time


@helper
def _last_due(side: int, policy: Any, clocks: Any) -> int:
    """Held records of that time and older ones give their lone results now: see the operator."""
    ahead = policy.after if side == LEFT else policy.before
    due: int = clocks.stream_time - ahead - policy.grace - 1
    if policy.as_shipped:
        return due
    clock = clocks.left if side == LEFT else clocks.right
    expired: int = clock - policy.before - policy.after - policy.grace
    return min(due, expired)


@helper
def _hold_again(
    first: int, emitted: int, rows: Any, left_held: NDArray[np.uint8], right_held: NDArray[np.uint8], results: Any
) -> None:
    """Holds the last lone results of a scan again: the shipped library deletes those of a key with those of the next.

    They are those of one time, side and key.
    """
    at = emitted - 1
    if at < first:
        return
    last_one = rows[max(results[at].left, results[at].right)]
    while at >= first:
        row = rows[max(results[at].left, results[at].right)]
        if row.time != last_one.time or row.side != last_one.side or row.key_code != last_one.key_code:
            return
        row.held = 1
        insert(left_held if row.side == LEFT else right_held, row.rank)
        at -= 1


@helper
def _scan(
    trigger: int, policy: Any, clocks: Any, rows: Any, by_rank: NDArray[np.int64],
    left_held: NDArray[np.uint8], right_held: NDArray[np.uint8], results: Any, emitted: int, stop: int,
) -> tuple[Any, int, bool]:  # fmt: skip
    """Lets the held records go that are due, and gives whether that has come to the result ``stop``."""
    newest = max(last(left_held), last(right_held))
    if newest == ABSENT:
        clocks.least_held = NEVER
        return results, emitted, False
    first = emitted
    left, right = first_from(left_held, 0), first_from(right_held, 0)
    last_due_left, last_due_right = _last_due(LEFT, policy, clocks), _last_due(RIGHT, policy, clocks)
    while True:
        left_due = left != ABSENT and rows[by_rank[left]].time <= last_due_left
        right_due = right != ABSENT and rows[by_rank[right]].time <= last_due_right
        if emitted == stop and (left_due or right_due):
            is_left = left_due and (not right_due or left < right)
            clocks.least_held = rows[by_rank[left if is_left else right]].time
            _hold_again(first, emitted, rows, left_held, right_held, results)
            return results, emitted, True
        if left_due and (not right_due or left < right):
            number = by_rank[left]
            remove(left_held, left)
            left = first_from(left_held, left)
        elif right_due:
            number = by_rank[right]
            remove(right_held, right)
            right = first_from(right_held, right)
        else:
            break
        row = rows[number]
        results = _emit_lone(results, emitted, trigger, number, row)
        emitted += 1
        row.held = 0
    if policy.as_shipped:
        clocks.least_held = _least_after_scan(left, right, newest, by_rank, rows, left_held, right_held)
    return results, emitted, False


@helper
def _link(row: int, newest: NDArray[np.int64], rows: Any) -> None:
    """Puts a row into the list of its key and side."""
    own = rows[row]
    place = 2 * own.key_code + own.side
    above = i64(NO_ROW)
    below = newest[place]
    while below != NO_ROW and (
        rows[below].time > own.time or (rows[below].time == own.time and rows[below].arrival > own.arrival)
    ):
        above = below
        below = rows[below].older
    own.older = below
    own.linked = 1
    if above == NO_ROW:
        newest[place] = row
    else:
        rows[above].older = row


@compiled(nothing(Int64s, Int64sOut, Rows))
def link(added: NDArray[np.int64], newest: NDArray[np.int64], rows: Any) -> None:
    """Puts rows into the lists of their keys and sides.

    Args:
        added: int64, rows that are in no list.
        newest: int64, by ``2 * key code + side``: the first row of the list, else `NO_ROW`.
        rows: `ROW`.
    """
    for row in added:
        _link(row, newest, rows)


@helper
def _time_of(behind: int, begin: int, rows: Any) -> int:
    """The time of the row that is so many ``behind`` the first linked one from ``begin`` on; `NEVER`: it is no such."""
    row = begin
    while row != NO_ROW and (behind > 0 or not rows[row].linked):
        behind -= rows[row].linked
        row = rows[row].older
    time: int = i64(NEVER) if row == NO_ROW or behind < 0 else rows[row].time
    return time


@helper
def _meet(
    trigger: int, own: Any, number: int, least: int, greatest: int, newest: NDArray[np.int64], rows: Any,
    others_held: NDArray[np.uint8], results: Any, emitted: int, stop: int, as_shipped: int,
) -> tuple[Any, int, int]:  # fmt: skip
    """Joins a row with all of the other side from ``least`` to ``greatest``, but with none behind the result ``stop``.

    Of rows of one time the shipped library takes all for met as soon as one is: it holds them under key, time and side.

    Returns:
        ``results`` or a larger array, how many rows it has met, and how many of these were held.
    """
    begin = newest[2 * own.key_code + 1 - own.side]
    while begin != NO_ROW and rows[begin].time > greatest:
        begin = rows[begin].older
    count = 0
    row = begin
    while row != NO_ROW and rows[row].time >= least:
        count += rows[row].linked
        row = rows[row].older
    while emitted + count > len(results):
        results = larger(results, emitted)
    at = emitted + count
    met = 0
    last_met = greatest if stop < emitted else _time_of(emitted + count - 1 - stop, begin, rows)
    row = begin
    while at > emitted:  # from the newest to the oldest, which comes out first
        other = rows[row]
        if other.linked:
            at -= 1
            result = results[at]
            result.trigger = trigger
            result.left = number if own.side == LEFT else row
            result.right = row if own.side == LEFT else number
            result.time = max(own.time, other.time)
            if other.held and (stop < emitted or at <= stop or (as_shipped and other.time <= last_met)):
                remove(others_held, other.rank)
                other.held = 0
                met += 1
        row = other.older
    return results, count, met


@helper
def _is_over(own: Any, ahead: int, policy: Any, clocks: Any) -> bool:
    """Whether a record that has met nobody gives its lone result at once."""
    if not policy.holds:
        return True
    over: bool
    if policy.as_shipped:
        over = max(0, own.time + ahead) < clocks.stream_time
    else:
        over = own.time <= _last_due(own.side, policy, clocks)
    return over


@helper
def keep(own: Any, number: int, clock: int, policy: Any, newest: NDArray[np.int64], rows: Any) -> int:
    """Stores a row in its side's window store, whose clock has moved.

    Returns:
        `STORED`; `UNMATCHED` if nobody can see it; `EXPIRED` if the store does not even have a segment for it any more.
    """
    expired_until = clock - policy.before - policy.after - policy.grace
    if own.time > expired_until:
        _link(number, newest, rows)
        return STORED
    if own.time // policy.segment < expired_until // policy.segment:
        return EXPIRED
    return UNMATCHED


@compiled(
    _Joined(Arrivals, Policies, Clocks, Int64s, BytesOut, BytesOut, Int64sOut, Rows, Results, i64), allocates=True
)
def join(
    arrivals: Any,
    policies: Any,
    all_clocks: Any,
    by_rank: NDArray[np.int64],
    left_held: NDArray[np.uint8],
    right_held: NDArray[np.uint8],
    newest: NDArray[np.int64],
    rows: Any,
    results: Any,
    stop: int,
) -> tuple[Any, int, int]:
    """Joins records with those of the other side, as Kafka's ``KStreamKStreamJoin``.

    Args:
        arrivals: `ARRIVAL`, in order.
        policies: `POLICY`, one.
        all_clocks: `CLOCKS`, one, brought up to date.
        by_rank: int64, the row of each rank.
        left_held: The ordered set of the ranks of held left records.
        right_held: The same of right ones.
        newest: int64, by ``2 * key code + side``: the first row of the list, else `NO_ROW`.
        rows: `ROW`; those of the arrivals are in no list.
        results: `RESULT`, at least one, to be filled.
        stop: The first result for which the joiner fails, if there is one arrival, which does nothing behind it; else
            `NO_STOP`. It is given if it meets another record; not if it is a lone one.

    Returns:
        ``results``, or a larger array; how many there are; how many records were held and have been met.
    """
    policy, clocks = policies[0], all_clocks[0]
    emitted = i64(0)
    met_held = i64(0)
    for trigger in range(len(arrivals)):
        arrival = arrivals[trigger]
        number, time = arrival.row, arrival.time
        clocks.stream_time = max(clocks.stream_time, time)
        arrival.lateness = clocks.stream_time - time
        if number == NO_ROW:
            continue
        own = rows[number]
        if own.key_code < 0:
            if emitted == stop:
                arrival.outcome = FAILED
                continue
            results = _emit_lone(results, emitted, trigger, number, own)
            emitted += 1
            continue
        if own.side == LEFT:
            clocks.left = max(clocks.left, time)
            clock, other_clock = clocks.left, clocks.right
            back, ahead, keeps = policy.before, policy.after, policy.keeps_left
        else:
            clocks.right = max(clocks.right, time)
            clock, other_clock = clocks.right, clocks.left
            back, ahead, keeps = policy.after, policy.before, policy.keeps_right
        looks = policy.holds and time == (clocks.stream_time if policy.as_shipped else clock)
        failed = False
        if looks and (not policy.as_shipped or _may_scan(policy, clocks, ahead, arrival.wall_clock)):
            results, emitted, failed = _scan(
                trigger, policy, clocks, rows, by_rank, left_held, right_held, results, emitted,
                stop if policy.as_shipped else NO_STOP,
            )  # fmt: skip
        count = i64(0)
        if not failed:
            visible = other_clock - policy.before - policy.after - policy.grace + 1
            results, count, met = _meet(
                trigger, own, number, max(0, time - back, visible), max(0, time + ahead), newest, rows,
                right_held if own.side == LEFT else left_held, results, emitted, stop, policy.as_shipped,
            )  # fmt: skip
            failed = emitted <= stop < emitted + count
            emitted = stop + 1 if failed else emitted + count
            met_held += met
        outcome = JOINED
        if failed:
            outcome = FAILED
        elif count == 0 and keeps:
            if _is_over(own, ahead, policy, clocks):
                if emitted == stop:
                    outcome = FAILED
                else:
                    outcome = LONE
                    results = _emit_lone(results, emitted, trigger, number, own)
                    emitted += 1
            else:
                outcome = HELD
                own.held = 1
                insert(left_held if own.side == LEFT else right_held, own.rank)
                if policy.as_shipped and (clocks.least_held == NEVER or time < clocks.least_held):
                    clocks.least_held = time
        stored = keep(own, number, clock, policy, newest, rows)
        arrival.behind = clock - time
        arrival.expired = stored == EXPIRED
        arrival.outcome = stored if count == 0 and not keeps and not failed else outcome
    return results, emitted, met_held
