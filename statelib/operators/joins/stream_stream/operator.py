"""The join of two streams: records of one key that are near each other in time (Kafka's ``KStreamKStreamJoin``).

Kafka has five nodes for it: one a side that stores its records, one a side that joins them with what the other side
has stored, and one behind both. Here records pass through the first four (`StreamJoinSide`), and the last one does the
work, since both sides share a clock and must see each other's records in the order in which they come.

* The stream time of the join is the largest timestamp of all records that have come, with a key and a value or not.
* A record meets those of the other side that have come before it and that its window takes, the oldest first, of one
  time in the order of their arrival. A side's records are there for before + after + grace, by the clock of its store:
  the largest timestamp of its records with key and value. The result has the later timestamp of both.
* In a left join a left record that meets nobody gives a *lone* result, joined with null; in an outer join a right one
  does too. It is *held* until nobody can meet it any more: its side's store does not keep it, and its window and the
  grace period have passed. It gives its lone result with the next record that is not older than the newest of that
  record's side: before what that record meets, in order of time, right before left, key bytes, arrival. A record of
  which all that is true when it comes gives it at once.
* As shipped (``semantics="kafka-4.3"``) the store is not asked: a record may give its lone result and be met all the
  same. It comes with the next record that is not older than the stream time, or at once after the window alone, and
  may be delayed where several wait; there is also the pause between two looks for them, of wall clock, which is taken
  from the task's stream time: as if the application had run live.
* A null value is dropped. A null key gives a lone result at once, where the side has any, else it is dropped.

Results have the headers of the record that causes them. What arrives when its side's store has no segment for its time
any more is not stored (``expired-window-record-drop``); if it gives no result either, it is late.

Accounts: ``joined`` (it has met others, when it came or as long as it was held), ``unmatched`` (a lone result; or it
has met nobody, and cannot), ``stored`` (it has met nobody, but those that come may meet it), ``late``, ``null-key``,
``null-value``.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from statelib.operators.asking import Asking
from statelib.operators.base import StorelessSpec
from statelib.operators.joins.stream_stream.arrays import (
    ARRIVAL,
    CLOCKS,
    JOINED,
    LEFT,
    LONE_WITHOUT_KEY,
    NO_ROW,
    RESULT,
    SIDES,
    WITHOUT_KEY,
    WITHOUT_VALUE,
    policy_of,
)
from statelib.operators.joins.stream_stream.changelog import StreamJoinChangelog
from statelib.operators.joins.stream_stream.joining import Joining
from statelib.operators.joins.stream_stream.leaving_out import Joined, LeavingOut
from statelib.operators.joins.stream_stream.results import JoinResults
from statelib.operators.joins.stream_stream.state import StreamJoinState, StreamJoinStores
from statelib.operators.joins.stream_stream.store import JoinWindowStore
from statelib.operators.key_codes import key_codes
from statelib.operators.key_types import check_types, with_keys_of_one_type
from statelib.operators.stateless.merge import RunningMerge
from statelib.records.batch import NULL_KEY, Batch, concat_in_order
from statelib.stores.spec import StoreSpec, settings_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import pyarrow as pa
    from numpy.typing import NDArray

    from statelib.operators.base import OperatorContext
    from statelib.operators.joins.stream_stream.definition import JoinWindows
    from statelib.operators.mappers.function_errors import OnFailure
    from statelib.operators.mappers.mapping import Mapper
    from statelib.records.batch import Uptake
    from statelib.settings.semantics import Semantics
    from statelib.stores.backend import WriteBatch

_CLOCK_NAMES = ("stream_time", "left", "right", "least_held", "next_scan")
"""Of `CLOCKS`, as they are saved."""


@dataclass(frozen=True, slots=True)
class StreamJoinSide(StorelessSpec):
    """Passes the records of one side on: see the module's docstring."""

    def build(self, context: OperatorContext) -> RunningMerge:
        """The running operator: a merge of one stream."""
        return RunningMerge(context)

    def describe(self) -> Mapping[str, object]:
        """Kind alone."""
        return {"operator": "stream_join_side"}


@dataclass(frozen=True, slots=True)
class StreamStreamJoin:
    """Joins two streams, of which each is a parent.

    Attributes:
        joiner: Makes the result's value from the columns ``key``, ``left``, ``right``, ``timestamp`` (of the result).
        windows: Who meets whom.
        left_store: Name of the store of the left side's records.
        right_store: The same of the right side.
        held_store: Name of the store of held records; None: there are none (an inner join, or
            `JoinWindows.unmatched_at_once`).
        keeps_left: Whether left records give lone results.
        keeps_right: The same of right ones; only where left ones do.
        left_first: Whether the left side is the first parent, which sees a record first that comes to both sides.
        emit_interval_ms: The pause between two looks for lone results, as shipped.
    """

    joiner: Mapper
    windows: JoinWindows
    left_store: str
    right_store: str
    held_store: str | None = None
    keeps_left: bool = False
    keeps_right: bool = False
    left_first: bool = True
    emit_interval_ms: int = 0

    @property
    def takes_null_keys(self) -> bool:
        """Whether records without a key give results (KIP-962)."""
        return self.keeps_left or self.keeps_right

    def build(self, context: OperatorContext) -> RunningStreamStreamJoin:
        """The running operator."""
        return RunningStreamStreamJoin(self, context)

    def describe(self) -> Mapping[str, object]:
        """Kind and parameters."""
        return {
            "operator": "stream_stream_join",
            "joiner": self.joiner.describe(),
            **self.windows.describe(),
            "stores": [self.left_store, self.right_store, self.held_store],
            "keeps_left": self.keeps_left,
            "keeps_right": self.keeps_right,
            "left_first": self.left_first,
            "emit_interval_ms": self.emit_interval_ms,
        }

    def state_stores(self) -> Sequence[StoreSpec]:
        """Those of both sides, and of held records."""
        settings = settings_of(self.describe(), "stores", "joiner")
        sides = [
            StoreSpec(store, "join-window", JoinWindowStore.families(store), {**settings, "side": side})
            for side, store in (("left", self.left_store), ("right", self.right_store))
        ]
        held = (
            []
            if self.held_store is None
            else [StoreSpec(self.held_store, "held-records", (self.held_store,), settings)]
        )
        return *sides, *held

    def policy(self, semantics: Semantics) -> NDArray[Any]:
        """`POLICY`, one."""
        return policy_of(
            self.windows, semantics,
            keeps_left=self.keeps_left, keeps_right=self.keeps_right,
            holds=self.held_store is not None, emit_interval_ms=self.emit_interval_ms,
        )  # fmt: skip


class RunningStreamStreamJoin:
    """The running operator."""

    def __init__(self, spec: StreamStreamJoin, context: OperatorContext) -> None:
        self._spec = spec
        self._context = context
        self._metrics = context.metrics
        self._policy = spec.policy(context.semantics)
        self._keeps = np.array([spec.keeps_left, spec.keeps_right])
        self._clocks = np.array([tuple(context.clock(name) for name in _CLOCK_NAMES)], dtype=CLOCKS)
        self._arrivals = max(context.clock("arrivals"), 0)
        self._stores = StreamJoinStores(context, spec.left_store, spec.right_store, spec.held_store)
        self._state: StreamJoinState | None = None
        sides = [context.changelogs.get(store) for store in (spec.left_store, spec.right_store)]
        held = None if spec.held_store is None else context.changelogs.get(spec.held_store)
        self._changelog = StreamJoinChangelog(sides, held, context.keys)
        self._results = JoinResults(context, spec.joiner)
        self._metrics.held_before = 0 if self._stores.held is None else self._stores.held.count()
        self._metrics.held_after = self._metrics.held_before

    def process(self, inputs: Sequence[Batch], uptake: Uptake) -> Batch:
        """The results of each record, in the order of records.

        Raises:
            ConfigurationError: The sides' keys differ in type, or are windowed.
        """
        left, right = self._sides(inputs)
        state = self._opened(left, right)
        merged, side = self._merged(left, right)
        arrivals = self._arrivals_of(merged, side, uptake)
        self._add_rows(state, arrivals, merged, side, (left.value, right.value))
        made = self._join(state, arrivals, merged)
        for of, batch in zip(SIDES, (left, right), strict=True):
            self._results.drop_late(batch, arrivals[side == of], uptake)
        results = self._results.records(state.rows, made.results, made.value, merged)
        state.rows.compact(self._expired)
        return results

    def seal(self, nothing: Sequence[Batch]) -> Batch:
        """Lone results of all records that are held: see `HoldingOperator`."""
        left, right = self._sides(nothing)
        state = self._opened(left, right)
        merged, _ = self._merged(left, right)
        rows, windows = state.rows.rows, self._spec.windows
        held = state.rows.in_order(state.rows.held)
        ahead = np.where(rows["side"][held] == LEFT, windows.after_ms, windows.before_ms)
        due = rows["time"][held] + ahead + windows.grace_period_ms + 1
        if not self._policy["as_shipped"][0]:
            due = np.maximum(due, rows["time"][held] + windows.retention_ms)
        order = np.argsort(due, kind="stable")
        held, due = held[order], due[order]
        is_left = rows["side"][held] == LEFT
        results = np.zeros(len(held), dtype=RESULT)
        results["left"], results["right"] = np.where(is_left, held, NO_ROW), np.where(is_left, NO_ROW, held)
        results["time"] = rows["time"][held]
        if self._changelog.wanted:
            self._changelog.remove(state.rows, held, int(self._clocks["stream_time"][0]))
        state.rows.give_up(held)
        self._metrics.account("unmatched", len(held))
        self._metrics.held_after = 0
        value = self._results.values(state.rows, results, merged, Asking(self._context.node, due))
        return self._results.records(state.rows, results, value, merged, due)

    def flush(self, write: WriteBatch) -> None:
        """Writes the records that have come since the last flush and may still be met; removes what nobody needs."""
        if self._state is not None:
            self._state.flush(self._expired, write)
            self._state = None

    def memory_bytes(self) -> int:
        """The records of the keys that have been asked for, and all that are held."""
        return 0 if self._state is None else self._state.rows.memory_bytes()

    @property
    def _expired(self) -> tuple[int, int]:
        """By side, the largest time that is out of its store's retention, ms."""
        retention_ms = self._spec.windows.retention_ms
        return int(self._clocks["left"][0]) - retention_ms, int(self._clocks["right"][0]) - retention_ms

    def _sides(self, inputs: Sequence[Batch]) -> tuple[Batch, Batch]:
        """Left and right, with key codes."""
        check_types(
            inputs[0].keys.type,
            inputs[1].keys.type,
            node=self._context.node,
            what="streams whose keys differ in type cannot be joined: {} and {}",
            way_round="bring the keys of one stream to the other's type with select_key() before",
        )
        one, other = (
            replace(batch, key_code=key_codes(batch, self._context)) for batch in with_keys_of_one_type(inputs)
        )
        return (one, other) if self._spec.left_first else (other, one)

    def _opened(self, left: Batch, right: Batch) -> StreamJoinState:
        """The working set, made now if there is none since the last flush."""
        if self._state is None:
            stored_until = (int(self._clocks["left"][0]), int(self._clocks["right"][0]))
            types = (left.value.type, right.value.type)
            self._state = StreamJoinState(self._context.keys, self._stores, types, stored_until)
        return self._state

    def _merged(self, left: Batch, right: Batch) -> tuple[Batch, NDArray[np.int64]]:
        """The records of both sides in order, instead of values whether there is one; and int64, their sides."""
        flags = [replace(batch, value=batch.value.is_valid()) for batch in (left, right)]
        merged, origin = concat_in_order(flags if self._spec.left_first else flags[::-1])
        return merged, origin if self._spec.left_first else 1 - origin

    def _arrivals_of(self, merged: Batch, side: NDArray[np.int64], uptake: Uptake) -> NDArray[Any]:
        """`ARRIVAL` without rows; what is not to get one has its outcome, `JOINED` is in the place of the others'."""
        has_value, has_key = np.asarray(merged.value), key_codes(merged, self._context) != NULL_KEY
        arrivals = np.zeros(len(merged), dtype=ARRIVAL)
        arrivals["time"] = merged.timestamp
        arrivals["wall_clock"] = uptake.stream_time_of(merged)
        without_key = np.where(self._keeps[side], LONE_WITHOUT_KEY, WITHOUT_KEY)
        arrivals["outcome"] = np.where(has_value, np.where(has_key, JOINED, without_key), WITHOUT_VALUE)
        return arrivals

    def _add_rows(
        self, state: StreamJoinState, arrivals: NDArray[Any], merged: Batch, side: NDArray[np.int64],
        values: Sequence[pa.Array],
    ) -> None:  # fmt: skip
        """Gives those arrivals rows that may give results."""
        value = np.empty(len(merged), dtype=np.int64)
        for of in SIDES:
            value[side == of] = state.rows.add_values(of, values[of]) + np.arange(len(values[of]))
        needed = np.isin(arrivals["outcome"], (JOINED, LONE_WITHOUT_KEY))
        arrival = self._arrivals + np.arange(np.count_nonzero(needed))
        self._arrivals += len(arrival)
        arrivals["row"] = NO_ROW
        arrivals["row"][needed] = state.rows.add(
            side[needed], key_codes(merged, self._context)[needed], merged.timestamp[needed], arrival, value[needed]
        )

    def _join(self, state: StreamJoinState, arrivals: NDArray[Any], merged: Batch) -> Joined:
        """The results; keeps clocks and figures."""
        numbers = arrivals["row"][arrivals["outcome"] == JOINED]
        rows = state.rows.rows[numbers]
        side = rows["side"].astype(np.int64)
        windows = self._spec.windows
        back = np.where(side == LEFT, windows.before_ms, windows.after_ms)
        state.load(side, rows["key_code"], rows["time"] - back, self._expired)
        may_be_held = numbers[self._keeps[side]] if self._stores.held is not None else numbers[:0]
        held = state.rows.held_sets(may_be_held)
        was_held = state.rows.rows["held"] == 1 if self._changelog.wanted else None
        joining = Joining(state.rows, held, self._policy, self._clocks)

        def ask(results: NDArray[Any], on_failure: OnFailure | None) -> tuple[pa.Array, Asking]:
            return self._results.caused(state.rows, results, merged, on_failure)

        if self._context.on_failure is None:
            results, met_held = joining.join(arrivals)
            made = Joined(results, ask(results, None)[0], results, met_held, 0)
        else:
            as_shipped = bool(self._policy["as_shipped"][0])
            made = LeavingOut(joining, ask, merged.sequence, self._context.on_failure, as_shipped).join(arrivals)
        if was_held is not None:
            self._changelog.add(state.rows, was_held, arrivals, made.changes, retention_ms=windows.retention_ms)
        for name in _CLOCK_NAMES:
            self._context.clocks[name] = int(self._clocks[name][0])
        self._context.clocks["arrivals"] = self._arrivals
        held_now = int(np.count_nonzero(state.rows.rows["held"]))
        self._results.account(arrivals, met_held=made.met_held, left_out=made.left_out, held=held_now)
        return made
