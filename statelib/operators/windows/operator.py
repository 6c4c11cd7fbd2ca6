"""Aggregation of a grouped stream by time windows (Kafka's ``KStreamWindowAggregate``).

Each record updates every window that holds its timestamp and is still open, by ascending start, and each update is
forwarded as a record of the windowed table: key, window, the aggregate so far, and as timestamp the largest record
timestamp in the window.

A window takes a record while ``window end > stream time - grace``. The stream time is the operator's own: the largest
timestamp of the records with a key that it has seen, this one included. What comes too late is dropped and counted per
window (``late-record-drop``, KIP-328); in the ledger a record is ``late`` if no window took it.

The one window of `UnlimitedWindows` never closes. A record before its start is in no window: it is dropped, as in
Kafka, and is ``before-first-window`` in the ledger.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar, get_args

import numpy as np
import pyarrow as pa

from statelib.columns.arrow_buffers import valid_of
from statelib.columns.window_grids import FAR_FUTURE_MS, DayGrid
from statelib.errors.kinds import ConfigurationError
from statelib.operators.aggregation.aggregator import prepared, walked
from statelib.operators.aggregation.changelog import states
from statelib.operators.aggregation.cogroup import CogroupedStreams
from statelib.operators.aggregation.columnar_aggregator import ColumnarAggregator
from statelib.operators.aggregation.definition import count_of_streams
from statelib.operators.aggregation.per_record_aggregator import PerRecordAggregator
from statelib.operators.aggregation.prior_results import prior_results
from statelib.operators.key_codes import key_codes
from statelib.operators.serialized_sizes import serialized_bytes
from statelib.operators.tables.change import concat_changes
from statelib.operators.windows.codec import encode_keys
from statelib.operators.windows.definition import UnlimitedWindows
from statelib.operators.windows.kernel import accept, accept_one
from statelib.operators.windows.store import WindowChanges, WindowStore
from statelib.operators.windows.stored_windows import WindowsInStore, stored_as
from statelib.operators.windows.windowed_aggregate import WindowedAggregateSpec, updates_of
from statelib.operators.windows.working_set import WindowsInMemory
from statelib.records.batch import NO_TIMESTAMP, Batch, Passage
from statelib.records.key_column import Windows
from statelib.serdes import serde_for, serialized
from statelib.settings.semantics import Rules, Semantics
from statelib.stores.spec import StoreSpec, settings_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from statelib.operators.aggregation.aggregator import Walked
    from statelib.operators.aggregation.prior_results import Priors
    from statelib.operators.base import OperatorContext
    from statelib.operators.changelog import Changelog
    from statelib.operators.clocks import WindowClock
    from statelib.operators.windows.definition import AlignedWindows
    from statelib.operators.windows.stored_windows import StoredWindows
    from statelib.records.batch import Uptake
    from statelib.stores.backend import WriteBatch

_COMPACT_FROM_SLOTS = 1 << 14


@dataclass(frozen=True, slots=True)
class WindowAggregate(WindowedAggregateSpec):
    """Aggregates by key and time window.

    Attributes:
        retention_ms: How long after its start a window stays in the store; None: size + grace.
        needs_prior: Before a window's first update the prior value is null; the shipped library
            (``semantics="kafka-4.3"``) gives the initializer's value.
        clock: Whose stream time tells what is late.
    """

    operator: ClassVar[str] = "window_aggregate"

    windows: AlignedWindows
    clock: WindowClock = "operator"

    def build(self, context: OperatorContext) -> RunningWindowAggregate:
        """The running operator."""
        return RunningWindowAggregate(self, context)

    def check(self, node: str) -> None:
        """Windows must not be gone from the store before they close."""
        if self.retention_ms is not None and self.retention_ms < self.windows.retention_ms:
            raise ConfigurationError(
                f"retention of {self.retention_ms} ms is less than size and grace, {self.windows.retention_ms} ms",
                node=node,
                store=self.store,
                next_step="keep windows for at least their size and grace period, or leave with_retention() out",
            )

    def stored_ms(self, semantics: Semantics) -> int:
        """How long after its start a window is stored."""
        del semantics
        return self.kept_ms

    def state_stores(self) -> Sequence[StoreSpec]:
        """Those of the window store."""
        seen_ms = {rules: self.stored_ms(rules) for rules in get_args(Rules)}
        settings = {**settings_of(self.describe(), "emit"), "on_grid": True, "seen_ms": seen_ms}
        return (StoreSpec(self.store, "window", WindowStore.families(self.store), settings),)


class RunningWindowAggregate:
    """A running `WindowAggregate`."""

    def __init__(self, spec: WindowAggregate, context: OperatorContext) -> None:
        self._spec = spec
        self._windows = spec.windows
        self._context = context
        self._metrics = context.metrics
        self._aggregator = spec.aggregator.build(context.node, context.metrics)
        self._streams = CogroupedStreams(context, count_of_streams(spec.aggregator), spec.clock)
        self._store = WindowStore(
            context.backend,
            spec.store,
            retention_ms=spec.stored_ms(context.semantics),
            stream_time=context.clock("store_time"),
            metrics=context.metrics,
            on_grid=True,
        )
        self._changelog = context.changelogs.get(spec.store)
        self._condensed: ColumnarAggregator | None = None  # set: the aggregator, and nobody reads single updates
        self._grid = spec.windows.grid
        self._memory = WindowsInMemory(self._grid, self._aggregator)
        self._open_at_flush: tuple[int | None, int] = (None, 0)  # see `_open_in_memory`
        self._start_over()

    def condense(self) -> tuple[WindowsInMemory, WindowsInStore] | None:
        """See `CondensingOperator`. Functions of SQL are condensed, and no Python functions.

        A changelog has every update, so there is nothing to leave out.
        """
        closes = not isinstance(self._windows, UnlimitedWindows) and not self._streams.have_own_clocks
        windowed = closes and self._spec.clock == "operator" and not self._changelog
        if windowed and not self._spec.needs_prior and isinstance(self._aggregator, ColumnarAggregator):
            self._condensed = self._aggregator
            aggregation = {"store": self._spec.store, "aggregator": self._spec.aggregator.describe()}
            return self._memory, WindowsInStore(self._store, {**aggregation, **self._windows.describe()})
        return None

    def in_store(self) -> StoredWindows | None:
        """See `StoringOperator`."""
        closes = not isinstance(self._windows, UnlimitedWindows) and not self._streams.have_own_clocks
        if closes and self._spec.clock == "operator" and not self._spec.final:
            return WindowsInStore(self._store, stored_as(self._spec))
        return None

    def _start_over(self) -> None:
        """Forgets all windows."""
        self._memory.clear()
        self._kept = 0  # how many there were when expired ones were last dropped
        self._opened = 0  # how many are of the last batch
        self._may_grow = False  # whether a result in memory may grow with any update, as a null does

    def process(self, inputs: Sequence[Batch], uptake: Uptake) -> Batch:
        """One update for each record and window that takes it."""
        batch = self._streams.taken_up(inputs)
        if self._streams.have_own_clocks and self._may_fail and len(batch) > 1:
            # What the store forgets depends on what has been put, record by record.
            return concat_changes([self._take_up(batch.slice(row, row + 1), uptake) for row in range(len(batch))])
        return self._take_up(batch, uptake)

    def _take_up(self, batch: Batch, uptake: Uptake) -> Batch:
        batch = prepared(self._aggregator, batch, self._context)  # of no records too: they have types
        rows, slots, stream_time = self._accept(batch, key_codes(batch, self._context), uptake)
        if len(rows) == 0:
            return self._nothing(batch)
        first_new = self._open(self._forgotten(rows, slots) if self._streams.have_own_clocks else 0)
        if self._condensed is not None:
            passage = self._pass_on(self._condensed, batch, rows, slots, stream_time, first_new)
            return replace(self._nothing(batch), passage=passage)
        priors = self._priors(slots) if self._spec.needs_prior else None
        made = self._walk(rows, slots, priors)
        return self._updates(batch, made.rows, made.slots, made.result, self._touch(batch, made), made.prior)

    @property
    def _may_fail(self) -> bool:
        """Whether records are left out for which a function fails when they are added to windows."""
        return self._context.on_failure is not None and isinstance(self._aggregator, PerRecordAggregator)

    def _walk(self, rows: NDArray[np.int64], slots: NDArray[np.int64], priors: Priors | None = None) -> Walked:
        """Adds records to windows; accounts for those for which a function fails."""
        made = walked(self._aggregator, rows, slots, priors, remembers=self._changelog is not None)
        if len(made.failed_rows):
            self._metrics.records_out -= len(rows) - len(made.rows)
            self._metrics.account("aggregated", -len(made.failed_rows))
        if self._may_fail:  # what was opened may not have been put
            self._move_clock(np.unique(made.slots))
        return made

    def _touch(self, batch: Batch, made: Walked) -> NDArray[np.int64]:
        """int64, the timestamp of the window after each update, which is logged."""
        timestamp = self._memory.touch(made.rows, made.slots, batch, made.removed)
        if self._changelog is not None and made.rows_to_store is not None:
            self._log(self._changelog, made, (timestamp, batch.timestamp[made.rows]))
        return timestamp

    def _open(self, forgotten: int = 0) -> int:
        """Makes room for the slots that this batch has opened: see `_reserve_and_load`. The store's clock moves on."""
        first_new = self._reserve_and_load(forgotten)
        self._opened = len(self._memory) - first_new
        if not self._may_fail:
            # The others have moved the clock when they were opened.
            self._move_clock(np.arange(first_new, len(self._memory)))
        return first_new

    def _move_clock(self, slots: NDArray[np.int64]) -> None:
        """Moves the store's clock on to the start of the newest of these windows."""
        newest = int(self._memory.start(slots).max(initial=NO_TIMESTAMP))
        self._store.stream_time = self._context.clocks["store_time"] = max(self._store.stream_time, newest)

    def _nothing(self, batch: Batch) -> Batch:
        none, result = np.empty(0, dtype=np.int64), pa.nulls(0, self._aggregator.result_type)
        keys = (Windows(none, none), self._windows.of_keys, none)
        return updates_of(batch, none, keys, none, result, result if self._spec.needs_prior else None)

    def _pass_on(
        self,
        aggregator: ColumnarAggregator,
        batch: Batch,
        rows: NDArray[np.int64],
        slots: NDArray[np.int64],
        stream_time: NDArray[np.int64],
        first_new: int,
    ) -> Passage:
        """Makes the updates, and tells of those that open a window or give it a larger result."""
        opening = self._memory.slots.first_updates(first_new)
        stored = self._memory.stored[first_new : first_new + len(opening)]
        self._may_grow |= not aggregator.keeps_sizes
        if not self._may_grow:  # so the first update of a window makes its result as large as it will be
            before = np.zeros(len(opening), dtype=np.int64)
            returned = np.flatnonzero(stored)
            before[returned] = serialized_bytes(aggregator.results(first_new + returned))
            aggregator.add(rows, slots)
            after = serialized_bytes(aggregator.results(slots[:1])).repeat(len(opening))
            growing, opens = opening, np.arange(len(opening))
        else:
            priors = self._priors(slots)
            result, removed = aggregator.walk(rows, slots)
            after, before = serialized_bytes(result), serialized_bytes(priors(result, removed))
            growing, opens = np.arange(len(rows)), opening
        self._memory.touch_waiting(rows, slots, batch)
        is_new, returns = np.zeros(len(growing), dtype=np.bool_), np.zeros(len(growing), dtype=np.bool_)
        is_new[opens], returns[opens] = ~stored, stored
        return Passage(batch.sequence, stream_time, rows, growing, slots[growing], is_new, returns, before, after)

    def _log(self, changelog: Changelog, made: Walked, timestamps: tuple[NDArray[np.int64], NDArray[np.int64]]) -> None:
        """Logs updates; ``timestamps``: of the windows, and of the records, which those of removals are."""
        kept = states(made.rows_to_store, made.removed)
        keys = encode_keys(self._keys_of(made.slots), self._memory.start(made.slots))
        changelog.add(keys, kept, np.where(valid_of(kept), *timestamps))

    def _accept(
        self, batch: Batch, key_code: NDArray[np.int64], uptake: Uptake
    ) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """The (record, window) pairs that are updated, as rows of the batch and slots; accounts for all records.

        And, by record, the operator's stream time.
        """
        windows = self._windows
        first_window, accepted, lateness, late = (np.empty(len(batch), dtype=np.int64) for _ in range(4))
        timestamp, clock = batch.timestamp, self._streams.stream_times(batch, key_code, uptake)
        if isinstance(windows, UnlimitedWindows):  # no time is behind the end, whatever number stands for it
            timestamp, clock = (np.minimum(times, FAR_FUTURE_MS - 1) for times in (timestamp, clock))
        out = (first_window, accepted, lateness, late)
        if isinstance(self._grid, DayGrid):
            first_window, end = self._grid.holding(timestamp)
            counts = accept_one(key_code, timestamp, clock, end, windows.grace_period_ms, *out[1:])
        else:
            grid = (self._grid.size_ms, self._grid.advance_ms, windows.grace_period_ms, self._grid.origin_ms)
            counts = accept(key_code, timestamp, clock, *grid, *out)
        count, expired, keyed, before, too_late = counts
        self._metrics.records_in += len(batch)
        self._metrics.records_out += count
        self._metrics.account("aggregated", keyed - before - too_late)
        self._streams.drop_late(batch, late[:too_late], uptake, lateness, reason="window closed")
        self._metrics.drop("before-first-window", before)
        self._metrics.drop("null-key", len(batch) - keyed)
        self._metrics.count("late-record-drop", expired)
        self._metrics.lateness.observe(lateness if keyed == len(batch) else lateness[key_code >= 0])
        self._forget_expired()
        return *self._memory.slots.find(key_code, first_window, accepted, count), clock

    def _forget_expired(self) -> None:
        """Drops windows out of retention from memory, whenever they have doubled."""
        if len(self._memory) < max(_COMPACT_FROM_SLOTS, 2 * self._kept):
            return
        alive = self._alive()
        self._kept = len(alive)
        if len(alive) < len(self._memory):
            self._memory.keep(alive)

    def _alive(self) -> NDArray[np.int64]:
        return self._memory.started_after(self._store.last_expired_start)

    def _forgotten(self, rows: NDArray[np.int64], slots: NDArray[np.int64]) -> int:
        """Starts windows anew that a stream updates after another one, which is ahead, has made the store forget them.

        As in the shipped library, each such update begins with the initial aggregate.

        Args:
            rows: int64, by update: the record.
            slots: int64, by update: the slot of its window; new ones are put in.

        Returns:
            How many updates are such ones: their slots are the last.
        """
        start = self._memory.start(slots)
        latest = np.maximum.accumulate(np.concatenate([[self._store.stream_time], start]))
        of_record = np.searchsorted(rows, rows)  # the first update of its record
        again = np.flatnonzero(start <= latest[of_record] - self._spec.kept_ms)
        slots[again] = self._memory.slots.add(slots[again])
        return len(again)

    def _reserve_and_load(self, forgotten: int = 0) -> int:
        """Makes room for the slots that this batch has opened, and looks their windows up in the store.

        Args:
            forgotten: How many of them, the last ones, the store has forgotten.

        Returns:
            The first of these slots.
        """
        first = self._memory.reserve()
        schema = self._aggregator.schema
        if first == len(self._memory) or schema is None:
            return first
        self._store.header.check(schema)
        new = np.arange(first, len(self._memory) - forgotten)
        there, values = self._store.load(lambda of: self._keys_of(new[of]), self._memory.start(new))
        if len(there):
            slots = new[there]
            rows = serde_for(pa.struct(list(schema))).deserialize(pa.array([row for _, row in values], pa.binary()))
            self._aggregator.restore(slots, rows)
            self._memory.timestamp[slots] = [timestamp for timestamp, _ in values]
            self._memory.stored[slots] = True
        return first

    def _keys_of(self, slots: NDArray[np.int64]) -> pa.Array:
        return self._context.keys.take(self._memory.key_code(slots))

    def _priors(self, slots: NDArray[np.int64]) -> Priors:
        was_there = self._memory.timestamp[slots] != NO_TIMESTAMP
        initial_of_new = self._context.semantics != "kip"
        return prior_results(self._aggregator, slots, was_there, count=len(self._memory), initial_of_new=initial_of_new)

    def _updates(
        self,
        batch: Batch,
        rows: NDArray[np.int64],
        slots: NDArray[np.int64],
        result: pa.Array,
        timestamp: NDArray[np.int64],
        prior: pa.Array | None,
    ) -> Batch:
        start = self._memory.start(slots)
        windows = Windows(start, self._grid.end_of(start))
        keys = (windows, self._windows.of_keys, self._memory.key_code(slots))
        return updates_of(batch, rows, keys, timestamp, result, prior)

    def flush(self, write: WriteBatch) -> None:
        """Writes the windows touched since the last flush that are within retention, and expires the others."""
        schema = self._aggregator.schema
        if len(self._memory) == 0 or schema is None:
            return
        alive = self._alive()
        self._open_at_flush = self._open_in_memory(alive)
        changes = WindowChanges(
            keys=lambda some: self._keys_of(alive[some]),
            start=self._memory.start(alive),
            timestamp=self._memory.timestamp[alive],
            rows=lambda some: serialized(self._aggregator.dump(alive[some])),
            stored=self._memory.stored[alive],
        )
        self._store.store(changes, schema, write)
        self._aggregator.keep(np.empty(0, dtype=np.int64))
        self._start_over()

    def open_windows(self) -> int:
        """See `WindowedOperator`."""
        first_start, count = self._open_at_flush
        if first_start == self._first_open_start:
            return count
        return self._store.count_from(self._first_open_start)

    @property
    def _first_open_start(self) -> int:
        """Windows that start then or later are open, ms."""
        first = self._grid.last_ended(self._context.clock() - self._windows.grace_period_ms) + 1
        return int(self._grid.start_of(np.array([first]))[0])

    def _open_in_memory(self, alive: NDArray[np.int64]) -> tuple[int | None, int]:
        """From which start on windows are open, and how many; None: the store may have more of them than memory."""
        first_start = self._first_open_start
        if self._store.newest_stored >= first_start:
            return None, 0
        is_there = self._memory.timestamp[alive] != NO_TIMESTAMP
        return first_start, int(np.count_nonzero(is_there & (self._memory.start(alive) >= first_start)))

    def memory_bytes(self) -> int:
        """Size of the working set after a batch like the last."""
        of_windows = self._memory.memory_bytes()
        more = of_windows * self._opened // max(len(self._memory), 1)
        return int(of_windows + more + self._store.memory_bytes())
