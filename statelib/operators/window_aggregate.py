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
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from statelib.arrow_buffers import valid_of
from statelib.batch import NO_TIMESTAMP, Batch, Passage, Windows
from statelib.errors import ConfigurationError
from statelib.kernels.aggregations import first_and_last_updates, latest_timestamp
from statelib.kernels.window_slots import WindowSlots
from statelib.kernels.windows import accept
from statelib.operators.accumulators import grown, shrunk
from statelib.operators.aggregations import fields_of_aggregator
from statelib.operators.aggregators import NONE_REMOVED, ColumnarAggregator
from statelib.operators.changelog import states, window_keys
from statelib.operators.clocks import stream_times
from statelib.operators.key_codes import key_codes
from statelib.operators.prior_results import prior_results
from statelib.serdes import serde_for, serialized
from statelib.stores.spec import StoreSpec, settings_of
from statelib.stores.window import WindowChanges, WindowStore
from statelib.windows import TimeWindows

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from numpy.typing import NDArray

    from statelib.batch import Uptake
    from statelib.operators.aggregations import AggregatorSpec
    from statelib.operators.base import OperatorContext
    from statelib.operators.changelog import Changelog
    from statelib.operators.clocks import WindowClock
    from statelib.operators.fields import Fields
    from statelib.stores.backend import WriteBatch
    from statelib.windows import UnlimitedWindows

_COMPACT_FROM_SLOTS = 1 << 14


@dataclass(frozen=True, slots=True)
class WindowAggregate:
    """Aggregates by key and time window.

    Attributes:
        store: Name of the window store.
        windows: The windows.
        aggregator: What to compute.
        retention_ms: How long after its start a window stays in the store; None: size + grace.
        needs_prior: Whether updates carry the value that they replace. Before a window's first update that is null;
            the shipped library (``semantics="kafka-4.3"``) gives the initializer's value.
        clock: Whose stream time tells what is late.
    """

    store: str
    windows: TimeWindows | UnlimitedWindows
    aggregator: AggregatorSpec
    retention_ms: int | None = None
    needs_prior: bool = False
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

    def describe(self) -> Mapping[str, object]:
        """Kind and parameters."""
        return {
            "operator": "window_aggregate",
            "store": self.store,
            **self.windows.describe(),
            "aggregator": self.aggregator.describe(),
            "retention_ms": self.retention_ms or self.windows.retention_ms,
        }

    def reads(self, parent: int, wanted: Fields) -> Fields:
        """See `FieldsSpec`."""
        del parent, wanted
        return fields_of_aggregator(self.aggregator)

    def state_stores(self) -> Sequence[StoreSpec]:
        """Those of the window store."""
        seen_ms = dict.fromkeys(("kip", "kafka-4.3"), self.retention_ms or self.windows.retention_ms)
        settings = {**settings_of(self.describe()), "on_grid": True, "seen_ms": seen_ms}
        return (StoreSpec(self.store, "window", WindowStore.families(self.store), settings),)


class RunningWindowAggregate:
    """A running `WindowAggregate`: the windows touched since the last flush, as arrays by slot."""

    def __init__(self, spec: WindowAggregate, context: OperatorContext) -> None:
        self._spec = spec
        self._windows = spec.windows
        self._context = context
        self._metrics = context.metrics
        self._aggregator = spec.aggregator.build(context.node)
        self._stream_time = context.clock()
        self._store = WindowStore(
            context.backend,
            spec.store,
            retention_ms=spec.retention_ms or spec.windows.retention_ms,
            stream_time=context.clock("store_time"),
            metrics=context.metrics,
            on_grid=True,
        )
        self._changelog = context.changelogs.get(spec.store)
        self._condenses = False
        self._start_over()

    def condense(self) -> None:
        """See `CondensingOperator`. Only numbers, whose results are all of one size, are condensed.

        A changelog has every update, so there is nothing to leave out.
        """
        windowed = isinstance(self._windows, TimeWindows) and self._spec.clock == "operator" and not self._changelog
        self._condenses = windowed and not self._spec.needs_prior and isinstance(self._aggregator, ColumnarAggregator)

    def _start_over(self) -> None:
        """An empty working set."""
        self._slots = WindowSlots()
        self._timestamp = np.empty(0, dtype=np.int64)
        self._stored = np.empty(0, dtype=np.bool_)
        self._first_of = self._last_of = np.empty(0, dtype=np.int64)  # room for a kernel
        self._loaded = 0  # how many slots have been looked up in the store
        self._kept = 0  # how many there were when expired ones were last dropped
        self._opened = 0  # how many are of the last batch

    def process(self, inputs: Sequence[Batch], uptake: Uptake) -> Batch:
        """One update for each record and window that takes it."""
        (batch,) = inputs
        key_code = key_codes(batch, self._context)
        rows, slots, stream_time = self._accept(batch, key_code, uptake)
        self._aggregator.prepare(batch)  # of no records too: they have types
        if len(rows) == 0:
            nothing = pa.nulls(0, self._aggregator.result_type)
            prior = nothing if self._spec.needs_prior else None
            return self._updates(batch, rows, slots, nothing, np.empty(0, dtype=np.int64), prior)
        first_new = self._reserve_and_load()
        self._opened = len(self._slots) - first_new
        opened = self._start_of(self._slots.window[first_new:])  # the others have moved the clock when they were opened
        store_time = max(self._store.stream_time, int(opened.max(initial=NO_TIMESTAMP)))
        self._store.stream_time = self._context.clocks["store_time"] = store_time
        if self._condenses and isinstance(self._aggregator, ColumnarAggregator) and self._aggregator.makes_no_nulls:
            self._aggregator.add(rows, slots)
            latest_timestamp(rows, slots, batch.timestamp, NONE_REMOVED, self._timestamp, np.empty(0, dtype=np.int64))
            return self._condensed(batch, rows, slots, stream_time, first_new)
        priors = self._priors(slots) if self._spec.needs_prior else None
        result, removed = self._aggregator.walk(rows, slots)
        timestamp = np.empty(len(rows), dtype=np.int64)
        latest_timestamp(rows, slots, batch.timestamp, removed, self._timestamp, timestamp)
        if self._changelog is not None:
            self._log(self._changelog, slots, (timestamp, batch.timestamp[rows]), removed)
        if self._condenses and not _has_nulls(result):
            return self._condensed(batch, rows, slots, stream_time, first_new)
        return self._updates(batch, rows, slots, result, timestamp, priors and priors(result, removed))

    def _condensed(
        self,
        batch: Batch,
        rows: NDArray[np.int64],
        slots: NDArray[np.int64],
        stream_time: NDArray[np.int64],
        first_new: int,
    ) -> Batch:
        """The last one of the updates of each window; slots from ``first_new`` on are new in this batch."""
        first, last = self._first_and_last(slots)
        changed = slots[last]
        kept = self._aggregator.results(changed)
        condensed = self._updates(batch, rows[last], changed, kept, self._timestamp[changed], None)
        is_new = (changed >= first_new) & ~self._stored[changed]
        return replace(condensed, passage=Passage(batch.sequence, stream_time, rows, first, last, is_new))

    def _log(
        self,
        changelog: Changelog,
        slots: NDArray[np.int64],
        timestamps: tuple[NDArray[np.int64], NDArray[np.int64]],
        removed: NDArray[np.bool_],
    ) -> None:
        """Logs updates; ``timestamps``: of the windows, and of the records, which those of removals are."""
        kept = states(self._aggregator.walked(), removed)
        keys = window_keys(self._keys_of(slots), self._starts(slots))
        changelog.add(keys, kept, np.where(valid_of(kept), *timestamps))

    def _first_and_last(self, slots: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The first and the last update of each window that has any, by the last ones."""
        self._first_of = grown(self._first_of, len(self._slots))
        self._last_of = grown(self._last_of, len(self._slots))
        first, last = np.empty(len(slots), dtype=np.int64), np.empty(len(slots), dtype=np.int64)
        found = first_and_last_updates(slots, self._first_of, self._last_of, first, last)
        return first[:found], last[:found]

    def _accept(
        self, batch: Batch, key_code: NDArray[np.int64], uptake: Uptake
    ) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """The (record, window) pairs that are updated, as rows of the batch and slots; accounts for all records.

        And, by record, the operator's stream time.
        """
        windows = self._windows
        first_window, accepted, lateness, late = (np.empty(len(batch), dtype=np.int64) for _ in range(4))
        clock = stream_times(self._spec.clock, batch, key_code, uptake, self._stream_time)
        if len(batch):
            self._stream_time = self._context.clocks["stream_time"] = int(clock[-1])
        count, expired, keyed, before, too_late = accept(
            key_code, batch.timestamp, clock, windows.size_ms, windows.advance_ms, windows.grace_period_ms,
            windows.origin_ms, first_window, accepted, lateness, late,
        )  # fmt: skip
        self._metrics.records_in += len(batch)
        self._metrics.records_out += count
        self._metrics.account("aggregated", keyed - before - too_late)
        self._context.drop_late(batch, late[:too_late], uptake, lateness, reason="window closed")
        self._metrics.drop("before-first-window", before)
        self._metrics.drop("null-key", len(batch) - keyed)
        self._metrics.count("late-record-drop", expired)
        self._metrics.lateness.observe(lateness if keyed == len(batch) else lateness[key_code >= 0])
        self._forget_expired()
        return *self._slots.find(key_code, first_window, accepted, count), clock

    def _forget_expired(self) -> None:
        """Drops windows out of retention from the working set, whenever it has doubled."""
        if len(self._slots) < max(_COMPACT_FROM_SLOTS, 2 * self._kept):
            return
        alive = self._alive()
        self._kept = len(alive)
        if len(alive) < len(self._slots):
            self._slots.keep(alive)
            self._timestamp = shrunk(self._timestamp, alive, NO_TIMESTAMP)
            self._stored = shrunk(self._stored, alive)
            self._aggregator.keep(alive)
            self._loaded = len(alive)

    def _alive(self) -> NDArray[np.int64]:
        return np.flatnonzero(self._start_of(self._slots.window) > self._store.last_expired_start)

    def _reserve_and_load(self) -> int:
        """Makes room for the slots that this batch has opened, and looks their windows up in the store.

        Returns:
            The first of these slots.
        """
        first, self._loaded = self._loaded, len(self._slots)
        self._aggregator.reserve(self._loaded)
        self._timestamp = grown(self._timestamp, self._loaded, NO_TIMESTAMP)
        self._stored = grown(self._stored, self._loaded)
        schema = self._aggregator.schema
        if first == self._loaded or schema is None:
            return first
        self._store.header.check(schema)
        new = np.arange(first, self._loaded)
        there, values = self._store.load(lambda of: self._keys_of(new[of]), self._starts(new))
        if len(there):
            slots = new[there]
            rows = serde_for(pa.struct(list(schema))).deserialize(pa.array([row for _, row in values], pa.binary()))
            self._aggregator.restore(slots, rows)
            self._timestamp[slots] = [timestamp for timestamp, _ in values]
            self._stored[slots] = True
        return first

    def _starts(self, slots: NDArray[np.int64]) -> NDArray[np.int64]:
        """int64, when the windows of ``slots`` start, ms."""
        return self._start_of(self._slots.window[slots])

    def _start_of(self, windows: NDArray[np.int64]) -> NDArray[np.int64]:
        """int64, when windows of these numbers start, ms."""
        return windows * self._windows.advance_ms + self._windows.origin_ms

    def _keys_of(self, slots: NDArray[np.int64]) -> pa.Array:
        return self._context.keys.take(self._slots.key_code[slots])

    def _priors(self, slots: NDArray[np.int64]) -> Callable[[pa.Array, NDArray[np.bool_]], pa.Array]:
        was_there = self._timestamp[slots] != NO_TIMESTAMP
        initial_of_new = self._context.semantics == "kafka-4.3"
        return prior_results(self._aggregator, slots, was_there, count=len(self._slots), initial_of_new=initial_of_new)

    def _updates(
        self,
        batch: Batch,
        rows: NDArray[np.int64],
        slots: NDArray[np.int64],
        result: pa.Array,
        timestamp: NDArray[np.int64],
        prior: pa.Array | None,
    ) -> Batch:
        start = self._starts(slots)
        chosen = pa.array(rows)
        return Batch(
            keys=batch.keys.take(chosen),
            key_code=self._slots.key_code[slots],
            value=result,
            timestamp=timestamp,
            sequence=batch.sequence[rows],
            windows=Windows(start, start + self._windows.size_ms),
            prior=prior,
            headers=batch.headers_at(chosen),
        )

    def flush(self, write: WriteBatch) -> None:
        """Writes the windows touched since the last flush that are within retention, and expires the others."""
        schema = self._aggregator.schema
        if len(self._slots) == 0 or schema is None:
            return
        alive = self._alive()
        changes = WindowChanges(
            keys=lambda some: self._keys_of(alive[some]),
            start=self._starts(alive),
            timestamp=self._timestamp[alive],
            rows=lambda some: serialized(self._aggregator.dump(alive[some])),
            stored=self._stored[alive],
        )
        self._store.store(changes, schema, write)
        self._aggregator.keep(np.empty(0, dtype=np.int64))
        self._start_over()

    def open_windows(self) -> int:
        """See `WindowedOperator`."""
        return self._store.count_from(self._stream_time - self._windows.grace_period_ms - self._windows.size_ms + 1)

    def memory_bytes(self) -> int:
        """Size of the working set after a batch like the last."""
        arrays = (self._timestamp, self._stored, self._first_of, self._last_of)
        of_slots = self._slots.memory_bytes() + sum(array.nbytes for array in arrays) + self._aggregator.memory_bytes()
        more = of_slots * self._opened // max(len(self._slots), 1)
        return int(of_slots + more + self._store.memory_bytes())


def _has_nulls(results: pa.Array) -> bool:
    """Whether a result, or a field of it, is null."""
    fields = results.flatten() if pa.types.is_struct(results.type) else [results]
    return any(field.null_count for field in fields)
