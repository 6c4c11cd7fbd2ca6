"""The hot loop of versioned tables: versions put into timelines and looked up by time, in task order.

The timeline of a key is its versions in order of time, in a stretch of a common pool; new ones mostly go to its end.
A full stretch moves to the end of the pool, twice as large. Values stay outside: a version names a *row*.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from statelib.kernels.compiled import BoolsOut, Int64s, Int64sOut, boolean, compiled, helper, i64, several
from statelib.records.batch import NO_TIMESTAMP, NULL_KEY

if TYPE_CHECKING:
    from numpy.typing import NDArray

NO_ROW = -1
"""The row of a tombstone, and of a look-up that found nothing."""

_FIRST_CAPACITY = 4
_NO_PUT = np.iinfo(np.int64).max  # the sequence of the put behind the last one


@helper
def _versions_until(valid_from: NDArray[np.int64], start: int, count: int, time: int) -> int:
    """How many of a timeline's versions have a timestamp of at most ``time``.

    Most questions are about recent times: the search gallops back from the end before it halves.
    """
    step = 1
    while step <= count and valid_from[start + count - step] > time:
        step *= 2
    low = max(0, count - step + 1)
    high = count - step // 2
    while low < high:
        middle = (low + high) // 2
        if valid_from[start + middle] <= time:
            low = middle + 1
        else:
            high = middle
    return low


@helper
def _put(
    code: int,
    timestamp: int,
    row: int,
    kip: bool,
    valid_from: NDArray[np.int64],
    rows: NDArray[np.int64],
    starts: NDArray[np.int64],
    counts: NDArray[np.int64],
    remembered: NDArray[np.bool_],
) -> None:
    """Puts one version into its timeline, which has room: rules 2 to 4 of `statelib.operators.versioned.store`."""
    start, count = starts[code], counts[code]
    position = _versions_until(valid_from, start, count, timestamp)
    if position > 0 and valid_from[start + position - 1] == timestamp:
        at = start + position - 1
        is_latest = position == count
        if is_latest and row == NO_ROW and rows[at] != NO_ROW and not (kip or remembered[code]):
            counts[code] = count - 1
            return
        if position == count - 1 or (is_latest and row != NO_ROW and rows[at] == NO_ROW):
            remembered[code] = True
        rows[at] = row
        return
    if position == count:
        if row != NO_ROW:
            remembered[code] = count > 0 and rows[start + count - 1] != NO_ROW
    elif position == count - 1:
        remembered[code] = True
    for at in range(start + count, start + position, -1):
        valid_from[at] = valid_from[at - 1]
        rows[at] = rows[at - 1]
    valid_from[start + position] = timestamp
    rows[start + position] = row
    counts[code] = count + 1


@compiled(
    several(i64, 4)(
        *[Int64s] * 7, boolean, boolean, *[i64] * 5, *[Int64sOut] * 5, BoolsOut, Int64sOut, Int64sOut, BoolsOut
    )
)  # fmt: skip
def _apply(
    put_sequences: NDArray[np.int64],
    put_codes: NDArray[np.int64],
    put_timestamps: NDArray[np.int64],
    put_rows: NDArray[np.int64],
    ask_sequences: NDArray[np.int64],
    ask_codes: NDArray[np.int64],
    ask_timestamps: NDArray[np.int64],
    puts_first: bool,
    kip: bool,
    retention_ms: int,
    put: int,
    ask: int,
    stream_time: int,
    used: int,
    valid_from: NDArray[np.int64],
    rows: NDArray[np.int64],
    starts: NDArray[np.int64],
    counts: NDArray[np.int64],
    capacities: NDArray[np.int64],
    remembered: NDArray[np.bool_],
    found: NDArray[np.int64],
    replaced: NDArray[np.int64],
    is_latest: NDArray[np.bool_],
) -> tuple[int, int, int, int]:
    """Goes on with puts and look-ups, from ``put`` and ``ask`` on, until all are done or the pool is full.

    ``found`` is by look-up. ``replaced`` and ``is_latest`` are by put; refused ones leave theirs as they are.

    Returns:
        The next put and look-up, the store's stream time, and how much of the pool is used.
    """
    puts, asks = len(put_codes), len(ask_codes)
    while True:
        until = put_sequences[put] + (0 if puts_first else 1) if put < puts else _NO_PUT
        oldest = stream_time - retention_ms
        while ask < asks and ask_sequences[ask] < until:
            code, timestamp = ask_codes[ask], ask_timestamps[ask]
            found[ask] = NO_ROW
            if code != NULL_KEY:
                start, count = starts[code], counts[code]
                position = _versions_until(valid_from, start, count, timestamp)
                if position > 0 and (position == count or timestamp >= oldest):
                    found[ask] = rows[start + position - 1]
            ask += 1
        if put == puts:
            return put, ask, stream_time, used
        code, timestamp = put_codes[put], put_timestamps[put]
        if code != NULL_KEY and timestamp >= oldest:
            count = counts[code]
            if count == capacities[code]:
                capacity = max(_FIRST_CAPACITY, 2 * count)
                if used + capacity > len(rows):
                    return put, ask, stream_time, used
                for version in range(count):
                    valid_from[used + version] = valid_from[starts[code] + version]
                    rows[used + version] = rows[starts[code] + version]
                starts[code] = used
                capacities[code] = capacity
                used += capacity
            stream_time = max(stream_time, timestamp)
            replaced[put] = rows[starts[code] + count - 1] if count > 0 else NO_ROW
            is_latest[put] = count == 0 or timestamp >= valid_from[starts[code] + count - 1]
            _put(code, timestamp, put_rows[put], kip, valid_from, rows, starts, counts, remembered)
        put += 1


class Applied(NamedTuple):
    """What puts and look-ups gave.

    Attributes:
        found: int64, the row that each look-up found, or `NO_ROW`.
        replaced: int64, for each put the row of the key's latest version before, or `NO_ROW`.
        is_latest: bool, whether each put is the key's latest version since; false for one that was refused.
    """

    found: NDArray[np.int64]
    replaced: NDArray[np.int64]
    is_latest: NDArray[np.bool_]


class Timelines:
    """The versions of many keys, by key code. The rules are those of `statelib.operators.versioned.store`.

    Args:
        retention_ms: The store's history retention.
        stream_time: The store's clock, ms.
        kip: Whether the semantics are ``kip``, not ``kafka-4.3``.
    """

    def __init__(self, retention_ms: int, stream_time: int = NO_TIMESTAMP, *, kip: bool = True) -> None:
        self.stream_time = stream_time
        self._retention_ms = retention_ms
        self._kip = kip
        self._valid_from = np.empty(0, dtype=np.int64)
        self._rows = np.empty(0, dtype=np.int64)
        self._used = 0
        self._starts = np.empty(0, dtype=np.int64)
        self._counts = np.empty(0, dtype=np.int64)
        self._capacities = np.empty(0, dtype=np.int64)
        self._remembered = np.empty(0, dtype=np.bool_)

    def make_room(self, codes: int) -> None:
        """Makes room for the codes below ``codes``."""
        if codes > len(self._starts):
            size = max(codes, 2 * len(self._starts))
            self._starts = _grown(self._starts, size)
            self._counts = _grown(self._counts, size)
            self._capacities = _grown(self._capacities, size)
            self._remembered = _grown(self._remembered, size)

    def load(
        self,
        codes: NDArray[np.int64],
        offsets: NDArray[np.int64],
        valid_from: NDArray[np.int64],
        rows: NDArray[np.int64],
        remembered: NDArray[np.bool_],
    ) -> None:
        """Takes in timelines of keys that have none yet; there is room for their codes.

        Args:
            codes: int64[n], each once.
            offsets: int64[n + 1]: the versions of key ``i`` are rows ``offsets[i]`` to ``offsets[i + 1]`` of the rest.
            valid_from: int64[m], ms, ascending within a key.
            rows: int64[m], `NO_ROW` for tombstones.
            remembered: bool[n], see `statelib.operators.versioned.store`.
        """
        self._grow_pool(len(rows))
        end = self._used + len(rows)
        self._valid_from[self._used : end] = valid_from
        self._rows[self._used : end] = rows
        self._starts[codes] = self._used + offsets[:-1]
        self._counts[codes] = self._capacities[codes] = np.diff(offsets)
        self._remembered[codes] = remembered
        self._used = end

    def extend_back(
        self,
        codes: NDArray[np.int64],
        known_from: NDArray[np.int64],
        offsets: NDArray[np.int64],
        valid_from: NDArray[np.int64],
        rows: NDArray[np.int64],
    ) -> None:
        """Takes in what came before the timelines that keys have.

        Args:
            codes: int64[n], each once.
            known_from: int64[n], ms: from then on, and with their first version, timelines are as they should be. Only
                older versions are taken in.
            offsets: As for `load`.
            valid_from: As for `load`.
            rows: As for `load`.
        """
        own_offsets, own_from, own_rows, _ = self.versions(codes)
        known_from, has_own = known_from.copy(), np.diff(own_offsets) > 0
        first = own_from[own_offsets[:-1][has_own]]
        known_from[has_own] = np.minimum(known_from[has_own], first)
        everyone = np.arange(len(codes))
        key = np.repeat(everyone, np.diff(offsets))
        is_older = valid_from < known_from[key]
        key = np.concatenate([key[is_older], np.repeat(everyone, np.diff(own_offsets))])
        order = np.argsort(key, kind="stable")
        self.load(
            codes,
            np.concatenate([[0], np.cumsum(np.bincount(key, minlength=len(codes)))]),
            np.concatenate([valid_from[is_older], own_from])[order],
            np.concatenate([rows[is_older], own_rows])[order],
            self._remembered[codes],
        )

    def apply(
        self,
        puts: tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]],
        asks: tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]],
        *,
        puts_first: bool = True,
    ) -> Applied:
        """Carries out puts and look-ups in order of sequence.

        Args:
            puts: Sequence (ascending), key code, timestamp (ms) and row of each version, int64 each.
            asks: Sequence (ascending), key code and time (ms) of each look-up, int64 each.
            puts_first: Whether a put comes before a look-up of the same sequence.

        """
        puts_done = asks_done = 0
        found = np.empty(len(asks[0]), dtype=np.int64)
        replaced = np.full(len(puts[0]), NO_ROW)
        is_latest = np.zeros(len(puts[0]), dtype=np.bool_)
        while True:
            puts_done, asks_done, self.stream_time, self._used = _apply(
                *puts, *asks, puts_first, self._kip, self._retention_ms,
                puts_done, asks_done, self.stream_time, self._used,
                self._valid_from, self._rows, self._starts, self._counts, self._capacities, self._remembered, found,
                replaced, is_latest,
            )  # fmt: skip
            if puts_done == len(puts[0]) and asks_done == len(asks[0]):
                return Applied(found, replaced, is_latest)
            self._grow_pool(max(_FIRST_CAPACITY, 2 * int(self._counts[puts[1][puts_done]])))

    def versions(
        self, codes: NDArray[np.int64]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64], NDArray[np.bool_]]:
        """The timelines of ``codes``: offsets, valid_from, rows and remembered, as `load` takes them."""
        counts = self._counts[codes]
        offsets = np.concatenate([[0], np.cumsum(counts)])
        at = np.repeat(self._starts[codes] - offsets[:-1], counts) + np.arange(offsets[-1])
        last = self._starts[codes] + counts - 1
        alive = counts > 0
        alive[alive] = self._rows[last[alive]] != NO_ROW
        remembered = alive if self._kip else alive & self._remembered[codes]
        return offsets, self._valid_from[at], self._rows[at], remembered

    def memory_bytes(self) -> int:
        """What the timelines hold in memory, without the values."""
        columns = (self._valid_from, self._rows, self._starts, self._counts, self._capacities, self._remembered)
        return sum(column.nbytes for column in columns)

    def _grow_pool(self, more: int) -> None:
        needed = self._used + more
        if needed > len(self._rows):
            size = max(needed, 2 * len(self._rows))
            self._valid_from = _grown(self._valid_from, size)
            self._rows = _grown(self._rows, size)


def _grown(column: NDArray[Any], size: int) -> NDArray[Any]:
    grown = np.zeros(size, dtype=column.dtype)
    grown[: len(column)] = column
    return grown
