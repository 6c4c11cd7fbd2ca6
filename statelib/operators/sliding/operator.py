"""Aggregation of a grouped stream by sliding windows (Kafka's ``KStreamSlidingWindowAggregate``, KIP-450).

A record updates the windows of its key that hold it, and makes up to three: one that ends with it, one that begins
right after it if later records are there, and one that begins right after the record before it. Each update is
forwarded with the aggregate so far, and as timestamp the largest record timestamp in the window: first the windows that
were there, by descending start, then the new ones. (Records before the first time difference is over: by ascending
start, and ``[0, difference]`` stands for all windows that would begin before 0.)

A window takes a record while ``window end >= stream time - grace``. The stream time is the operator's own: the largest
timestamp of the records with key and value that it has seen, this one included. What comes too late is dropped and
counted per window (``late-record-drop``, KIP-328); in the ledger a record is ``late`` if no window took it. Null keys
and null values are dropped.

A window is seen as long as a record that is not too late itself could still need it, or as the retention says if that
is longer. The shipped library (``semantics="kafka-4.3"``) does not see windows out of retention, which is by default
twice the time difference and the grace period: less.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, get_args

import numpy as np
import pyarrow as pa

from statelib.columns.arrow_buffers import valid_of
from statelib.columns.times import end_of_windows
from statelib.errors.kinds import ConfigurationError
from statelib.operators.aggregation.accumulators.kernel import NO_ROW, NO_SLOT, NO_UPDATE, previous_update
from statelib.operators.aggregation.aggregator import prepared
from statelib.operators.aggregation.changelog import states
from statelib.operators.aggregation.cogroup import CogroupedStreams
from statelib.operators.aggregation.definition import count_of_streams
from statelib.operators.key_codes import key_codes
from statelib.operators.mappers.function_errors import UserFunctionError
from statelib.operators.sessions.attempt import Attempt
from statelib.operators.sliding.kernel import UPDATE
from statelib.operators.sliding.slots_kernel import SlidingSlots
from statelib.operators.windows.codec import encode_keys
from statelib.operators.windows.store import WindowChanges, WindowStore
from statelib.operators.windows.stored_windows import WindowsInStore, stored_as
from statelib.operators.windows.windowed_aggregate import Piece, WindowedAggregateSpec, together, updates_of
from statelib.records.batch import NO_TIMESTAMP, NULL_KEY, Batch
from statelib.records.key_column import Windows
from statelib.serdes import serde_for, serialized
from statelib.settings.semantics import Rules, Semantics
from statelib.stores.spec import StoreSpec, settings_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from statelib.operators.base import OperatorContext
    from statelib.operators.sliding.slots_kernel import Slid
    from statelib.operators.windows.definition import SlidingWindows
    from statelib.operators.windows.stored_windows import StoredWindows
    from statelib.records.batch import Uptake
    from statelib.stores.backend import WriteBatch

_SLOW_RECORDS = 1 << 8
"""How many records are looked at together where a function may remove windows."""


@dataclass(frozen=True, slots=True)
class SlidingAggregate(WindowedAggregateSpec):
    """Aggregates by key and sliding window.

    Attributes:
        retention_ms: How long after its start a window stays in the store; None: twice the difference and the grace.
        needs_prior: Before a window's first update the prior value is null; the shipped library gives what the record
            is added to.
    """

    operator: ClassVar[str] = "sliding_aggregate"

    windows: SlidingWindows

    def build(self, context: OperatorContext) -> RunningSlidingAggregate:
        """The running operator."""
        return RunningSlidingAggregate(self, context)

    def check(self, node: str) -> None:
        """Windows must not be gone from the store before they close."""
        if self.retention_ms is not None and self.retention_ms < self.windows.retention_ms:
            raise ConfigurationError(
                f"retention of {self.retention_ms} ms is less than twice the time difference and the grace period, "
                f"{self.windows.retention_ms} ms",
                node=node,
                store=self.store,
                next_step="keep windows for at least twice their time difference and their grace period, or leave "
                "with_retention() out",
            )

    def seen_ms(self, semantics: Semantics) -> int:
        """How long after its start a window is seen and stored."""
        return self.windows.seen_ms(self.kept_ms, semantics)

    def state_stores(self) -> Sequence[StoreSpec]:
        """Those of the window store."""
        seen_ms = {rules: self.seen_ms(rules) for rules in get_args(Rules)}
        settings = {**settings_of(self.describe(), "emit"), "on_grid": False, "seen_ms": seen_ms}
        return (StoreSpec(self.store, "window", WindowStore.families(self.store), settings),)


class RunningSlidingAggregate:
    """A running `SlidingAggregate`: the windows of all keys that have had records since the last flush, by slot."""

    def __init__(self, spec: SlidingAggregate, context: OperatorContext) -> None:
        self._spec = spec
        self._context = context
        self._metrics = context.metrics
        self._aggregator = spec.aggregator.build(context.node, context.metrics)
        retention_ms = spec.seen_ms(context.semantics)
        store_time = context.clock("store_time")
        self._store = WindowStore(
            context.backend, spec.store, retention_ms=retention_ms, stream_time=store_time, metrics=context.metrics
        )
        self._changelog = context.changelogs.get(spec.store)
        windows = spec.windows
        self._slots = SlidingSlots(windows.time_difference_ms, windows.grace_period_ms, retention_ms, store_time)
        self._streams = CogroupedStreams(context, count_of_streams(spec.aggregator))
        self._failed_rows: list[int] = []  # records of the last batch for which a function has failed

    def in_store(self) -> StoredWindows | None:
        """See `StoringOperator`."""
        if self._streams.have_own_clocks or self._spec.final:
            return None
        return WindowsInStore(self._store, stored_as(self._spec))

    def process(self, inputs: Sequence[Batch], uptake: Uptake) -> Batch:
        """One update for each record and window that changes."""
        # Of no records too: they have types.
        batch = prepared(self._aggregator, self._streams.taken_up(inputs), self._context)
        key_code = key_codes(batch, self._context)
        skipped = (key_code < 0) | ~self._streams.has_value(batch)
        clock = self._streams.stream_times(batch, np.where(skipped, NULL_KEY, key_code), uptake)
        self._forget_expired()
        self._load(key_code[~skipped], batch.timestamp[~skipped], clock)
        step = at_once = _SLOW_RECORDS if self._aggregator.may_remove else max(len(batch), 1)
        pieces, self._failed_rows = [], []
        done = 0
        while done < len(batch):
            some = slice(done, done + at_once)
            columns = (key_code[some], batch.timestamp[some], clock[some], skipped[some])
            attempt = Attempt.of(self._aggregator, self._slots, self._context)
            slid = self._slots.slide(*columns, once=self._aggregator.may_remove)
            try:
                piece = self._aggregate(slid, done, batch.timestamp)
            except UserFunctionError as error:
                attempt.undo(error)
                at_once = int(slid.updates["row"][attempt.failed_at]) - done
                if at_once == 0:
                    slid = self._left_behind((key_code, batch.timestamp, clock), done)
                    pieces.append(self._aggregate(slid, done, batch.timestamp))
                    self._failed_rows.append(done)
                    done, at_once = done + 1, step
                continue
            finished = slice(done, done + len(slid.accepted))
            self._account(slid, batch.slice(done, finished.stop), key_code[finished] < 0, skipped[finished], uptake)
            pieces.append(piece)
            done, at_once = finished.stop, step
        self._context.clocks["store_time"] = self._store.stream_time = self._slots.store_time
        return self._updates(batch, pieces)

    def _load(self, key_code: NDArray[np.int64], timestamp: NDArray[np.int64], clock: NDArray[np.int64]) -> None:
        """Brings the stored windows of keys here, unless all their records are past everything that is stored.

        Args:
            key_code: int64, of the records that count.
            timestamp: int64, theirs, ms.
            clock: int64, the stream time at each record, ms.
        """
        del clock
        reaching = timestamp - 2 * self._spec.windows.time_difference_ms <= self._store.newest_stored
        self._load_keys(key_code[reaching])

    def _load_keys(self, key_code: NDArray[np.int64]) -> None:
        keys = self._context.keys
        self._slots.reserve_keys(len(keys))
        schema = self._aggregator.schema
        if schema is None:
            return
        self._store.header.check(schema)
        codes = self._slots.not_asked_for(key_code)
        index, windows = self._store.load_keys(keys.take(codes).to_pylist() if len(codes) else [])
        if len(index) == 0:
            return
        start, timestamps = (
            np.array([getattr(window, name) for window in windows], dtype=np.int64)
            for name in ("start_ms", "timestamp_ms")
        )
        slots = self._slots.add_stored(codes[index], start=start, timestamp=timestamps, stored=1)
        self._aggregator.reserve(len(self._slots))
        raws = pa.array([window.row for window in windows], pa.binary())
        self._aggregator.restore(slots, serde_for(pa.struct(list(schema))).deserialize(raws))

    def _account(
        self, slid: Slid, batch: Batch, null_key: NDArray[np.bool_], skipped: NDArray[np.bool_], uptake: Uptake
    ) -> None:
        null_keys, dropped = int(np.count_nonzero(null_key)), int(np.count_nonzero(skipped))
        aggregated = int(np.count_nonzero(slid.accepted))
        self._metrics.records_in += len(skipped)
        self._metrics.records_out += len(slid.updates)
        self._metrics.account("aggregated", aggregated)
        late = np.flatnonzero(~skipped & (slid.accepted == 0))
        self._streams.drop_late(batch, late, uptake, slid.lateness, reason="window closed")
        self._metrics.drop("null-key", null_keys)
        self._metrics.drop("null-value", dropped - null_keys)
        self._metrics.count("late-record-drop", int(slid.expired.sum()))
        self._metrics.lateness.observe(slid.lateness[~skipped])

    def _left_behind(self, columns: tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]], row: int) -> Slid:
        """The updates that a record makes before a function fails for it: those that are forwarded before.

        Args:
            columns: int64, of the batch's records: key code, timestamp, and the stream time at each, ms.
            row: The record's.
        """
        before, store_time = self._slots.windows.copy(), self._slots.store_time
        key_code, timestamp, clock = (column[row : row + 1] for column in columns)
        slid = self._slots.slide(key_code, timestamp, clock, np.zeros(1, np.bool_), once=True)
        updates = slid.updates
        is_copy = updates["adds"] == NO_ROW
        in_order = updates[np.lexsort((updates["position"], ~is_copy))]  # copies are of windows as they were
        adds = np.where(in_order["adds"] == NO_ROW, NO_ROW, row)
        slots, copied = (np.ascontiguousarray(in_order[name]) for name in ("slot", "copied"))
        self._aggregator.reserve(max(len(self._slots), 1))
        attempt, end = Attempt.of(self._aggregator, self._slots, self._context), len(updates)
        try:
            self._aggregator.walk(adds, slots, copied=copied)
        except UserFunctionError as error:
            attempt.undo(error)
            attempt.leave_out(error)
            end = int(in_order["position"][attempt.failed_at])
        kept, dropped = updates[updates["position"] < end], updates[updates["position"] >= end]
        self._slots.take_back(dropped, kept, before, store_time)
        self._metrics.records_in += 1
        self._metrics.records_out += len(kept)
        self._metrics.lateness.observe(slid.lateness)
        return replace(slid, updates=kept)

    def _aggregate(self, slid: Slid, first_row: int, timestamp: NDArray[np.int64]) -> Piece:
        """Changes the states of windows.

        Returns:
            What is forwarded (`UPDATE`, in its order, rows counted in the whole batch), the values and what they
            replace.
        """
        updates = slid.updates
        updates["row"] += first_row
        updates["adds"] += np.where(updates["adds"] >= 0, first_row, 0)
        adds, slots, copied = (np.ascontiguousarray(updates[name]) for name in ("adds", "slot", "copied"))
        self._aggregator.reserve(max(len(self._slots), 1))
        prior = self._priors(updates, slots, copied) if self._spec.needs_prior else None
        results, removed = self._aggregator.walk(adds, slots, copied=copied, remembers=self._changelog is not None)
        if len(removed):
            self._slots.remove(slots[removed])
        forwarded = np.empty(len(updates), dtype=np.int64)
        forwarded[updates["position"]] = np.arange(len(updates))
        if self._changelog is not None:
            kept = states(self._aggregator.walked(), removed)
            keys = self._context.keys.take(np.ascontiguousarray(self._slots.windows["key_code"][slots]))
            start = np.ascontiguousarray(self._slots.windows["start"][slots])
            since = np.where(valid_of(kept), updates["timestamp"], timestamp[updates["row"]])
            self._changelog.add(encode_keys(keys, start), kept, since)
        return updates[forwarded], results.take(pa.array(forwarded)), prior and prior(results).take(pa.array(forwarded))

    def _priors(
        self, updates: NDArray[Any], slots: NDArray[np.int64], copied: NDArray[np.int64]
    ) -> Callable[[pa.Array], pa.Array]:
        """Remembers how windows are before these updates; the function gives what each of them replaces afterwards."""
        is_new = updates["is_new"] == 1
        of = np.where(is_new & (copied != NO_SLOT), copied, slots)
        before = self._aggregator.results(of)
        previous = np.empty(len(slots), dtype=np.int64)
        previous_update(of, slots, np.full(len(self._slots), NO_UPDATE), previous)
        source = np.where(previous != NO_UPDATE, len(slots) + previous, np.arange(len(slots)))

        def after(results: pa.Array) -> pa.Array:
            choices = pa.concat_arrays([before, results, self._aggregator.initial()])
            if self._context.semantics != "kip":
                added_to = np.where(is_new & (copied == NO_SLOT), len(choices) - 1, source)
                return choices.take(pa.array(added_to, mask=is_new & (updates["adds"] == NO_ROW) & (copied != NO_SLOT)))
            return choices.take(pa.array(source, mask=is_new))

        return after

    def _updates(self, batch: Batch, pieces: list[Piece]) -> Batch:
        updates, values, prior = together(pieces, UPDATE, self._aggregator)
        rows, slots, timestamp = (np.ascontiguousarray(updates[name]) for name in ("row", "slot", "timestamp"))
        start = np.ascontiguousarray(self._slots.windows["start"][slots])
        windows = Windows(start, end_of_windows(start, self._spec.windows.time_difference_ms))
        codes = np.ascontiguousarray(self._slots.windows["key_code"][slots])
        keys = (windows, self._spec.windows.of_keys, codes)
        return updates_of(batch, rows, keys, timestamp, values, prior if self._spec.needs_prior else None)

    def _in_retention(self) -> NDArray[np.int64]:
        """The slots whose windows the store keeps, or has and is to remove."""
        return np.flatnonzero(self._slots.windows["start"] > self._slots.last_expired_start)

    def _forget_expired(self) -> None:
        """Drops windows out of retention from the working set, whenever it has doubled."""
        if not self._slots.have_doubled:
            return
        kept = self._in_retention()
        self._aggregator.keep(kept)
        self._slots.keep(kept)

    def flush(self, write: WriteBatch) -> None:
        """Writes the windows that have changed since the last flush and are within retention; expires the others."""
        schema = self._aggregator.schema
        if schema is None or self._store.stream_time == NO_TIMESTAMP:
            self._slots.clear()  # no window yet, but keys of other operators, whose codes end here
            return
        kept = self._in_retention()
        windows = self._slots.windows[kept]
        changed = (windows["last_update"] != NO_UPDATE) & ((windows["alive"] == 1) | (windows["stored"] == 1))
        slots, windows = kept[changed], windows[changed]
        changes = WindowChanges(
            keys=lambda some: self._context.keys.take(np.ascontiguousarray(windows["key_code"][some])),
            start=np.ascontiguousarray(windows["start"]),
            timestamp=np.where(windows["alive"] == 1, windows["timestamp"], NO_TIMESTAMP),
            rows=lambda some: serialized(self._aggregator.dump(slots[some])),
            stored=windows["stored"] == 1,
        )
        self._store.store(changes, schema, write)
        self._aggregator.keep(np.empty(0, dtype=np.int64))
        self._slots.clear()

    def open_windows(self) -> int:
        """See `WindowedOperator`."""
        windows = self._spec.windows
        return self._store.count_from(self._context.clock() - windows.grace_period_ms - windows.time_difference_ms)

    def memory_bytes(self) -> int:
        """Size of the working set."""
        return int(self._slots.memory_bytes() + self._aggregator.memory_bytes())
