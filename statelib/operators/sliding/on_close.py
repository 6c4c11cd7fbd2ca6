"""Final results of sliding windows: see `statelib.operators.windows.final_results`.

As of time windows, the shipped library (``semantics="kafka-4.3"``) loses results if stream time leaps. Its store for
final results sees a window for a millisecond longer than its others do.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from statelib.columns.times import end_of_windows
from statelib.operators.key_codes import key_codes
from statelib.operators.sliding.operator import RunningSlidingAggregate, SlidingAggregate
from statelib.operators.windows.final_results import ClosedWindows, FinalAsLoaded, store_times
from statelib.records.key_column import Windows

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from statelib.operators.base import OperatorContext
    from statelib.operators.windows.windowed_aggregate import Piece
    from statelib.records.batch import Batch
    from statelib.settings.semantics import Semantics


@dataclass(frozen=True, slots=True)
class FinalSlidingAggregate(SlidingAggregate):
    """Aggregates by key and sliding window, and forwards final results alone."""

    final: ClassVar[bool] = True

    def build(self, context: OperatorContext) -> RunningFinalSlidingAggregate:
        """The running operator."""
        return RunningFinalSlidingAggregate(self, context)

    def describe(self) -> Mapping[str, object]:
        """Kind and parameters."""
        return {**SlidingAggregate.describe(self), "emit": "on_window_close"}

    def seen_ms(self, semantics: Semantics) -> int:
        """How long after its start a window is seen and stored."""
        return SlidingAggregate.seen_ms(self, semantics) + (semantics != "kip")


class RunningFinalSlidingAggregate(FinalAsLoaded, RunningSlidingAggregate):
    """A running `FinalSlidingAggregate`."""

    def _bring_back(self, after_ms: int, until_ms: int | None) -> None:
        """Brings the windows of keys here of which a stored one ends after ``after_ms``, until ``until_ms``."""
        size_ms, end_ms = self._spec.windows.time_difference_ms, self._store.newest_stored + 1
        first_ms = max(after_ms - size_ms + 1, 0)
        if until_ms is not None:
            end_ms = min(end_ms, until_ms - size_ms + 1)
        for some in self._store.lying(None, first_ms, end_ms) if first_ms < end_ms else ():
            self._load_keys(self._context.keys.encode(some.keys))

    def _passed_by(self, batch: Batch) -> NDArray[np.bool_]:
        """See `FinalAsLoaded`; as shipped, so is what is too late, or earlier than the time difference."""
        windows = self._spec.windows
        dropped = (key_codes(batch, self._context) < 0) | ~self._streams.has_value(batch)
        dropped |= batch.timestamp + windows.time_difference_ms < self._clock - windows.grace_period_ms
        passed_by: NDArray[np.bool_] = dropped | (batch.timestamp < windows.time_difference_ms)
        return passed_by

    def _updates(self, batch: Batch, pieces: list[Piece]) -> Batch:
        """The final results of the windows that the records close."""
        self._metrics.records_out -= sum(len(updates) for updates, _, _ in pieces)
        self._put_off(batch)
        closed = self._closed(*self._closing)
        if self._context.semantics != "kip" and len(closed):
            put = np.concatenate([updates[["row", "slot"]] for updates, _, _ in pieces])
            rows, slots = (np.ascontiguousarray(put[name]) for name in ("row", "slot"))
            start = np.ascontiguousarray(self._slots.windows["start"][slots])
            at = self._finals.closing_rows(closed.due, self._clock)
            forgotten_ms = store_times(rows, start, at, self._before_ms) - self._spec.kept_ms
            closed = closed.known(closed.windows.start >= forgotten_ms, self._metrics)
        forwarded = self._finals.forwarded(closed, batch, self._clock)
        if self._context.is_looked_into:
            rows_of = [np.empty(0, dtype=np.int64), *(changes["row"] for changes, _, _ in pieces)]
            self._finals.remember(super()._updates(batch, pieces), np.concatenate(rows_of))
        return forwarded

    def _closed(self, after_ms: int, until_ms: int | None) -> ClosedWindows:
        """The windows that end after ``after_ms`` and until ``until_ms`` (None: any time), all of them in memory."""
        windows = self._slots.windows
        end = end_of_windows(np.ascontiguousarray(windows["start"]), self._spec.windows.time_difference_ms)
        ending = (windows["alive"] == 1) & (end > after_ms)
        if until_ms is not None:
            ending &= end <= until_ms
        slots = np.flatnonzero(ending)
        code, start, timestamp = (
            np.ascontiguousarray(windows[name][slots]) for name in ("key_code", "start", "timestamp")
        )
        due = end[slots] + self._finals.wait_ms
        return ClosedWindows(code, Windows(start, end[slots]), due, timestamp, self._aggregator.results(slots))
