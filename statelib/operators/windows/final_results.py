"""Final results: windows are forwarded when they close, each once (Kafka's ``EmitStrategy.onWindowClose``, KIP-825).

The record with which stream time passes a window's end and its grace period closes it. All that a record closes is
forwarded behind what the record has changed, in order of time, then of the bytes of the keys. No record changes a
window any more that has closed, so what the aggregation has at the end of a batch is what it had when they closed
(except for sessions, which become longer ones: `statelib.operators.sessions.on_close`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pyarrow as pa

from statelib.operators.base import Told
from statelib.operators.key_codes import key_codes
from statelib.records.batch import NULL_KEY, Batch
from statelib.records.key_column import KeyColumn, WindowedKeys
from statelib.records.key_ranks import key_ranks

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from statelib.columns.windowed_type import KeyWindows
    from statelib.metrics.node_metrics import NodeMetrics
    from statelib.operators.base import OperatorContext
    from statelib.records.key_column import Windows


_CLOSING = "closing_time"
"""Clock: the stream time by which windows have closed, where the last record has failed before it could close any."""


@dataclass(frozen=True, slots=True)
class ClosedWindows:
    """Some windows that have closed, in any order; columns of one length.

    Attributes:
        key_code: int64, of their keys, which may be windowed themselves.
        windows: Their bounds.
        due: int64, the stream time at which each closes, ms.
        timestamp: int64, of the results, ms.
        value: The results.
    """

    key_code: NDArray[np.int64]
    windows: Windows
    due: NDArray[np.int64]
    timestamp: NDArray[np.int64]
    value: pa.Array

    def __len__(self) -> int:
        return len(self.due)

    def known(self, found: NDArray[np.bool_], metrics: NodeMetrics) -> ClosedWindows:
        """Those that the shipped library finds in its store; the results of the others are lost, and counted."""
        metrics.count("lost-final-result", len(self) - int(np.count_nonzero(found)))
        bounds = type(self.windows)(self.windows.start[found], self.windows.end[found])
        value = self.value.filter(pa.array(found))
        return ClosedWindows(self.key_code[found], bounds, self.due[found], self.timestamp[found], value)

    def and_also(self, others: ClosedWindows) -> ClosedWindows:
        """These and others."""
        here, there = self.windows, others.windows
        bounds = type(here)(np.concatenate([here.start, there.start]), np.concatenate([here.end, there.end]))
        code, due, timestamp = (
            np.concatenate([getattr(self, name), getattr(others, name)]) for name in ("key_code", "due", "timestamp")
        )
        return ClosedWindows(code, bounds, due, timestamp, pa.concat_arrays([self.value, others.value]))


class FinalResults:
    """What closes with each batch.

    Args:
        context: The operator's.
        of_keys: What is known of the windows of the results' keys.
        wait_ms: How long after its end, in stream time, a window closes.
        by_end: Whether windows that a record closes go by their ends, then by their starts; else by their starts.
        needs_prior: Whether updates carry the value that they replace: final results replace nothing.
    """

    def __init__(
        self, context: OperatorContext, of_keys: KeyWindows, *, wait_ms: int, by_end: bool, needs_prior: bool
    ) -> None:
        self._context = context
        self._of_keys = of_keys
        self.wait_ms = wait_ms
        self._by_end = by_end
        self._needs_prior = needs_prior
        self.closed_ms = context.clocks.get(_CLOSING, context.clock()) - wait_ms
        """All windows that end until then have closed."""
        self._after_ms = self.closed_ms  # as of the last batch
        self._told: Told | None = None
        self._rows = np.empty(0, dtype=np.int64)  # by result of the last batch: the record that closed it

    def close(self, clock: NDArray[np.int64]) -> tuple[int, int]:
        """Takes up the stream times of a batch's records (int64, ms, ascending).

        Returns:
            After which time the windows that close with them end, and until which, ms.
        """
        self._after_ms = self.closed_ms
        if len(clock):
            self.closed_ms = int(clock[-1]) - self.wait_ms
        return self._after_ms, self.closed_ms

    def wait(self, failed: Sequence[int] | NDArray[np.int64]) -> bool:
        """Whether windows wait for a record behind one for which a function has failed; ``failed``: now."""
        return len(failed) > 0 or _CLOSING in self._context.clocks

    def put_off(
        self, clock: NDArray[np.int64], failed: NDArray[np.int64], passed_by: NDArray[np.bool_]
    ) -> tuple[NDArray[np.int64], int]:
        """Lets what records close for which a function fails wait for the next record: they end where they fail.

        Args:
            clock: int64, as of `close`.
            failed: int64, which records these are.
            passed_by: bool, by record: whether it closes nothing, since it is dropped before.

        Returns:
            The stream time by which windows have closed with each record, ms; until which those end that close now.
        """
        if len(clock) == 0:
            return clock, self.closed_ms
        before, closing = self._after_ms + self.wait_ms, clock.copy()
        closing[failed] = closing[passed_by] = before
        closing = np.maximum.accumulate(np.maximum(closing, before))
        self.closed_ms = int(closing[-1]) - self.wait_ms
        if closing[-1] < clock[-1]:
            self._context.clocks[_CLOSING] = int(closing[-1])
        else:
            self._context.clocks.pop(_CLOSING, None)
        return closing, self.closed_ms

    def closing_rows(self, due: NDArray[np.int64], clock: NDArray[np.int64]) -> NDArray[np.int64]:
        """int64, the record that closes each window: the first one at whose stream time (``clock``) it is ``due``."""
        return np.searchsorted(clock, due)

    def forwarded(self, closed: ClosedWindows, batch: Batch, clock: NDArray[np.int64]) -> Batch:
        """The results of windows that a batch's records close, with their headers.

        Args:
            closed: The windows.
            batch: The records.
            clock: int64, the stream time at each record, ms, ascending.
        """
        rows = self.closing_rows(closed.due, clock)
        order = self._order(rows, closed)
        self._rows = rows = rows[order]
        return self._batch(closed, order, batch, batch.sequence[rows], batch.headers_at(pa.array(rows)))

    def remember(self, updates: Batch, rows: NDArray[np.int64]) -> None:
        """Remembers what a batch has changed, for those that look into the store; called behind `forwarded`.

        Args:
            updates: What would be forwarded if not for final results alone.
            rows: int64, ascending: which record of the batch each is from.
        """
        self._told = Told(updates, np.searchsorted(self._rows, rows) - 1)

    def told(self, forwarded: Batch) -> Told:
        """See `ViewedOperator`: all that has changed, each before what the same record has closed."""
        told, self._told = self._told, None
        return Told(forwarded.slice(0, 0), np.empty(0, dtype=np.int64)) if told is None else told

    def sealed(self, closed: ClosedWindows, nothing: Batch) -> Batch:
        """The results of windows that close as if stream time went on for ever; see `HoldingOperator.seal`."""
        order = self._order(closed.due, closed)
        headers = None if nothing.headers is None else pa.nulls(len(order), nothing.headers.type)
        return self._batch(closed, order, nothing, closed.due[order], headers)

    def _order(self, first: NDArray[np.int64], closed: ClosedWindows) -> NDArray[np.int64]:
        windows, ranks = closed.windows, key_ranks(closed.key_code, self._context.keys)
        time = (windows.start, windows.end) if self._by_end else (windows.start,)
        order: NDArray[np.int64] = np.lexsort((ranks, *time, first))
        return order

    def _batch(
        self,
        closed: ClosedWindows,
        order: NDArray[np.int64],
        like: Batch,
        sequence: NDArray[np.int64],
        headers: pa.Array | None,
    ) -> Batch:
        """The results, in order; ``like``: has the type of the keys."""
        self._context.metrics.records_out += len(order)
        self._context.metrics.count("emit-final-records", len(order))
        codes, windows = closed.key_code[order], closed.windows
        bounds = type(windows)(windows.start[order], windows.end[order])
        keys = KeyColumn.deserialized(self._context.keys.take(codes), like.keys.type)
        value = closed.value.take(pa.array(order))
        return Batch(
            keys=WindowedKeys(keys, bounds, self._of_keys, codes),
            key_code=None,
            value=value,
            timestamp=closed.timestamp[order],
            sequence=sequence,
            prior=pa.nulls(len(order), value.type) if self._needs_prior else None,
            headers=headers,
        )


class FinalOperator(ABC):
    """What running aggregations that forward final results have in common, whatever their windows are.

    A base beside that of the aggregation, before it.

    Args:
        spec: The aggregation's.
        context: Its.
    """

    by_end: ClassVar[bool] = False
    """See `FinalResults`."""

    def __init__(self, spec: Any, context: OperatorContext) -> None:
        super().__init__(spec, context)  # type: ignore[call-arg]
        self._finals = FinalResults(
            context,
            spec.windows.of_keys,
            wait_ms=spec.windows.final_after_ms("kip"),
            by_end=self.by_end,
            needs_prior=spec.needs_prior,
        )

    def told(self, forwarded: Batch) -> Told:
        """See `ViewedOperator`."""
        return self._finals.told(forwarded)

    def seal(self, nothing: Sequence[Batch]) -> Batch:
        """See `HoldingOperator`: the windows that are open."""
        (batch,) = nothing
        after_ms = self._finals.closed_ms
        self._bring_back(after_ms, None)
        return self._finals.sealed(self._closed(after_ms, None), batch)

    @abstractmethod
    def _bring_back(self, after_ms: int, until_ms: int | None) -> None:
        """Brings here what is stored of windows that end after ``after_ms`` and until ``until_ms`` (None: any time)."""

    @abstractmethod
    def _closed(self, after_ms: int, until_ms: int | None) -> ClosedWindows:
        """The windows that end after ``after_ms`` and until ``until_ms`` (None: any time), all of them in memory."""


class FinalAsLoaded(FinalOperator):
    """The same for those that load the windows of a batch's keys before they take up its records."""

    _store: Any
    """With the clock ``stream_time``."""
    _context: OperatorContext
    _failed_rows: list[int]

    def __init__(self, spec: Any, context: OperatorContext) -> None:
        super().__init__(spec, context)
        self._clock = np.empty(0, dtype=np.int64)
        self._closing = (self._finals.closed_ms, self._finals.closed_ms)
        self._before_ms = 0  # the store's clock before the batch

    def _load(self, key_code: NDArray[np.int64], timestamp: NDArray[np.int64], clock: NDArray[np.int64]) -> None:
        """See the class that this is made of; also brings the windows of keys here of which one closes."""
        super()._load(key_code, timestamp, clock)  # type: ignore[misc]
        self._clock, self._before_ms = clock, self._store.stream_time
        self._closing = self._finals.close(clock)
        self._bring_back(*self._closing)

    def _put_off(self, batch: Batch) -> None:
        """Lets what records close for which a function has failed wait for the next record."""
        if self._finals.wait(self._failed_rows):
            failed = np.array(self._failed_rows, np.int64)
            self._clock, until_ms = self._finals.put_off(self._clock, failed, self._passed_by(batch))
            self._closing = self._closing[0], until_ms

    def _passed_by(self, batch: Batch) -> NDArray[np.bool_]:
        """bool, by record: whether it is dropped before it could close anything."""
        passed_by: NDArray[np.bool_] = key_codes(batch, self._context) == NULL_KEY
        return passed_by


def store_times(
    rows: NDArray[np.int64], times: NDArray[np.int64], at: NDArray[np.int64], before_ms: int
) -> NDArray[np.int64]:
    """The clock of a store after some records, all that they have put included.

    Args:
        rows: int64, ascending, by window that was put: the record.
        times: int64, the window's time by which the store goes, ms.
        at: int64, the records that are asked for.
        before_ms: The clock before the first record.

    Returns:
        int64, ms, by record that is asked for.
    """
    clock = np.maximum.accumulate(np.concatenate([[before_ms], times]))
    return clock[np.searchsorted(rows, at, side="right")]
