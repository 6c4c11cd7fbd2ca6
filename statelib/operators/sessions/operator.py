"""Aggregation of a grouped stream by sessions (Kafka's ``KStreamSessionWindowAggregate``).

A record belongs to the sessions of its key that begin or end no further from it than the inactivity gap. They and the
record become one session: each of them leaves the table with a tombstone, in order of their ends, and the new one is
forwarded with its aggregate, even if it has the same bounds. A session of a single timestamp that gets another record
of that timestamp is updated in place. The timestamp of what is forwarded is the end of its session.

The session is accepted while ``its end >= stream time - gap - grace``. The stream time is the operator's own: the
largest timestamp of the records with a key that it has seen, this one included. What comes too late is dropped and
counted (``late-record-drop``, KIP-328); in the ledger it is ``late``.

A session is seen as long as a record that is not too late itself could still join it, or as the retention says if that
is longer. The shipped library (``semantics="kafka-4.3"``) does not see sessions out of retention, which is by default
the gap and the grace period: less.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, get_args

import numpy as np
import pyarrow as pa

from statelib.errors.kinds import ConfigurationError
from statelib.operators.aggregation.accumulators.kernel import NO_UPDATE
from statelib.operators.aggregation.aggregator import prepared
from statelib.operators.aggregation.changelog import states
from statelib.operators.aggregation.cogroup import CogroupedStreams
from statelib.operators.aggregation.definition import Aggregate, CogroupedAggregate, count_of_streams
from statelib.operators.key_codes import key_codes
from statelib.operators.mappers.function_errors import UserFunctionError
from statelib.operators.sessions.attempt import Attempt
from statelib.operators.sessions.codec import encode_keys
from statelib.operators.sessions.kernel import EMISSION
from statelib.operators.sessions.slot_lists_kernel import SESSION
from statelib.operators.sessions.slots_kernel import SessionSlots, is_stored
from statelib.operators.sessions.store import SessionBounds, SessionStore
from statelib.operators.sessions.stored_sessions import SessionsInStore
from statelib.operators.windows.stored_windows import stored_as
from statelib.operators.windows.windowed_aggregate import Piece, WindowedAggregateSpec, together, updates_of
from statelib.records.batch import NO_TIMESTAMP, Batch
from statelib.records.key_column import Windows
from statelib.serdes import serde_for
from statelib.settings.semantics import Rules, Semantics
from statelib.stores.spec import StoreSpec, settings_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from statelib.operators.base import OperatorContext
    from statelib.operators.changelog import Changelog
    from statelib.operators.clocks import WindowClock
    from statelib.operators.sessions.slots_kernel import Assigned
    from statelib.operators.windows.definition import SessionWindows
    from statelib.operators.windows.stored_windows import StoredWindows
    from statelib.records.batch import Uptake
    from statelib.stores.backend import WriteBatch

_SLOW_RECORDS = 1 << 8
"""How many records are looked at together where a function may remove sessions."""


@dataclass(frozen=True, slots=True)
class SessionAggregate(WindowedAggregateSpec):
    """Aggregates by key and session; of a session that is updated in place the shipped library gives no prior value.

    Attributes:
        retention_ms: How long after its end a session stays in the store; None: gap + grace.
        clock: Whose stream time tells what is late.
    """

    operator: ClassVar[str] = "session_aggregate"

    windows: SessionWindows
    clock: WindowClock = "operator"

    def build(self, context: OperatorContext) -> RunningSessionAggregate:
        """The running operator."""
        return RunningSessionAggregate(self, context)

    def check(self, node: str) -> None:
        """Sessions must not be gone from the store before they close, and there must be a way to merge them."""
        if self.retention_ms is not None and self.retention_ms < self.windows.retention_ms:
            raise ConfigurationError(
                f"retention of {self.retention_ms} ms is less than gap and grace, {self.windows.retention_ms} ms",
                node=node,
                store=self.store,
                next_step="keep sessions for at least their gap and grace period, or leave with_retention() out",
            )
        if isinstance(self.aggregator, Aggregate | CogroupedAggregate) and self.aggregator.merger is None:
            raise ConfigurationError(
                "an aggregation of sessions needs a merger",
                node=node,
                next_step="combine the aggregates of two sessions: aggregate_with(..., merger=...)",
            )

    def seen_ms(self, semantics: Semantics) -> int:
        """How long after its end a session is seen and stored."""
        return self.windows.seen_ms(self.kept_ms, semantics)

    def stored_ms(self, semantics: Semantics) -> int:
        """How long after its end a session is stored."""
        return self.seen_ms(semantics)

    def state_stores(self) -> Sequence[StoreSpec]:
        """Those of the session store."""
        seen_ms = {rules: self.stored_ms(rules) for rules in get_args(Rules)}
        settings = {**settings_of(self.describe(), "emit"), "seen_ms": seen_ms}
        return (StoreSpec(self.store, "session", SessionStore.families(self.store), settings),)


class RunningSessionAggregate:
    """A running `SessionAggregate`: the sessions of all keys that have had records since the last flush, by slot."""

    def __init__(self, spec: SessionAggregate, context: OperatorContext) -> None:
        self._spec = spec
        self._context = context
        self._metrics = context.metrics
        self._aggregator = spec.aggregator.build(context.node, context.metrics)
        self._store = SessionStore(
            context.backend,
            spec.store,
            retention_ms=spec.stored_ms(context.semantics),
            stream_time=context.clock("store_time"),
            metrics=context.metrics,
        )
        self._changelog = context.changelogs.get(spec.store)
        self._streams = CogroupedStreams(context, count_of_streams(spec.aggregator), spec.clock)
        self._slots = SessionSlots(
            spec.windows.gap_ms,
            spec.windows.grace_period_ms,
            spec.seen_ms(context.semantics),
            context.clock("store_time"),
        )
        self._failed_rows: list[int] = []  # records of the last batch for which a function has failed
        self._start_over()

    def _start_over(self) -> None:
        """An empty working set."""
        self._slots.clear()
        self._removed = np.empty(0, dtype=SESSION)  # stored sessions that have left the slots

    def in_store(self) -> StoredWindows | None:
        """See `StoringOperator`."""
        if self._streams.have_own_clocks or self._spec.clock != "operator" or self._spec.final:
            return None
        return SessionsInStore(self._store, stored_as(self._spec))

    def process(self, inputs: Sequence[Batch], uptake: Uptake) -> Batch:
        """The tombstones and the new session of each record that is not too late."""
        # Of no records too: they have types.
        batch = prepared(self._aggregator, self._streams.taken_up(inputs), self._context)
        key_code = key_codes(batch, self._context)
        self._forget_dead()
        clock = self._streams.stream_times(batch, key_code, uptake)
        self._load(key_code, batch.timestamp, clock)
        step = at_once = _SLOW_RECORDS if self._aggregator.may_remove else max(len(batch), 1)
        pieces, self._failed_rows = [], []
        done = 0
        while done < len(batch):
            some = slice(done, done + at_once)
            columns = (key_code[some], batch.timestamp[some], clock[some])
            attempt = Attempt.of(self._aggregator, self._slots, self._context)
            assigned = self._slots.assign(*columns, once=self._aggregator.may_remove)
            try:
                piece = self._aggregate(assigned, done, batch.timestamp)
            except UserFunctionError as error:
                attempt.undo(error)
                at_once = int(assigned.rows[attempt.failed_at])
                if at_once == 0:
                    attempt.leave_out(error)
                    columns = (key_code, batch.timestamp, clock)
                    pieces.append(self._left_behind(columns, done, is_merging=attempt.is_merging))
                    self._failed_rows.append(done)
                    done, at_once = done + 1, step
                continue
            self._account(assigned, batch.slice(done, done + len(assigned.accepted)), key_code[some], uptake)
            pieces.append(piece)
            done, at_once = done + len(assigned.accepted), step
        self._context.clocks["store_time"] = self._store.stream_time = self._slots.store_time
        return self._updates(batch, pieces)

    def _load(self, key_code: NDArray[np.int64], timestamp: NDArray[np.int64], clock: NDArray[np.int64]) -> None:
        """Brings the stored sessions of keys here, unless all their records are past everything that is stored.

        Args:
            key_code: int64, of all records.
            timestamp: int64, ms.
            clock: int64, the stream time at each record, ms.
        """
        del clock
        reaching = (key_code >= 0) & (timestamp - self._spec.windows.gap_ms <= self._store.newest_stored)
        self._load_keys(key_code[reaching])

    def _load_keys(self, key_code: NDArray[np.int64]) -> None:
        keys = self._context.keys
        self._slots.reserve_keys(len(keys))
        schema = self._aggregator.schema
        if schema is None:
            return
        self._store.header.check(schema)
        codes = self._slots.not_asked_for(key_code)
        index, sessions = self._store.load(keys.take(codes).to_pylist() if len(codes) else [])
        if len(index) == 0:
            return
        start = np.array([session.start_ms for session in sessions], dtype=np.int64)
        end = np.array([session.end_ms for session in sessions], dtype=np.int64)
        slots = self._slots.add_stored(codes[index], start=start, end=end, stored_start=start, stored_end=end)
        self._aggregator.reserve(len(self._slots))
        raws = pa.array([session.row for session in sessions], pa.binary())
        self._aggregator.restore(slots, serde_for(pa.struct(list(schema))).deserialize(raws))

    def _account(self, assigned: Assigned, batch: Batch, key_code: NDArray[np.int64], uptake: Uptake) -> None:
        done = len(assigned.accepted)
        has_key = key_code[:done] >= 0
        keyed, aggregated = int(np.count_nonzero(has_key)), len(assigned.rows)
        self._metrics.records_in += done
        self._metrics.records_out += len(assigned.emissions)
        self._metrics.account("aggregated", aggregated)
        late = np.flatnonzero(has_key & ~assigned.accepted)
        self._streams.drop_late(batch, late, uptake, assigned.lateness, reason="session closed")
        self._metrics.drop("null-key", done - keyed)
        self._metrics.count("late-record-drop", keyed - aggregated)
        self._metrics.lateness.observe(assigned.lateness[has_key])

    def _aggregate(self, assigned: Assigned, first_row: int, timestamp: NDArray[np.int64]) -> Piece:
        """Adds records to the aggregates of their sessions.

        Returns:
            What is forwarded (`EMISSION`, rows counted in the whole batch), the values and what they replace.
        """
        emissions = assigned.emissions
        self._aggregator.reserve(max(len(self._slots), 1))
        asks = self._spec.needs_prior or self._spec.final
        before = self._aggregator.results(emissions["slot"]) if asks else None
        results, removed = self._aggregator.walk(
            assigned.rows + first_row, assigned.slots, assigned.absorbed, remembers=self._changelog is not None
        )
        if len(removed):
            self._slots.remove(assigned.slots[removed])
        tombstone = emissions["update"] == NO_UPDATE
        values = results.take(pa.array(emissions["update"], mask=tombstone))
        emissions["row"] += first_row
        if self._changelog is not None:
            kept = states(self._aggregator.walked(), removed).take(pa.array(emissions["update"], mask=tombstone))
            self._log(self._changelog, emissions, kept, timestamp)
        return emissions, values, None if before is None else self._priors(emissions, before, results)

    def _left_behind(
        self, columns: tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]], row: int, *, is_merging: bool
    ) -> Piece:
        """What a record has done before a function has failed for it; gives what is forwarded of that.

        The sessions that it joins are merged first, and removed if they become another one; then it is added.

        Args:
            columns: int64, of the batch's records: key code, timestamp, and the stream time at each, ms.
            row: The record's.
            is_merging: Whether the function merges.
        """
        restore, store_time = self._slots.saved(), self._slots.store_time
        key_code, timestamp, clock = (column[row : row + 1] for column in columns)
        assigned = self._slots.assign(key_code, timestamp, clock, once=True)
        gone = assigned.emissions[:-1]
        self._metrics.records_in += 1
        self._metrics.lateness.observe(assigned.lateness)
        if is_merging or len(gone) == 0:
            restore()
            gone = gone[:0]
        else:
            self._slots.remove(assigned.slots)
            self._slots.store_time = store_time
        gone["row"] += row
        self._metrics.records_out += len(gone)
        values = pa.nulls(len(gone), self._aggregator.result_type)
        if self._changelog is not None:
            kept = states(self._aggregator.dump(gone["slot"]), np.ones(len(gone), np.bool_))
            self._log(self._changelog, gone, kept, columns[1])
        if not (self._spec.needs_prior or self._spec.final):
            return gone, values, None
        return gone, values, self._priors(gone, self._aggregator.results(gone["slot"]), values[:0])

    def _log(self, changelog: Changelog, emissions: NDArray[Any], kept: pa.Array, timestamp: NDArray[np.int64]) -> None:
        """Logs what becomes of sessions; ``kept``: of each, ``timestamp``: of the records, by row, ms."""
        keys = self._context.keys.take(np.ascontiguousarray(self._slots.sessions["key_code"][emissions["slot"]]))
        bounds = (np.ascontiguousarray(emissions[name]) for name in ("start", "end"))
        changelog.add(encode_keys(keys, *bounds), kept, timestamp[emissions["row"]])

    def _priors(self, emissions: NDArray[Any], before: pa.Array, results: pa.Array) -> pa.Array:
        """What each emission replaces: a result of this batch, or the state of its slot before it."""
        replaces = emissions["replaces"] == 1
        if self._context.semantics != "kip":
            replaces &= emissions["update"] == NO_UPDATE
        in_batch = emissions["prior_update"] != NO_UPDATE
        source = np.where(in_batch, len(before) + emissions["prior_update"], np.arange(len(before)))
        return pa.concat_arrays([before, results]).take(pa.array(source, mask=~replaces))

    def _updates(self, batch: Batch, pieces: list[Piece]) -> Batch:
        emissions, values, prior = together(pieces, EMISSION, self._aggregator)
        rows, start, end = (np.ascontiguousarray(emissions[name]) for name in ("row", "start", "end"))
        keys = (Windows(start, end), self._spec.windows.of_keys, self._slots.sessions["key_code"][emissions["slot"]])
        if self._spec.clock == "operator":  # ``KStreamSessionWindowAggregate`` forwards none; `Distinct` tells by them
            batch = replace(batch, headers=None)
        return updates_of(batch, rows, keys, end, values, prior if self._spec.needs_prior else None)

    def _alive(self) -> NDArray[np.bool_]:
        sessions = self._slots.sessions
        alive: NDArray[np.bool_] = (sessions["alive"] == 1) & (sessions["end"] > self._store.last_expired_end)
        return alive

    def _forget_dead(self) -> None:
        """Drops sessions that are absorbed or out of retention from the working set, whenever it has doubled."""
        if not self._slots.have_doubled:
            return
        alive = self._alive()
        dead = self._slots.sessions[~alive]
        self._removed = np.concatenate([self._removed, dead[is_stored(dead)]])
        kept = np.flatnonzero(alive)
        self._aggregator.keep(kept)
        self._slots.keep(kept)

    def flush(self, write: WriteBatch) -> None:
        """Writes the sessions that have changed since the last flush and are within retention; expires the others."""
        schema = self._aggregator.schema
        if schema is None or self._store.stream_time == NO_TIMESTAMP:
            self._start_over()  # no window yet, but keys of other operators, whose codes end here
            return
        sessions, alive = self._slots.sessions, self._alive()
        moved = (sessions["start"] != sessions["stored_start"]) | (sessions["end"] != sessions["stored_end"])
        removed = np.concatenate([self._removed, sessions[is_stored(sessions) & (~alive | moved)]])
        changed = np.flatnonzero(alive & (sessions["last_update"] != NO_UPDATE))
        rows = self._aggregator.dump(changed)
        self._store.store(
            removed=self._bounds(removed, "stored_start", "stored_end"),
            changed=self._bounds(sessions[changed], "start", "end"),
            rows=serde_for(rows.type).serialize(rows),
            schema=schema,
            write=write,
        )
        self._aggregator.keep(np.empty(0, dtype=np.int64))
        self._start_over()

    def _bounds(self, sessions: NDArray[Any], start: str, end: str) -> SessionBounds:
        keys = self._context.keys.take(np.ascontiguousarray(sessions["key_code"]))
        return SessionBounds(keys, sessions[start], sessions[end])

    def open_windows(self) -> int:
        """See `WindowedOperator`."""
        windows = self._spec.windows
        return self._store.count_from(self._context.clock() - windows.gap_ms - windows.grace_period_ms)

    def memory_bytes(self) -> int:
        """Size of the working set."""
        return int(self._slots.memory_bytes() + self._removed.nbytes + self._aggregator.memory_bytes())
