"""Final results of sessions: see `statelib.operators.windows.final_results`.

The timestamp of a result is the end of its session. A session that has closed may still be joined by a record that is
not too late itself; the longer session is another window, and has a final result of its own. That of the shorter one is
what the record has found.

The shipped library (``semantics="kafka-4.3"``) looks for the sessions that a record closes when it has put the record's
own into the store. That has then dropped segments out of retention: if stream time leaps, results are lost.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from statelib.operators.aggregation.accumulators.kernel import NO_UPDATE
from statelib.operators.sessions.kernel import EMISSION
from statelib.operators.sessions.operator import RunningSessionAggregate, SessionAggregate
from statelib.operators.windows.final_results import ClosedWindows, FinalAsLoaded, store_times
from statelib.operators.windows.windowed_aggregate import together
from statelib.records.key_column import Windows

if TYPE_CHECKING:
    from collections.abc import Mapping

    from statelib.operators.base import OperatorContext
    from statelib.operators.windows.windowed_aggregate import Piece
    from statelib.records.batch import Batch
    from statelib.settings.semantics import Semantics

_SHORTEST_SEGMENT_MS = 60_000


@dataclass(frozen=True, slots=True)
class FinalSessionAggregate(SessionAggregate):
    """Aggregates by key and session, and forwards final results alone."""

    final: ClassVar[bool] = True

    def build(self, context: OperatorContext) -> RunningFinalSessionAggregate:
        """The running operator."""
        return RunningFinalSessionAggregate(self, context)

    def describe(self) -> Mapping[str, object]:
        """Kind and parameters."""
        return {**SessionAggregate.describe(self), "emit": "on_window_close"}

    def stored_ms(self, semantics: Semantics) -> int:
        """How long after its end a session is stored: until it has closed, if it is not seen any more."""
        return SessionAggregate.seen_ms(self, semantics) + (semantics != "kip")

    @property
    def segment_ms(self) -> int:
        """How long a segment of the shipped library's store is (``RocksDbTimeOrderedSessionBytesStoreSupplier``)."""
        return max(self.kept_ms // 2, _SHORTEST_SEGMENT_MS)


class RunningFinalSessionAggregate(FinalAsLoaded, RunningSessionAggregate):
    """A running `FinalSessionAggregate`."""

    _spec: FinalSessionAggregate

    by_end = True

    def _bring_back(self, after_ms: int, until_ms: int | None) -> None:
        """Brings the sessions of keys here of which a stored one ends after ``after_ms``, until ``until_ms``."""
        for keys in self._store.ending(after_ms, until_ms):
            self._load_keys(self._context.keys.encode(keys))

    def _updates(self, batch: Batch, pieces: list[Piece]) -> Batch:
        """The final results of the sessions that the records close."""
        self._metrics.records_out -= sum(len(emissions) for emissions, _, _ in pieces)
        self._put_off(batch)
        if self._context.semantics != "kip":
            self._overwrite()
        closed = self._closed(*self._closing).and_also(self._closed_and_joined(pieces))
        if self._context.semantics != "kip" and len(closed):
            emissions = np.concatenate([emissions for emissions, _, _ in pieces])
            put = emissions[emissions["update"] != NO_UPDATE]
            rows, end = (np.ascontiguousarray(put[name]) for name in ("row", "end"))
            at = self._finals.closing_rows(closed.due, self._clock)
            live_ms = np.maximum(store_times(rows, end, at, self._before_ms) - self._spec.kept_ms, 0)
            found = closed.windows.end // self._spec.segment_ms >= live_ms // self._spec.segment_ms
            closed = closed.known(found, self._metrics)
        forwarded = self._finals.forwarded(closed, batch, self._clock)
        if self._context.is_looked_into:
            rows_of = [np.empty(0, dtype=np.int64), *(changes["row"] for changes, _, _ in pieces)]
            self._finals.remember(super()._updates(batch, pieces), np.concatenate(rows_of))
        return forwarded

    def _overwrite(self) -> None:
        """Of sessions that are not seen any more, the last one of the same bounds counts, even if it was removed."""
        sessions = self._slots.sessions
        hidden = np.flatnonzero(sessions["end"] <= self._slots.last_expired_end)
        if len(hidden) > 1:
            latest_first = hidden[::-1]
            _, last = np.unique(sessions[latest_first][["key_code", "start", "end"]], return_index=True)
            sessions["alive"][np.delete(latest_first, last)] = 0

    def _closed_and_joined(self, pieces: list[Piece]) -> ClosedWindows:
        """The sessions that a record of the batch has closed and a later one has joined: they are no more."""
        emissions, _, prior = together(pieces, EMISSION, self._aggregator)
        due = emissions["end"] + self._finals.wait_ms
        joined = (emissions["update"] == NO_UPDATE) & (emissions["end"] > self._closing[0])
        before = np.concatenate(
            [[self._closing[0] + self._finals.wait_ms], self._clock]
        )  # the record itself joins first
        joined &= due <= before[emissions["row"]]
        slot, start, end = (np.ascontiguousarray(emissions[name][joined]) for name in ("slot", "start", "end"))
        code = np.ascontiguousarray(self._slots.sessions["key_code"][slot])
        return ClosedWindows(code, Windows(start, end), due[joined], end, pc.filter(prior, pa.array(joined)))

    def _closed(self, after_ms: int, until_ms: int | None) -> ClosedWindows:
        """The sessions that end after ``after_ms`` and until ``until_ms`` (None: any time), all of them in memory."""
        sessions = self._slots.sessions
        ending = (sessions["alive"] == 1) & (sessions["end"] > after_ms)
        if until_ms is not None:
            ending &= sessions["end"] <= until_ms
        slots = np.flatnonzero(ending)
        code, start, end = (np.ascontiguousarray(sessions[name][slots]) for name in ("key_code", "start", "end"))
        value = self._aggregator.results(slots)
        return ClosedWindows(code, Windows(start, end), end + self._finals.wait_ms, end, value)
