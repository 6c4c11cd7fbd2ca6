"""What a stream-stream join logs: the records that those of the other side may meet, and those that wait for a match.

A side's store is logged as Kafka's window store with duplicates, except that the sequence is the join's running number
of records, where Kafka's counts what the store was given since the application's start. All integers are big-endian::

    key    +------------+----------------------+----------------+
           | key bytes  | timestamp i64, ms    | sequence i32   |     sequence: from 1 on; it begins anew after 2^31 - 1
           +------------+----------------------+----------------+

Held records have a form of our own (Kafka keeps lists of values, which do not tell records of one time apart)::

    key    +----------------------+-----------+------------+----------------+
           | timestamp i64, ms    | side u8   | key bytes  | sequence i32   |     side: 0 right, 1 left
           +----------------------+-----------+------------+----------------+

Values are the records'; null for what is gone. A log record's timestamp is that of the record that was processed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from statelib.operators.joins.stream_stream.kernel import HELD, JOINED, LEFT, NO_ROW
from statelib.operators.joins.stream_stream.rows import SIDES
from statelib.operators.joins.stream_table.changelog import arrivals_of, sequences_of
from statelib.serdes import serde_for
from statelib.stores.byte_columns import joined, packed, split_head, split_tail, times

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from statelib.operators.changelog import Changelog
    from statelib.operators.joins.stream_stream.rows import JoinRows
    from statelib.records.key_table import KeyTable
    from statelib.stores.byte_columns import Column

_SEQUENCE = np.dtype([("sequence", ">i4")])
_PLACE = np.dtype([("timestamp", ">i8"), ("sequence", ">i4")])
_HEAD = np.dtype([("timestamp", ">i8"), ("is_left", "u1")])


def window_keys(keys: Column, timestamp: NDArray[np.int64], arrival: NDArray[np.int64]) -> Column:
    """A side's log keys; ``arrival``: the how manieth of the join each record is, from 0 on."""
    return joined(keys, times(timestamp), packed(sequences_of(arrival)))


def split_window_keys(raws: Column, arrivals: int, store: str) -> tuple[Column, NDArray[np.int64], NDArray[np.int64]]:
    """Keys, timestamps (ms) and arrivals of a side's log keys; ``arrivals``: how many there have been.

    Raises:
        CorruptedDataError: One is too short.
    """
    keys, places = split_tail(raws, _PLACE, store)
    return keys, places["timestamp"].astype(np.int64), arrivals_of(places["sequence"].astype(np.int64), arrivals)


def split_held_keys(
    raws: Column, arrivals: int, store: str
) -> tuple[Column, NDArray[np.int64], NDArray[np.bool_], NDArray[np.int64]]:
    """Keys, timestamps (ms), which are left records, and arrivals of held records' log keys.

    Raises:
        CorruptedDataError: One is too short.
    """
    heads, rest = split_head(raws, _HEAD, store)
    keys, tails = split_tail(rest, _SEQUENCE, store)
    arrival = arrivals_of(tails["sequence"].astype(np.int64), arrivals)
    return keys, heads["timestamp"].astype(np.int64), heads["is_left"] == 1, arrival


class StreamJoinChangelog:
    """The changelogs of a join's stores.

    Args:
        sides: That of the left side's store, and of the right one's; None: it has none.
        held: That of the store of held records; None: it has none.
        keys: The dictionary of the task's keys.
    """

    def __init__(self, sides: Sequence[Changelog | None], held: Changelog | None, keys: KeyTable) -> None:
        self._sides = sides
        self._held = held
        self._keys = keys

    @property
    def wanted(self) -> bool:
        """Whether there is any."""
        return self._held is not None or any(changelog is not None for changelog in self._sides)

    def add(
        self, rows: JoinRows, was_held: NDArray[np.bool_], arrivals: NDArray[Any], results: NDArray[Any],
        *, retention_ms: int,
    ) -> None:  # fmt: skip
        """Logs what some records have changed.

        Args:
            rows: All rows, as they are now.
            was_held: bool, by row: which were held before.
            arrivals: `ARRIVAL`, the records.
            results: `RESULT`, theirs.
            retention_ms: Of the sides' stores.
        """
        outcome, own = arrivals["outcome"], arrivals["row"]
        gone, trigger = self._no_longer_held(was_held, arrivals, results)
        put = np.flatnonzero((outcome >= JOINED) & (own != NO_ROW) & (arrivals["behind"] < retention_ms))
        self._log_sides(rows, own[put], put, arrivals["time"])
        held = np.flatnonzero(outcome == HELD)
        causes = np.concatenate([trigger, held])
        self._log_held(rows, np.concatenate([gone, own[held]]), causes, len(gone), arrivals["time"])

    def remove(self, rows: JoinRows, held: NDArray[np.int64], stream_time: int) -> None:
        """Logs that held rows have left at the end of the input; ``stream_time``: the join's, ms."""
        causes, time = np.zeros(len(held), np.int64), np.array([max(stream_time, 0)])
        self._log_held(rows, held, causes, len(held), time)

    def _no_longer_held(
        self, was_held: NDArray[np.bool_], arrivals: NDArray[Any], results: NDArray[Any]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Rows that are held no longer, and the record that did it: by meeting them, or as they were given up."""
        own = arrivals["row"][results["trigger"]]
        is_lone = (results["left"] == NO_ROW) | (results["right"] == NO_ROW)
        row = np.where(is_lone, np.maximum(results["left"], results["right"]), results["left"] + results["right"] - own)
        ever_held = was_held.copy()
        ever_held[arrivals["row"][arrivals["outcome"] == HELD]] = True
        concerned = np.flatnonzero((row != own) & ever_held[row])
        first = np.sort(np.unique(row[concerned], return_index=True)[1])  # what has left is not held when met later
        chosen = concerned[first]
        return row[chosen], results["trigger"][chosen]

    def _log_sides(
        self, rows: JoinRows, numbers: NDArray[np.int64], causes: NDArray[np.int64], time: NDArray[np.int64]
    ) -> None:
        """Logs rows of both sides that may be met from now on."""
        side = rows.rows["side"][numbers]
        for of, changelog in zip(SIDES, self._sides, strict=True):
            if changelog is not None:
                mine = numbers[side == of]
                there = rows.rows[mine]
                keys = self._keys.take(np.ascontiguousarray(there["key_code"]))
                raw_keys = window_keys(keys, there["time"], there["arrival"])
                changelog.add(raw_keys, serialized_values(rows, of, mine), time[causes[side == of]])

    def _log_held(
        self, rows: JoinRows, numbers: NDArray[np.int64], causes: NDArray[np.int64], gone: int, time: NDArray[np.int64]
    ) -> None:
        """Logs rows by the record that did it: first those that are gone, ``gone`` of them, then those that come."""
        if self._held is None:
            return
        there = rows.rows[numbers]
        is_left = packed((there["side"] == LEFT).astype(np.uint8))
        sequence = packed(sequences_of(there["arrival"]))
        keys = joined(times(there["time"]), is_left, self._keys.take(np.ascontiguousarray(there["key_code"])), sequence)
        of_side = [np.flatnonzero(there["side"] == of) for of in SIDES]
        encoded = [serialized_values(rows, of, numbers[mine]) for of, mine in zip(SIDES, of_side, strict=True)]
        values = pa.concat_arrays(encoded).take(pa.array(np.argsort(np.concatenate(of_side))))
        is_gone = np.arange(len(numbers)) < gone
        order = np.argsort(2 * causes + ~is_gone, kind="stable")
        kept = values.take(pa.array(order, mask=is_gone[order]))
        self._held.add(keys.take(pa.array(order)), kept, time[causes[order]])


def serialized_values(rows: JoinRows, side: int, numbers: NDArray[np.int64]) -> pa.Array:
    """The bytes of the values of rows of one side."""
    values = rows.values(side, numbers)
    return serde_for(values.type).serialize(values)
