"""Final results of time windows: see `statelib.operators.windows.final_results`.

The shipped library (``semantics="kafka-4.3"``) looks for the windows that a record closes when it has put the record's
own into the store, which has then forgotten those out of retention: if stream time leaps, results are lost.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, NamedTuple

import numpy as np

from statelib.operators.aggregation.aggregator import NONE_REMOVED, prepared
from statelib.operators.aggregation.columnar_aggregator import ColumnarAggregator
from statelib.operators.key_codes import key_codes
from statelib.operators.windows.final_results import ClosedWindows, FinalOperator, store_times
from statelib.operators.windows.operator import RunningWindowAggregate, WindowAggregate
from statelib.records.batch import NO_TIMESTAMP, NULL_KEY
from statelib.records.key_column import Windows

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from statelib.operators.base import OperatorContext
    from statelib.records.batch import Batch, Uptake
    from statelib.settings.semantics import Semantics


@dataclass(frozen=True, slots=True)
class FinalWindowAggregate(WindowAggregate):
    """Aggregates by key and time window, and forwards final results alone."""

    final: ClassVar[bool] = True

    def build(self, context: OperatorContext) -> RunningFinalWindowAggregate:
        """The running operator."""
        return RunningFinalWindowAggregate(self, context)

    def stored_ms(self, semantics: Semantics) -> int:
        """How long after its start a window is stored: the shipped library sees it for a millisecond longer."""
        return self.kept_ms + (semantics != "kip")

    def describe(self) -> Mapping[str, object]:
        """Kind and parameters."""
        return {**WindowAggregate.describe(self), "emit": "on_window_close"}


class _Made(NamedTuple):
    """What a batch has changed: the record and the slot of each update, and them as a batch if somebody is told.

    And the records for which a function has failed.
    """

    rows: NDArray[np.int64]
    slots: NDArray[np.int64]
    failed_rows: NDArray[np.int64]
    updates: Batch | None


class RunningFinalWindowAggregate(FinalOperator, RunningWindowAggregate):
    """A running `FinalWindowAggregate`."""

    def condense(self) -> None:
        """See `CondensingOperator`: it has no updates to leave out."""

    def process(self, inputs: Sequence[Batch], uptake: Uptake) -> Batch:
        """The final results of the windows that the records close."""
        batch = prepared(self._aggregator, inputs[0], self._context)  # of no records too: they have types
        key_code = key_codes(batch, self._context)
        rows, slots, clock = self._accept(batch, key_code, uptake)
        self._metrics.records_out -= len(rows)
        after_ms, until_ms = self._finals.close(clock)
        before_ms = self._store.stream_time
        self._bring_back(after_ms, until_ms)
        made = self._update(batch, rows, slots)
        if self._finals.wait(made.failed_rows):
            clock, until_ms = self._finals.put_off(clock, made.failed_rows, key_code == NULL_KEY)
        closed = self._closed(after_ms, until_ms)
        if self._context.semantics != "kip":
            at = self._finals.closing_rows(closed.due, clock)
            put_ms = self._memory.start(made.slots)
            forgotten_ms = store_times(made.rows, put_ms, at, before_ms) - self._spec.kept_ms
            closed = closed.known(closed.windows.start >= forgotten_ms, self._metrics)
        forwarded = self._finals.forwarded(closed, batch, clock)
        if made.updates is not None:
            self._finals.remember(made.updates, made.rows)
        return forwarded

    def _update(self, batch: Batch, rows: NDArray[np.int64], slots: NDArray[np.int64]) -> _Made:
        """Updates windows."""
        is_told = self._changelog is not None or self._context.is_looked_into
        if not is_told and isinstance(self._aggregator, ColumnarAggregator):
            self._aggregator.add(rows, slots)
            self._memory.touch(rows, slots, batch, NONE_REMOVED)
            return _Made(rows, slots, rows[:0], None)
        records_out = self._metrics.records_out
        made = self._walk(rows, slots)
        self._metrics.records_out = records_out  # of what is forwarded alone
        timestamp, updates = self._touch(batch, made), None
        if self._context.is_looked_into:
            updates = self._updates(batch, made.rows, made.slots, made.result, timestamp, None)
        return _Made(made.rows, made.slots, made.failed_rows, updates)

    def _bring_back(self, after_ms: int, until_ms: int | None) -> None:
        """See `FinalOperator`; opens these windows, and those of a batch's records, which have slots by then."""
        first_ms = self._start_of(self._grid.last_ended(after_ms) + 1)
        end_ms = self._store.newest_stored + 1
        if until_ms is not None:
            end_ms = min(end_ms, self._start_of(self._grid.last_ended(until_ms) + 1))
        for some in self._store.lying(None, first_ms, end_ms) if first_ms < end_ms else ():
            codes, ones = self._context.keys.encode(some.keys), np.ones(len(some), dtype=np.int64)
            self._memory.slots.find(codes, self._grid.numbers_of(some.start), ones, len(some))
        self._open()

    def _start_of(self, number: int) -> int:
        return int(self._grid.start_of(np.array([max(number, 0)]))[0])

    def _closed(self, after_ms: int, until_ms: int | None) -> ClosedWindows:
        """The windows that end after ``after_ms`` and until ``until_ms`` (None: any time), all of them in memory."""
        slots = self._memory.ending(after_ms, until_ms)
        slots = slots[self._memory.timestamp[slots] != NO_TIMESTAMP]
        start, end = self._memory.start(slots), self._memory.end(slots)
        return ClosedWindows(
            self._memory.key_code(slots),
            Windows(start, end),
            end + self._finals.wait_ms,
            self._memory.timestamp[slots],
            self._aggregator.results(slots),
        )
