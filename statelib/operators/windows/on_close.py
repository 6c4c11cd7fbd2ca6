"""Final results of time windows: see `statelib.operators.windows.final_results`.

The shipped library (``semantics="kafka-4.3"``) looks for the windows that a record closes when it has put the record's
own into the store, which has then forgotten those out of retention: if stream time leaps, results are lost.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from statelib.operators.aggregation.aggregator import NONE_REMOVED
from statelib.operators.aggregation.columnar_aggregator import ColumnarAggregator
from statelib.operators.key_codes import key_codes
from statelib.operators.windows.final_results import ClosedWindows, FinalOperator, store_times
from statelib.operators.windows.operator import RunningWindowAggregate, WindowAggregate
from statelib.records.batch import NO_TIMESTAMP
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


class RunningFinalWindowAggregate(FinalOperator, RunningWindowAggregate):
    """A running `FinalWindowAggregate`."""

    def condense(self) -> None:
        """See `CondensingOperator`: it has no updates to leave out."""

    def process(self, inputs: Sequence[Batch], uptake: Uptake) -> Batch:
        """The final results of the windows that the records close."""
        (batch,) = inputs
        key_code = key_codes(batch, self._context)
        rows, slots, clock = self._accept(batch, key_code, uptake)
        self._metrics.records_out -= len(rows)
        self._aggregator.prepare(batch)  # of no records too: they have types
        after_ms, until_ms = self._finals.close(clock)
        before_ms = self._store.stream_time
        self._bring_back(after_ms, until_ms)
        updates = self._update(batch, rows, slots)
        closed = self._closed(after_ms, until_ms)
        if self._context.semantics != "kip":
            at = self._finals.closing_rows(closed.due, clock)
            forgotten_ms = store_times(rows, self._memory.start(slots), at, before_ms) - self._spec.kept_ms
            closed = closed.known(closed.windows.start >= forgotten_ms, self._metrics)
        forwarded = self._finals.forwarded(closed, batch, clock)
        if updates is not None:
            self._finals.remember(updates, rows)
        return forwarded

    def _update(self, batch: Batch, rows: NDArray[np.int64], slots: NDArray[np.int64]) -> Batch | None:
        """Updates windows; gives the updates if somebody looks into the store."""
        result, removed = None, NONE_REMOVED
        is_told = self._changelog is not None or self._context.is_looked_into
        if is_told or not isinstance(self._aggregator, ColumnarAggregator):
            result, removed = self._aggregator.walk(rows, slots, remembers=self._changelog is not None)
        else:
            self._aggregator.add(rows, slots)
        timestamp = self._memory.touch(rows, slots, batch, removed)
        if self._changelog is not None:
            self._log(self._changelog, slots, (timestamp, batch.timestamp[rows]), removed)
        if result is None or not self._context.is_looked_into:
            return None
        return self._updates(batch, rows, slots, result, timestamp, None)

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
