"""Suppress: holds back a table's updates, so that only the last of several is forwarded (KIP-328).

A key waits in a buffer. An update of it replaces the record that waits; after each record all keys leave whose time has
come, the oldest first: in order of (buffer time, serialised key), as in Kafka's ``KTableSuppressProcessor``.

* ``until_window_closes``: the buffer time is the window's end, and a key leaves when stream time reaches it plus the
  grace period, or, for windows that take records at that very stream time (sliding ones and sessions), when it passes
  that: what is forwarded never changes any more. (The shipped library does not wait for the last records of these, and
  forwards a window again that gets some.) Tombstones are dropped: nothing was forwarded that they would take back.
* ``until_time_limit``: the buffer time is the timestamp at which the key was first buffered (``clock="first"``), that
  of its latest record (``clock="record"``), or the largest so far (``clock="last"``), and a key leaves when stream time
  reaches it plus the limit. A limit of zero lets everything pass.

Stream time is the operator's own: the largest timestamp of the records that reach it. While the buffer holds more than
its bounds allow, the oldest leave early (``emit_early_when_full``), or the run fails (``shut_down_when_full``), or
those that have gone longest without an update wait on disk (``spill_to_disk_when_full``), which nobody below can tell
from a buffer without bounds: see `statelib.operators.suppress.buffer`. Windows that wait for their final result may
be left where their aggregation has them: see `statelib.operators.suppress.closing_windows`.

What leaves has the sequence of the record that made it leave. Its ``prior`` is the value known downstream, the one
before the key was buffered; the shipped library (``semantics="kafka-4.3"``) gives the one before the last update.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
import pyarrow as pa

from statelib.columns.arrow_buffers import valid_of
from statelib.columns.stream_time import running_stream_time
from statelib.errors.counted import counted
from statelib.errors.kinds import ConfigurationError
from statelib.operators.key_codes import codes_without_windows, key_codes
from statelib.operators.serialized_sizes import kafka_header_sizes, serialized_bytes
from statelib.operators.suppress.buffer import MemoryBounds, TimeOrderedBuffer
from statelib.operators.suppress.buffer_kernel import policy
from statelib.operators.suppress.buffered_columns import rows_of
from statelib.operators.suppress.changelog import SuppressChangelog
from statelib.operators.suppress.closing_windows import ClosingWindows
from statelib.operators.suppress.definition import (
    BUFFER_TIME_BYTES,
    RECORD_CONTEXT_BYTES,
    StrictBufferConfig,
    Suppressed,
    wait_ms,
)
from statelib.operators.suppress.layout_kernel import FROM_FIRST, FROM_LAST, FROM_RECORD, INPUT
from statelib.operators.suppress.store import SuppressionBufferStore
from statelib.operators.suppress.view import told_of, told_of_sealed
from statelib.operators.windows.definition import SessionWindows, SlidingWindows
from statelib.records.batch import NULL_KEY, Batch
from statelib.records.key_column import KeyColumn, WindowedKeys, Windows
from statelib.stores.spec import StoreSpec, settings_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from statelib.operators.base import OperatorContext, Told
    from statelib.operators.suppress.departures import Departures
    from statelib.operators.windows.definition import AnyWindows
    from statelib.operators.windows.stored_windows import StoredWindows, WindowsInStore
    from statelib.operators.windows.working_set import WindowsInMemory
    from statelib.records.batch import Passage, Uptake
    from statelib.settings.semantics import Semantics
    from statelib.stores.backend import WriteBatch

_CLOCKS = {"first": FROM_FIRST, "record": FROM_RECORD, "last": FROM_LAST}


@dataclass(frozen=True, slots=True)
class Suppress:
    """Suppresses updates of a table.

    Attributes:
        store: Name of the buffer's store.
        suppressed: What to hold back.
        windows: The windows of the table's keys; None: its keys have none.
        held_ms: How long time limits above hold an update of the table back. A final result waits as long, too.
        leeway_ms: How much longer keys wait in a run with leeway (`statelib.topology.leeway`); no part of the topology.
    """

    store: str
    suppressed: Suppressed
    windows: AnyWindows | None = None
    held_ms: int = 0
    leeway_ms: int = 0

    def build(self, context: OperatorContext) -> RunningSuppress:
        """The running operator."""
        return RunningSuppress(self, context)

    def check(self, node: str) -> None:
        """Only windows have final results."""
        if self.suppressed.final_results and self.windows is None:
            raise ConfigurationError(
                "until_window_closes needs a windowed table",
                node=node,
                next_step="use until_time_limit, or aggregate by windows first",
            )

    def wait_ms(self, semantics: Semantics) -> int:
        """How long after its buffer time a key leaves."""
        return wait_ms(self.suppressed.time_limit_ms, self.windows, self.held_ms, semantics) + self.leeway_ms

    @property
    def suffix_words(self) -> int:
        """How many integers follow the key's bytes in a buffer key."""
        return self.windows.key_suffix_words if self.windows else 0

    @property
    def knows_prior(self) -> bool:
        """Whether the buffer has what updates of windows replace: as earlier releases have stored it."""
        return self.suppressed.final_results and isinstance(self.windows, SlidingWindows | SessionWindows)

    def describe(self) -> Mapping[str, object]:
        """Kind and parameters."""
        windows = self.windows.describe() if self.windows else None
        held = {"held_ms": self.held_ms} if self.held_ms else {}
        return {"operator": "suppress", "store": self.store, "windows": windows, **self.suppressed.describe(), **held}

    def state_stores(self) -> Sequence[StoreSpec]:
        """Those of the buffer's store."""
        settings = settings_of(self.describe())
        families = SuppressionBufferStore.families(self.store)
        return (StoreSpec(self.store, "suppression-buffer", families, settings),)


class RunningSuppress:
    """A running `Suppress`."""

    def __init__(self, spec: Suppress, context: OperatorContext) -> None:
        self._spec = spec
        self._context = context
        self._metrics = context.metrics
        self._as_shipped = context.semantics != "kip"
        self._wait_ms = spec.wait_ms(context.semantics)
        bounds = spec.suppressed.buffer
        spills = not bounds.is_bounded or (isinstance(bounds, StrictBufferConfig) and bounds.spills)
        self._buffer = TimeOrderedBuffer(
            context,
            spec.store,
            policy(
                wait_ms=self._wait_ms,
                suffix_words=spec.suffix_words,
                max_records=None if spills else bounds.record_limit,
                max_bytes=None if spills else bounds.byte_limit,
                strict=isinstance(bounds, StrictBufferConfig),
                clock=_CLOCKS[spec.suppressed.clock],
            ),
            memory=MemoryBounds(bounds.record_limit, bounds.byte_limit) if spills else None,
            time_is_of_key=spec.suppressed.final_results,
            logs=spec.store in context.changelogs or context.is_looked_into,
            is_read=context.is_looked_into,
        )
        changelog = context.changelogs.get(spec.store)
        self._changelog = None
        if changelog is not None:
            self._changelog = SuppressChangelog(changelog, context.keys, context.sources, spec.suffix_words)
        wants_final_results = spec.suppressed.final_results and not self._as_shipped and self._buffer.is_by_time
        has_results_alone = wants_final_results and not context.is_looked_into  # and not what was known before
        self.takes_condensed = has_results_alone and changelog is None and spills
        """See `FinalResultsReader`: no single update is logged, and how many records wait meanwhile must not matter."""
        self.may_refer = has_results_alone and not (spec.held_ms or spec.leeway_ms)
        """See `FinalResultsReader`: a window may wait no longer than its aggregation keeps it."""
        self._closing: ClosingWindows | None = None  # set: in place of the buffer
        self._came = 0  # how many keys more the last batch has left in memory
        self._told: Told | None = None  # what those are told that look into the table; None: that all has left
        self._metrics.held_before = self._buffer.records
        self._measure()

    def leave_in(self, windows: WindowsInMemory, in_store: WindowsInStore) -> None:
        """See `FinalResultsReader`: nothing is held in memory here any more, so there is nothing to spill."""
        self._closing = ClosingWindows(self._context, self._spec.store, windows, in_store, wait_ms=self._wait_ms)

    def refer_to(self, windows: StoredWindows) -> None:
        """See `FinalResultsReader`."""
        self._buffer.refer_to(windows)

    @property
    def _held(self) -> TimeOrderedBuffer | ClosingWindows:
        return self._closing or self._buffer

    @property
    def buffered_records(self) -> int:
        """How many keys wait."""
        return self._held.records

    @property
    def buffered_bytes(self) -> int:
        """What they count: see `BufferConfig.max_bytes`."""
        return self._held.size

    @property
    def oldest_buffer_time(self) -> int | None:
        """The buffer time of the next key to leave, ms; None if none waits."""
        return self._held.oldest_time()

    def process(self, inputs: Sequence[Batch], uptake: Uptake) -> Batch:
        """What leaves the buffer."""
        (given,) = inputs
        if self._closing is not None and given.passage is not None:
            return self._close(self._closing, given, given.passage)
        before = self._buffer.figure("records")
        left = self._process(given, uptake)
        self._came = max(self._buffer.figure("records") - before, 0)
        return left

    def _process(self, given: Batch, uptake: Uptake) -> Batch:
        # The buffer has windows beside the key, so that it is in order of time: codes are those of the key alone then.
        codes_of = key_codes if self._spec.windows is None else codes_without_windows
        codes = codes_of(given, self._context)
        batch = replace(given, key_code=codes).filter(codes != NULL_KEY)
        self._metrics.records_in += len(given)
        self._metrics.drop("null-key", len(given) - len(batch))
        if len(batch) == 0:
            self._told = None
            return given.take(np.empty(0, dtype=np.int64))
        if self._spec.suppressed.final_results and batch.windows is None:
            raise ConfigurationError(
                "until_window_closes receives keys without windows, which never close",
                node=self._context.node,
                next_step="suppress before the records get another key, or keep the windowed key",
            )
        stream_time = running_stream_time(batch.timestamp, self._context.clock())
        rows = rows_of(batch)
        left, failed = self._buffer.put(self._inputs(batch, rows, uptake), rows)
        replaced = self._buffer.figure("replaced")
        self._took_up(self._buffer, len(batch), replaced, int(stream_time[-1]))
        if failed is not None:
            self._shut_down(int(batch.sequence[failed]) - uptake.first_sequence, uptake)
        if self._changelog is not None and self._buffer.last_puts is not None:
            self._changelog.add(batch, self._buffer.last_puts, left, stream_time, uptake)
        self._measure_overtime(left, stream_time[left.trigger])
        emitted = self._emit(left, batch, batch.sequence[left.trigger])
        if self._context.is_looked_into and self._buffer.last_puts is not None:
            left_keys = self._keys(left.keys, left.key_code, Windows(left.start, left.end), batch.keys)
            self._told = told_of(batch, self._buffer.last_puts, left, left_keys, self._is_forwarded(left))
        return emitted

    def told(self, forwarded: Batch) -> Told:
        """See `ViewedOperator`; what is forwarded without records has been sealed, and has left."""
        told, self._told = self._told, None
        return told_of_sealed(forwarded) if told is None else told

    def _close(self, windows: ClosingWindows, nothing: Batch, passage: Passage) -> Batch:
        """As `process`, of updates that are not there; ``nothing``: has their types."""
        before = windows.records
        left = windows.close(passage)
        came = windows.records + len(left) - before
        self._metrics.records_in += len(passage)
        self._took_up(windows, len(passage), len(passage) - came, int(passage.stream_time[-1]))
        return self._emit(left, nothing, passage.sequence[passage.rows[left.trigger]])

    def _took_up(self, held: TimeOrderedBuffer | ClosingWindows, records: int, replaced: int, clock_ms: int) -> None:
        """Keeps clock and figures after records have been put."""
        self._context.clocks["stream_time"] = clock_ms
        self._metrics.account("replaced", replaced)
        self._metrics.mean("suppression-buffer-count", records, held.figure("sum_records"))
        self._metrics.mean("suppression-buffer-size", records, held.figure("sum_bytes"))
        self._measure()

    def seal(self, nothing: Sequence[Batch]) -> Batch:
        """Everything that waits: see `HoldingOperator`."""
        (batch,) = nothing
        left = self._held.drain()
        self._measure()
        if left is None:
            return batch
        if self._changelog is not None:
            self._changelog.remove(left, self._context.clock())
        due = left.time + self._wait_ms
        self._measure_overtime(left, due)
        return self._emit(left, batch, due)

    def let_go(self, nothing: Sequence[Batch]) -> Batch:
        """As `seal`, but only what waits for the sake of leeway alone. Nothing is put after that."""
        (batch,) = nothing
        left = self._buffer.drain(self._wait_ms - self._spec.leeway_ms)
        self._measure()
        return batch if left is None else self._emit(left, batch, left.time + self._wait_ms)

    def flush(self, write: WriteBatch) -> None:
        """Writes what has come or changed since the last flush."""
        self._held.flush(write)
        self._came = 0

    def spill(self, file: Path, write: WriteBatch) -> None:
        """See `SpillingOperator`."""
        del file
        self.flush(write)

    def memory_bytes(self) -> int:
        """What of the buffer is in memory; without bounds of its own, what the next batch will make of it.

        The next batch is taken to be like the last.
        """
        more = () if self._closing or self._spec.suppressed.buffer.is_bounded else (self._came,)
        return self._held.memory_bytes(*more)

    def _inputs(self, batch: Batch, rows: pa.RecordBatch, uptake: Uptake) -> NDArray[Any]:
        """What the kernel sees of records."""
        inputs = np.zeros(len(batch), dtype=INPUT)
        inputs["key_code"] = batch.key_code
        inputs["timestamp"] = batch.timestamp
        if self._spec.windows is not None and batch.windows is not None:
            inputs["start"] = batch.windows.start
            inputs["end"] = batch.windows.end
        inputs["time"] = inputs["end"] if self._spec.suppressed.final_results else batch.timestamp
        inputs["bytes"] = self._record_bytes(inputs["key_code"], rows)
        if self._as_shipped:
            topic_bytes = np.array([len(topic.encode()) for topic in self._context.sources] or [0])
            inputs["bytes"] += topic_bytes[uptake.source[batch.sequence - uptake.first_sequence]]
            if batch.headers is not None:
                inputs["bytes"] += kafka_header_sizes(batch.headers)
            inputs["old_bytes"], inputs["old_code"] = self._buffer.sizes_of_old_values(rows)
        return inputs

    def _record_bytes(self, key_code: NDArray[np.int64], rows: pa.RecordBatch) -> NDArray[np.int64]:
        """What records count by themselves: key and value; as shipped also Kafka's overhead."""
        offsets = self._context.keys.offsets
        size = offsets[key_code + 1] - offsets[key_code] + 8 * self._spec.suffix_words
        size += serialized_bytes(rows.column("value"))
        return size + BUFFER_TIME_BYTES + RECORD_CONTEXT_BYTES if self._as_shipped else size

    def _shut_down(self, record: int, uptake: Uptake) -> NoReturn:
        bounds = self._spec.suppressed.buffer
        topics = self._context.sources
        held = f"{counted(self.buffered_records, 'record')} and {counted(self.buffered_bytes, 'byte')}"
        raise ConfigurationError(
            f"the suppression buffer holds {held}, more than "
            f"its bounds (max_records: {bounds.record_limit}, max_bytes: {bounds.byte_limit})",
            next_step="raise the bounds of its BufferConfig, or let it spill_to_disk_when_full()",
            node=self._context.node,
            topic=topics[uptake.source[record]] if topics else None,
            partition=int(uptake.partition[record]),
            offset=int(uptake.offset[record]),
        )

    def _emit(self, left: Departures, batch: Batch, sequence: NDArray[np.int64]) -> Batch:
        """The records that leave, in order.

        Args:
            left: What has left the buffer.
            batch: Has the types of what reaches the operator.
            sequence: int64, of each.
        """
        keys, codes, start, end, rows, prior = left.keys, left.key_code, left.start, left.end, left.rows, left.prior
        keep = self._is_forwarded(left)
        if not keep.all():
            self._metrics.account("tombstone", len(left) - int(keep.sum()))
            start, end, sequence = start[keep], end[keep], sequence[keep]
            keys, rows = keys.filter(pa.array(keep)), rows.filter(pa.array(keep))
            codes = None if codes is None else codes[keep]
            prior = None if prior is None else prior.filter(pa.array(keep))
        self._metrics.account("emitted", len(sequence))
        self._metrics.count("suppression-emit", len(sequence))
        self._metrics.records_out += len(sequence)
        return Batch(
            keys=self._keys(keys, codes, Windows(start, end), batch.keys),
            key_code=codes if self._spec.windows is None else None,
            value=rows.column("value"),
            timestamp=np.asarray(rows.column("timestamp")),
            sequence=sequence,
            prior=prior,
            headers=None if batch.headers is None else rows.column("headers"),
        )

    def _is_forwarded(self, left: Departures) -> NDArray[np.bool_]:
        """bool: all but deletions of windows, of which nothing was forwarded that they would take back."""
        if self._spec.suppressed.final_results:
            return valid_of(left.rows.column("value"))
        return np.ones(len(left), np.bool_)

    def _keys(self, keys: pa.Array, codes: NDArray[np.int64] | None, windows: Windows, like: KeyColumn) -> KeyColumn:
        """The keys of these bytes, of the type that ``like`` has."""
        if self._spec.windows is None or not isinstance(like, WindowedKeys):
            return KeyColumn.deserialized(keys, like.type)
        return WindowedKeys(KeyColumn.deserialized(keys, like.without_windows.type), windows, like.kind, codes)

    def _measure(self) -> None:
        """Brings the figures of the buffer up to date (KIP-328, "Metrics")."""
        metrics, buffer = self._metrics, self._held
        metrics.held_after = buffer.records
        for name, now, field in (("count", buffer.records, "max_records"), ("size", buffer.size, "max_bytes")):
            metrics.gauges[f"suppression-buffer-{name}"] = now
            metrics.gauge_max(f"suppression-buffer-{name}_max", max(now, buffer.figure(field)))

    def _measure_overtime(self, left: Departures, stream_time: NDArray[np.int64]) -> None:
        """How long a time limit has kept results after the last update that they got.

        Args:
            left: What has left the buffer.
            stream_time: int64, at which each did.
        """
        if len(left) and left.updated is not None and not self._spec.suppressed.final_results:
            until = np.minimum(left.time + self._wait_ms, stream_time)
            overtime = np.maximum(until - left.updated, 0)
            name = "intermediate-result-suppression-overtime"
            self._metrics.mean(name, len(overtime), int(overtime.sum()), int(overtime.min()))
